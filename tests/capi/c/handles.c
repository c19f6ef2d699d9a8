/* Zero, random, forged and stale handles: an error each time, never a crash. */
#include "check.h"

static void ignore(uintptr_t user_data, const char *json, size_t len) {
	(void)user_data;
	(void)json;
	(void)len;
}

static int freed;
static void count_free(uintptr_t user_data) { freed += (int)user_data; }

/* Every function that takes a handle. */
static void refuse(a3s_handle h) {
	a3s_buf buf = {(char *)"x", 1};
	a3s_handle out = 99;
	uint64_t call = 99;
	size_t needed = 99;
	char room[64];
	int before = freed;
	if (h != 0)
		GIVES(A3S_E_HANDLE, a3s_stats(h, &buf));
	GIVES(A3S_E_HANDLE, a3s_close(h, 0));
	buf.ptr = (char *)"x";
	GIVES(A3S_E_HANDLE, a3s_call(h, "session.save", "{}", A3S_NTS, 0, &buf));
	CHECK(buf.ptr == NULL && buf.len == 0);
	GIVES(A3S_E_HANDLE, a3s_call_start(h, "session.save", "{}", A3S_NTS, &call));
	CHECK(call == 0);
	GIVES(A3S_E_HANDLE, a3s_call_wait(h, 1, 0, &buf));
	GIVES(A3S_E_HANDLE, a3s_call_cancel(h, 0));
	GIVES(A3S_E_HANDLE, a3s_session_open(h, "{}", 2, &out));
	CHECK(out == 0);
	out = 99;
	GIVES(A3S_E_HANDLE, a3s_run_start(h, "{}", 2, &out));
	CHECK(out == 0);
	GIVES(A3S_E_HANDLE, a3s_run_input(h, "{}", 2));
	GIVES(A3S_E_HANDLE, a3s_run_cancel(h, NULL, 0));
	GIVES(A3S_E_HANDLE, a3s_run_wait(h, 0, &buf));
	out = 99;
	GIVES(A3S_E_HANDLE, a3s_stream_open(h, NULL, 0, &out));
	CHECK(out == 0);
	GIVES(A3S_E_HANDLE, a3s_stream_next(h, 0, 0, room, sizeof room, &needed));
	CHECK(needed == 0);
	GIVES(A3S_E_HANDLE, a3s_stream_fd(h));
	GIVES(A3S_E_HANDLE, a3s_stream_wake(h));
	GIVES(A3S_E_HANDLE, a3s_stream_subscribe(h, 0, 0, ignore, 1, count_free));
	CHECK(freed == before + 1); /* also when it fails */
	out = 99;
	GIVES(A3S_E_HANDLE, a3s_host_register(h, "tool", "{}", 2, &out));
	CHECK(out == 0);
	GIVES(A3S_E_HANDLE, a3s_host_chunk(h, 1, "{}", 2));
	GIVES(A3S_E_HANDLE, a3s_host_reply(h, 1, "{}", 2));
	CODE(A3S_CODE_INVALID_HANDLE);
}

int main(int argc, char **argv) {
	a3s_handle agent, session, run, stream, again;
	uint64_t random = 88172645463325252u;
	int i, bit;
	begin(argc, argv);
	refuse(0);
	refuse(~(a3s_handle)0);
	for (i = 0; i < 200; i++) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		refuse(random);
	}

	agent = open_agent("agent.acl");
	session = open_session(agent);
	run = start_run(session);
	stream = open_stream(run);
	for (bit = 0; bit < 64; bit++) /* one bit off is another object, or none */
		refuse(agent ^ (a3s_handle)1 << bit);
	GIVES(A3S_E_HANDLE, a3s_stream_wake(session)); /* another kind */
	GIVES(A3S_E_HANDLE, a3s_run_cancel(agent, NULL, 0));
	drain(stream);

	OK(a3s_close(stream, -1));
	refuse(stream);
	again = open_stream(run); /* the same place, another handle */
	CHECK(again != stream);
	refuse(stream);
	drain(again);
	OK(a3s_close(run, -1));
	refuse(run);
	refuse(again);
	CHECK(second_closes(session));
	refuse(session);
	OK(a3s_close(agent, -1));
	refuse(agent);
	check_nothing_left();
	return 0;
}
