/* A host whose handlers are careless and older than the library: loading makes them
 * safe, and they go on being called. usage: early FOLDER LIBRARY */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loaded.h"

static volatile sig_atomic_t children, users;
static const char *place;

static void on_child(int sig) {
	(void)sig;
	children++;
}

static void on_user(int sig) {
	(void)sig;
	users++;
}

static void install(int sig, void (*handler)(int)) {
	struct sigaction a;
	memset(&a, 0, sizeof a);
	a.sa_handler = handler;
	a.sa_flags = SA_RESTART;
	sigemptyset(&a.sa_mask);
	NEED(sigaction(sig, &a, NULL) == 0);
}

static void is_safe(int sig) {
	struct sigaction a;
	NEED(sigaction(sig, NULL, &a) == 0);
	NEED(a.sa_flags & SA_ONSTACK);
}

static void *work(void *arg) {
	int i;
	(void)arg;
	for (i = 0; i < 10; i++)
		run_once(place);
	return NULL;
}

static void spawn(void) {
	int status;
	pid_t pid = vfork();
	NEED(pid >= 0);
	if (pid == 0) {
		execl("/bin/true", "true", (char *)NULL);
		_exit(127);
	}
	while (waitpid(pid, &status, 0) < 0)
		NEED(errno == EINTR);
	NEED(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(int argc, char **argv) {
	pthread_t thread;
	int i;
	NEED(argc == 3);
	place = argv[1];
	install(SIGCHLD, on_child);
	install(SIGUSR1, on_user);
	load_library(argv[2]);
	is_safe(SIGCHLD);
	is_safe(SIGUSR1);
	NEED(pthread_create(&thread, NULL, work, NULL) == 0);
	for (i = 0; i < 300; i++) {
		spawn();
		kill(getpid(), SIGUSR1);
	}
	NEED(pthread_join(thread, NULL) == 0);
	NEED(children > 0 && users > 0);
	return 0;
}
