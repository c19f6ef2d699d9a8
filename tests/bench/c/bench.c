/* The figures of the C surface. usage: bench PART AGENT_JSON SESSION_JSON N [EMPTY] */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"

/* n deltas in memory, read over and over. */
void deliver(a3s_handle agent, const char *session_json, int n) {
	static const struct {
		uint32_t size;
		const char *name;
	} batches[] = {{1, "one"}, {64, "some"}, {256, "raw"}};
	a3s_handle session, run, stream;
	double took[9];
	size_t total = 0, b;
	int64_t begin = now_ns();
	int i;
	run = finished(agent, session_json, &session);
	printf("produce %.12f\n", seconds(begin) / n);
	for (b = 0; b < sizeof batches / sizeof batches[0]; b++) {
		for (i = 0; i < 9; i++) {
			must(a3s_stream_open(run, NULL, 0, &stream), "a3s_stream_open");
			total = drain(stream, batches[b].size, &took[i]);
			a3s_close(stream, -1);
		}
		printf("%s %.1f\n", batches[b].name, n / median(took, 9));
	}
	printf("bytes %.1f\n", (double)total / n);
}

#define PER_CALL(name, times, call) \
	do { \
		double each[51]; \
		int i_, j_; \
		for (i_ = 0; i_ < 51; i_++) { \
			int64_t begin_ = now_ns(); \
			for (j_ = 0; j_ < (times); j_++) { \
				call; \
			} \
			each[i_] = seconds(begin_) / (times); \
		} \
		print_quantiles(name, each, 51); \
	} while (0)

void call(a3s_handle agent, const char *session_json, int n, const char *empty) {
	a3s_handle session, stream;
	a3s_buf out;
	must(a3s_session_open(agent, session_json, A3S_NTS, &session), "a3s_session_open");
	must(a3s_stream_open(session, NULL, 0, &stream), "a3s_stream_open");
	PER_CALL("abi_version", n, a3s_abi_version());
	PER_CALL("stream_wake", n, a3s_stream_wake(stream));
	must(a3s_stream_next(stream, 0, 1, buf, CAP, NULL) == A3S_E_WOKEN ? 0 : -1, "a3s_stream_next");
	PER_CALL("stream_next", n, a3s_stream_next(stream, 0, 1, buf, CAP, NULL));
	PER_CALL("session_info", n / 10 + 1, must(a3s_call(session, "session.info", NULL, 0, 0, &out), "a3s_call"); a3s_buf_free(&out));
	if (empty != NULL) { /* last: a second Go runtime comes with it */
		void *lib = dlopen(empty, RTLD_NOW | RTLD_LOCAL), *symbol = lib == NULL ? NULL : dlsym(lib, "empty");
		void (*fn)(void);
		if (symbol == NULL) {
			fprintf(stderr, "%s\n", dlerror());
			exit(1);
		}
		memcpy(&fn, &symbol, sizeof fn);
		PER_CALL("empty", n, fn());
	}
}

/* Sessions opened, run, read and closed, n times. */
void cycle(a3s_handle agent, const char *session_json, int n) {
	double *each = many(n, sizeof *each), took;
	double parts[4] = {0, 0, 0, 0};
	long before = 0, middle = 0;
	int i;
	for (i = 0; i < n; i++) {
		a3s_handle session, run, stream;
		int64_t begin = now_ns(), t;
		if (i == n / 4)
			before = rss_bytes();
		if (i == n / 2)
			middle = rss_bytes();
		must(a3s_session_open(agent, session_json, A3S_NTS, &session), "a3s_session_open");
		parts[0] += seconds(begin);
		t = now_ns();
		must(a3s_run_start(session, PROMPT, A3S_NTS, &run), "a3s_run_start");
		must(a3s_stream_open(run, NULL, 0, &stream), "a3s_stream_open");
		drain(stream, 256, &took);
		parts[1] += seconds(t);
		t = now_ns();
		must(a3s_close(session, -1), "a3s_close");
		parts[2] += seconds(t);
		each[i] = seconds(begin);
	}
	print_quantiles("cycle", each, n);
	printf("parts %.9f %.9f %.9f\n", parts[0] / n, parts[1] / n, parts[2] / n);
	printf("rss %ld %ld %ld\n", before, middle, rss_bytes());
}

/* The first event of a process that began a moment ago. */
static void first(a3s_handle agent, const char *session_json) {
	a3s_handle session, run, stream;
	must(a3s_session_open(agent, session_json, A3S_NTS, &session), "a3s_session_open");
	must(a3s_run_start(session, PROMPT, A3S_NTS, &run), "a3s_run_start");
	must(a3s_stream_open(run, NULL, 0, &stream), "a3s_stream_open");
	must(a3s_stream_next(stream, -1, 256, buf, CAP, NULL), "a3s_stream_next");
	puts("first");
	fflush(stdout);
}

/* What further sessions take, before and after a short run each. */
void memory(a3s_handle agent, const char *session_json, int n) {
	a3s_handle *sessions = many(n, sizeof *sessions), session, run;
	a3s_buf result;
	long before;
	int i;
	finished(agent, session_json, &session);
	before = rss_bytes();
	for (i = 0; i < n; i++)
		must(a3s_session_open(agent, session_json, A3S_NTS, &sessions[i]), "a3s_session_open");
	printf("fresh %.1f\n", (double)(rss_bytes() - before) / n);
	for (i = 0; i < n; i++) {
		must(a3s_run_start(sessions[i], PROMPT, A3S_NTS, &run), "a3s_run_start");
		must(a3s_run_wait(run, -1, &result), "a3s_run_wait");
		a3s_buf_free(&result);
		must(a3s_close(run, -1), "a3s_close");
	}
	printf("used %.1f\n", (double)(rss_bytes() - before) / n);
}

int main(int argc, char **argv) {
	a3s_handle agent;
	const char *part, *session;
	int n;
	if (argc < 5) {
		fprintf(stderr, "usage: bench PART AGENT_JSON SESSION_JSON N [EMPTY]\n");
		return 2;
	}
	part = argv[1];
	session = argv[3];
	n = atoi(argv[4]);
	must(a3s_agent_open(argv[2], A3S_NTS, &agent), "a3s_agent_open");
	if (strcmp(part, "deliver") == 0)
		deliver(agent, session, n);
	else if (strcmp(part, "call") == 0)
		call(agent, session, n, argv[5]);
	else if (strcmp(part, "wake") == 0)
		wake(agent, session, n);
	else if (strcmp(part, "host") == 0)
		host(agent, session, n);
	else if (strcmp(part, "memory") == 0)
		memory(agent, session, n);
	else if (strcmp(part, "cycle") == 0)
		cycle(agent, session, n);
	else if (strcmp(part, "first") == 0)
		first(agent, session);
	else
		return 2;
	must(a3s_close(agent, -1), "a3s_close");
	return 0;
}
