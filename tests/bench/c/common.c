#include "common.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char buf[CAP];

int64_t must(int64_t status, const char *what) {
	a3s_buf error = {NULL, 0};
	if (status >= 0)
		return status;
	a3s_last_error(&error);
	fprintf(stderr, "%s: %s\n", what, error.ptr == NULL ? a3s_status_name((a3s_status)status) : error.ptr);
	exit(1);
}

double seconds(int64_t from) { return (double)(now_ns() - from) / 1e9; }

void *many(int n, size_t size) {
	void *p = calloc((size_t)n, size);
	if (p == NULL)
		exit(1);
	return p;
}

static int by_size(const void *a, const void *b) {
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

void print_quantiles(const char *name, double *v, int n) {
	double p50 = median(v, n);
	printf("%s %.9f %.9f\n", name, p50, v[n * 99 / 100]);
}

double median(double *v, int n) {
	qsort(v, (size_t)n, sizeof *v, by_size);
	return v[n / 2];
}

long rss_bytes(void) {
	long size = 0, resident = 0;
	FILE *f = fopen("/proc/self/statm", "r");
	if (f == NULL || fscanf(f, "%ld %ld", &size, &resident) != 2)
		resident = 0;
	if (f != NULL)
		fclose(f);
	return resident * sysconf(_SC_PAGESIZE);
}

size_t drain(a3s_handle stream, uint32_t batch, double *took) {
	int64_t begin = now_ns(), n;
	size_t total = 0, needed = 0;
	*took = 0;
	for (;;) {
		n = a3s_stream_next(stream, -1, batch, buf, CAP, &needed);
		if (n > 0) {
			total += (size_t)n;
			continue;
		}
		if (*took == 0) /* the terminal event holds the whole text again: it does not count */
			*took = seconds(begin);
		if (n == A3S_E_END)
			return total;
		if (n == A3S_E_BUFFER) {
			char *large = many(1, needed);
			must(a3s_stream_next(stream, -1, 1, large, needed, NULL), "a3s_stream_next");
			free(large);
			continue;
		}
		must(n, "a3s_stream_next");
	}
}

uint64_t host_request(a3s_handle control) {
	for (;;) {
		int64_t n = a3s_stream_next(control, -1, 1, buf, CAP - 1, NULL);
		const char *at;
		if (n == A3S_E_END || n == A3S_E_HANDLE || n == A3S_E_CLOSED)
			return 0;
		must(n, "a3s_stream_next");
		buf[n] = 0;
		if (strstr(buf, "\"host_request\"") != NULL && (at = strstr(buf, "\"request\":")) != NULL)
			return strtoull(at + 10, NULL, 10);
	}
}

a3s_handle finished(a3s_handle agent, const char *session_json, a3s_handle *session) {
	a3s_handle run;
	a3s_buf result;
	must(a3s_session_open(agent, session_json, A3S_NTS, session), "a3s_session_open");
	must(a3s_run_start(*session, PROMPT, A3S_NTS, &run), "a3s_run_start");
	must(a3s_run_wait(run, -1, &result), "a3s_run_wait");
	a3s_buf_free(&result);
	return run;
}
