/* FFI-01: in a forked child every function returns at once, at rest and under load. */
#include <pthread.h>
#include <sys/wait.h>

#include "check.h"

static a3s_handle session;
static volatile int stop;
static int freed;

static void ignore(uintptr_t user_data, const char *json, size_t len) {
	(void)user_data;
	(void)json;
	(void)len;
}

static void count_free(uintptr_t user_data) { freed += (int)user_data; }

static void *load(void *arg) {
	(void)arg;
	while (!stop) {
		a3s_buf result = {NULL, 0};
		a3s_handle run = start_run(session), stream = open_stream(run);
		drain(stream);
		OK(a3s_close(run, -1));
		OK(a3s_call(session, "session.history", NULL, 0, 0, &result));
		a3s_buf_free(&result);
	}
	return NULL;
}

static int child(a3s_handle agent) {
	a3s_buf buf = {(char *)"x", 1};
	a3s_handle out = 99;
	uint64_t call = 99;
	char room[64];
	size_t needed = 99;
	int i;
	for (i = 0; i < 2; i++) { /* the second time: after the first error */
		GIVES(A3S_E_FORKED, a3s_agent_open("{}", 2, &out));
		CODE(A3S_CODE_FORKED);
		CHECK(out == 0);
		GIVES(A3S_E_FORKED, a3s_session_open(agent, "{}", 2, &out));
		GIVES(A3S_E_FORKED, a3s_run_start(session, "{}", 2, &out));
		GIVES(A3S_E_FORKED, a3s_call(session, "session.history", NULL, 0, -1, &buf));
		CHECK(buf.ptr == NULL && buf.len == 0);
		GIVES(A3S_E_FORKED, a3s_call_start(session, "session.history", NULL, 0, &call));
		CHECK(call == 0);
		GIVES(A3S_E_FORKED, a3s_stream_next(session, -1, 0, room, sizeof room, &needed));
		CHECK(needed == 0);
		GIVES(A3S_E_FORKED, a3s_stream_fd(session));
		GIVES(A3S_E_FORKED, a3s_stats(0, &buf));
		GIVES(A3S_E_FORKED, a3s_signals_repair());
		GIVES(A3S_E_FORKED, a3s_close(agent, -1));
		freed = 0;
		GIVES(A3S_E_FORKED, a3s_stream_subscribe(session, 0, 0, ignore, 5, count_free));
		CHECK(freed == 5);
	}
	CHECK(a3s_abi_version() == A3S_ABI_VERSION);
	CHECK(strcmp(a3s_status_name(A3S_E_FORKED), "E_FORKED") == 0);
	CHECK(strstr(a3s_build_info(), A3S_VERSION) != NULL);
	return 0;
}

/* Forks and lets the child try; it must be done in good time. */
static void try_fork(a3s_handle agent) {
	int64_t began = now_ms();
	int status = -1;
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		_exit(child(agent));
	while (waitpid(pid, &status, WNOHANG) == 0) {
		CHECK(now_ms() - began < 5000);
		sleep_ms(1);
	}
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(int argc, char **argv) {
	a3s_handle agent;
	pthread_t thread;
	int i;
	begin(argc, argv);
	agent = open_agent("long.acl");
	session = open_session(agent);
	try_fork(agent);
	CHECK(pthread_create(&thread, NULL, load, NULL) == 0);
	for (i = 0; i < 20; i++)
		try_fork(agent);
	stop = 1;
	CHECK(pthread_join(thread, NULL) == 0);
	OK(a3s_close(agent, -1));
	check_nothing_left();
	return 0;
}
