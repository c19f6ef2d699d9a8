/* What comes in is checked before anything else looks at it. */
#include "check.h"

/* Opens an agent with a text that must be refused. */
static void refuse(const char *text, size_t len, const char *code) {
	a3s_handle agent = 99;
	GIVES(A3S_E_INVALID, a3s_agent_open(text, len, &agent));
	CODE(code);
	CHECK(agent == 0);
}

int main(int argc, char **argv) {
	static char big[(64 << 20) + 2];
	char deep[200];
	a3s_buf buf = {NULL, 0};
	a3s_handle agent, session, out = 99;
	begin(argc, argv);

	refuse(NULL, 5, A3S_CODE_INVALID_REQUEST);
	refuse(NULL, A3S_NTS, A3S_CODE_INVALID_REQUEST);
	refuse("{\"acl\": \"\xff\"}", A3S_NTS, A3S_CODE_INVALID_REQUEST);
	refuse("{\"a\0cl\": 1}", 11, A3S_CODE_INVALID_REQUEST);
	refuse("{", A3S_NTS, A3S_CODE_INVALID_REQUEST);
	refuse("{\"acl\": \"\", \"acl_pth\": \"\"}", A3S_NTS, A3S_CODE_INVALID_REQUEST);
	{
		a3s_buf error = {NULL, 0};
		OK(a3s_last_error(&error));
		CHECK(strstr(error.ptr, "acl_pth") != NULL); /* an unknown key is named */
		a3s_buf_free(&error);
	}
	memset(deep, '[', sizeof deep);
	refuse(deep, 65, A3S_CODE_INVALID_REQUEST);
	memset(big, ' ', sizeof big - 1);
	refuse(big, sizeof big - 1, A3S_CODE_INVALID_REQUEST);
	refuse(big, A3S_NTS, A3S_CODE_INVALID_REQUEST);
	refuse(big, (size_t)1 << 62, A3S_CODE_INVALID_REQUEST); /* never read */
	GIVES(A3S_E_INVALID, a3s_agent_open("{}", 2, NULL));

	agent = open_agent("agent.acl");
	session = open_session(agent);
	GIVES(A3S_E_INVALID, a3s_call(session, NULL, NULL, 0, 0, &buf));
	GIVES(A3S_E_INVALID, a3s_call(session, "", NULL, 0, 0, &buf));
	GIVES(A3S_E_INVALID, a3s_call(session, "\xff", NULL, 0, 0, &buf));
	memset(big, 'm', 300);
	big[300] = 0;
	GIVES(A3S_E_INVALID, a3s_call(session, big, NULL, 0, 0, &buf));
	GIVES(A3S_E_INVALID, a3s_call(session, "session.history", "{}", 2, 0, NULL));
	CHECK(a3s_call(session, "session.no_such_thing", NULL, 0, 0, &buf) < 0);
	CHECK(a3s_call(session, "session.history", "{\"no_such_key\": 1}", A3S_NTS, 0, &buf) == A3S_E_INVALID);
	CHECK(buf.ptr == NULL);
	GIVES(A3S_E_INVALID, a3s_call_start(session, "session.history", "{}", 2, NULL));
	GIVES(A3S_E_INVALID, a3s_session_open(agent, "{}", 2, NULL));
	CHECK(a3s_session_open(agent, "{\"workspace\": \"/nowhere/at/all\"}", A3S_NTS, &out) < 0);
	CODE(A3S_CODE_SESSION_CONFIGURATION_ERROR);
	CHECK(out == 0);
	GIVES(A3S_E_INVALID, a3s_run_start(session, "[]", 2, &out));
	GIVES(A3S_E_INVALID, a3s_run_start(session, "{\"promt\": \"x\"}", A3S_NTS, &out));
	GIVES(A3S_E_INVALID, a3s_host_register(agent, NULL, "{}", 2, &out));
	CHECK(a3s_host_register(agent, "no_such_kind", "{}", 2, &out) < 0);
	GIVES(A3S_E_NOTFOUND, a3s_host_reply(agent, 12345, "{\"result\": {}}", A3S_NTS));
	GIVES(A3S_E_NOTFOUND, a3s_call_wait(session, 12345, 0, &buf));
	GIVES(A3S_E_NOTFOUND, a3s_call_cancel(session, 12345));
	OK(a3s_call(session, "session.history", NULL, 0, 0, &buf));
	CHECK(buf.ptr != NULL && buf.len == strlen(buf.ptr));
	a3s_buf_free(&buf);
	OK(a3s_close(agent, -1));
	check_nothing_left();
	return 0;
}
