/* FFI-05: a copy of the library is a runtime of its own; handles do not pass. */
#include <dlfcn.h>

#include "check.h"

/* usage: copy FOLDER LIBRARY COPY */
int main(int argc, char **argv) {
	void *copy;
	a3s_status (*copy_close)(a3s_handle, int32_t);
	a3s_status (*copy_open)(const char *, size_t, a3s_handle *);
	a3s_handle agent, other = 0;
	char request[4096];
	begin(argc, argv);
	CHECK(argc == 3);
	copy = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
	CHECK(copy != NULL);
	*(void **)&copy_close = dlsym(copy, "a3s_close");
	*(void **)&copy_open = dlsym(copy, "a3s_agent_open");
	CHECK(copy_close != NULL && copy_open != NULL && copy_close != a3s_close);
	agent = open_agent("agent.acl");
	snprintf(request, sizeof request, "{\"acl_path\": \"%s/agent.acl\", \"cwd\": \"%s\", \"env\": {}}", folder, folder);
	OK(copy_open(request, A3S_NTS, &other));
	CHECK(other != agent);
	GIVES(A3S_E_HANDLE, copy_close(agent, -1));
	GIVES(A3S_E_HANDLE, a3s_close(other, -1));
	OK(copy_close(other, -1));
	OK(a3s_close(agent, -1));
	check_nothing_left();
	return 0;
}
