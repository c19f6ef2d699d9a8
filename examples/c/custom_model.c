/* Brings its own model: a function that gets the conversation and answers in pieces. */
#include "kit.h"

/* Tells a piece of the answer; nobody may want it any more. */
static void say(a3s_handle agent, uint64_t request, const char *text) {
	char *piece = fill("{\"text\": ?}", text);
	a3s_host_chunk(agent, request, piece, A3S_NTS);
	free(piece);
}

/* Reads the motto, and then says it. */
static void oracle(a3s_handle agent, uint64_t request, json params) {
	json messages = json_field(params, "messages"), last = {NULL, 0}, content, block;
	while (json_next(&messages, &last))
		continue;
	content = json_field(last, "content");
	while (json_next(&content, &block))
		if (json_is(json_field(block, "type"), "tool_result")) {
			char *text = json_text(json_field(block, "content"));
			say(agent, request, "The motto is:\n");
			say(agent, request, text);
			free(text);
			return;
		}
	say(agent, request, "Let me ");
	say(agent, request, "look.");
	a3s_host_chunk(agent, request, "{\"tool_call\": {\"id\": \"call-1\", \"name\": \"read\", \"arguments\": {\"file_path\": \"motto.txt\"}}}", A3S_NTS);
}

/* Hears what the library asks, on a thread of the library. */
static void hear(uintptr_t agent, const char *frames, size_t len) {
	json rest = {frames, len}, frame;
	while (json_next(&rest, &frame)) {
		json asked = json_field(frame, "payload");
		uint64_t request = (uint64_t)json_number(json_field(asked, "request"));
		if (!json_is(json_field(frame, "type"), "host_request"))
			continue; /* log lines and withdrawals */
		oracle(agent, request, json_field(asked, "params"));
		a3s_host_reply(agent, request, "{\"result\": {}}", A3S_NTS); /* what was told is not repeated */
	}
}

int main(void) {
	a3s_handle agent = open_agent(), control = 0, model = 0;
	struct events events;
	json event;
	must(a3s_stream_open(agent, NULL, 0, &control));
	must(a3s_stream_subscribe(control, 0, 0, hear, agent, NULL));
	must(a3s_host_register(agent, "model", "{\"name\": \"oracle\"}", A3S_NTS, &model)); /* default_model = "host/oracle" */
	events = start(open_session(agent, "{}"), "What is the motto?");
	while (next_event(&events, &event)) {
		json type = json_field(event, "type"), payload = json_field(event, "payload");
		if (json_is(type, "text_delta")) {
			json_print(stdout, json_field(payload, "text"));
		} else if (json_is(type, "tool_start")) {
			printf("\n→ ");
			json_print(stdout, json_field(payload, "name"));
			printf("\n");
		} else if (json_is(type, "agent_end")) {
			printf("\n");
		} else if (json_is(type, "error")) {
			failed(payload);
		}
	}
	must(a3s_close(agent, -1));
	return 0;
}
