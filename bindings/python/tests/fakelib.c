/* A library with the C interface of libA3S and nothing behind it: it plays what a test asks for
 * in the prompt, so that the binding's own part (batches, buffers, waits, errors) is tested for
 * things the real library does not do on demand.
 *
 *   "events N"  N text deltas, then agent_end      "idle"   nothing until it is cancelled
 *   "big N"     one delta of N bytes, agent_end    "fail"   a3s_run_start fails with SESSION_BUSY
 *   "mute"      a3s_run_start fails without an error text
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

typedef uint64_t a3s_handle;
typedef int32_t a3s_status;
typedef struct a3s_buf { char *ptr; size_t len; } a3s_buf;

static char error[4096];
static int forked;
static long total, sent, size;
static volatile int cancelled, idle, ended, quick, closed, efd = -1, live;

static void in_child(void) { forked = 1; }
__attribute__((constructor)) static void init(void) { pthread_atfork(NULL, NULL, in_child); }

static a3s_status fail(a3s_status status, const char *code, const char *kind, const char *op, const char *message, const char *details) {
	snprintf(error, sizeof error, "{\"code\":\"%s\",\"status\":%d,\"kind\":\"%s\",\"op\":\"%s\",\"message\":\"%s\",\"retryable\":false,\"details\":%s}",
		code, status, kind, op, message, details);
	return status;
}
static a3s_status dead(void) { return fail(-3, "FORKED", "forked", "", "not in a forked child", "{}"); }
static void give(a3s_buf *out, const char *text) { out->len = strlen(text); out->ptr = strdup(text); }
static void doze(int ms) { struct timespec t = {ms / 1000, ms % 1000 * 1000000L}; nanosleep(&t, NULL); }

uint32_t a3s_abi_version(void) { return 1 << 16; }
a3s_status a3s_abi_check(uint32_t v) { return getenv("FAKE_ABI") ? fail(-10, "ABI_MISMATCH", "abi", "", "too old", "{}") : v >> 16 == 1 ? 0 : -10; }
const char *a3s_build_info(void) { return "{\"version\":\"fake\"}"; }
const char *a3s_status_name(a3s_status s) { (void)s; return "E_INTERNAL"; }
a3s_status a3s_last_error(a3s_buf *out) { out->ptr = NULL; out->len = 0; if (*error) give(out, error); return 0; }
void a3s_buf_free(a3s_buf *b) { free(b->ptr); b->ptr = NULL; b->len = 0; }
a3s_status a3s_signals_repair(void) { return 0; }
a3s_status a3s_log_to_fd(int32_t fd, int32_t level) { (void)fd; (void)level; return 0; }
a3s_status a3s_stats(a3s_handle h, a3s_buf *out) { char b[64]; (void)h; snprintf(b, sizeof b, "{\"live\":%d}", live); give(out, b); return 0; }

a3s_status a3s_agent_open(const char *q, size_t n, a3s_handle *out) {
	(void)n;
	if (forked) return dead();
	if (strstr(q, "broken")) return fail(-1, "CONFIG_ERROR", "invalid", "agent.open", "Config error: line 3", "{\"line\":3}");
	if (strstr(q, "slow")) doze(3000);
	closed = 0; live++; *out = 1; return 0;
}
a3s_status a3s_close(a3s_handle h, int32_t t) { (void)h; (void)t; if (forked) return dead(); live--; return 0; }
a3s_status a3s_call(a3s_handle h, const char *m, const char *p, size_t n, int32_t t, a3s_buf *out) {
	(void)h; (void)p; (void)n; (void)t;
	if (forked) return dead();
	if (!strcmp(m, "session.info")) give(out, closed ? "{\"session_id\":\"s-1\",\"workspace\":\"/w\",\"closed\":true}" : "{\"session_id\":\"s-1\",\"workspace\":\"/w\",\"closed\":false}");
	else if (!strcmp(m, "agent.info")) give(out, closed ? "{\"closed\":true}" : "{\"closed\":false}");
	else if (!strcmp(m, "session.runs")) give(out, "{\"runs\":[]}");
	else if (!strcmp(m, "session.cancel")) { cancelled = 1; give(out, "{\"cancelled\":true}"); }
	else return fail(-17, "UNSUPPORTED_OPERATION", "unsupported", m, "not in the fake", "{}");
	return 0;
}
a3s_status a3s_call_start(a3s_handle h, const char *m, const char *p, size_t n, uint64_t *out) {
	(void)h; (void)n;
	if (forked) return dead();
	cancelled = 0; *out = 7;
	quick = strstr(p, "events") != NULL || strstr(m, "close") != NULL;
	if (!strcmp(m, "agent.close")) closed = 1;
	return 0;
}
a3s_status a3s_call_wait(a3s_handle h, uint64_t c, int32_t ms, a3s_buf *out) {
	(void)h; (void)c;
	if (quick) { give(out, "{\"text\":\"done\",\"total_tokens\":3,\"tool_calls_count\":4}"); return 0; }
	for (int i = 0; i < ms && !cancelled; i++) doze(1);
	if (cancelled) return fail(-8, "CANCELLED", "cancelled", "session.save", "cancelled", "{}");
	return fail(-4, "TIMEOUT", "timeout", "a3s_call_wait", "call 7 is still running", "{}");
}
a3s_status a3s_call_cancel(a3s_handle h, uint64_t c) { (void)h; (void)c; cancelled = 1; return 0; }
a3s_status a3s_session_open(a3s_handle h, const char *q, size_t n, a3s_handle *out) {
	(void)h; (void)n;
	if (forked) return dead();
	if (strstr(q, "\"sometimes\"")) return fail(-1, "SESSION_CONFIGURATION_ERROR", "invalid", "session.open", "Invalid session configuration for 'planning_mode': no", "{\"field\":\"planning_mode\",\"reason\":\"bad_value\"}");
	live++; *out = 2; return 0;
}
a3s_status a3s_run_start(a3s_handle h, const char *q, size_t n, a3s_handle *out) {
	const char *p = strstr(q, "\"prompt\":\"");
	(void)h; (void)n;
	if (forked) return dead();
	total = sent = size = 0; cancelled = idle = ended = 0; *error = 0;
	if (strstr(p, "fail")) return fail(-5, "SESSION_BUSY", "busy", "run.start", "Session 's-1' already has an active operation", "{}");
	if (strstr(p, "mute")) return -99;
	if (strstr(p, "idle")) idle = 1;
	if (sscanf(p, "\"prompt\":\"big %ld", &size) == 1) total = 1; else sscanf(p, "\"prompt\":\"events %ld", &total);
	live++; *out = 3; return 0;
}
a3s_status a3s_run_input(a3s_handle h, const char *q, size_t n) { (void)h; (void)q; (void)n; return 0; }
a3s_status a3s_run_cancel(a3s_handle h, const char *q, size_t n) { (void)h; (void)q; (void)n; cancelled = 1; if (efd >= 0) eventfd_write(efd, 1); return 0; }
a3s_status a3s_run_wait(a3s_handle h, int32_t ms, a3s_buf *out) { (void)h; (void)ms; (void)out; return -17; }
a3s_status a3s_stream_open(a3s_handle h, const char *q, size_t n, a3s_handle *out) {
	(void)h; (void)q; (void)n;
	if (forked) return dead();
	if (efd >= 0) close(efd);
	efd = eventfd(idle ? 0 : 1, EFD_NONBLOCK);
	live++; *out = 4; return 0;
}
static int one(char *to, size_t cap) {
	if (sent < total && size) {
		if (cap < (size_t)size + 200) return -(int)(size + 200);
		int n = sprintf(to, "{\"version\":1,\"type\":\"text_delta\",\"payload\":{\"text\":\"");
		memset(to + n, 'x', size); n += size;
		return n + sprintf(to + n, "\"},\"metadata\":{\"run_id\":\"run-1\",\"session_id\":\"s-1\",\"sequence\":%ld,\"timestamp_ms\":1764500000000}}", sent);
	}
	if (cap < 400) return -400;
	if (sent < total)
		return sprintf(to, "{\"version\":1,\"type\":\"text_delta\",\"payload\":{\"text\":\"a token of text %ld\"},\"metadata\":{\"run_id\":\"run-0b5c6a1e-8f0e-4a55-9d5e-0c1b6e1f7a11\",\"session_id\":\"0b5c6a1e-8f0e-4a55-9d5e-0c1b6e1f7a12\",\"sequence\":%ld,\"timestamp_ms\":1764500000000}}", sent % 10, sent);
	ended = 1;
	return sprintf(to, "{\"version\":1,\"type\":\"%s\",\"payload\":{\"text\":\"done\",\"message\":\"cancelled\",\"usage\":{\"total_tokens\":3}},\"metadata\":{\"run_id\":\"run-1\",\"session_id\":\"s-1\",\"sequence\":%ld,\"timestamp_ms\":1764500000000}}",
		cancelled ? "error" : "agent_end", sent);
}
int64_t a3s_stream_next(a3s_handle h, int32_t ms, uint32_t max, char *buf, size_t cap, size_t *needed) {
	size_t n = 0;
	(void)h;
	*needed = 0;
	if (forked) return dead();
	if (idle && !cancelled) { if (ms > 0) doze(ms); return 0; }
	if (ended) return -7;
	for (uint32_t i = 0; i < max && !ended; i++) {
		int k = one(buf + n + 1, cap - n - 2);
		if (k < 0) { if (n) break; *needed = -k; return fail(-6, "BUFFER_TOO_SMALL", "buffer", "", "more", "{}"); }
		buf[n] = n ? ',' : '[';
		n += k + 1; sent++;
	}
	buf[n++] = ']';
	return n;
}
int32_t a3s_stream_fd(a3s_handle h) { (void)h; return forked ? dead() : efd; }
a3s_status a3s_stream_wake(a3s_handle h) { (void)h; return 0; }
a3s_status a3s_stream_subscribe(a3s_handle h, uint32_t a, uint32_t b, void *f, uintptr_t u, void *g) { (void)h; (void)a; (void)b; (void)f; (void)u; (void)g; return -17; }
a3s_status a3s_host_register(a3s_handle h, const char *k, const char *s, size_t n, a3s_handle *out) { (void)h; (void)k; (void)s; (void)n; *out = 5; return 0; }
a3s_status a3s_host_chunk(a3s_handle h, uint64_t r, const char *j, size_t n) { (void)h; (void)r; (void)j; (void)n; return -11; }
a3s_status a3s_host_reply(a3s_handle h, uint64_t r, const char *j, size_t n) { (void)h; (void)r; (void)j; (void)n; return -11; }
