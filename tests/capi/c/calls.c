/* Operations: waited for, started, cancelled, out of time, and with forced faults. */
#include <pthread.h>

#include "check.h"

static a3s_handle session;

static void *cancel_all(void *arg) {
	(void)arg;
	sleep_ms(20);
	OK(a3s_call_cancel(session, 0));
	return NULL;
}

static void *close_session(void *arg) {
	(void)arg;
	sleep_ms(20);
	OK(a3s_close(session, -1));
	return NULL;
}

/* Reads the agent's stream until the end of that call is told. */
static void told(a3s_handle stream, uint64_t call) {
	static char buf[1 << 16];
	char want[64];
	int64_t n;
	snprintf(want, sizeof want, "\"call\":%lu", (unsigned long)call);
	for (;;) {
		n = a3s_stream_next(stream, 5000, 0, buf, sizeof buf - 1, NULL);
		CHECK(n > 0);
		buf[n] = 0;
		if (strstr(buf, "\"call_result\"") != NULL && strstr(buf, want) != NULL)
			return;
	}
}

int main(int argc, char **argv) {
	a3s_handle agent, control;
	a3s_buf result = {NULL, 0};
	uint64_t call = 0, other = 0;
	int64_t began;
	pthread_t thread;
	begin(argc, argv);
	agent = open_agent("agent.acl");
	session = open_session(agent);
	control = open_stream(agent);

	OK(a3s_call_start(session, "session.history", NULL, 0, &call));
	CHECK(call != 0);
	told(control, call);
	OK(a3s_call_wait(session, call, 0, &result));
	CHECK(result.ptr != NULL);
	a3s_buf_free(&result);
	GIVES(A3S_E_NOTFOUND, a3s_call_wait(session, call, 0, &result));

	/* Out of time: cancelled, acknowledged, and nothing goes on. */
	began = now_ms();
	GIVES(A3S_E_TIMEOUT, a3s_call(session, "test.block", NULL, 0, 50, &result));
	CODE(A3S_CODE_TIMEOUT);
	CHECK(result.ptr == NULL && now_ms() - began >= 50 && now_ms() - began < 2000);

	OK(a3s_call_start(session, "test.block", NULL, 0, &call));
	GIVES(A3S_E_TIMEOUT, a3s_call_wait(session, call, 10, &result));
	OK(a3s_call_cancel(session, call));
	GIVES(A3S_E_CANCELLED, a3s_call_wait(session, call, -1, &result));
	CODE(A3S_CODE_CANCELLED);
	told(control, call);
	CHECK(pthread_create(&thread, NULL, cancel_all, NULL) == 0);
	GIVES(A3S_E_CANCELLED, a3s_call(session, "test.block", NULL, 0, -1, &result));
	CHECK(pthread_join(thread, NULL) == 0);

	/* FFI-07: a panic becomes an error, in an export and in a goroutine. */
	GIVES(A3S_E_INTERNAL, a3s_call(session, "test.panic", NULL, 0, 0, &result));
	CODE(A3S_CODE_INTERNAL_ERROR);
	GIVES(A3S_E_INTERNAL, a3s_call(session, "test.nil", NULL, 0, 0, &result));
	GIVES(A3S_E_INTERNAL, a3s_call(session, "test.goroutine_panic", NULL, 0, 0, &result));
	OK(a3s_call_start(session, "test.panic", NULL, 0, &call));
	GIVES(A3S_E_INTERNAL, a3s_call_wait(session, call, -1, &result));
	OK(a3s_call(session, "session.history", NULL, 0, 0, &result)); /* and the library lives on */
	a3s_buf_free(&result);

	/* Closing ends calls that wait. */
	OK(a3s_call_start(session, "test.block", NULL, 0, &other));
	CHECK(pthread_create(&thread, NULL, close_session, NULL) == 0);
	GIVES(A3S_E_CLOSED, a3s_call(session, "test.block", NULL, 0, -1, &result));
	CHECK(pthread_join(thread, NULL) == 0);
	OK(a3s_close(agent, -1));
	check_nothing_left();
	return 0;
}
