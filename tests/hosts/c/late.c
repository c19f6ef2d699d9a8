/* APRV-03: an answer that meets the cancelling of its run. It counts or it is too late,
 * and the status says which; what was answered too late never runs. usage: late FOLDER */
#include <pthread.h>

#include "check.h"

enum { ROUNDS = 100 };

static a3s_handle run;
static char answer[512];
static pthread_barrier_t gate;
static a3s_status answered;

static void *confirm(void *arg) {
	(void)arg;
	pthread_barrier_wait(&gate);
	answered = a3s_run_input(run, answer, A3S_NTS);
	return NULL;
}

static int lines_of(const char *path) {
	FILE *f = fopen(path, "r");
	int c, n = 0;
	if (f == NULL)
		return 0;
	while ((c = fgetc(f)) != EOF)
		n += c == '\n';
	fclose(f);
	return n;
}

/* Reads until a question was asked and makes the answer to it. */
static void await_question(a3s_handle stream) {
	static const char mark[] = "\"confirmation_required\",\"payload\":{\"tool_id\":\"";
	static char buf[1 << 16];
	for (;;) {
		const char *at;
		int64_t n = a3s_stream_next(stream, 10000, 1, buf, sizeof buf - 1, NULL);
		CHECK(n > 0);
		buf[n] = 0;
		at = strstr(buf, mark);
		if (at == NULL)
			continue;
		at += strlen(mark);
		snprintf(answer, sizeof answer, "{\"confirm\": {\"tool_id\": \"%.*s\", \"approved\": true}}", (int)strcspn(at, "\""), at);
		return;
	}
}

int main(int argc, char **argv) {
	char request[4096], path[4096];
	int round, counted = 0, too_late = 0;
	begin(argc, argv);
	pthread_barrier_init(&gate, NULL, 2);
	snprintf(path, sizeof path, "%s/workspace/ran", folder);
	snprintf(request, sizeof request, "{\"workspace\": \"%s/workspace\", \"options\": {\"permission_policy\": {\"ask\": [\"bash\"]}, \"confirmation_policy\": {\"enabled\": true}}}", folder);
	for (round = 0; round < ROUNDS; round++) {
		a3s_handle agent = open_agent("ask.acl"), session = 0, stream;
		pthread_t thread;
		int before = lines_of(path), ran;
		OK(a3s_session_open(agent, request, A3S_NTS, &session));
		run = start_run(session);
		stream = open_stream(run);
		await_question(stream);
		CHECK(pthread_create(&thread, NULL, confirm, NULL) == 0);
		if (round == 0) { /* surely too late */
			OK(a3s_run_cancel(run, NULL, 0));
			drain(stream);
			pthread_barrier_wait(&gate);
		} else {
			pthread_barrier_wait(&gate);
			OK(a3s_run_cancel(run, NULL, 0));
			drain(stream);
		}
		CHECK(pthread_join(thread, NULL) == 0);
		CHECK(answered == A3S_OK || answered == A3S_E_NOTFOUND);
		ran = lines_of(path) - before;
		CHECK(ran == 0 || (ran == 1 && answered == A3S_OK));
		counted += answered == A3S_OK;
		too_late += answered == A3S_E_NOTFOUND;
		/* A second answer never counts. */
		GIVES(A3S_E_NOTFOUND, a3s_run_input(run, answer, A3S_NTS));
		OK(a3s_close(agent, -1));
	}
	CHECK(too_late > 0 && counted + too_late == ROUNDS);
	check_nothing_left();
	return 0;
}
