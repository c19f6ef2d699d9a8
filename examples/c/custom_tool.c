/* Gives the model a tool of the program: a function with typed parameters. */
#include "kit.h"

static const char word_count[] =
	"{\"name\": \"word_count\", \"description\": \"Counts the words of a text.\", \"read_only\": true, \"parameters\": {"
	"\"type\": \"object\", \"additionalProperties\": false, \"required\": [\"text\"], \"properties\": {"
	"\"text\": {\"type\": \"string\", \"description\": \"the text\"},"
	"\"min_letters\": {\"type\": \"integer\", \"description\": \"count only words with so many letters or more\"}}}}";

static int count_words(const char *text, long min_letters) {
	int words = 0;
	while (*(text += strspn(text, " \t\r\n")) != 0) {
		long letters = 0;
		for (; *text != 0 && strchr(" \t\r\n", *text) == NULL; text++)
			letters += ((unsigned char)*text & 0xc0) != 0x80; /* the first byte of a character */
		words += letters >= min_letters;
	}
	return words;
}

/* Hears what the library asks, on a thread of the library. */
static void hear(uintptr_t agent, const char *frames, size_t len) {
	json rest = {frames, len}, frame;
	while (json_next(&rest, &frame)) {
		json request = json_field(frame, "payload"), args = json_field(json_field(request, "params"), "args");
		char output[64], *text, *answer;
		if (!json_is(json_field(frame, "type"), "host_request"))
			continue; /* log lines and withdrawals */
		text = json_text(json_field(args, "text"));
		snprintf(output, sizeof output, "%d words", count_words(text, json_number(json_field(args, "min_letters"))));
		answer = fill("{\"result\": {\"output\": ?}}", output);
		a3s_host_reply(agent, (uint64_t)json_number(json_field(request, "request")), answer, A3S_NTS); /* it may be withdrawn by now */
		free(answer);
		free(text);
	}
}

int main(void) {
	a3s_handle agent = open_agent(), control = 0, tool = 0;
	a3s_handle session = open_session(agent, "{}");
	a3s_buf result;
	must(a3s_stream_open(agent, NULL, 0, &control));
	must(a3s_stream_subscribe(control, 0, 0, hear, agent, NULL));
	must(a3s_host_register(session, "tool", word_count, A3S_NTS, &tool));
	result = call(session, "session.send", "{\"prompt\": \"How many long words has the motto?\"}");
	json_print(stdout, json_field(json_of(result), "text"));
	printf("\ntool calls: %ld\n", json_number(json_field(json_of(result), "tool_calls_count")));
	a3s_buf_free(&result);
	must(a3s_close(agent, -1));
	return 0;
}
