/* A host that starts and awaits children of its own all the time, with a handler of
 * SIGCHLD, while the library starts and awaits those of its tools: nobody takes the child
 * of the other. usage: spawn FOLDER before|after, when the handler is installed */
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "check.h"

enum { TOOLS = 60, HOSTS = 2 };

static atomic_int heard, finished;
static atomic_long children;

static void on_child(int number) {
	(void)number;
	atomic_fetch_add(&heard, 1);
}

/* A handler as most programs install it: without SA_ONSTACK. */
static void install(void) {
	struct sigaction action;
	memset(&action, 0, sizeof action);
	action.sa_handler = on_child;
	action.sa_flags = SA_RESTART | SA_NOCLDSTOP;
	CHECK(sigaction(SIGCHLD, &action, NULL) == 0);
}

/* Runs before the library is initialised, although the program is linked with it. */
static void early(int argc, char **argv, char **env) {
	(void)env;
	if (argc == 3 && strcmp(argv[2], "before") == 0)
		install();
}
__attribute__((section(".preinit_array"), used)) static void (*const first)(int, char **, char **) = early;

static void *loop(void *arg) {
	static char *const argv[] = {(char *)"/bin/sh", (char *)"-c", (char *)"exit 7", NULL};
	(void)arg;
	while (!atomic_load(&finished)) {
		pid_t pid = 0;
		int status = 0;
		CHECK(posix_spawn(&pid, argv[0], NULL, NULL, argv, NULL) == 0);
		CHECK(waitpid(pid, &status, 0) == pid);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
		atomic_fetch_add(&children, 1);
	}
	return NULL;
}

static void run_tools(a3s_handle agent) {
	static const char params[] = "{\"name\": \"bash\", \"args\": {\"command\": \"echo out; exit 3\"}}";
	a3s_handle session = open_session(agent);
	int i;
	for (i = 0; i < TOOLS; i++) {
		a3s_buf result = {NULL, 0};
		OK(a3s_call(session, "session.tool", params, A3S_NTS, 60000, &result));
		if (strstr(result.ptr, "\"exit_code\":3") == NULL || strstr(result.ptr, "out\\n") == NULL)
			check_failed(__FILE__, __LINE__, result.ptr);
		a3s_buf_free(&result);
	}
	OK(a3s_close(session, -1));
}

int main(int argc, char **argv) {
	pthread_t threads[HOSTS];
	a3s_handle agent;
	int i;
	CHECK(argc == 3);
	begin(argc, argv);
	agent = open_agent("agent.acl");
	if (strcmp(argv[2], "after") == 0) {
		install();
		OK(a3s_signals_repair());
	}
	for (i = 0; i < HOSTS; i++)
		CHECK(pthread_create(&threads[i], NULL, loop, NULL) == 0);
	run_tools(agent);
	atomic_store(&finished, 1);
	for (i = 0; i < HOSTS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	CHECK(atomic_load(&children) > 0 && atomic_load(&heard) > 0);
	OK(a3s_close(agent, -1));
	check_nothing_left();
	return 0;
}
