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

static void cycle(a3s_handle agent) {
	a3s_handle session = open_session(agent), run = start_run(session), stream = open_stream(run);
	drain(stream);
	OK(a3s_close(session, -1));
}

static void print(const char *when) {
	printf("%s rss_kb=%ld threads=%d fds=%d goroutines=%ld\n", when, rss_kb(), entries("/proc/self/task"), entries("/proc/self/fd"), goroutines());
}

int main(int argc, char **argv) {
	a3s_handle agent, short_lived;
	int i, cycles;
	begin(argc, argv);
	CHECK(argc == 3);
	cycles = atoi(argv[2]);
	agent = open_agent("agent.acl");
	for (i = 0; i < 2000; i++) /* warm: arenas, pools, threads */
		cycle(agent);
	print("before");
	for (i = 0; i < cycles; i++) {
		cycle(agent);
		if (i % 10 == 0) {
			short_lived = open_agent("agent.acl");
			OK(a3s_close(short_lived, -1));
		}
	}
	print("after");
	OK(a3s_close(agent, -1));
	check_nothing_left();
	return 0;
}
