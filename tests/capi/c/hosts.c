/* What the host brings: a tool of its own, and answers to questions. */
#include "check.h"

/* Reads a stream until text appears; gives the place right behind it. */
static const char *until(a3s_handle stream, const char *text) {
	static char buf[1 << 16];
	for (;;) {
		const char *at;
		int64_t n = a3s_stream_next(stream, 10000, 1, buf, sizeof buf - 1, NULL);
		CHECK(n > 0);
		buf[n] = 0;
		at = strstr(buf, text);
		if (at != NULL)
			return at + strlen(text);
	}
}

/* The library asks the host for a tool call. */
static uint64_t asked(a3s_handle control) {
	const char *at = until(control, "\"request\":");
	CHECK(strstr(at, "\"op\":\"call\"") != NULL && strstr(at, "\"name\":\"shout\"") != NULL);
	return strtoull(at, NULL, 10);
}

static void host_tool(void) {
	static const char spec[] = "{\"name\": \"shout\", \"description\": \"Says it loud.\", \"read_only\": true,"
				   "\"parameters\": {\"type\": \"object\", \"properties\": {\"text\": {\"type\": \"string\"}}, \"required\": [\"text\"]}}";
	a3s_handle agent = open_agent("host.acl"), control = open_stream(agent), tool = 0, again = 0, session, run, stream;
	a3s_buf result = {NULL, 0};
	uint64_t request, call;
	OK(a3s_host_register(agent, "tool", spec, A3S_NTS, &tool));
	GIVES(A3S_E_EXISTS, a3s_host_register(agent, "tool", spec, A3S_NTS, &again));
	CHECK(again == 0);
	GIVES(A3S_E_UNSUPPORTED, a3s_host_register(agent, "no_such_kind", spec, A3S_NTS, &again));
	session = open_session(agent);

	/* Asked by the model, answered with a chunk and a reply; one reply counts. */
	run = start_run(session);
	stream = open_stream(run);
	request = asked(control);
	OK(a3s_host_chunk(agent, request, "{\"delta\": \"HEL\"}", A3S_NTS));
	OK(a3s_host_reply(session, request, "{\"result\": {\"output\": \"HELLO\"}}", A3S_NTS));
	GIVES(A3S_E_NOTFOUND, a3s_host_reply(agent, request, "{\"result\": {\"output\": \"AGAIN\"}}", A3S_NTS));
	GIVES(A3S_E_NOTFOUND, a3s_host_chunk(agent, request, "{\"delta\": \"LO\"}", A3S_NTS));
	until(stream, "\"delta\":\"HEL\"");
	until(stream, "\"output\":\"HELLO\"");
	drain(stream);

	/* Cancelled by the host: the request is withdrawn, a late reply finds nothing. */
	OK(a3s_call_start(session, "session.tool", "{\"name\": \"shout\", \"args\": {\"text\": \"x\"}}", A3S_NTS, &call));
	request = asked(control);
	OK(a3s_call_cancel(session, call));
	until(control, "\"host_cancel\"");
	GIVES(A3S_E_NOTFOUND, a3s_host_reply(agent, request, "{\"result\": {\"output\": \"LATE\"}}", A3S_NTS));
	CHECK(a3s_call_wait(session, call, 10000, &result) <= 0);
	a3s_buf_free(&result);

	/* Withdrawn: the tool is gone. */
	OK(a3s_close(tool, -1));
	OK(a3s_call(session, "session.tool_names", NULL, 0, 0, &result));
	CHECK(strstr(result.ptr, "shout") == NULL);
	a3s_buf_free(&result);
	OK(a3s_close(agent, -1));
	check_nothing_left();
}

/* A question, answered from the thread that reads the run. */
static void question(int approve) {
	char request[4096], answer[512];
	a3s_handle agent = open_agent("ask.acl"), session = 0, run, stream;
	const char *id;
	snprintf(request, sizeof request, "{\"workspace\": \"%s/workspace\", \"options\": {\"permission_policy\": {\"ask\": [\"bash\"]}, \"confirmation_policy\": {\"enabled\": true}}}", folder);
	OK(a3s_session_open(agent, request, A3S_NTS, &session));
	run = start_run(session);
	stream = open_stream(run);
	id = until(stream, "\"confirmation_required\",\"payload\":{\"tool_id\":\"");
	snprintf(answer, sizeof answer, "{\"confirm\": {\"tool_id\": \"%.*s\", \"approved\": %s}}", (int)strcspn(id, "\""), id, approve ? "true" : "false");
	OK(a3s_run_input(run, answer, A3S_NTS));
	GIVES(A3S_E_NOTFOUND, a3s_run_input(run, answer, A3S_NTS));
	id = until(stream, "\"tool_end\"");
	CHECK((strstr(id, "\"output\":\"asked for") != NULL) == (approve != 0));
	drain(stream);
	OK(a3s_close(agent, -1));
	check_nothing_left();
}

/* Closing with an open question and an open request ends both. */
static void closing(void) {
	char request[4096];
	a3s_handle agent = open_agent("ask.acl"), session = 0;
	int64_t began;
	snprintf(request, sizeof request, "{\"workspace\": \"%s/workspace\", \"options\": {\"permission_policy\": {\"ask\": [\"bash\"]}, \"confirmation_policy\": {\"enabled\": true}}}", folder);
	OK(a3s_session_open(agent, request, A3S_NTS, &session));
	until(open_stream(start_run(session)), "\"confirmation_required\"");
	began = now_ms();
	OK(a3s_close(agent, 5000));
	CHECK(now_ms() - began < 4000);
	check_nothing_left();
}

int main(int argc, char **argv) {
	begin(argc, argv);
	host_tool();
	question(1);
	question(0);
	closing();
	return 0;
}
