/* A thousand threads of the host at once: each has its own session and its own last
 * error, and all of them look at one session that they share. usage: storm FOLDER */
#include <pthread.h>

#include "check.h"

enum { THREADS = 1000 };

static a3s_handle agent, shared;
static pthread_barrier_t gate;

static void *one(void *arg) {
	const int number = (int)(intptr_t)arg;
	char name[32], buf[4096];
	a3s_buf text = {NULL, 0};
	a3s_handle session, stream;
	int64_t n;
	pthread_barrier_wait(&gate);

	snprintf(name, sizeof name, "no.such_%d_", number);
	GIVES(A3S_E_INVALID, a3s_call(shared, name, NULL, 0, 0, &text));
	OK(a3s_call(shared, "session.history", NULL, 0, 0, &text));
	a3s_buf_free(&text);
	OK(a3s_last_error(&text)); /* a success leaves it; no other thread touches it */
	CHECK(text.ptr != NULL && strstr(text.ptr, name) != NULL);
	a3s_buf_free(&text);

	session = open_session(agent);
	stream = open_stream(start_run(session));
	while ((n = a3s_stream_next(stream, 60000, 0, buf, sizeof buf, NULL)) > 0) {
	}
	GIVES(A3S_E_END, n);
	OK(a3s_close(session, 60000));
	GIVES(A3S_E_HANDLE, a3s_close(session, 0));
	return NULL;
}

int main(int argc, char **argv) {
	static pthread_t threads[THREADS];
	pthread_attr_t small;
	int i;
	begin(argc, argv);
	agent = open_agent("agent.acl");
	shared = open_session(agent);
	pthread_barrier_init(&gate, NULL, THREADS);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 256 << 10);
	for (i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], &small, one, (void *)(intptr_t)i) == 0);
	for (i = 0; i < THREADS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	OK(a3s_close(agent, -1));
	check_nothing_left();
	return 0;
}
