/* Keeps a session in a store of the program's own, in memory. */
#include "kit.h"

/* One session: the last snapshot and the facts that follow it. Both are kept as they come, as
 * JSON strings with their quotes, so they are given back by copying. */
static struct kept {
	char *id, *snapshot;
	long generation, count;
	char *facts[1024];
} shelf[8];

static struct kept *find(json id) {
	size_t i;
	for (i = 0; i < sizeof shelf / sizeof *shelf; i++)
		if (shelf[i].id != NULL && json_is(id, shelf[i].id))
			return &shelf[i];
	return NULL;
}

/* Forgets the facts, for a new snapshot or for good. */
static void clear(struct kept *k) {
	while (k->count > 0)
		free(k->facts[--k->count]);
	free(k->snapshot);
	k->snapshot = NULL;
}

static struct kept *take(json id) {
	struct kept *k = find(id);
	if (k == NULL) {
		for (k = shelf; k->id != NULL; k++)
			if (k == &shelf[sizeof shelf / sizeof *shelf - 1])
				abort();
		k->id = json_text(id);
		k->generation = 1;
	}
	return k;
}

static void load(FILE *out, json params) {
	struct kept *k = find(json_field(params, "id"));
	long i = json_number(json_field(params, "from")), end = i + json_number(json_field(params, "limit"));
	if (k == NULL) {
		fprintf(out, "{}");
		return;
	}
	fprintf(out, "{\"generation\": %ld, \"count\": %ld, \"facts\": [", k->generation, k->count);
	for (; i < k->count && i < end; i++)
		fprintf(out, "%s%s", i == json_number(json_field(params, "from")) ? "" : ",", k->facts[i]);
	fprintf(out, "]%s%s}", k->snapshot == NULL ? "" : ", \"snapshot\": ", k->snapshot == NULL ? "" : k->snapshot);
}

static void append(json params) {
	struct kept *k = take(json_field(params, "id"));
	json facts = json_field(params, "facts"), fact;
	if (json_number(json_field(params, "generation")) != k->generation)
		return; /* obsolete */
	while (json_next(&facts, &fact)) {
		if (k->count == sizeof k->facts / sizeof *k->facts)
			abort();
		k->facts[k->count++] = strndup(fact.ptr, fact.len);
	}
}

static void save(json params) {
	struct kept *k = take(json_field(params, "id"));
	json snapshot = json_field(params, "snapshot");
	clear(k);
	k->snapshot = strndup(snapshot.ptr, snapshot.len);
	k->generation = json_number(json_field(params, "generation"));
}

static void drop(struct kept *k) {
	if (k == NULL)
		return;
	clear(k);
	free(k->id);
	k->id = NULL;
}

static void list(FILE *out) {
	const char *comma = "";
	size_t i;
	fprintf(out, "{\"ids\": [");
	for (i = 0; i < sizeof shelf / sizeof *shelf; i++)
		if (shelf[i].id != NULL) {
			fputs(comma, out);
			json_quote(out, shelf[i].id);
			comma = ",";
		}
	fprintf(out, "]}");
}

static void answer(FILE *out, json op, json params) {
	if (json_is(op, "load"))
		load(out, params);
	else if (json_is(op, "list"))
		list(out);
	else if (json_is(op, "append"))
		append(params);
	else if (json_is(op, "save"))
		save(params);
	else if (json_is(op, "delete"))
		drop(find(json_field(params, "id")));
}

/* Hears what the library asks: one call at a time, so the shelf needs no lock. */
static void hear(uintptr_t agent, const char *frames, size_t len) {
	json rest = {frames, len}, frame;
	while (json_next(&rest, &frame)) {
		json request = json_field(frame, "payload");
		char *text = NULL;
		size_t size = 0;
		FILE *out;
		if (!json_is(json_field(frame, "type"), "host_request") || (out = open_memstream(&text, &size)) == NULL)
			continue; /* log lines and withdrawals */
		fprintf(out, "{\"result\": ");
		answer(out, json_field(request, "op"), json_field(request, "params"));
		fflush(out);
		fprintf(out, "%s}", size == strlen("{\"result\": ") ? "{}" : "");
		fclose(out);
		a3s_host_reply(agent, (uint64_t)json_number(json_field(request, "request")), text, A3S_NTS);
		free(text);
	}
}

#define STORE "\"session_store\": {\"kind\": \"host\", \"name\": \"map\"}"

int main(void) {
	a3s_handle agent = open_agent(), control = 0, store = 0, session;
	a3s_buf result;
	json ids, id;
	size_t i;
	must(a3s_stream_open(agent, NULL, 0, &control));
	must(a3s_stream_subscribe(control, 0, 0, hear, agent, NULL));
	must(a3s_host_register(agent, "store", "{\"name\": \"map\"}", A3S_NTS, &store));

	session = open_session(agent, "{\"session_id\": \"notebook\", " STORE "}");
	result = call(session, "session.send", "{\"prompt\": \"The door code is 1234.\"}");
	a3s_buf_free(&result);
	result = call(session, "session.save", "{}");
	a3s_buf_free(&result);
	must(a3s_close(session, -1));

	result = call(agent, "agent.list_stored_sessions", "{" STORE "}");
	ids = json_field(json_of(result), "session_ids");
	while (json_next(&ids, &id)) {
		printf("kept: ");
		json_print(stdout, id);
		printf("\n");
	}
	a3s_buf_free(&result);

	must(a3s_session_open(agent, "{\"resume\": \"notebook\", \"options\": {" STORE "}}", A3S_NTS, &session));
	print_history(session);
	must(a3s_close(agent, -1)); /* no call of hear follows it */
	for (i = 0; i < sizeof shelf / sizeof *shelf; i++)
		drop(shelf[i].id == NULL ? NULL : &shelf[i]);
	return 0;
}
