/* Shows the answer and the tool calls of a run as they come. */
#include "kit.h"

int main(void) {
	a3s_handle agent = open_agent();
	a3s_handle session = open_session(agent, "{}"); /* without a policy a model may read and nothing else */
	struct events events = start(session, "What does hello.py print?");
	json event;
	while (next_event(&events, &event)) {
		json type = json_field(event, "type"), payload = json_field(event, "payload");
		if (json_is(type, "text_delta")) {
			json_print(stdout, json_field(payload, "text"));
			fflush(stdout);
		} else if (json_is(type, "tool_start")) {
			printf("\n→ ");
			json_print(stdout, json_field(payload, "name"));
			printf("\n");
		} else if (json_is(type, "agent_end")) {
			printf("\n");
		} else if (json_is(type, "error")) { /* a run that fails is an event */
			failed(payload);
		}
	}
	must(a3s_close(agent, -1)); /* and all that belongs to it */
	return 0;
}
