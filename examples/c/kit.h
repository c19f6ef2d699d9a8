/* What the examples share: errors, JSON and events. A program of your own has its JSON
 * library; what is here reads well-formed JSON, which is all that the library gives.
 * Include it first. */
#ifndef KIT_H
#define KIT_H

#define _POSIX_C_SOURCE 200809L /* open_memstream, strndup */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "a3s.h"

/* Ends the program with the library's own words if a call failed, else gives what it gave. */
static inline int64_t must(int64_t status) {
	a3s_buf error = {NULL, 0};
	if (status >= 0)
		return status;
	a3s_last_error(&error);
	fprintf(stderr, "%s: %s\n", a3s_status_name((a3s_status)status), error.ptr == NULL ? "" : error.ptr);
	exit(1);
}

/* ---- reading JSON ---- */

/* A value within a text; ptr is NULL if there is none. It owns nothing. */
typedef struct json {
	const char *ptr;
	size_t len;
} json;

static inline const char *json_skip_space(const char *p) { return p + strspn(p, " \t\r\n"); }

/* Gives what follows the value at p. */
static inline const char *json_end(const char *p) {
	int depth = 0, text = 0;
	for (;; p++) {
		if (text) {
			if (*p == '\\')
				p++;
			else if (*p == '"')
				text = 0;
		} else if (*p == '"') {
			text = 1;
		} else if (*p == '{' || *p == '[') {
			depth++;
		} else if (*p == '}' || *p == ']') {
			depth--;
		} else if (strchr(", \t\r\n", *p) == NULL) {
			if (strchr(",]} \t\r\n", p[1]) == NULL)
				continue; /* within a number or a word */
		} else {
			continue;
		}
		if (depth == 0 && !text)
			return p + 1;
	}
}

static inline json json_at(const char *p) {
	json value;
	value.ptr = json_skip_space(p);
	value.len = (size_t)(json_end(value.ptr) - value.ptr);
	return value;
}

/* Takes the next item off an array, or the next name or value off an object; 0 at its end. */
static inline int json_next(json *rest, json *item) {
	const char *p = rest->ptr;
	if (p == NULL)
		return 0;
	p = json_skip_space(p);
	if (*p != 0 && strchr("[{,:", *p) != NULL)
		p = json_skip_space(p + 1);
	if (*p == ']' || *p == '}' || *p == 0)
		return 0;
	*item = json_at(p);
	rest->ptr = json_skip_space(item->ptr + item->len);
	return 1;
}

/* Says whether a value is this string, which has no character that JSON escapes. */
static inline int json_is(json value, const char *text) {
	return value.ptr != NULL && value.len == strlen(text) + 2 && memcmp(value.ptr + 1, text, value.len - 2) == 0;
}

static inline json json_field(json object, const char *name) {
	json key, value, none = {NULL, 0};
	while (json_next(&object, &key) && json_next(&object, &value))
		if (json_is(key, name))
			return value;
	return none;
}

static inline long json_number(json value) { return value.ptr == NULL ? 0 : strtol(value.ptr, NULL, 10); }

static inline unsigned json_hex(const char *p) {
	char digits[5] = {p[0], p[1], p[2], p[3], 0};
	return (unsigned)strtoul(digits, NULL, 16);
}

/* Writes a string as what it means. */
static inline void json_print(FILE *out, json string) {
	const char *p, *end = string.ptr + string.len - 1;
	for (p = string.ptr + 1; string.ptr != NULL && p < end; p++) {
		static const char names[] = "bfnrt", meant[] = "\b\f\n\r\t";
		unsigned c;
		if (*p != '\\') {
			fputc(*p, out);
		} else if (*++p != 'u') {
			const char *at = strchr(names, *p);
			fputc(at == NULL ? *p : meant[at - names], out);
		} else {
			c = json_hex(p + 1), p += 4;
			if (c >= 0xd800 && c < 0xdc00)
				c = 0x10000 + ((c - 0xd800) << 10) + (json_hex(p + 3) - 0xdc00), p += 6;
			if (c < 0x80)
				fputc((int)c, out);
			else if (c < 0x800)
				fprintf(out, "%c%c", (int)(0xc0 | c >> 6), (int)(0x80 | (c & 63)));
			else if (c < 0x10000)
				fprintf(out, "%c%c%c", (int)(0xe0 | c >> 12), (int)(0x80 | (c >> 6 & 63)), (int)(0x80 | (c & 63)));
			else
				fprintf(out, "%c%c%c%c", (int)(0xf0 | c >> 18), (int)(0x80 | (c >> 12 & 63)), (int)(0x80 | (c >> 6 & 63)), (int)(0x80 | (c & 63)));
		}
	}
}

/* ---- writing JSON and text ---- */

static inline void json_quote(FILE *out, const char *text) {
	fputc('"', out);
	for (; *text != 0; text++)
		if (*text == '"' || *text == '\\')
			fprintf(out, "\\%c", *text);
		else if ((unsigned char)*text < 0x20)
			fprintf(out, "\\u%04x", (unsigned)*text);
		else
			fputc(*text, out);
	fputc('"', out);
}

/* Gives format with each ? replaced by the next argument, a text, as a JSON string, and each #
 * by the next argument as it is. Free it. */
static inline char *fill(const char *format, ...) {
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	va_list args;
	if (out == NULL)
		abort();
	va_start(args, format);
	for (; *format != 0; format++)
		if (*format == '?')
			json_quote(out, va_arg(args, const char *));
		else if (*format == '#')
			fputs(va_arg(args, const char *), out);
		else
			fputc(*format, out);
	va_end(args);
	fclose(out);
	return text;
}

/* Gives the meaning of a string; "" if there is none. Free it. */
static inline char *json_text(json string) {
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	if (out == NULL)
		abort();
	json_print(out, string);
	fclose(out);
	return text;
}

/* ---- the library ---- */

/* Opens an agent of the configuration agent.acl in the current folder. */
static inline a3s_handle open_agent(void) {
	char cwd[4096];
	char *request;
	a3s_handle agent = 0;
	if (getcwd(cwd, sizeof cwd) == NULL)
		abort();
	must(a3s_abi_check(A3S_ABI_VERSION));
	request = fill("{\"acl_path\": \"agent.acl\", \"cwd\": ?}", cwd);
	must(a3s_agent_open(request, A3S_NTS, &agent));
	free(request);
	return agent;
}

/* Opens a session in the folder workspace; options are JSON. */
static inline a3s_handle open_session(a3s_handle agent, const char *options) {
	char *request = fill("{\"workspace\": \"workspace\", \"options\": #}", options);
	a3s_handle session = 0;
	must(a3s_session_open(agent, request, A3S_NTS, &session));
	free(request);
	return session;
}

/* Runs an operation and gives its result. Free it with a3s_buf_free; json_of looks into it. */
static inline a3s_buf call(a3s_handle handle, const char *operation, const char *params) {
	a3s_buf result = {NULL, 0};
	must(a3s_call(handle, operation, params, A3S_NTS, 0, &result));
	return result;
}

static inline json json_of(a3s_buf buf) { return json_at(buf.ptr); }

/* The events of a run, from its first to its last. */
struct events {
	a3s_handle run, stream;
	char *buf;
	size_t cap;
	json batch; /* what is left of it */
};

/* Starts a run. */
static inline struct events start(a3s_handle session, const char *prompt) {
	struct events e = {0, 0, NULL, 1 << 16, {NULL, 0}};
	char *request = fill("{\"prompt\": ?}", prompt);
	must(a3s_run_start(session, request, A3S_NTS, &e.run));
	must(a3s_stream_open(e.run, NULL, 0, &e.stream));
	free(request);
	return e;
}

/* Waits for the next event; 0 after the last one, when all but the run is given back. */
static inline int next_event(struct events *e, json *event) {
	while (!json_next(&e->batch, event)) {
		size_t needed = 0;
		int64_t n = A3S_E_BUFFER;
		if (e->buf != NULL)
			n = a3s_stream_next(e->stream, -1, 0, e->buf, e->cap - 1, &needed);
		if (n == A3S_E_BUFFER) {
			if (needed >= e->cap)
				e->cap = needed + 1;
			if ((e->buf = (char *)realloc(e->buf, e->cap)) == NULL)
				abort();
			continue;
		}
		if (n == A3S_E_END) {
			free(e->buf);
			e->buf = NULL;
			must(a3s_close(e->stream, -1));
			return 0;
		}
		e->buf[must(n)] = 0;
		e->batch.ptr = e->buf;
	}
	return 1;
}

/* Prints what was said so far, a message a line. */
static inline void print_history(a3s_handle session) {
	a3s_buf result = call(session, "session.history", "{}");
	json messages = json_field(json_of(result), "messages"), message, content, block;
	while (json_next(&messages, &message)) {
		json_print(stdout, json_field(message, "role"));
		printf(": ");
		content = json_field(message, "content");
		while (json_next(&content, &block))
			json_print(stdout, json_field(block, "text")); /* blocks of other types have none */
		printf("\n");
	}
	a3s_buf_free(&result);
}

/* Ends the program for a run that failed. */
static inline void failed(json payload) {
	char *message = json_text(json_field(payload, "message"));
	fprintf(stderr, "%s\n", message);
	free(message);
	exit(1);
}

#endif
