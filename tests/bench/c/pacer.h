/* A thread of the host that causes something n times, one every interval_us, and notes
 * when: the beginning of every wake-up that is measured. stamps[i] is set just before the
 * i-th one. One at a time. */
#ifndef PACER_H
#define PACER_H

#include <stdint.h>

/* now_ns is the monotonic clock, the one of Python's time.monotonic_ns. */
int64_t now_ns(void);

/* pacer_start answers a host request with n pieces "<index>;" of output, and then with a
 * result. */
void pacer_start(uint64_t agent, uint64_t request, int n, int interval_us, int64_t *stamps);

/* pacer_wake lets a blocked a3s_stream_next return n times, each after pacer_seen was
 * called for the one before: wakes add up to one. */
void pacer_wake(uint64_t stream, int n, int interval_us, int64_t *stamps);

/* pacer_write writes n indexes of 4 bytes to a socket and closes it. No library is
 * involved: it is what the machine itself takes. */
void pacer_write(int fd, int n, int interval_us, int64_t *stamps);

void pacer_seen(void);

/* pacer_join waits for the thread. */
void pacer_join(void);

/* pacer_nothing takes a handle and gives a status, and does nothing: what calling costs. */
int32_t pacer_nothing(uint64_t handle);

#endif
