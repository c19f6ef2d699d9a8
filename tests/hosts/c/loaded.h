/* For programs that load the library while they run, and are not linked with it. */
#ifndef LOADED_H
#define LOADED_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "a3s.h"

static struct {
	a3s_status (*agent_open)(const char *, size_t, a3s_handle *);
	a3s_status (*session_open)(a3s_handle, const char *, size_t, a3s_handle *);
	a3s_status (*run_start)(a3s_handle, const char *, size_t, a3s_handle *);
	a3s_status (*run_wait)(a3s_handle, int32_t, a3s_buf *);
	a3s_status (*call)(a3s_handle, const char *, const char *, size_t, int32_t, a3s_buf *);
	a3s_status (*close)(a3s_handle, int32_t);
	void (*buf_free)(a3s_buf *);
} lib;

#define NEED(cond) \
	do { \
		if (!(cond)) { \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond); \
			exit(1); \
		} \
	} while (0)

static inline void *symbol(void *from, const char *name) {
	void *found = dlsym(from, name);
	NEED(found != NULL);
	return found;
}

static inline void load_library(const char *path) {
	void *so = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	NEED(so != NULL);
	*(void **)&lib.agent_open = symbol(so, "a3s_agent_open");
	*(void **)&lib.session_open = symbol(so, "a3s_session_open");
	*(void **)&lib.run_start = symbol(so, "a3s_run_start");
	*(void **)&lib.run_wait = symbol(so, "a3s_run_wait");
	*(void **)&lib.call = symbol(so, "a3s_call");
	*(void **)&lib.close = symbol(so, "a3s_close");
	*(void **)&lib.buf_free = symbol(so, "a3s_buf_free");
}

/* Opens an agent on FOLDER and runs a prompt in a new session of it. */
static inline void run_once(const char *folder) {
	char request[4096];
	a3s_handle agent = 0, session = 0, run = 0;
	a3s_buf result = {NULL, 0};
	snprintf(request, sizeof request, "{\"acl_path\": \"%s/agent.acl\", \"cwd\": \"%s\", \"env\": {\"PATH\": \"/usr/bin:/bin\"}}", folder, folder);
	NEED(lib.agent_open(request, A3S_NTS, &agent) == A3S_OK);
	snprintf(request, sizeof request, "{\"workspace\": \"%s/workspace\", \"options\": {\"permission_policy\": {\"default_decision\": \"allow\"}}}", folder);
	NEED(lib.session_open(agent, request, A3S_NTS, &session) == A3S_OK);
	NEED(lib.run_start(session, "{\"prompt\": \"go on\"}", A3S_NTS, &run) == A3S_OK);
	NEED(lib.run_wait(run, 20000, &result) == A3S_OK);
	NEED(strstr(result.ptr, "done") != NULL);
	lib.buf_free(&result);
	/* A child process of the library ends, and its end is noticed. */
	NEED(lib.call(session, "session.tool", "{\"name\": \"bash\", \"args\": {\"command\": \"exit 3\"}}", A3S_NTS, 20000, &result) == A3S_OK);
	NEED(strstr(result.ptr, "\"exit_code\":3") != NULL);
	lib.buf_free(&result);
	NEED(lib.close(agent, -1) == A3S_OK);
}

#endif
