/*
 * What the parts of the addon share. library.c finds the C functions and knows no
 * JavaScript; addon.c calls them for JavaScript, tasks.c those that may wait; reader.c waits
 * for events.
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
struct task;

/* One environment: the main thread's, or a worker's. Used on its own thread only. */
typedef struct addon {
	napi_env env;
	uv_loop_t *loop;
	napi_ref make_error; /* (json, status) => Error */
	napi_async_cleanup_hook_handle hook;
	struct reader *readers; /* those that are open */
	struct task *done;      /* finished calls; guarded by the lock of tasks.c */
	size_t tasks;           /* calls on other threads */
	uv_async_t async;       /* says that some are finished */
	napi_async_context context;
	size_t closing;         /* handles that libuv has not let go of */
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

/* ---- calls ---- */

/* The library, or NULL with an exception pending. */
const a3s_table *addon_library(addon *a);

/* Reads the entry and its arguments; false with an exception pending. Free them either way. */
bool addon_read_args(napi_env env, napi_callback_info info, const a3s_entry **entry, a3s_job *j);
void addon_free_args(a3s_job *j);

/* What a finished call gives, and the Error of one that failed; NULL with an exception pending. */
napi_value addon_result(napi_env env, const a3s_entry *e, const a3s_job *j);
napi_value addon_error(addon *a, const char *json, size_t len, int64_t status);

/* Keeps count of the agents that are open here. */
void addon_note(addon *a, const a3s_entry *e, const a3s_job *j);

/* Lets calls run on other threads; false if that is impossible. */
bool tasks_open(addon *a);

/* A function that runs its call on another thread and gives a promise. */
napi_value addon_call_later(napi_env env, napi_callback_info info);

/* ---- readers ---- */

/* Adds reader_open, reader_read, reader_wait, reader_ref and reader_close to exports. */
bool readers_export(napi_env env, napi_value exports);

/* Closes every reader of an environment. */
void readers_close(addon *a);

/* Ends the environment's part once no call is under way and libuv has let go of every handle. */
void addon_settled(addon *a);

#endif /* A3S_ADDON_H */
