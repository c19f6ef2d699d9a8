/* The figures of the C surface. usage: bench WHAT AGENT_JSON SESSION_JSON N
 *
 * Prints lines "name value ...", values in seconds or bytes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "a3s.h"
#include "pacer.h"

#define PROMPT "{\"prompt\": \"go on\"}"

static char *buf;
static size_t cap = 128 << 10;

/* must ends the program with the library's own words if a call failed. */
static int64_t must(int64_t status, const char *what) {
	a3s_buf error = {NULL, 0};
	if (status >= 0)
		return status;
	a3s_last_error(&error);
	fprintf(stderr, "%s: %s\n", what, error.ptr == NULL ? a3s_status_name((a3s_status)status) : error.ptr);
	exit(1);
}

static double seconds(int64_t from) { return (double)(now_ns() - from) / 1e9; }

static int by_size(const void *a, const void *b) {
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void print_quantiles(const char *name, double *v, int n) {
	qsort(v, (size_t)n, sizeof *v, by_size);
	printf("%s %.9f %.9f\n", name, v[n / 2], v[n * 99 / 100]);
}

static long rss_bytes(void) {
	long size = 0, resident = 0;
	FILE *f = fopen("/proc/self/statm", "r");
	if (f == NULL || fscanf(f, "%ld %ld", &size, &resident) != 2)
		resident = 0;
	if (f != NULL)
		fclose(f);
	return resident * sysconf(_SC_PAGESIZE);
}

/* Reads a stream to its end; gives the bytes of the events that fit the buffer. */
static size_t drain(a3s_handle stream, uint32_t batch, double *took) {
	int64_t begin = now_ns(), n;
	size_t total = 0, needed = 0;
	*took = 0;
	for (;;) {
		n = a3s_stream_next(stream, -1, batch, buf, cap, &needed);
		if (n > 0) {
			total += (size_t)n;
			continue;
		}
		if (*took == 0) /* the terminal event holds the whole text again: it does not count */
			*took = seconds(begin);
		if (n == A3S_E_END)
			return total;
		if (n == A3S_E_BUFFER) {
			char *large = malloc(needed);
			if (large == NULL)
				exit(1);
			must(a3s_stream_next(stream, -1, 1, large, needed, NULL), "a3s_stream_next");
			free(large);
			continue;
		}
		must(n, "a3s_stream_next");
	}
}

/* n deltas in memory, read over and over. */
static void deliver(a3s_handle agent, const char *session_json, int n) {
	static const uint32_t batches[] = {1, 64, 256};
	a3s_handle session, run, stream;
	a3s_buf result;
	double took[9], produced;
	size_t total = 0, b;
	int64_t begin;
	int i;
	must(a3s_session_open(agent, session_json, A3S_NTS, &session), "a3s_session_open");
	begin = now_ns();
	must(a3s_run_start(session, PROMPT, A3S_NTS, &run), "a3s_run_start");
	must(a3s_run_wait(run, -1, &result), "a3s_run_wait");
	produced = seconds(begin);
	a3s_buf_free(&result);
	printf("produce %.12f\n", produced / n);
	for (b = 0; b < sizeof batches / sizeof batches[0]; b++) {
		for (i = 0; i < 9; i++) {
			must(a3s_stream_open(run, NULL, 0, &stream), "a3s_stream_open");
			total = drain(stream, batches[b], &took[i]);
			a3s_close(stream, -1);
		}
		qsort(took, 9, sizeof *took, by_size);
		printf("rate%u %.1f\n", batches[b], n / took[4]);
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

static void calls(a3s_handle agent, const char *session_json, int n) {
	a3s_handle session, stream;
	a3s_buf out;
	must(a3s_session_open(agent, session_json, A3S_NTS, &session), "a3s_session_open");
	must(a3s_stream_open(session, NULL, 0, &stream), "a3s_stream_open");
	PER_CALL("abi_version", n, a3s_abi_version());
	PER_CALL("stream_wake", n, a3s_stream_wake(stream));
	must(a3s_stream_next(stream, 0, 1, buf, cap, NULL) == A3S_E_WOKEN ? 0 : -1, "a3s_stream_next");
	PER_CALL("stream_next", n, a3s_stream_next(stream, 0, 1, buf, cap, NULL));
	PER_CALL("session_info", n / 10 + 1, must(a3s_call(session, "session.info", NULL, 0, 0, &out), "a3s_call"); a3s_buf_free(&out));
}

/* The number of the next host request on the control stream. */
static uint64_t host_request(a3s_handle control) {
	for (;;) {
		int64_t n = must(a3s_stream_next(control, -1, 1, buf, cap - 1, NULL), "a3s_stream_next");
		const char *at;
		buf[n] = 0;
		if (strstr(buf, "\"host_request\"") != NULL && (at = strstr(buf, "\"request\":")) != NULL)
			return strtoull(at + 10, NULL, 10);
	}
}

static void wake(a3s_handle agent, const char *session_json, int n) {
	static const char tool[] = "{\"name\": \"pace\", \"description\": \"Paces.\", \"read_only\": true}";
	a3s_handle session, run, stream, control, registration;
	int64_t *stamps = calloc((size_t)n, sizeof *stamps);
	double *late = calloc((size_t)n, sizeof *late);
	int got = 0;
	int64_t len;
	if (stamps == NULL || late == NULL)
		exit(1);
	must(a3s_stream_open(agent, NULL, 0, &control), "a3s_stream_open");
	must(a3s_host_register(agent, "tool", tool, A3S_NTS, &registration), "a3s_host_register");
	must(a3s_session_open(agent, session_json, A3S_NTS, &session), "a3s_session_open");
	must(a3s_run_start(session, PROMPT, A3S_NTS, &run), "a3s_run_start");
	must(a3s_stream_open(run, NULL, 0, &stream), "a3s_stream_open");
	pacer_start(agent, host_request(control), n, 1000, stamps);
	while ((len = a3s_stream_next(stream, -1, 256, buf, cap - 1, NULL)) > 0) {
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
	print_quantiles("event", late, n);

	must(a3s_stream_open(session, NULL, 0, &stream), "a3s_stream_open");
	pacer_wake(stream, n, 1000, stamps);
	for (got = 0; got < n;) {
		int64_t status = a3s_stream_next(stream, -1, 1, buf, cap, NULL), now = now_ns();
		if (status != A3S_E_WOKEN)
			must(status, "a3s_stream_next");
		else {
			late[got] = (double)(now - stamps[got]) / 1e9;
			got++;
			pacer_seen();
		}
	}
	pacer_join();
	print_quantiles("wake", late, n);
}

/* Sessions opened, run, read and closed, n times. */
static void cycle(a3s_handle agent, const char *session_json, int n) {
	double *each = calloc((size_t)n, sizeof *each), took;
	double parts[4] = {0, 0, 0, 0};
	long before = 0, middle = 0;
	int i;
	if (each == NULL)
		exit(1);
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

int main(int argc, char **argv) {
	a3s_handle agent;
	int n;
	if (argc != 5) {
		fprintf(stderr, "usage: bench WHAT AGENT_JSON SESSION_JSON N\n");
		return 2;
	}
	n = atoi(argv[4]);
	if ((buf = malloc(cap)) == NULL)
		return 1;
	must(a3s_agent_open(argv[2], A3S_NTS, &agent), "a3s_agent_open");
	if (strcmp(argv[1], "deliver") == 0)
		deliver(agent, argv[3], n);
	else if (strcmp(argv[1], "call") == 0)
		calls(agent, argv[3], n);
	else if (strcmp(argv[1], "wake") == 0)
		wake(agent, argv[3], n);
	else if (strcmp(argv[1], "cycle") == 0)
		cycle(agent, argv[3], n);
	else
		return 2;
	must(a3s_close(agent, -1), "a3s_close");
	return 0;
}
