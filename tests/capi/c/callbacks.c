/* Events by push: in order, calls from inside, closing from inside, closing meanwhile, a
 * callback that does not return in time. */
#include <pthread.h>

#include "check.h"

typedef struct listener {
	a3s_handle to_call, to_close;
	int closes; /* what closing from inside must give */
	int hang_ms;
	int batches, ended, after_end, running;
	char seen[1 << 16];
	pthread_mutex_t lock;
	pthread_cond_t changed;
} listener;

static void init(listener *l) {
	memset(l, 0, sizeof *l);
	CHECK(pthread_mutex_init(&l->lock, NULL) == 0);
	CHECK(pthread_cond_init(&l->changed, NULL) == 0);
}

static void on_events(uintptr_t user_data, const char *json, size_t len) {
	listener *l = (listener *)user_data;
	a3s_buf result = {NULL, 0};
	size_t have;
	CHECK(json[0] == '[' && json[len - 1] == ']');
	pthread_mutex_lock(&l->lock);
	CHECK(!l->running); /* one at a time */
	l->running = 1;
	l->after_end += l->ended;
	l->batches++;
	have = strlen(l->seen);
	if (have + len < sizeof l->seen)
		memcpy(l->seen + have, json, len);
	pthread_cond_broadcast(&l->changed);
	pthread_mutex_unlock(&l->lock);
	if (l->to_call != 0) {
		OK(a3s_call(l->to_call, "session.history", NULL, 0, 1000, &result));
		a3s_buf_free(&result);
		GIVES(A3S_E_NOTFOUND, a3s_host_reply(l->to_call, 999, "{\"result\": {}}", A3S_NTS));
	}
	if (l->hang_ms > 0)
		sleep_ms(l->hang_ms);
	if (l->to_close != 0) {
		GIVES(l->closes, a3s_close(l->to_close, -1));
		l->to_close = 0;
	}
	pthread_mutex_lock(&l->lock);
	l->running = 0;
	pthread_mutex_unlock(&l->lock);
}

static void on_end(uintptr_t user_data) {
	listener *l = (listener *)user_data;
	pthread_mutex_lock(&l->lock);
	l->ended++;
	pthread_cond_broadcast(&l->changed);
	pthread_mutex_unlock(&l->lock);
}

static void wait_for(listener *l, int *what) {
	pthread_mutex_lock(&l->lock);
	while (*what == 0)
		pthread_cond_wait(&l->changed, &l->lock);
	pthread_mutex_unlock(&l->lock);
}

/* The numbers of the events rise by one. */
static void in_order(const listener *l) {
	const char *at = l->seen;
	long expected = 0;
	while ((at = strstr(at, "\"sequence\":")) != NULL) {
		at += strlen("\"sequence\":");
		CHECK(strtol(at, NULL, 10) == expected);
		expected++;
	}
	CHECK(expected > 2);
}

int main(int argc, char **argv) {
	static listener l;
	a3s_handle agent, session, run, stream;
	char buf[64];
	int64_t began;
	begin(argc, argv);

	/* To the end of a run, calling from inside. */
	agent = open_agent("agent.acl");
	session = open_session(agent);
	run = start_run(session);
	stream = open_stream(run);
	init(&l);
	l.to_call = session;
	OK(a3s_stream_subscribe(stream, 1, 0, on_events, (uintptr_t)&l, on_end));
	GIVES(A3S_E_BUSY, a3s_stream_next(stream, 0, 0, buf, sizeof buf, NULL));
	wait_for(&l, &l.ended);
	CHECK(l.ended == 1 && l.batches > 2);
	in_order(&l);
	CHECK(strstr(l.seen, "\"agent_end\"") != NULL);
	{
		static listener second;
		init(&second);
		GIVES(A3S_E_BUSY, a3s_stream_subscribe(stream, 1, 0, on_events, (uintptr_t)&second, on_end));
		CHECK(second.ended == 1 && second.batches == 0);
		GIVES(A3S_E_INVALID, a3s_stream_subscribe(stream, 1, 0, NULL, (uintptr_t)&second, on_end));
		CHECK(second.ended == 2);
	}

	/* Gathered batches. */
	run = start_run(session);
	stream = open_stream(run);
	init(&l);
	OK(a3s_stream_subscribe(stream, 0, 2000, on_events, (uintptr_t)&l, on_end));
	wait_for(&l, &l.ended);
	in_order(&l);
	CHECK(l.ended == 1);
	OK(a3s_close(agent, -1));
	check_nothing_left();

	/* Closing from inside: the stream, its session, its agent. */
	{
		int what;
		for (what = 0; what < 3; what++) {
			agent = open_agent("agent.acl");
			session = open_session(agent);
			run = start_run(session);
			stream = open_stream(run);
			init(&l);
			l.to_close = what == 0 ? stream : what == 1 ? session : agent;
			l.closes = A3S_PENDING;
			OK(a3s_stream_subscribe(stream, 1, 0, on_events, (uintptr_t)&l, on_end));
			wait_for(&l, &l.ended);
			if (what < 2)
				OK(a3s_close(agent, -1));
			wait_nothing_left();
			CHECK(l.batches == 1 && l.ended == 1 && l.after_end == 0);
		}
	}

	/* Closing while events stream: silence after close has returned. */
	agent = open_agent("slow.acl");
	session = open_session(agent);
	run = start_run(session);
	stream = open_stream(run);
	init(&l);
	OK(a3s_stream_subscribe(stream, 1, 0, on_events, (uintptr_t)&l, on_end));
	wait_for(&l, &l.batches);
	OK(a3s_close(session, -1));
	CHECK(l.ended == 1 && l.after_end == 0);
	CHECK(strstr(l.seen, "\"CANCELLED\"") != NULL); /* the run's end was still told */
	OK(a3s_close(agent, -1));
	check_nothing_left();

	/* A callback that does not return: close is bounded, the rest ends later. */
	agent = open_agent("agent.acl");
	session = open_session(agent);
	run = start_run(session);
	stream = open_stream(run);
	init(&l);
	l.hang_ms = 700;
	OK(a3s_stream_subscribe(stream, 1, 0, on_events, (uintptr_t)&l, on_end));
	wait_for(&l, &l.batches);
	began = now_ms();
	GIVES(A3S_E_TIMEOUT, a3s_close(agent, 100));
	CODE(A3S_CODE_TIMEOUT);
	CHECK(now_ms() - began < 600);
	wait_for(&l, &l.ended);
	wait_nothing_left();
	CHECK(l.ended == 1 && l.after_end == 0);
	return 0;
}
