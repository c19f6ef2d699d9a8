#include "pacer.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "a3s.h"

static struct {
	uint64_t agent, request, stream;
	int fd, n, interval_us;
	int64_t *stamps;
	pthread_t thread;
	atomic_int seen;
} pacer;

int64_t now_ns(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void rest(void) {
	struct timespec t = {0, (long)pacer.interval_us * 1000};
	nanosleep(&t, NULL);
}

static void *answer(void *unused) {
	char piece[64];
	int i;
	(void)unused;
	for (i = 0; i < pacer.n; i++) {
		rest();
		snprintf(piece, sizeof piece, "{\"delta\":\"%d;\"}", i);
		pacer.stamps[i] = now_ns();
		if (a3s_host_chunk(pacer.agent, pacer.request, piece, A3S_NTS) < 0)
			return NULL;
	}
	a3s_host_reply(pacer.agent, pacer.request, "{\"result\":{\"output\":\"done\"}}", A3S_NTS);
	return NULL;
}

static void *wake(void *unused) {
	int i;
	(void)unused;
	for (i = 0; i < pacer.n; i++) {
		do
			rest();
		while (atomic_load(&pacer.seen) < i);
		pacer.stamps[i] = now_ns();
		a3s_stream_wake(pacer.stream);
	}
	return NULL;
}

static void *write_all(void *unused) {
	int32_t i;
	(void)unused;
	for (i = 0; i < pacer.n; i++) {
		rest();
		pacer.stamps[i] = now_ns();
		if (write(pacer.fd, &i, sizeof i) != sizeof i)
			break;
	}
	close(pacer.fd);
	return NULL;
}

static void start(void *(*fn)(void *), int n, int interval_us, int64_t *stamps) {
	pacer.n = n;
	pacer.interval_us = interval_us;
	pacer.stamps = stamps;
	if (pthread_create(&pacer.thread, NULL, fn, NULL) != 0)
		perror("pacer: no thread");
}

void pacer_start(uint64_t agent, uint64_t request, int n, int interval_us, int64_t *stamps) {
	pacer.agent = agent;
	pacer.request = request;
	start(answer, n, interval_us, stamps);
}

void pacer_wake(uint64_t stream, int n, int interval_us, int64_t *stamps) {
	pacer.stream = stream;
	atomic_store(&pacer.seen, 0);
	start(wake, n, interval_us, stamps);
}

void pacer_write(int fd, int n, int interval_us, int64_t *stamps) {
	pacer.fd = fd;
	start(write_all, n, interval_us, stamps);
}

void pacer_seen(void) { atomic_fetch_add(&pacer.seen, 1); }

void pacer_join(void) { pthread_join(pacer.thread, NULL); }

int32_t pacer_nothing(uint64_t handle) {
	(void)handle;
	return 0;
}
