#include "pacer.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "a3s.h"

static struct {
	uint64_t agent, request;
	int n, interval_us;
	int64_t *stamps;
	pthread_t thread;
} pacer;

int64_t now_ns(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void *pace(void *unused) {
	struct timespec rest = {0, (long)pacer.interval_us * 1000};
	char piece[64];
	int i;
	(void)unused;
	for (i = 0; i < pacer.n; i++) {
		nanosleep(&rest, NULL);
		snprintf(piece, sizeof piece, "{\"delta\":\"%d;\"}", i);
		pacer.stamps[i] = now_ns();
		if (a3s_host_chunk(pacer.agent, pacer.request, piece, A3S_NTS) < 0)
			return NULL;
	}
	a3s_host_reply(pacer.agent, pacer.request, "{\"result\":{\"output\":\"done\"}}", A3S_NTS);
	return NULL;
}

void pacer_start(uint64_t agent, uint64_t request, int n, int interval_us, int64_t *stamps) {
	pacer.agent = agent;
	pacer.request = request;
	pacer.n = n;
	pacer.interval_us = interval_us;
	pacer.stamps = stamps;
	if (pthread_create(&pacer.thread, NULL, pace, NULL) != 0)
		perror("pacer: no thread");
}

void pacer_join(void) { pthread_join(pacer.thread, NULL); }
