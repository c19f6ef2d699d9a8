/* Stops a run that takes too long. */
#include "kit.h"

int main(void) {
	a3s_handle agent = open_agent();
	a3s_handle session = open_session(agent, "{}");
	struct events events = start(session, "Count to a million.");
	json event;
	a3s_buf info;
	while (next_event(&events, &event)) {
		json type = json_field(event, "type"), payload = json_field(event, "payload");
		if (json_is(type, "text_delta")) {
			json_print(stdout, json_field(payload, "text"));
			printf("\n");
			must(a3s_run_cancel(events.run, NULL, 0)); /* returns at once; the run ends with one terminal event */
		} else if (json_is(type, "error")) {
			printf("error: ");
			json_print(stdout, json_field(payload, "code"));
			printf("\n");
		}
	}
	info = call(events.run, "run.info", "{}");
	printf("run: ");
	json_print(stdout, json_field(json_field(json_of(info), "run"), "status"));
	printf("\n");
	a3s_buf_free(&info);
	must(a3s_close(agent, -1));
	return 0;
}
