/* Runs tools for the program itself, without a model. */
#include "kit.h"

/* Prints the output of a tool. A tool that fails is a result with an exit code, no error. */
static void tool(a3s_handle session, const char *name, const char *args) {
	char *params = fill("{\"name\": ?, \"args\": #}", name, args);
	a3s_buf result = call(session, "session.tool", params);
	long exit_code = json_number(json_field(json_of(result), "exit_code"));
	if (exit_code != 0)
		printf("%s: exit code %ld: ", name, exit_code);
	json_print(stdout, json_field(json_of(result), "output"));
	if (exit_code != 0)
		printf("\n");
	a3s_buf_free(&result);
	free(params);
}

/* Prints the paths that a pattern matches: the lines before the first empty one. */
static void glob(a3s_handle session, const char *pattern) {
	char *params = fill("{\"name\": \"glob\", \"args\": {\"pattern\": ?}}", pattern);
	a3s_buf result = call(session, "session.tool", params);
	char *output = json_text(json_field(json_of(result), "output"));
	char *end = strstr(output, "\n\n");
	if (end != NULL)
		end[1] = 0;
	fputs(output, stdout);
	free(output);
	a3s_buf_free(&result);
	free(params);
}

int main(void) {
	a3s_handle agent = open_agent();
	a3s_handle session = open_session(agent, "{}");
	tool(session, "read", "{\"file_path\": \"motto.txt\"}");
	tool(session, "grep", "{\"pattern\": \"cut\"}");
	glob(session, "**/*.py");
	tool(session, "ls", "{\"path\": \"src\"}");
	tool(session, "read", "{\"file_path\": \"absent.txt\"}");
	must(a3s_close(agent, -1));
	return 0;
}
