/* A read-only question about a folder, asked from C.
 *
 *     ./build.sh build
 *     cc -std=c11 -Wall -Iinclude examples/c/first_light.c -Lbuild -la3s -Wl,-rpath,"$PWD/build" -o build/first_light
 *     build/first_light agent.acl . "Where is the configuration parsed?"
 *
 * Events are printed as they come, one JSON array a line; a real host gives them to its
 * JSON parser. agent.acl can be the one line: default_model = "offline/search"
 */
#define _GNU_SOURCE /* open_memstream */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "a3s.h"

/* Ends the program with the library's own words if a call failed. */
static void check(a3s_status status, const char *what) {
	a3s_buf error = {NULL, 0};
	if (status >= 0)
		return;
	a3s_last_error(&error);
	fprintf(stderr, "%s: %s: %s\n", what, a3s_status_name(status), error.ptr == NULL ? "" : error.ptr);
	exit(1);
}

/* Writes text as a JSON string. */
static void quote(FILE *out, const char *text) {
	fputc('"', out);
	for (; *text != 0; text++) {
		if (*text == '"' || *text == '\\')
			fprintf(out, "\\%c", *text);
		else if ((unsigned char)*text < 0x20)
			fprintf(out, "\\u%04x", (unsigned)*text);
		else
			fputc(*text, out);
	}
	fputc('"', out);
}

/* Makes {"key": "value", ...} of the pairs; the last argument is NULL. */
static char *object(const char *const *pairs) {
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	const char *comma = "{";
	if (out == NULL)
		abort();
	for (; *pairs != NULL; pairs += 2) {
		fputs(comma, out);
		quote(out, pairs[0]);
		fputc(':', out);
		quote(out, pairs[1]);
		comma = ",";
	}
	fputc('}', out);
	fclose(out);
	return text;
}

/* Prints the events of a run until its end. */
static void print_events(a3s_handle stream) {
	size_t cap = 1 << 16, needed = 0;
	char *buf = malloc(cap);
	for (;;) {
		int64_t n = a3s_stream_next(stream, -1, 0, buf, cap, &needed);
		if (n == A3S_E_END)
			break;
		if (n == A3S_E_BUFFER) {
			cap = needed;
			buf = realloc(buf, cap);
			continue;
		}
		check((a3s_status)(n < 0 ? n : 0), "a3s_stream_next");
		fwrite(buf, 1, (size_t)n, stdout);
		fputc('\n', stdout);
	}
	free(buf);
}

int main(int argc, char **argv) {
	char cwd[4096];
	a3s_handle agent = 0, session = 0, run = 0, stream = 0;
	a3s_buf result = {NULL, 0};
	char *request;
	if (argc < 3 || getcwd(cwd, sizeof cwd) == NULL) {
		fprintf(stderr, "usage: first_light CONFIG.acl WORKSPACE [PROMPT]\n");
		return 2;
	}
	check(a3s_abi_check(A3S_ABI_VERSION), "a3s_abi_check");

	request = object((const char *const[]){"acl_path", argv[1], "cwd", cwd, NULL});
	check(a3s_agent_open(request, A3S_NTS, &agent), "a3s_agent_open");
	free(request);

	/* Without a policy an agent may read and nothing else. */
	request = object((const char *const[]){"workspace", argv[2], NULL});
	check(a3s_session_open(agent, request, A3S_NTS, &session), "a3s_session_open");
	free(request);

	request = object((const char *const[]){"prompt", argc > 3 ? argv[3] : "Where is the configuration parsed?", NULL});
	check(a3s_run_start(session, request, A3S_NTS, &run), "a3s_run_start");
	free(request);

	check(a3s_stream_open(run, NULL, 0, &stream), "a3s_stream_open");
	print_events(stream);
	check(a3s_run_wait(run, -1, &result), "a3s_run_wait");
	printf("%s\n", result.ptr);
	a3s_buf_free(&result);
	check(a3s_close(agent, -1), "a3s_close");
	return 0;
}
