/* Runs a prompt with the agent of local.acl and prints its events, one a line. usage: turn FOLDER */
#include "check.h"

int main(int argc, char **argv) {
	static char buf[1 << 20];
	a3s_handle agent, stream;
	int64_t n;
	begin(argc, argv);
	agent = open_agent("local.acl");
	stream = open_stream(start_run(open_session(agent)));
	while ((n = a3s_stream_next(stream, 30000, 1, buf, sizeof buf, NULL)) > 0) {
		fwrite(buf, 1, (size_t)n, stdout);
		putchar('\n');
	}
	GIVES(A3S_E_END, n);
	OK(a3s_close(agent, -1));
	check_nothing_left();
	return 0;
}
