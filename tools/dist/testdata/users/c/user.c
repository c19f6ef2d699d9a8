#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <a3s.h>

static void check(a3s_status status, const char *what) {
	a3s_buf error = {NULL, 0};
	if (status >= 0)
		return;
	a3s_last_error(&error);
	fprintf(stderr, "%s: %s\n", what, error.ptr == NULL ? a3s_status_name(status) : error.ptr);
	exit(1);
}

/* Prints the text after key, which stands in json as "key":"text" without escapes. */
static void print_field(const char *json, const char *key, const char *after) {
	const char *found = strstr(json, key);
	if (found == NULL)
		found = "", key = "";
	found += strlen(key);
	printf("%.*s%s", (int)strcspn(found, "\""), found, after);
}

int main(void) {
	char cwd[1024], request[2048], events[1 << 16], tool[256] = "";
	size_t needed = 0;
	int64_t n;
	a3s_handle agent = 0, session = 0, run = 0, stream = 0;
	a3s_buf result = {NULL, 0};

	check(a3s_abi_check(A3S_ABI_VERSION), "a3s_abi_check");
	if (getcwd(cwd, sizeof cwd) == NULL)
		return 1;
	snprintf(request, sizeof request, "{\"acl_path\":\"agent.acl\",\"cwd\":\"%s\"}", cwd);
	check(a3s_agent_open(request, A3S_NTS, &agent), "a3s_agent_open");
	check(a3s_session_open(agent, "{\"workspace\":\"workspace\"}", A3S_NTS, &session), "a3s_session_open");
	check(a3s_run_start(session, "{\"prompt\":\"where is the needle?\"}", A3S_NTS, &run), "a3s_run_start");
	check(a3s_stream_open(run, NULL, 0, &stream), "a3s_stream_open");
	while ((n = a3s_stream_next(stream, -1, 0, events, sizeof events - 1, &needed)) != A3S_E_END) {
		const char *found;
		check((a3s_status)(n < 0 ? n : 0), "a3s_stream_next");
		events[n] = 0;
		found = strstr(events, "\"tool_execution_start\"");
		if (found != NULL)
			snprintf(tool, sizeof tool, "%s", strstr(found, "\"name\""));
	}
	check(a3s_run_wait(run, -1, &result), "a3s_run_wait");
	print_field(a3s_build_info(), "\"version\":\"", " ");
	print_field(tool, "\"name\":\"", ": ");
	print_field(result.ptr, "\"text\":\"", "\n");
	a3s_buf_free(&result);
	check(a3s_close(agent, -1), "a3s_close");
	return 0;
}
