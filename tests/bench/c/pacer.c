#include "pacer.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "a3s.h"

static struct {
	uint64_t agent, request, stream; /* without a stream it answers the request */
	int n, interval_us;
	int64_t *stamps;
	pthread_t thread;
	atomic_int seen;
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
		do
			nanosleep(&rest, NULL);
		while (pacer.stream != 0 && atomic_load(&pacer.seen) < i);
		snprintf(piece, sizeof piece, "{\"delta\":\"%d;\"}", i);
		pacer.stamps[i] = now_ns();
		if (pacer.stream != 0)
			a3s_stream_wake(pacer.stream);
		else if (a3s_host_chunk(pacer.agent, pacer.request, piece, A3S_NTS) < 0)
			return NULL;
	}
	if (pacer.stream == 0)
		a3s_host_reply(pacer.agent, pacer.request, "{\"result\":{\"output\":\"done\"}}", A3S_NTS);
	return NULL;
}

static void start(int n, int interval_us, int64_t *stamps) {
	pacer.n = n;
	pacer.interval_us = interval_us;
	pacer.stamps = stamps;
	if (pthread_create(&pacer.thread, NULL, pace, NULL) != 0)
		perror("pacer: no thread");
}

void pacer_start(uint64_t agent, uint64_t request, int n, int interval_us, int64_t *stamps) {
	pacer.agent = agent;
	pacer.request = request;
	pacer.stream = 0;
	start(n, interval_us, stamps);
}

void pacer_wake(uint64_t stream, int n, int interval_us, int64_t *stamps) {
	pacer.stream = stream;
	atomic_store(&pacer.seen, 0);
	start(n, interval_us, stamps);
}

void pacer_seen(void) { atomic_fetch_add(&pacer.seen, 1); }

void pacer_join(void) { pthread_join(pacer.thread, NULL); }
