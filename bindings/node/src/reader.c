/*
 * Reading a stream of events without blocking: batches are pulled, and only when there is
 * nothing to pull does libuv watch the stream's descriptor, for one time.
 */
#include <stdlib.h>

#include "addon.h"

enum { FIRST_CAP = 128 << 10, KEPT_CAP = 1 << 20, BATCH = 256 };

/* A reader lives while JavaScript holds it or libuv has its handle. */
typedef struct reader {
	addon *a;
	uint64_t stream;
	uv_poll_t poll;
	bool polls;          /* poll was initialised */
	bool closed;
	napi_ref callback;   /* set while it waits */
	int held;
	struct reader *prev, *next;
} reader;

static void let_go(reader *r)
{
	if (--r->held == 0)
		free(r);
}

static void on_closed(uv_handle_t *handle)
{
	reader *r = handle->data;
	addon *a = r->a;

	let_go(r);
	a->closing--;
	addon_settled(a);
}

static void unlink_reader(reader *r)
{
	if (r->prev)
		r->prev->next = r->next;
	else
		r->a->readers = r->next;
	if (r->next)
		r->next->prev = r->prev;
}

/* libuv lets go of the descriptor before the library closes it. */
static void close_reader(reader *r)
{
	if (r->closed)
		return;
	r->closed = true;
	unlink_reader(r);
	if (r->callback != NULL)
		napi_delete_reference(r->a->env, r->callback);
	r->callback = NULL;
	if (r->polls) {
		uv_poll_stop(&r->poll);
		r->a->closing++;
		uv_close((uv_handle_t *)&r->poll, on_closed);
	}
	library_table()->close(r->stream, 0);
}

void readers_close(addon *a)
{
	while (a->readers != NULL)
		close_reader(a->readers);
}

/* ---- waiting ---- */

static void on_readable(uv_poll_t *poll, int status, int events)
{
	reader *r = poll->data;
	napi_env env = r->a->env;
	napi_handle_scope scope;
	napi_value callback, recv, result, exception;
	bool pending = false;

	(void)status; /* what is wrong with the stream is told by the next read */
	(void)events;
	uv_poll_stop(poll);
	if (r->callback == NULL || napi_open_handle_scope(env, &scope) != napi_ok)
		return;
	napi_ref ref = r->callback;
	r->callback = NULL;
	if (napi_get_reference_value(env, ref, &callback) == napi_ok && napi_delete_reference(env, ref) == napi_ok &&
	    napi_get_global(env, &recv) == napi_ok &&
	    napi_make_callback(env, NULL, recv, callback, 0, NULL, &result) == napi_pending_exception &&
	    napi_is_exception_pending(env, &pending) == napi_ok && pending &&
	    napi_get_and_clear_last_exception(env, &exception) == napi_ok)
		napi_fatal_exception(env, exception);
	napi_close_handle_scope(env, scope);
}

static bool start_polling(reader *r)
{
	addon *a = r->a;
	int32_t fd;
	int err = 0;

	if (!r->polls) {
		fd = library_table()->stream_fd(r->stream);
		if (fd < 0) {
			addon_throw_last(a, fd);
			return false;
		}
		if ((err = uv_poll_init(a->loop, &r->poll, fd)) == 0) {
			r->poll.data = r;
			r->polls = true;
			r->held++;
		}
	}
	if (err == 0)
		err = uv_poll_start(&r->poll, UV_READABLE, on_readable);
	if (err != 0)
		addon_refuse(a, "IO_ERROR", uv_strerror(err));
	return err == 0;
}

/* ---- functions for JavaScript ---- */

static reader *reader_arg(napi_env env, napi_callback_info info, size_t want, napi_value *argv)
{
	size_t argc = want;
	void *data = NULL;

	if (napi_get_cb_info(env, info, &argc, argv, NULL, NULL) != napi_ok || argc < want ||
	    napi_get_value_external(env, argv[0], &data) != napi_ok)
		napi_throw_type_error(env, "ERR_INVALID_ARG_TYPE", "not a reader");
	return data;
}

static void finalize(napi_env env, void *data, void *hint)
{
	(void)env;
	(void)hint;
	close_reader(data);
	let_go(data);
}

/* readerOpen(stream): takes the stream's handle. */
static napi_value reader_open(napi_env env, napi_callback_info info)
{
	addon *a = addon_of(env);
	napi_value argv[1], external = NULL;
	size_t argc = 1;
	uint64_t stream;
	bool lossless;
	reader *r;

	if (napi_get_cb_info(env, info, &argc, argv, NULL, NULL) != napi_ok || argc != 1 ||
	    napi_get_value_bigint_uint64(env, argv[0], &stream, &lossless) != napi_ok) {
		napi_throw_type_error(env, "ERR_INVALID_ARG_TYPE", "readerOpen takes a handle");
		return NULL;
	}
	if ((r = calloc(1, sizeof *r)) == NULL) {
		napi_throw_error(env, "ERR_MEMORY_ALLOCATION_FAILED", "out of memory");
		return NULL;
	}
	r->a = a;
	r->stream = stream;
	r->held = 1;
	if (napi_create_external(env, r, finalize, NULL, &external) != napi_ok) {
		free(r);
		return NULL;
	}
	if ((r->next = a->readers) != NULL)
		r->next->prev = r;
	a->readers = r;
	return external;
}

static bool grow(addon *a, size_t cap)
{
	char *more = realloc(a->buf, cap);
	if (more == NULL) {
		napi_throw_error(a->env, "ERR_MEMORY_ALLOCATION_FAILED", "out of memory");
		return false;
	}
	a->buf = more;
	a->cap = cap;
	return true;
}

/* readerRead(reader): the text of one JSON array; undefined if there is nothing now; null at the end. */
static napi_value reader_read(napi_env env, napi_callback_info info)
{
	napi_value argv[1], v = NULL;
	reader *r = reader_arg(env, info, 1, argv);
	size_t needed = FIRST_CAP;
	int64_t n = A3S_E_BUFFER;

	if (r == NULL)
		return NULL;
	addon *a = r->a;
	if (r->closed) {
		napi_get_null(env, &v);
		return v;
	}
	while (n == A3S_E_BUFFER) {
		if (a->cap < needed && !grow(a, needed))
			return NULL;
		n = library_table()->stream_next(r->stream, 0, BATCH, a->buf, a->cap, &needed);
	}
	if (n > 0)
		napi_create_string_utf8(env, a->buf, (size_t)n, &v);
	else if (n == 0 || n == A3S_E_WOKEN)
		napi_get_undefined(env, &v);
	else if (n == A3S_E_END)
		napi_get_null(env, &v);
	else
		addon_throw_last(a, n);
	if (a->cap > KEPT_CAP)
		grow(a, FIRST_CAP);
	return v;
}

/* readerWait(reader, callback): calls back once, when there is something to read. */
static napi_value reader_wait(napi_env env, napi_callback_info info)
{
	napi_value argv[2], undefined;
	reader *r = reader_arg(env, info, 2, argv);

	napi_get_undefined(env, &undefined);
	if (r == NULL)
		return NULL;
	if (r->closed || r->callback != NULL)
		addon_refuse(r->a, "INTERNAL_ERROR", "this reader is closed or waits already");
	else if (start_polling(r) && napi_create_reference(env, argv[1], 1, &r->callback) != napi_ok)
		uv_poll_stop(&r->poll);
	return undefined;
}

/* readerRef(reader, keep): whether waiting keeps the process alive. */
static napi_value reader_ref(napi_env env, napi_callback_info info)
{
	napi_value argv[2], undefined;
	reader *r = reader_arg(env, info, 2, argv);
	bool keep;

	napi_get_undefined(env, &undefined);
	if (r != NULL && !r->closed && r->polls && napi_get_value_bool(env, argv[1], &keep) == napi_ok)
		(keep ? uv_ref : uv_unref)((uv_handle_t *)&r->poll);
	return undefined;
}

/* readerClose(reader): ends the stream; a callback that waits is not called. */
static napi_value reader_close(napi_env env, napi_callback_info info)
{
	napi_value argv[1], undefined;
	reader *r = reader_arg(env, info, 1, argv);

	napi_get_undefined(env, &undefined);
	if (r != NULL)
		close_reader(r);
	return undefined;
}

bool readers_export(napi_env env, napi_value exports)
{
	const napi_property_descriptor functions[] = {
		{"readerOpen", NULL, reader_open, NULL, NULL, NULL, napi_default_jsproperty, NULL},
		{"readerRead", NULL, reader_read, NULL, NULL, NULL, napi_default_jsproperty, NULL},
		{"readerWait", NULL, reader_wait, NULL, NULL, NULL, napi_default_jsproperty, NULL},
		{"readerRef", NULL, reader_ref, NULL, NULL, NULL, napi_default_jsproperty, NULL},
		{"readerClose", NULL, reader_close, NULL, NULL, NULL, napi_default_jsproperty, NULL},
	};
	return napi_define_properties(env, exports, sizeof functions / sizeof *functions, functions) == napi_ok;
}
