/* How the library reaches the host: wake-ups, and requests that the host answers. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common.h"

static void late_events(a3s_handle agent, const char *session_json, int n, int64_t *stamps, double *late) {
	static const char tool[] = "{\"name\": \"pace\", \"description\": \"Paces.\", \"read_only\": true}";
	a3s_handle session, run, stream, control, registration;
	int got = 0;
	int64_t len;
	must(a3s_stream_open(agent, NULL, 0, &control), "a3s_stream_open");
	must(a3s_host_register(agent, "tool", tool, A3S_NTS, &registration), "a3s_host_register");
	must(a3s_session_open(agent, session_json, A3S_NTS, &session), "a3s_session_open");
	must(a3s_run_start(session, PROMPT, A3S_NTS, &run), "a3s_run_start");
	must(a3s_stream_open(run, NULL, 0, &stream), "a3s_stream_open");
	pacer_start(agent, host_request(control), n, 1000, stamps);
	while ((len = a3s_stream_next(stream, -1, 256, buf, CAP - 1, NULL)) > 0) {
		int64_t now = now_ns();
		const char *at = buf;
		buf[len] = 0;
		while ((at = strstr(at, "\"delta\":\"")) != NULL) {
			char *end;
			long i = strtol(at += 9, &end, 10);
			if (*end == ';' && i >= 0 && i < n && got < n)
				late[got++] = (double)(now - stamps[i]) / 1e9;
		}
	}
	pacer_join();
	if (got < n) {
		fprintf(stderr, "%d pieces of %d came\n", got, n);
		exit(1);
	}
	print_quantiles("sync", late, n);
	must(a3s_close(session, -1), "a3s_close");
}

static void late_wakes(a3s_handle agent, const char *session_json, int n, int64_t *stamps, double *late) {
	a3s_handle session, stream;
	int got = 0;
	must(a3s_session_open(agent, session_json, A3S_NTS, &session), "a3s_session_open");
	must(a3s_stream_open(session, NULL, 0, &stream), "a3s_stream_open");
	pacer_wake(stream, n, 1000, stamps);
	while (got < n) {
		int64_t status = a3s_stream_next(stream, -1, 1, buf, CAP, NULL), now = now_ns();
		if (status != A3S_E_WOKEN) {
			must(status, "a3s_stream_next");
			continue;
		}
		late[got] = (double)(now - stamps[got]) / 1e9;
		got++;
		pacer_seen();
	}
	pacer_join();
	print_quantiles("bare_sync", late, n);
	must(a3s_close(session, -1), "a3s_close");
}

static void late_socket(int n, int64_t *stamps, double *late) {
	int pair[2], got = 0;
	int32_t i;
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
		return;
	pacer_write(pair[1], n, 1000, stamps);
	while (got < n && read(pair[0], &i, sizeof i) == sizeof i)
		late[got++] = (double)(now_ns() - stamps[i]) / 1e9;
	pacer_join();
	print_quantiles("floor_sync", late, got);
}

void wake(a3s_handle agent, const char *session_json, int n) {
	int64_t *stamps = many(n, sizeof *stamps);
	double *late = many(n, sizeof *late);
	late_socket(n, stamps, late);
	late_wakes(agent, session_json, n, stamps, late);
	late_events(agent, session_json, n, stamps, late);
}

static struct {
	a3s_handle agent, control;
	int64_t *at;
	int n;
} desk;

/* Answers every request at once. */
static void *answer(void *unused) {
	uint64_t request;
	(void)unused;
	while ((request = host_request(desk.control)) != 0) {
		desk.at[desk.n++] = now_ns();
		must(a3s_host_reply(desk.agent, request, "{\"result\":{\"output\":\"ticked\"}}", A3S_NTS), "a3s_host_reply");
	}
	return NULL;
}

/* n runs of calls that another thread of this program answers: the time from one to the
 * next. */
void host(a3s_handle agent, const char *session_json, int n) {
	static const char tool[] = "{\"name\": \"tick\", \"description\": \"Ticks.\", \"read_only\": true}";
	a3s_handle session, registration;
	pthread_t thread;
	double *each = many(n * 1000, sizeof *each);
	int got = 0, run, i;
	desk.agent = agent;
	desk.at = many(1000, sizeof *desk.at);
	must(a3s_stream_open(agent, NULL, 0, &desk.control), "a3s_stream_open");
	must(a3s_host_register(agent, "tool", tool, A3S_NTS, &registration), "a3s_host_register");
	if (pthread_create(&thread, NULL, answer, NULL) != 0)
		exit(1);
	for (run = 0; run <= n; run++) { /* the first one warms up */
		desk.n = 0;
		finished(agent, session_json, &session);
		must(a3s_close(session, -1), "a3s_close");
		for (i = 1; i < desk.n && run > 0; i++)
			each[got++] = (double)(desk.at[i] - desk.at[i - 1]) / 1e9;
	}
	must(a3s_close(desk.control, -1), "a3s_close");
	pthread_join(thread, NULL);
	print_quantiles("sync", each, got);
}
