/* Uses what the test added, through the C header: the operation waits for the host while the
 * main thread reads the control stream and answers. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "a3s.h"

static const char acl[] = "{\"source\":\"default_model = \\\"offline/search\\\"\",\"cwd\":\"/\"}";
static const char spec[] = "{\"name\":\"p\",\"depth\":2}";
static const char options[] = "{\"workspace\":\"/\",\"options\":{\"probe_depth\":3}}";
static const char params[] = "{\"name\":\"p\",\"word\":\"hello\"}";
static const char answer[] = "{\"result\":{\"seen\":\"C saw hello\"}}";
static a3s_handle agent;

static void must(a3s_status status, const char *what) {
	a3s_buf error = {NULL, 0};
	if (status >= 0)
		return;
	a3s_last_error(&error);
	printf("%s: %s\n", what, error.ptr == NULL ? "?" : error.ptr);
	exit(1);
}

static void *ask(void *unused) {
	a3s_buf result = {NULL, 0};
	must(a3s_call(agent, "agent.probe", params, A3S_NTS, 10000, &result), "agent.probe");
	printf("%s\n", result.ptr);
	a3s_buf_free(&result);
	return unused;
}

int main(void) {
	static char buf[1 << 16];
	a3s_handle stream, registration, session;
	pthread_t thread;
	must(a3s_agent_open(acl, A3S_NTS, &agent), "agent");
	must(a3s_stream_open(agent, NULL, 0, &stream), "stream");
	must(a3s_host_register(agent, "probe", spec, A3S_NTS, &registration), "register");
	must(a3s_session_open(agent, options, A3S_NTS, &session), "session");
	if (pthread_create(&thread, NULL, ask, NULL) != 0)
		return 1;
	for (;;) {
		int64_t n = a3s_stream_next(stream, 10000, 1, buf, sizeof buf - 1, NULL);
		char *request;
		must(n > 0 ? A3S_OK : (a3s_status)n, "next");
		buf[n > 0 ? n : 0] = '\0';
		request = strstr(buf, "\"request\":");
		if (strstr(buf, "host_request") == NULL || request == NULL)
			continue;
		must(a3s_host_reply(agent, strtoull(request + 10, NULL, 10), answer, A3S_NTS), "reply");
		break;
	}
	pthread_join(thread, NULL);
	must(a3s_close(agent, -1), "close");
	return 0;
}
