/*
 * What the three parts of the addon share. library.c finds the C functions and knows no
 * JavaScript; addon.c calls them for JavaScript; reader.c waits for events.
 */
#ifndef A3S_ADDON_H
#define A3S_ADDON_H

#define NAPI_VERSION 8
#include <node_api.h>
#include <stdbool.h>
#include <uv.h>

#include "generated.h"

/* Why the library could not be used. */
typedef struct a3s_refusal {
	const char *code;
	char text[2048];
} a3s_refusal;

/*
 * Loads the library at path, once in a process: later calls give the same table whatever
 * the path. NULL and a refusal if that fails. Any thread.
 */
const a3s_table *library_load(const char *path, a3s_refusal *why);

/* The table, or NULL before it was loaded. Any thread. */
const a3s_table *library_table(void);

struct reader;

/* One environment: the main thread's, or a worker's. Used on its own thread only. */
typedef struct addon {
	napi_env env;
	uv_loop_t *loop;
	napi_ref make_error; /* (json, status) => Error */
	napi_async_cleanup_hook_handle hook;
	struct reader *readers; /* those that are open */
	size_t closing;         /* poll handles that libuv has not let go of */
	bool ended;
	uint64_t *agents; /* those opened here, to be closed with the environment */
	size_t agents_len, agents_cap;
	char *buf; /* where every batch of this thread goes through */
	size_t cap;
} addon;

/* The environment's data. */
addon *addon_of(napi_env env);

/* Throws what the library said of a status below 0, on the thread that got it. */
void addon_throw_last(addon *a, int64_t status);

/* Throws an error in the library's shape. */
void addon_refuse(addon *a, const char *code, const char *text);

/* Adds reader_open, reader_read, reader_wait, reader_ref and reader_close to exports. */
bool readers_export(napi_env env, napi_value exports);

/* Closes every reader of an environment. */
void readers_close(addon *a);

/* Called when libuv has let go of the last poll handle after the environment ended. */
void addon_settled(addon *a);

#endif /* A3S_ADDON_H */
