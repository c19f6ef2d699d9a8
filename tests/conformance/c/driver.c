/* Lets a scenario runner in another process drive the library through the C header alone.
 *
 * Standard input: commands. A command is one line and the bytes it announces:
 *
 *     ID VERB HANDLE NUMBER WORD LENGTH\n
 *     LENGTH bytes
 *
 * ID is the runner's own number; HANDLE and NUMBER are 0 and WORD is - where a verb has no
 * use for them. Every command runs on a thread of its own.
 *
 *     agent     0      0        -     request   a3s_agent_open
 *     session   AGENT  0        -     request   a3s_session_open
 *     run       SESSION 0       -     request   a3s_run_start
 *     stream    SOURCE 0        -     options   a3s_stream_open, then reads it to its end
 *     call      HANDLE TIMEOUT  NAME  params    a3s_call
 *     input     RUN    0        -     input     a3s_run_input
 *     cancel    RUN    0        -     reason    a3s_run_cancel
 *     wait      RUN    TIMEOUT  -               a3s_run_wait
 *     register  HANDLE 0        KIND  spec      a3s_host_register
 *     chunk     HANDLE REQUEST  -     piece     a3s_host_chunk
 *     reply     HANDLE REQUEST  -     answer    a3s_host_reply
 *     close     HANDLE TIMEOUT  -               a3s_close
 *
 * Standard output: JSON, one object a line, with the texts of the library as they are.
 *
 *     {"id":ID,"status":0,"handle":"N","result":...}   the command is done
 *     {"id":ID,"status":S,"error":{...}}               or has failed
 *     {"id":ID,"events":[...]}                         of a stream
 *     {"id":ID,"end":S,"error":{...}}                  its end
 *
 * At the end of the input it waits for what still runs. It exits with 0 if then nothing of
 * the library is alive.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "a3s.h"

typedef struct command {
	uint64_t id, handle, number;
	size_t len;
	char verb[16], word[128], *bytes;
} command;

static pthread_mutex_t output = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t counting = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t fewer = PTHREAD_COND_INITIALIZER;
static int working;

static void give_up(const char *what) {
	fprintf(stderr, "driver: %s\n", what);
	exit(2);
}

/* The error of this thread's last call, as a member of an object. */
static void print_error(int64_t status) {
	a3s_buf error = {NULL, 0};
	if (status < 0 && a3s_last_error(&error) == A3S_OK && error.ptr != NULL)
		printf(",\"error\":%s", error.ptr);
	a3s_buf_free(&error);
}

static void answer(const command *c, a3s_status status, a3s_handle handle, a3s_buf *result) {
	pthread_mutex_lock(&output);
	printf("{\"id\":%" PRIu64 ",\"status\":%d,\"handle\":\"%" PRIu64 "\"", c->id, (int)status, handle);
	if (status >= 0 && result->ptr != NULL)
		printf(",\"result\":%s", result->ptr);
	print_error(status);
	printf("}\n");
	fflush(stdout);
	pthread_mutex_unlock(&output);
	a3s_buf_free(result);
}

/* Tells all events of a stream; the buffer starts small, so that it has to grow. */
static void read_stream(const command *c, a3s_handle stream) {
	size_t room = 512, needed = 0;
	char *buf = malloc(room);
	int64_t n = 0;
	for (;;) {
		if (buf == NULL)
			give_up("out of memory");
		n = a3s_stream_next(stream, -1, 64, buf, room, &needed);
		if (n == A3S_E_BUFFER) {
			free(buf);
			room = needed;
			buf = malloc(room);
			continue;
		}
		if (n <= 0)
			break;
		pthread_mutex_lock(&output);
		printf("{\"id\":%" PRIu64 ",\"events\":", c->id);
		fwrite(buf, 1, (size_t)n, stdout);
		printf("}\n");
		fflush(stdout);
		pthread_mutex_unlock(&output);
	}
	free(buf);
	pthread_mutex_lock(&output);
	printf("{\"id\":%" PRIu64 ",\"end\":%d", c->id, (int)n);
	print_error(n);
	printf("}\n");
	fflush(stdout);
	pthread_mutex_unlock(&output);
	a3s_close(stream, -1); /* A3S_E_HANDLE if it went with its agent */
}

static void perform(const command *c) {
	a3s_handle made = 0;
	a3s_buf result = {NULL, 0};
	a3s_status status;
	if (strcmp(c->verb, "agent") == 0)
		status = a3s_agent_open(c->bytes, c->len, &made);
	else if (strcmp(c->verb, "session") == 0)
		status = a3s_session_open(c->handle, c->bytes, c->len, &made);
	else if (strcmp(c->verb, "run") == 0)
		status = a3s_run_start(c->handle, c->bytes, c->len, &made);
	else if (strcmp(c->verb, "stream") == 0)
		status = a3s_stream_open(c->handle, c->bytes, c->len, &made);
	else if (strcmp(c->verb, "call") == 0)
		status = a3s_call(c->handle, c->word, c->bytes, c->len, (int32_t)c->number, &result);
	else if (strcmp(c->verb, "input") == 0)
		status = a3s_run_input(c->handle, c->bytes, c->len);
	else if (strcmp(c->verb, "cancel") == 0)
		status = a3s_run_cancel(c->handle, c->bytes, c->len);
	else if (strcmp(c->verb, "wait") == 0)
		status = a3s_run_wait(c->handle, (int32_t)c->number, &result);
	else if (strcmp(c->verb, "register") == 0)
		status = a3s_host_register(c->handle, c->word, c->bytes, c->len, &made);
	else if (strcmp(c->verb, "chunk") == 0)
		status = a3s_host_chunk(c->handle, c->number, c->bytes, c->len);
	else if (strcmp(c->verb, "reply") == 0)
		status = a3s_host_reply(c->handle, c->number, c->bytes, c->len);
	else if (strcmp(c->verb, "close") == 0)
		status = a3s_close(c->handle, (int32_t)c->number);
	else {
		give_up("there is no such verb");
		return;
	}
	answer(c, status, made, &result);
	if (status == A3S_OK && strcmp(c->verb, "stream") == 0)
		read_stream(c, made);
}

static void *work(void *arg) {
	command *c = arg;
	perform(c);
	free(c->bytes);
	free(c);
	pthread_mutex_lock(&counting);
	working--;
	pthread_cond_signal(&fewer);
	pthread_mutex_unlock(&counting);
	return NULL;
}

/* The next command, or NULL at the end of the input. */
static command *next_command(void) {
	command *c = calloc(1, sizeof *c);
	int n;
	if (c == NULL)
		give_up("out of memory");
	n = scanf("%" SCNu64 " %15s %" SCNu64 " %" SCNu64 " %127s %zu", &c->id, c->verb, &c->handle, &c->number, c->word, &c->len);
	if (n == EOF) {
		free(c);
		return NULL;
	}
	if (n != 6 || getchar() != '\n')
		give_up("a command is ID VERB HANDLE NUMBER WORD LENGTH");
	if (c->len == 0)
		return c;
	c->bytes = malloc(c->len);
	if (c->bytes == NULL || fread(c->bytes, 1, c->len, stdin) != c->len)
		give_up("the input ends within a command");
	return c;
}

/* Whether nothing of the library is alive; says what is. */
static int all_gone(void) {
	static const char want[] = "\"handles\":{\"agent\":0,\"registration\":0,\"run\":0,\"session\":0,\"stream\":0},\"calls\":0,\"callbacks\":0,\"closing\":0";
	a3s_buf stats = {NULL, 0};
	int gone = a3s_stats(0, &stats) == A3S_OK && strstr(stats.ptr, want) != NULL && strstr(stats.ptr, "\"panics\":0") != NULL;
	if (!gone)
		fprintf(stderr, "driver: something is left: %s\n", stats.ptr == NULL ? "unknown" : stats.ptr);
	a3s_buf_free(&stats);
	return gone;
}

int main(void) {
	command *c;
	pthread_attr_t detached;
	if (a3s_abi_check(A3S_ABI_VERSION) != A3S_OK)
		give_up("header and library do not fit");
	pthread_attr_init(&detached);
	pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
	while ((c = next_command()) != NULL) {
		pthread_t thread;
		pthread_mutex_lock(&counting);
		working++;
		pthread_mutex_unlock(&counting);
		if (pthread_create(&thread, &detached, work, c) != 0)
			give_up("no more threads");
	}
	pthread_mutex_lock(&counting);
	while (working > 0)
		pthread_cond_wait(&fewer, &counting);
	pthread_mutex_unlock(&counting);
	pthread_attr_destroy(&detached);
	return all_gone() ? 0 : 1;
}
