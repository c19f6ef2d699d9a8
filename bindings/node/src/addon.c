/*
 * The library's functions as JavaScript calls them: each by its name, on the calling
 * thread, and those that can fail also as nameAsync, on another thread (tasks.c), as a
 * promise. Handles are BigInt, texts are strings, a status below 0 is an exception.
 */
#include <stdlib.h>
#include <string.h>

#include "addon.h"

addon *addon_of(napi_env env)
{
	void *data = NULL;
	napi_get_instance_data(env, &data);
	return data;
}

/* ---- errors ---- */

/* The Error for what the library said, or NULL with an exception pending. */
napi_value addon_error(addon *a, const char *json, size_t len, int64_t status)
{
	napi_value make, undefined, argv[2], error = NULL;

	if (napi_get_undefined(a->env, &undefined) != napi_ok ||
	    a->make_error == NULL || napi_get_reference_value(a->env, a->make_error, &make) != napi_ok)
		return NULL;
	argv[0] = undefined;
	if (json != NULL && napi_create_string_utf8(a->env, json, len, &argv[0]) != napi_ok)
		return NULL;
	if (napi_create_int64(a->env, status, &argv[1]) != napi_ok)
		return NULL;
	napi_call_function(a->env, undefined, make, 2, argv, &error);
	return error;
}

static void throw_buf(addon *a, const a3s_buf *b, int64_t status)
{
	napi_value error = addon_error(a, b->ptr, b->len, status);
	if (error != NULL)
		napi_throw(a->env, error);
}

void addon_throw_last(addon *a, int64_t status)
{
	const a3s_table *t = library_table();
	a3s_buf b = {NULL, 0};

	t->last_error(&b);
	throw_buf(a, &b, status);
	t->buf_free(&b);
}

void addon_refuse(addon *a, const char *code, const char *text) { napi_throw_error(a->env, code, text); }

/* ---- arguments and results ---- */

void addon_free_args(a3s_job *j)
{
	for (size_t i = 0; i < A3S_MOST_ARGS; i++)
		free(j->in[i].text);
}

static bool read_text(napi_env env, napi_value v, a3s_arg *to)
{
	size_t len;

	if (napi_get_value_string_utf8(env, v, NULL, 0, &len) != napi_ok)
		return false;
	to->text = malloc(len + 1);
	return to->text != NULL && napi_get_value_string_utf8(env, v, to->text, len + 1, &to->len) == napi_ok;
}

static bool read_number(napi_env env, napi_value v, a3s_arg *to)
{
	napi_valuetype type;
	bool lossless;
	int64_t n;

	if (napi_typeof(env, v, &type) != napi_ok)
		return false;
	if (type == napi_bigint)
		return napi_get_value_bigint_uint64(env, v, &to->number, &lossless) == napi_ok;
	if (napi_get_value_int64(env, v, &n) != napi_ok)
		return false;
	to->number = (uint64_t)n;
	return true;
}

bool addon_read_args(napi_env env, napi_callback_info info, const a3s_entry **entry, a3s_job *j)
{
	napi_value argv[A3S_MOST_ARGS];
	size_t argc = A3S_MOST_ARGS;
	void *data;

	if (napi_get_cb_info(env, info, &argc, argv, NULL, &data) != napi_ok)
		return false;
	*entry = data;
	const char *in = (*entry)->in;
	for (size_t i = 0; in[i] != '\0'; i++) {
		bool ok = argc > i && (in[i] == 's' || in[i] == 'z' ? read_text : read_number)(env, argv[i], &j->in[i]);
		if (!ok) {
			napi_throw_type_error(env, "ERR_INVALID_ARG_TYPE", (*entry)->name);
			return false;
		}
	}
	return true;
}

napi_value addon_result(napi_env env, const a3s_entry *e, const a3s_job *j)
{
	napi_value v = NULL;

	switch (e->out) {
	case 'h':
		napi_create_bigint_uint64(env, j->number, &v);
		break;
	case 'u': /* counted from 1, so it fits a Number */
		napi_create_int64(env, (int64_t)j->number, &v);
		break;
	case 't':
		napi_create_string_utf8(env, j->text.ptr ? j->text.ptr : "", j->text.len, &v);
		break;
	case 'w':
		napi_create_string_utf8(env, j->words, NAPI_AUTO_LENGTH, &v);
		break;
	default:
		napi_create_int64(env, j->status, &v);
	}
	return v;
}

/* ---- agents, which end with their environment ---- */

static void remember(addon *a, uint64_t agent)
{
	if (a->agents_len == a->agents_cap) {
		size_t cap = a->agents_cap ? 2 * a->agents_cap : 8;
		uint64_t *more = realloc(a->agents, cap * sizeof *more);
		if (more == NULL)
			return; /* it is then closed by whoever holds it, or with the process */
		a->agents = more;
		a->agents_cap = cap;
	}
	a->agents[a->agents_len++] = agent;
}

static void forget(addon *a, uint64_t handle)
{
	for (size_t i = 0; i < a->agents_len; i++)
		if (a->agents[i] == handle) {
			a->agents[i] = a->agents[--a->agents_len];
			return;
		}
}

void addon_note(addon *a, const a3s_entry *e, const a3s_job *j)
{
	if (e->invoke == invoke_agent_open && j->status >= 0)
		remember(a, j->number);
	else if (e->invoke == invoke_close)
		forget(a, j->in[0].number);
}

/* A moment that is so far away, and what is left until then. */
static uint64_t moment(int64_t ms) { return uv_hrtime() + (uint64_t)ms * 1000000; }

static int32_t left(uint64_t until)
{
	uint64_t now = uv_hrtime();
	return now < until ? (int32_t)((until - now) / 1000000) : 0;
}

/* Closes what is open here, within timeout_ms altogether; no handle is good afterwards. */
static void close_all(addon *a, int64_t timeout_ms)
{
	const a3s_table *t = library_table();
	uint64_t until = moment(timeout_ms);

	readers_close(a);
	while (a->agents_len > 0)
		t->close(a->agents[--a->agents_len], left(until));
}

/*
 * Ends what is open here, within timeout_ms altogether. The handles stay: handlers of 'exit'
 * that come later may still ask closed objects what they know.
 */
static void end_all(addon *a, int64_t timeout_ms)
{
	const a3s_table *t = library_table();
	uint64_t until = moment(timeout_ms);

	readers_close(a); /* the library asks nobody who does not listen, and this thread does not */
	for (size_t i = 0; i < a->agents_len; i++) {
		uint64_t call;
		a3s_buf result = {NULL, 0};
		if (t->call_start(a->agents[i], "agent.close", "{}", 2, &call) < 0)
			continue; /* it is closed */
		if (t->call_wait(a->agents[i], call, left(until), &result) >= 0)
			t->buf_free(&result);
	}
}

/* ---- calls ---- */

const a3s_table *addon_library(addon *a)
{
	const a3s_table *t = library_table();
	if (t == NULL)
		addon_refuse(a, "LIBRARY_NOT_FOUND", "the native library was not loaded");
	return t;
}

static napi_value call_now(napi_env env, napi_callback_info info)
{
	addon *a = addon_of(env);
	const a3s_table *t = addon_library(a);
	const a3s_entry *e;
	a3s_job j = {0};
	napi_value result = NULL;

	if (t == NULL)
		return NULL;
	if (addon_read_args(env, info, &e, &j)) {
		e->invoke(t, &j);
		addon_note(a, e, &j);
		if (e->fails && j.status < 0)
			addon_throw_last(a, j.status);
		else
			result = addon_result(env, e, &j);
	}
	addon_free_args(&j);
	if (j.text.ptr != NULL)
		t->buf_free(&j.text);
	return result;
}

/* ---- the module ---- */

/* load(path, makeError): makes the functions usable in this environment. */
static napi_value load(napi_env env, napi_callback_info info)
{
	addon *a = addon_of(env);
	napi_value argv[2], undefined;
	size_t argc = 2;
	a3s_arg path = {0};
	a3s_refusal why;

	if (napi_get_cb_info(env, info, &argc, argv, NULL, NULL) != napi_ok || argc != 2 || !read_text(env, argv[0], &path) ||
	    (a->make_error == NULL && napi_create_reference(env, argv[1], 1, &a->make_error) != napi_ok))
		napi_throw_type_error(env, "ERR_INVALID_ARG_TYPE", "load takes a path and a function");
	else if (library_load(path.text, &why) == NULL)
		addon_refuse(a, why.code, why.text);
	free(path.text);
	napi_get_undefined(env, &undefined);
	return undefined;
}

/* endAll(timeoutMs): for the end of the process, where only handlers of 'exit' will be run. */
static napi_value end_everything(napi_env env, napi_callback_info info)
{
	addon *a = addon_of(env);
	napi_value argv[1], undefined;
	size_t argc = 1;
	int64_t timeout = 0;

	napi_get_undefined(env, &undefined);
	if (napi_get_cb_info(env, info, &argc, argv, NULL, NULL) == napi_ok && argc == 1)
		napi_get_value_int64(env, argv[0], &timeout);
	if (library_table() != NULL)
		end_all(a, timeout);
	return undefined;
}

/*
 * weigh(bytes): tells the garbage collector of memory that hangs on its objects. Without it
 * thousands of small objects of closed sessions would look like nothing to collect.
 */
static napi_value weigh(napi_env env, napi_callback_info info)
{
	napi_value argv[1], undefined;
	size_t argc = 1;
	int64_t bytes, total;

	napi_get_undefined(env, &undefined);
	if (napi_get_cb_info(env, info, &argc, argv, NULL, NULL) == napi_ok && argc == 1 && napi_get_value_int64(env, argv[0], &bytes) == napi_ok)
		napi_adjust_external_memory(env, bytes, &total);
	return undefined;
}

static void on_async_closed(uv_handle_t *handle)
{
	addon *a = handle->data;

	a->closing--;
	addon_settled(a);
}

void addon_settled(addon *a)
{
	if (!a->ended || a->tasks > 0)
		return;
	if (!uv_is_closing((uv_handle_t *)&a->async)) {
		a->closing++;
		uv_close((uv_handle_t *)&a->async, on_async_closed);
	}
	if (a->closing == 0 && a->hook != NULL) {
		napi_async_cleanup_hook_handle hook = a->hook;
		a->hook = NULL;
		napi_remove_async_cleanup_hook(hook);
	}
}

static void environment_ends(napi_async_cleanup_hook_handle hook, void *data)
{
	addon *a = data;

	(void)hook;
	if (library_table() != NULL)
		close_all(a, 2000);
	napi_async_destroy(a->env, a->context);
	a->ended = true;
	addon_settled(a);
}

static void drop(napi_env env, void *data, void *hint)
{
	addon *a = data;

	(void)env;
	(void)hint;
	free(a->agents);
	free(a->buf);
	free(a);
}

static bool export_as(napi_env env, napi_value exports, const char *name, const char *suffix, napi_callback fn, const void *data)
{
	char full[64];
	napi_value v;

	strcat(strcpy(full, name), suffix);
	return napi_create_function(env, full, NAPI_AUTO_LENGTH, fn, (void *)data, &v) == napi_ok &&
	       napi_set_named_property(env, exports, full, v) == napi_ok;
}

NAPI_MODULE_INIT()
{
	addon *a = calloc(1, sizeof *a);
	bool ok = a != NULL;

	if (ok && !(ok = napi_set_instance_data(env, a, drop, NULL) == napi_ok))
		free(a);
	if (ok) {
		a->env = env;
		ok = napi_get_uv_event_loop(env, &a->loop) == napi_ok &&
		     tasks_open(a) &&
		     napi_add_async_cleanup_hook(env, environment_ends, a, &a->hook) == napi_ok &&
		     export_as(env, exports, "load", "", load, NULL) &&
		     export_as(env, exports, "endAll", "", end_everything, NULL) &&
		     export_as(env, exports, "weigh", "", weigh, NULL) &&
		     readers_export(env, exports);
	}
	for (size_t i = 0; ok && i < sizeof a3s_entries / sizeof *a3s_entries; i++) {
		const a3s_entry *e = &a3s_entries[i];
		ok = export_as(env, exports, e->name, "", call_now, e) &&
		     (!e->fails || export_as(env, exports, e->name, "Async", addon_call_later, e));
	}
	if (!ok)
		napi_throw_error(env, "ERR_DLOPEN_FAILED", "the addon could not be initialised");
	return exports;
}
