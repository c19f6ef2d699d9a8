/* What loading the library takes. usage: load LIBRARY. It is not linked with it. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "a3s.h"

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* A number from the process's own status; sizes are in KiB. */
static long status(const char *name) {
	char line[256];
	long n = 0;
	FILE *f = fopen("/proc/self/status", "r");
	while (f != NULL && fgets(line, sizeof line, f) != NULL)
		if (strncmp(line, name, strlen(name)) == 0)
			sscanf(line + strlen(name), ": %ld", &n);
	if (f != NULL)
		fclose(f);
	return n;
}

int main(int argc, char **argv) {
	a3s_status (*stats)(a3s_handle, a3s_buf *);
	void *lib, *symbol;
	a3s_buf out;
	long rss = status("VmRSS"), threads = status("Threads");
	double begin = now();
	if (argc != 2 || (lib = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL)) == NULL || (symbol = dlsym(lib, "a3s_stats")) == NULL) {
		fprintf(stderr, "%s\n", argc != 2 ? "usage: load LIBRARY" : dlerror());
		return 1;
	}
	memcpy(&stats, &symbol, sizeof stats);
	if (stats(0, &out) < 0)
		return 1;
	printf("load %.9f\n", now() - begin);
	printf("loaded %ld %ld\n", (status("VmRSS") - rss) * 1024, status("Threads") - threads);
	return 0;
}
