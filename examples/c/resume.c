/* Goes on with a conversation that another agent had: it is kept in files. */
#include "kit.h"

static const char options[] = "{\"session_id\": \"diary\", \"session_store\": {\"kind\": \"file\", \"dir\": \"sessions\"}}";

static void say(a3s_handle session, const char *prompt) {
	char *params = fill("{\"prompt\": ?}", prompt);
	a3s_buf result = call(session, "session.send", params);
	a3s_buf_free(&result);
	free(params);
}

int main(void) {
	a3s_handle agent = open_agent(), session;
	char *request = fill("{\"resume\": \"diary\", \"options\": #}", options);
	say(open_session(agent, options), "Today we measured.");
	must(a3s_close(agent, -1)); /* nothing is saved: the journal keeps what was said */

	agent = open_agent();
	must(a3s_session_open(agent, request, A3S_NTS, &session));
	say(session, "Tomorrow we cut.");
	print_history(session);
	must(a3s_close(agent, -1));
	free(request);
	return 0;
}
