/* FFI-05: another Go library in the same process, loaded before or after ours, both of
 * them busy. usage: twolibs FOLDER LIBRARY OTHER before|after */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loaded.h"

static int (*second_work)(int);
static const char *place;

static void load_other(const char *path) {
	void *so = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	NEED(so != NULL);
	*(void **)&second_work = symbol(so, "second_work");
}

static void *theirs(void *arg) {
	int i;
	(void)arg;
	for (i = 0; i < 20; i++)
		NEED(second_work(50) == 50);
	return NULL;
}

static void *ours(void *arg) {
	int i;
	(void)arg;
	for (i = 0; i < 10; i++)
		run_once(place);
	return NULL;
}

int main(int argc, char **argv) {
	pthread_t threads[4];
	int i;
	NEED(argc == 5);
	place = argv[1];
	if (strcmp(argv[4], "before") == 0)
		load_other(argv[3]);
	load_library(argv[2]);
	if (strcmp(argv[4], "after") == 0)
		load_other(argv[3]);
	for (i = 0; i < 4; i++)
		NEED(pthread_create(&threads[i], NULL, i % 2 ? theirs : ours, NULL) == 0);
	for (i = 0; i < 4; i++)
		NEED(pthread_join(threads[i], NULL) == 0);
	return 0;
}
