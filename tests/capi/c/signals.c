/* What the host does with signals goes on working, and does not harm the library. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>

#include "check.h"

static volatile sig_atomic_t seen, elsewhere, child_ends;
static pthread_t main_thread;

static void on_signal(int sig) {
	(void)sig;
	if (!pthread_equal(pthread_self(), main_thread))
		elsewhere = 1;
	seen++;
}

static void on_child(int sig) {
	(void)sig;
	child_ends++;
}

/* A handler as a careless host installs it: without SA_ONSTACK, after loading. */
static void install(int sig, void (*handler)(int), int flags) {
	struct sigaction a;
	memset(&a, 0, sizeof a);
	a.sa_handler = handler;
	a.sa_flags = flags;
	sigemptyset(&a.sa_mask);
	CHECK(sigaction(sig, &a, NULL) == 0);
}

static int flags_of(int sig) {
	struct sigaction a;
	CHECK(sigaction(sig, NULL, &a) == 0);
	return a.sa_flags;
}

/* The mask of a thread; 0 if it has ended. */
static unsigned long long blocked_by(const char *tid) {
	char path[300], line[256];
	unsigned long long blocked = 0;
	FILE *f;
	snprintf(path, sizeof path, "/proc/self/task/%s/status", tid);
	f = fopen(path, "r");
	if (f == NULL)
		return 0;
	while (fgets(line, sizeof line, f) != NULL)
		if (strncmp(line, "SigBlk:", 7) == 0)
			blocked = strtoull(line + 7, NULL, 16);
	fclose(f);
	return blocked;
}

/* Every thread of the library blocks the asynchronous signals; the host's do not. */
static void masks(void) {
	const unsigned long long want = 1ull << (SIGTERM - 1) | 1ull << (SIGINT - 1) | 1ull << (SIGUSR1 - 1) | 1ull << (SIGPIPE - 1);
	const unsigned long long open = 1ull << (SIGSEGV - 1) | 1ull << (SIGCHLD - 1) | 1ull << (SIGPROF - 1);
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *task;
	int library = 0;
	CHECK(tasks != NULL);
	while ((task = readdir(tasks)) != NULL) {
		int64_t until = now_ms() + 5000;
		unsigned long long blocked;
		if (task->d_name[0] == '.')
			continue;
		if (atoi(task->d_name) == (int)getpid()) {
			CHECK(blocked_by(task->d_name) == 0);
			continue;
		}
		/* While Go starts a thread, everything is blocked there for a moment. */
		while (((blocked = blocked_by(task->d_name)) & open) != 0 && now_ms() < until)
			sleep_ms(1);
		CHECK((blocked & open) == 0 && (blocked & want) == want);
		library++;
	}
	closedir(tasks);
	CHECK(library > 0);
}

static a3s_handle session;
static volatile int stop;

/* Keeps the library's threads busy. */
static void *load(void *arg) {
	sigset_t all;
	(void)arg;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	while (!stop) {
		a3s_handle run = start_run(session);
		drain(open_stream(run));
		OK(a3s_close(run, -1));
	}
	return NULL;
}

static void spawn(void) {
	int status;
	pid_t pid = vfork();
	CHECK(pid >= 0);
	if (pid == 0) {
		execl("/bin/true", "true", (char *)NULL);
		_exit(127);
	}
	while (waitpid(pid, &status, 0) < 0)
		CHECK(errno == EINTR);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(int argc, char **argv) {
	a3s_handle agent;
	a3s_buf result = {NULL, 0};
	pthread_t thread;
	sigset_t all, mine;
	int i, fds[2];
	main_thread = pthread_self();
	begin(argc, argv);
	masks();
	agent = open_agent("long.acl");
	session = open_session(agent);

	/* A storm on a handler without SA_ONSTACK: all on the host's own thread. */
	install(SIGUSR1, on_signal, 0);
	sigfillset(&all); /* the thread must not hear a signal before it blocks them */
	CHECK(pthread_sigmask(SIG_BLOCK, &all, &mine) == 0);
	CHECK(pthread_create(&thread, NULL, load, NULL) == 0);
	CHECK(pthread_sigmask(SIG_SETMASK, &mine, NULL) == 0);
	for (i = 0; i < 20000; i++)
		kill(getpid(), SIGUSR1);
	CHECK(seen > 0 && !elsewhere);

	/* SIGCHLD cannot be blocked that way; the repair makes such a handler safe. */
	install(SIGCHLD, on_child, SA_RESTART);
	CHECK(!(flags_of(SIGCHLD) & SA_ONSTACK));
	OK(a3s_signals_repair());
	CHECK(flags_of(SIGCHLD) & SA_ONSTACK);
	CHECK(flags_of(SIGCHLD) & SA_RESTART);
	for (i = 0; i < 200; i++)
		spawn();
	CHECK(child_ends > 0);
	stop = 1;
	CHECK(pthread_join(thread, NULL) == 0);

	/* A handler of faults that came later is replaced, and a nil dereference in the
	 * library is an error again. */
	install(SIGSEGV, SIG_DFL, 0);
	OK(a3s_signals_repair());
	GIVES(A3S_E_INTERNAL, a3s_call(session, "test.nil", NULL, 0, 0, &result));

	/* Default SIGPIPE: a write of the library's log gives EPIPE and kills nobody. */
	signal(SIGPIPE, SIG_DFL);
	CHECK(pipe(fds) == 0);
	close(fds[0]);
	OK(a3s_log_to_fd(fds[1], 0));
	close(fds[1]);
	a3s_handle second = open_agent("warns.acl");
	sleep_ms(50);
	OK(a3s_close(second, -1));
	OK(a3s_log_to_fd(-1, 0));

	/* A host that ignores SIGCHLD: tools still end, their output is there. */
	signal(SIGCHLD, SIG_IGN);
	OK(a3s_call(session, "session.tool", "{\"name\": \"bash\", \"args\": {\"command\": \"echo from bash\"}}", A3S_NTS, 10000, &result));
	CHECK(strstr(result.ptr, "from bash") != NULL);
	a3s_buf_free(&result);
	OK(a3s_close(agent, -1));
	check_nothing_left();
	return 0;
}
