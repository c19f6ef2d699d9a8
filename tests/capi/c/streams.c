/* Events by pull: batches, bounds, the descriptor, waking, the end. */
#include <poll.h>
#include <pthread.h>

#include "check.h"

static a3s_handle blocked;

static void *wake(void *arg) {
	(void)arg;
	sleep_ms(20);
	OK(a3s_stream_wake(blocked));
	return NULL;
}

static void *close_it(void *arg) {
	(void)arg;
	sleep_ms(20);
	OK(a3s_close(blocked, -1));
	return NULL;
}

int main(int argc, char **argv) {
	char buf[1 << 16], one[64];
	a3s_handle agent, session, run, stream;
	a3s_buf result = {NULL, 0};
	size_t needed = 0;
	int64_t n;
	int fd;
	struct pollfd p;
	pthread_t thread;
	begin(argc, argv);
	agent = open_agent("agent.acl");
	session = open_session(agent);
	run = start_run(session);
	OK(a3s_run_wait(run, 10000, &result));
	CHECK(strstr(result.ptr, "done") != NULL);
	a3s_buf_free(&result);
	OK(a3s_run_wait(run, 0, &result)); /* may be asked again */
	a3s_buf_free(&result);

	stream = open_stream(run);
	fd = a3s_stream_fd(stream);
	CHECK(fd >= 0 && fd == a3s_stream_fd(stream));
	p.fd = fd;
	p.events = POLLIN;
	CHECK(poll(&p, 1, 1000) == 1);
	GIVES(A3S_E_BUFFER, a3s_stream_next(stream, 0, 0, one, sizeof one, &needed));
	CODE(A3S_CODE_BUFFER_TOO_SMALL);
	CHECK(needed > sizeof one && needed < sizeof buf);
	GIVES(A3S_E_INVALID, a3s_stream_next(stream, 0, 0, NULL, 10, NULL));
	n = a3s_stream_next(stream, 0, 1, buf, needed, &needed); /* exactly as much as was said */
	CHECK(n > 0 && needed == 0 && buf[0] == '[' && buf[n - 1] == ']');
	buf[n] = 0;
	CHECK(strstr(buf, "\"agent_start\"") != NULL && strstr(buf, "\"sequence\":0") != NULL);
	CHECK(strstr(buf, "\"sequence\":1") == NULL);
	n = a3s_stream_next(stream, 0, 0, buf, sizeof buf - 1, NULL);
	CHECK(n > 0);
	buf[n] = 0;
	CHECK(strstr(buf, "\"sequence\":1") != NULL && strstr(buf, "\"agent_end\"") != NULL);
	GIVES(A3S_E_END, a3s_stream_next(stream, -1, 0, buf, sizeof buf, NULL));
	GIVES(A3S_E_END, a3s_stream_next(stream, 0, 0, buf, sizeof buf, NULL));
	CHECK(poll(&p, 1, 1000) == 1); /* the end stays readable */
	OK(a3s_close(stream, -1));

	OK(a3s_stream_open(run, "{\"from_seq\": 1}", A3S_NTS, &stream));
	n = a3s_stream_next(stream, 0, 1, buf, sizeof buf - 1, NULL);
	CHECK(n > 0);
	buf[n] = 0;
	CHECK(strstr(buf, "\"sequence\":1,") != NULL);
	OK(a3s_close(stream, -1));

	/* Nothing comes on a session at rest. */
	blocked = open_stream(session);
	GIVES(0, a3s_stream_next(blocked, 0, 0, buf, sizeof buf, NULL));
	GIVES(0, a3s_stream_next(blocked, 10, 0, buf, sizeof buf, NULL));
	CHECK(pthread_create(&thread, NULL, wake, NULL) == 0);
	GIVES(A3S_E_WOKEN, a3s_stream_next(blocked, -1, 0, buf, sizeof buf, NULL));
	CHECK(pthread_join(thread, NULL) == 0);
	OK(a3s_stream_wake(blocked));
	GIVES(A3S_E_WOKEN, a3s_stream_next(blocked, -1, 0, buf, sizeof buf, NULL));
	CHECK(pthread_create(&thread, NULL, close_it, NULL) == 0);
	GIVES(A3S_E_CLOSED, a3s_stream_next(blocked, -1, 0, buf, sizeof buf, NULL));
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(a3s_stream_open(session, "{\"from_seq\": 1}", A3S_NTS, &stream) < 0); /* numbers are a run's */
	OK(a3s_close(agent, -1));
	check_nothing_left();
	return 0;
}
