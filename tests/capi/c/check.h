/* What the C tests share. Everything compiles as C11 and as C++17. */
#ifndef CHECK_H
#define CHECK_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "a3s.h"

/* Fails the program with the place. */
#define CHECK(cond) \
	do { \
		if (!(cond)) \
			check_failed(__FILE__, __LINE__, #cond); \
	} while (0)

/* The call must give that status. */
#define GIVES(status, call) check_status(__FILE__, __LINE__, #call, (status), (int64_t)(call))
#define OK(call) GIVES(A3S_OK, call)

/* The thread's last error must have that code. */
#define CODE(code) check_code(__FILE__, __LINE__, (code))

static inline void check_failed(const char *file, int line, const char *what) {
	fprintf(stderr, "%s:%d: %s\n", file, line, what);
	exit(1);
}

static inline void check_status(const char *file, int line, const char *call, int64_t want, int64_t got) {
	a3s_buf error = {NULL, 0};
	if (got == want)
		return;
	a3s_last_error(&error);
	fprintf(stderr, "%s:%d: %s gives %ld (%s), want %ld (%s); last error: %s\n", file, line, call,
		(long)got, got > 0 ? "" : a3s_status_name((a3s_status)got), (long)want, a3s_status_name((a3s_status)want),
		error.ptr == NULL ? "none" : error.ptr);
	exit(1);
}

static inline void check_code(const char *file, int line, const char *code) {
	char want[128];
	a3s_buf error = {NULL, 0};
	a3s_last_error(&error);
	snprintf(want, sizeof want, "\"code\":\"%s\"", code);
	if (error.ptr == NULL || strstr(error.ptr, want) == NULL) {
		fprintf(stderr, "%s:%d: last error is %s, want code %s\n", file, line, error.ptr == NULL ? "none" : error.ptr, code);
		exit(1);
	}
	a3s_buf_free(&error);
}

static inline void sleep_ms(long ms) {
	struct timespec t;
	t.tv_sec = ms / 1000;
	t.tv_nsec = ms % 1000 * 1000000;
	nanosleep(&t, NULL);
}

static inline int64_t now_ms(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Nothing is alive, and no fault of the library happened in the background. */
static inline void check_nothing_left(void) {
	static const char *const want[] = {
		"\"handles\":{\"agent\":0,\"registration\":0,\"run\":0,\"session\":0,\"stream\":0},\"calls\":0,\"callbacks\":0,\"closing\":0",
		"\"panics\":0",
	};
	a3s_buf stats = {NULL, 0};
	size_t i;
	OK(a3s_stats(0, &stats));
	for (i = 0; i < sizeof want / sizeof want[0]; i++) {
		if (strstr(stats.ptr, want[i]) == NULL) {
			fprintf(stderr, "something is left: %s, want %s\n", stats.ptr, want[i]);
			exit(1);
		}
	}
	a3s_buf_free(&stats);
}

/* The same for what ends in the background. */
static inline void wait_nothing_left(void) {
	int64_t until = now_ms() + 10000;
	a3s_buf stats = {NULL, 0};
	for (;;) {
		OK(a3s_stats(0, &stats));
		if (strstr(stats.ptr, "\"callbacks\":0,\"closing\":0") != NULL || now_ms() > until)
			break;
		a3s_buf_free(&stats);
		sleep_ms(1);
	}
	a3s_buf_free(&stats);
	check_nothing_left();
}

/* From second.c: the header and its constants in another translation unit. */
#ifdef __cplusplus
extern "C" {
#endif
uint32_t second_abi_version(void);
int second_closes(a3s_handle handle);
#ifdef __cplusplus
}
#endif

/* ---- an agent that plays the script in the folder FOLDER ---- */

/* The folder the test prepared: agent.acl, its scripts, and workspace/. */
static const char *folder;

static inline a3s_handle open_agent(const char *acl) {
	char request[4096];
	a3s_handle agent = 0;
	snprintf(request, sizeof request, "{\"acl_path\": \"%s/%s\", \"cwd\": \"%s\", \"env\": {\"PATH\": \"/usr/bin:/bin\"}}", folder, acl, folder);
	OK(a3s_agent_open(request, A3S_NTS, &agent));
	CHECK(agent != 0);
	return agent;
}

static inline a3s_handle open_session(a3s_handle agent) {
	char request[4096];
	a3s_handle session = 0;
	snprintf(request, sizeof request, "{\"workspace\": \"%s/workspace\", \"options\": {\"permission_policy\": {\"default_decision\": \"allow\"}}}", folder);
	OK(a3s_session_open(agent, request, A3S_NTS, &session));
	CHECK(session != 0);
	return session;
}

static inline a3s_handle start_run(a3s_handle session) {
	a3s_handle run = 0;
	OK(a3s_run_start(session, "{\"prompt\": \"go on\"}", A3S_NTS, &run));
	CHECK(run != 0);
	return run;
}

static inline a3s_handle open_stream(a3s_handle source) {
	a3s_handle stream = 0;
	OK(a3s_stream_open(source, NULL, 0, &stream));
	CHECK(stream != 0);
	return stream;
}

/* Reads a stream to its end; gives the number of bytes. */
static inline int64_t drain(a3s_handle stream) {
	static char buf[1 << 20];
	int64_t n, all = 0;
	while ((n = a3s_stream_next(stream, 10000, 0, buf, sizeof buf, NULL)) > 0)
		all += n;
	GIVES(A3S_E_END, n);
	return all;
}

static inline int begin(int argc, char **argv) {
	if (argc < 2)
		check_failed(__FILE__, __LINE__, "usage: program FOLDER");
	folder = argv[1];
	OK(a3s_abi_check(A3S_ABI_VERSION));
	CHECK(second_abi_version() == a3s_abi_version());
	return 0;
}

#endif
