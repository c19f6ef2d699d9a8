/* What the parts of the C program share. Figures are printed as lines "name value ...",
 * values in seconds, bytes or events a second. */
#ifndef COMMON_H
#define COMMON_H

#include <stddef.h>
#include <stdint.h>

#include "a3s.h"
#include "pacer.h"

#define PROMPT "{\"prompt\": \"go on\"}"
#define CAP (128 << 10)

extern char buf[CAP];

/* must ends the program with the library's own words if a call failed. */
int64_t must(int64_t status, const char *what);

double seconds(int64_t from);
void *many(int n, size_t size);

/* Prints p50 and p99; sorts v. */
void print_quantiles(const char *name, double *v, int n);
double median(double *v, int n);

long rss_bytes(void);

/* drain reads a stream to its end; gives the bytes of the events that fit the buffer, and
 * the time they took. */
size_t drain(a3s_handle stream, uint32_t batch, double *took);

/* The number of the next host request on the control stream; 0 once it is closed. */
uint64_t host_request(a3s_handle control);

/* Opens a session, runs its script to the end and gives the run. */
a3s_handle finished(a3s_handle agent, const char *session_json, a3s_handle *session);

/* The parts. */
void deliver(a3s_handle agent, const char *session_json, int n);
void call(a3s_handle agent, const char *session_json, int n, const char *empty);
void wake(a3s_handle agent, const char *session_json, int n);
void host(a3s_handle agent, const char *session_json, int n);
void memory(a3s_handle agent, const char *session_json, int n);
void cycle(a3s_handle agent, const char *session_json, int n);

#endif
