/*
 * Calls that may wait, as promises. They run on threads of this file and not of libuv's pool:
 * a call may wait for this program's own answer (a session that is opened asks its store), and
 * that answer may need the pool (a store that keeps files), whose few threads would all wait.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "addon.h"

enum { MOST_THREADS = 128, KEPT_THREADS = 4, STACK = 1 << 20 };
static const uint64_t IDLE_NS = 5000000000;

/* A call on a thread of its own. */
struct task {
	addon *a;
	const a3s_entry *e;
	a3s_job j;
	a3s_buf error;
	napi_deferred deferred;
	struct task *next;
};

static uv_once_t once = UV_ONCE_INIT;
static uv_mutex_t lock; /* guards what follows, and the field done of every addon */
static uv_cond_t more;
static struct task *first, **last = &first; /* those that wait for a thread */
static size_t threads, idle, waiting;

static void make_lock(void)
{
	uv_mutex_init(&lock);
	uv_cond_init(&more);
}

/* ---- threads ---- */

static void execute(struct task *k)
{
	const a3s_table *t = library_table();

	k->e->invoke(t, &k->j);
	if (k->e->fails && k->j.status < 0)
		t->last_error(&k->error); /* the slot is this thread's */
}

/* The next task, or NULL for a thread that is no longer needed; with the lock held. */
static struct task *take(void)
{
	struct task *k;

	while (first == NULL) {
		idle++;
		int err = uv_cond_timedwait(&more, &lock, IDLE_NS);
		idle--;
		if (err != 0 && first == NULL && threads > KEPT_THREADS)
			return NULL;
	}
	k = first;
	if ((first = k->next) == NULL)
		last = &first;
	waiting--;
	return k;
}

static void work(void *arg)
{
	struct task *k;

	(void)arg;
	uv_mutex_lock(&lock);
	while ((k = take()) != NULL) {
		uv_mutex_unlock(&lock);
		execute(k);
		uv_mutex_lock(&lock);
		k->next = k->a->done;
		k->a->done = k;
		uv_async_send(&k->a->async); /* under the lock, so that it is not closed meanwhile */
	}
	threads--;
	uv_mutex_unlock(&lock);
}

/* Starts one more thread; with the lock held. Signals are for the host's own threads. */
static bool add_thread(void)
{
	const uv_thread_options_t options = {.flags = UV_THREAD_HAS_STACK_SIZE, .stack_size = STACK};
	sigset_t all, before;
	uv_thread_t thread;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	bool ok = uv_thread_create_ex(&thread, &options, work, NULL) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (ok) {
		pthread_detach(thread);
		threads++;
	}
	return ok;
}

static bool queue(struct task *k)
{
	bool ok = true;

	uv_mutex_lock(&lock);
	if (idle <= waiting && threads < MOST_THREADS)
		ok = add_thread() || threads > 0;
	if (ok) {
		*last = k;
		last = &k->next;
		waiting++;
		uv_cond_signal(&more);
	}
	uv_mutex_unlock(&lock);
	return ok;
}

/* ---- the environment's side ---- */

static void drop_task(struct task *k)
{
	const a3s_table *t = library_table();

	addon_free_args(&k->j);
	t->buf_free(&k->j.text);
	t->buf_free(&k->error);
	free(k);
}

/* Settles the promise of a task that is done. */
static void settle(struct task *k)
{
	addon *a = k->a;
	napi_value v;

	addon_note(a, k->e, &k->j);
	if (k->e->fails && k->j.status < 0) {
		v = addon_error(a, k->error.ptr, k->error.len, k->j.status);
		if (v != NULL)
			napi_reject_deferred(a->env, k->deferred, v);
	} else if ((v = addon_result(a->env, k->e, &k->j)) != NULL) {
		napi_resolve_deferred(a->env, k->deferred, v);
	}
}

static struct task *take_done(addon *a)
{
	struct task *k, *next, *in_order = NULL;

	uv_mutex_lock(&lock);
	k = a->done;
	a->done = NULL;
	uv_mutex_unlock(&lock);
	for (; k != NULL; k = next) { /* the first one done is the last in the list */
		next = k->next;
		k->next = in_order;
		in_order = k;
	}
	return in_order;
}

static void on_done(uv_async_t *async)
{
	addon *a = async->data;
	napi_handle_scope handles;
	napi_callback_scope callbacks;
	napi_value resource;
	struct task *k = take_done(a), *next;
	bool live = !a->ended && napi_open_handle_scope(a->env, &handles) == napi_ok;
	bool scoped = live && napi_create_object(a->env, &resource) == napi_ok &&
		      napi_open_callback_scope(a->env, resource, a->context, &callbacks) == napi_ok;

	for (; k != NULL; k = next) {
		next = k->next;
		if (scoped)
			settle(k);
		else if (k->e->out == 'h' && k->j.status >= 0) /* opened for nobody */
			library_table()->close(k->j.number, 0);
		drop_task(k);
		if (--a->tasks == 0 && !a->ended)
			uv_unref((uv_handle_t *)&a->async);
	}
	if (scoped)
		napi_close_callback_scope(a->env, callbacks); /* runs what the promises are followed by */
	if (live)
		napi_close_handle_scope(a->env, handles);
	addon_settled(a);
}

bool tasks_open(addon *a)
{
	napi_value name;

	uv_once(&once, make_lock);
	if (napi_create_string_utf8(a->env, "a3s", NAPI_AUTO_LENGTH, &name) != napi_ok ||
	    napi_async_init(a->env, NULL, name, &a->context) != napi_ok || uv_async_init(a->loop, &a->async, on_done) != 0)
		return false;
	a->async.data = a;
	uv_unref((uv_handle_t *)&a->async);
	return true;
}

napi_value addon_call_later(napi_env env, napi_callback_info info)
{
	addon *a = addon_of(env);
	struct task *k;
	napi_value promise = NULL;

	if (addon_library(a) == NULL)
		return NULL;
	if ((k = calloc(1, sizeof *k)) == NULL) {
		napi_throw_error(env, "ERR_MEMORY_ALLOCATION_FAILED", "out of memory");
		return NULL;
	}
	k->a = a;
	if (!addon_read_args(env, info, &k->e, &k->j) || napi_create_promise(env, &k->deferred, &promise) != napi_ok) {
		drop_task(k);
		return NULL;
	}
	if (a->tasks++ == 0)
		uv_ref((uv_handle_t *)&a->async);
	if (!queue(k)) {
		if (--a->tasks == 0)
			uv_unref((uv_handle_t *)&a->async);
		napi_throw_error(env, "ERR_WORKER_OUT_OF_MEMORY", "the system gives no thread");
		drop_task(k);
		return NULL;
	}
	return promise;
}
