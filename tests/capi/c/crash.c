/* FFI-02: a fault of the host's own is the host's: usage: crash FOLDER none|handler */
#include <signal.h>

#include "check.h"

static void on_fault(int sig) {
	(void)sig;
	_exit(42);
}

int main(int argc, char **argv) {
	volatile int *nothing = NULL;
	a3s_buf stats = {NULL, 0};
	begin(argc, argv);
	CHECK(argc == 3);
	if (strcmp(argv[2], "handler") == 0)
		signal(SIGSEGV, on_fault);
	OK(a3s_stats(0, &stats));
	a3s_buf_free(&stats);
	return *nothing;
}
