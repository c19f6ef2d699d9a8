/* Opens and closes many times; prints what the process holds, for the test to judge.
 * usage: slope FOLDER CYCLES */
#include <dirent.h>

#include "check.h"

static int entries(const char *path) {
	DIR *d = opendir(path);
	int n = 0;
	CHECK(d != NULL);
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

static long rss_kb(void) {
	FILE *f = fopen("/proc/self/statm", "r");
	long size = 0, resident = 0;
	CHECK(f != NULL && fscanf(f, "%ld %ld", &size, &resident) == 2);
	fclose(f);
	return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static long goroutines(void) {
	a3s_buf stats = {NULL, 0};
	const char *at;
	long n;
	OK(a3s_stats(0, &stats));
	at = strstr(stats.ptr, "\"goroutines\":");
	CHECK(at != NULL);
	n = strtol(at + strlen("\"goroutines\":"), NULL, 10);
	a3s_buf_free(&stats);
	return n;
}

/* Opens and closes n sessions with a run each, and an agent with every tenth. */
static void turn(a3s_handle agent, int n) {
	int i;
	for (i = 0; i < n; i++) {
		a3s_handle session = open_session(agent), run = start_run(session);
		drain(open_stream(run));
		OK(a3s_close(session, -1));
		if (i % 10 == 0)
			OK(a3s_close(open_agent("agent.acl"), -1));
	}
}

static void print(const char *when) {
	printf("%s rss_kb=%ld threads=%d fds=%d goroutines=%ld\n", when, rss_kb(), entries("/proc/self/task"), entries("/proc/self/fd"), goroutines());
}

int main(int argc, char **argv) {
	a3s_handle agent;
	begin(argc, argv);
	CHECK(argc == 3);
	agent = open_agent("agent.acl");
	turn(agent, 5000); /* warm with what is measured: arenas, pools, threads */
	print("before");
	turn(agent, atoi(argv[2]));
	print("after");
	OK(a3s_close(agent, -1));
	check_nothing_left();
	return 0;
}
