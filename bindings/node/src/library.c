/* Finds the library's functions. The one file that touches dlopen. */
#include <dlfcn.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "addon.h"

static uv_once_t once = UV_ONCE_INIT;
static uv_mutex_t lock;
static a3s_table table;
static _Atomic(const a3s_table *) loaded; /* set under lock, once */

static void make_lock(void) { uv_mutex_init(&lock); }

static void ignore(uv_signal_t *handle, int signum)
{
	(void)handle;
	(void)signum;
}

/*
 * Go adds SA_ONSTACK to the SIGCHLD handler that it finds when it is loaded; one that is
 * installed later without it can crash the process when it runs on a thread of Go. libuv
 * installs its handler with the first child and takes it away with the last, unless
 * somebody else wants the signal too: this loop, which never runs and never ends. It
 * belongs to no environment, because a worker that ends would take its loop along.
 */
static int keep_child_handler(void)
{
	static uv_loop_t loop;
	static uv_signal_t handle;
	static bool kept;
	int err;

	if (kept)
		return 0;
	if ((err = uv_loop_init(&loop)) != 0)
		return err;
	if ((err = uv_signal_init(&loop, &handle)) != 0)
		return err;
	err = uv_signal_start(&handle, ignore, SIGCHLD);
	kept = err == 0;
	return err;
}

static void refuse(a3s_refusal *why, const char *code, const char *what, const char *detail)
{
	why->code = code;
	snprintf(why->text, sizeof why->text, "%s: %s", what, detail);
}

static bool find(void *lib, const char *path, a3s_table *t, a3s_refusal *why)
{
	const char *missing = NULL;
#define F(name)                                                            \
	if ((*(void **)&t->name = dlsym(lib, "a3s_" #name)) == NULL && !missing) \
		missing = "a3s_" #name;
	A3S_FUNCTIONS(F)
#undef F
	if (!missing)
		return true;
	why->code = "LIBRARY_NOT_FOUND";
	snprintf(why->text, sizeof why->text, "%s has no function %s: it is not liba3s.so.1, or it is older than this package", path, missing);
	return false;
}

static bool fits(const char *path, const a3s_table *t, a3s_refusal *why)
{
	char words[128];
	uint32_t v = t->abi_version();

	if (t->abi_check(A3S_ABI_VERSION) >= 0)
		return true;
	snprintf(words, sizeof words, "the library has ABI %u.%u and this package needs %d.%d", v >> 16, v & 0xffff, A3S_ABI_MAJOR, A3S_ABI_MINOR);
	refuse(why, "ABI_MISMATCH", path, words);
	return false;
}

static bool open_at(const char *path, a3s_refusal *why)
{
	a3s_table t;
	void *lib;
	int err = keep_child_handler();

	if (err != 0) {
		refuse(why, "INTERNAL_ERROR", "the handler for child processes cannot be installed", uv_strerror(err));
		return false;
	}
	lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (lib == NULL) {
		refuse(why, "LIBRARY_NOT_FOUND", "the native library cannot be loaded", dlerror());
		return false;
	}
	if (!find(lib, path, &t, why) || !fits(path, &t, why))
		return false; /* the file stays mapped: Go cannot be unloaded */
	table = t;
	return true;
}

const a3s_table *library_load(const char *path, a3s_refusal *why)
{
	uv_once(&once, make_lock);
	uv_mutex_lock(&lock);
	if (library_table() == NULL && open_at(path, why))
		atomic_store_explicit(&loaded, &table, memory_order_release);
	uv_mutex_unlock(&lock);
	return library_table();
}

const a3s_table *library_table(void) { return atomic_load_explicit(&loaded, memory_order_acquire); }
