/* The functions of the library itself: version, names, buffers, the error slot. */
#include <pthread.h>

#include "check.h"

static void *other_thread(void *arg) {
	a3s_buf error = {NULL, 0};
	(void)arg;
	OK(a3s_last_error(&error));
	CHECK(error.ptr == NULL && error.len == 0); /* this thread has not failed */
	GIVES(A3S_E_HANDLE, a3s_stream_wake(7));
	CODE(A3S_CODE_INVALID_HANDLE);
	return NULL;
}

int main(int argc, char **argv) {
	a3s_buf buf = {NULL, 0};
	pthread_t thread;
	begin(argc, argv);

	CHECK(a3s_abi_version() == A3S_ABI_VERSION);
	OK(a3s_abi_check((uint32_t)A3S_ABI_MAJOR << 16));
	GIVES(A3S_E_ABI, a3s_abi_check((uint32_t)A3S_ABI_MAJOR << 16 | 0xffff));
	CODE(A3S_CODE_ABI_MISMATCH);
	GIVES(A3S_E_ABI, a3s_abi_check((uint32_t)(A3S_ABI_MAJOR + 1) << 16));
	GIVES(A3S_E_ABI, a3s_abi_check(0));

	CHECK(strcmp(a3s_status_name(A3S_OK), "OK") == 0);
	CHECK(strcmp(a3s_status_name(A3S_PENDING), "PENDING") == 0);
	CHECK(strcmp(a3s_status_name(A3S_E_TIMEOUT), "E_TIMEOUT") == 0);
	CHECK(strcmp(a3s_status_name(12345), "UNKNOWN") == 0);

	CHECK(strstr(a3s_build_info(), "\"version\":\"" A3S_VERSION "\"") != NULL);
	CHECK(strstr(a3s_build_info(), "\"schema\":\"") != NULL);
	CHECK(a3s_build_info() == a3s_build_info());

	a3s_buf_free(NULL);
	a3s_buf_free(&buf);
	OK(a3s_stats(0, &buf));
	CHECK(buf.ptr != NULL && buf.ptr[0] == '{' && buf.ptr[buf.len] == 0 && strlen(buf.ptr) == buf.len);
	a3s_buf_free(&buf);
	CHECK(buf.ptr == NULL && buf.len == 0);
	a3s_buf_free(&buf);

	GIVES(A3S_E_INVALID, a3s_last_error(NULL));
	GIVES(A3S_E_INVALID, a3s_stats(0, NULL));
	CODE(A3S_CODE_INVALID_REQUEST);
	OK(a3s_stats(0, &buf)); /* a success leaves the last error as it is */
	a3s_buf_free(&buf);
	CODE(A3S_CODE_INVALID_REQUEST);
	CHECK(pthread_create(&thread, NULL, other_thread, NULL) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	CODE(A3S_CODE_INVALID_REQUEST); /* and so does another thread's failure */

	GIVES(A3S_E_INVALID, a3s_log_to_fd(-2, 0));
	GIVES(A3S_E_INVALID, a3s_log_to_fd(2, 4));
	GIVES(A3S_E_IO, a3s_log_to_fd(9999, 0));
	OK(a3s_log_to_fd(-1, 0));
	OK(a3s_signals_repair());
	check_nothing_left();
	return 0;
}
