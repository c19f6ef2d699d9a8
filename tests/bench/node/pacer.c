/* The pacer for Node, and a function that takes a handle, gives a status and does nothing:
 * what N-API itself costs. */
#include <node_api.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "pacer.h"

static int64_t *stamps;

/* numbers reads arguments, BigInt or not; gives how many there are. */
static size_t numbers(napi_env env, napi_callback_info info, uint64_t *to, size_t max) {
	napi_value argv[4];
	size_t argc = max, i;
	if (napi_get_cb_info(env, info, &argc, argv, NULL, NULL) != napi_ok)
		return 0;
	for (i = 0; i < argc; i++) {
		bool lossless;
		int64_t n = 0;
		if (napi_get_value_bigint_uint64(env, argv[i], &to[i], &lossless) == napi_ok)
			continue;
		if (napi_get_value_int64(env, argv[i], &n) != napi_ok)
			return 0;
		to[i] = (uint64_t)n;
	}
	return argc;
}

static void room(uint64_t n) {
	free(stamps);
	if ((stamps = calloc(n, sizeof *stamps)) == NULL)
		abort();
}

static napi_value nothing(napi_env env, napi_callback_info info) {
	uint64_t handle;
	napi_value v = NULL;
	if (numbers(env, info, &handle, 1) == 1)
		napi_create_int32(env, pacer_nothing(handle), &v);
	return v;
}

/* answer(agent, request, n): pieces of output, one a millisecond. */
static napi_value answer(napi_env env, napi_callback_info info) {
	uint64_t v[3];
	if (numbers(env, info, v, 3) != 3)
		napi_throw_type_error(env, NULL, "answer(agent, request, n)");
	else {
		room(v[2]);
		pacer_start(v[0], v[1], (int)v[2], 1000, stamps);
	}
	return NULL;
}

/* wake(stream, n): lets a stream wake its reader, each time after seen() told of the last. */
static napi_value wake(napi_env env, napi_callback_info info) {
	uint64_t v[2];
	if (numbers(env, info, v, 2) != 2)
		napi_throw_type_error(env, NULL, "wake(stream, n)");
	else {
		room(v[1]);
		pacer_wake(v[0], (int)v[1], 1000, stamps);
	}
	return NULL;
}

static napi_value seen(napi_env env, napi_callback_info info) {
	(void)env;
	(void)info;
	pacer_seen();
	return NULL;
}

/* socket(n): a socket into which indexes are written, one a millisecond. */
static napi_value open_socket(napi_env env, napi_callback_info info) {
	uint64_t n;
	int pair[2];
	napi_value fd = NULL;
	if (numbers(env, info, &n, 1) != 1 || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
		napi_throw_type_error(env, NULL, "socket(n)");
	else {
		room(n);
		pacer_write(pair[1], (int)n, 1000, stamps);
		napi_create_int32(env, pair[0], &fd);
	}
	return fd;
}

/* late(i): seconds since the i-th piece was handed in. */
static napi_value late(napi_env env, napi_callback_info info) {
	int64_t now = now_ns();
	uint64_t i = 0;
	napi_value v = NULL;
	if (numbers(env, info, &i, 1) == 1)
		napi_create_double(env, (double)(now - stamps[i]) / 1e9, &v);
	return v;
}

static napi_value join(napi_env env, napi_callback_info info) {
	(void)env;
	(void)info;
	pacer_join();
	return NULL;
}

NAPI_MODULE_INIT() {
	static const struct {
		const char *name;
		napi_callback fn;
	} all[] = {{"nothing", nothing}, {"answer", answer}, {"socket", open_socket}, {"wake", wake}, {"seen", seen}, {"late", late}, {"join", join}};
	size_t i;
	for (i = 0; i < sizeof all / sizeof all[0]; i++) {
		napi_value fn;
		if (napi_create_function(env, all[i].name, NAPI_AUTO_LENGTH, all[i].fn, NULL, &fn) != napi_ok ||
		    napi_set_named_property(env, exports, all[i].name, fn) != napi_ok)
			return NULL;
	}
	return exports;
}
