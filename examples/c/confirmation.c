/* Is asked before a tool runs, and decides by the arguments of the call. */
#include "kit.h"

static void decide(a3s_handle run, json question) {
	char *tool = json_text(json_field(question, "tool_name"));
	char *path = json_text(json_field(json_field(question, "args"), "file_path"));
	char *id = json_text(json_field(question, "tool_id"));
	int approved = strncmp(path, "docs/", 5) == 0;
	char *answer = fill(
		"{\"confirm\": {\"tool_id\": ?, \"approved\": #, \"reason\": ?}}",
		id, approved ? "true" : "false", approved ? "" : "only docs/ may change");
	printf("? %s %s\n%s\n", tool, path, approved ? "yes" : "no: only docs/ may change");
	must(a3s_run_input(run, answer, A3S_NTS));
	free(answer);
	free(id);
	free(path);
	free(tool);
}

int main(void) {
	a3s_handle agent = open_agent();
	a3s_handle session = open_session(
		agent, "{\"permission_policy\": {\"default_decision\": \"ask\"}, \"confirmation_policy\": {\"enabled\": true}}");
	struct events events = start(session, "Write the plan and the settings.");
	json event;
	while (next_event(&events, &event)) {
		json type = json_field(event, "type"), payload = json_field(event, "payload");
		if (json_is(type, "confirmation_required")) {
			decide(events.run, payload);
		} else if (json_is(type, "tool_end")) {
			json_print(stdout, json_field(payload, "name"));
			printf(": exit code %ld\n", json_number(json_field(payload, "exit_code")));
		} else if (json_is(type, "agent_end")) {
			json_print(stdout, json_field(payload, "text"));
			printf("\n");
		} else if (json_is(type, "error")) {
			failed(payload);
		}
	}
	must(a3s_close(agent, -1));
	return 0;
}
