package capi

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// function is an entry of capi/api.json.
type function struct {
	Name, Result string
	Fails        []string
	Params       []struct {
		Name, Type    string
		Out, Optional bool
	}
}

// taken says which objects a function takes, where the name of its first parameter does
// not say it.
var taken = map[string]string{
	"a3s_stats": "0 agent session run stream registration", "a3s_close": "agent session run stream registration",
	"a3s_call": "agent session run", "a3s_call_start": "agent session run", "a3s_call_wait": "agent session run", "a3s_call_cancel": "agent session run stream registration",
	"a3s_stream_open": "agent session run", "a3s_host_register": "agent session", "a3s_host_chunk": "agent session run", "a3s_host_reply": "agent session run",
}

// objects are the names of the handles in the program; 0 and gone are none.
var objects = []string{"0", "gone", "~(a3s_handle)0", "agent", "session", "run", "stream", "registration"}

// Texts that no function takes as JSON, and names that none takes, as C expressions. The
// length follows the text.
var (
	badJSON = []string{
		"NULL, 5", "NULL, A3S_NTS", `"{\"a\": \"\xff\"}", A3S_NTS`, `"{\"a\0b\": 1}", 10`, `"{\"a\": \"\\u0000\"", A3S_NTS`, "deep, 65", "big, BIG", "big, A3S_NTS",
		"big, (size_t)1 << 62", `"{", A3S_NTS`, `"[]", A3S_NTS`, `"5", A3S_NTS`, `"{} {}", A3S_NTS`, `"{\"no_such_key\": 1}", A3S_NTS`,
	}
	badWords = []string{"NULL, 5", "NULL, A3S_NTS", `"\xff", A3S_NTS`, `"a\0b", 3`, "big, BIG", "big, A3S_NTS", "big, (size_t)1 << 62"}
	badNames = []string{"NULL", `""`, `"\xff"`, "letters"}
)

// good is a value that makes sense for a parameter, so that the bad one is what is refused.
func good(f function, i int) string {
	p := f.Params[i]
	switch {
	case p.Type == "a3s_handle":
		kinds := taken[f.Name]
		if kinds == "" {
			kinds = p.Name
		}
		first, _, _ := strings.Cut(strings.TrimPrefix(kinds, "0 "), " ")
		return first
	case p.Out:
		return "&" + map[string]string{"a3s_buf *": "buf", "a3s_handle *": "handle", "uint64_t *": "number", "size_t *": "size"}[p.Type]
	case p.Type == "const char *" && p.Name == "method":
		return `"agent.info"`
	case p.Type == "const char *" && p.Name == "kind":
		return `"tool"`
	case p.Type == "const char *":
		return `"{}"`
	case p.Type == "size_t" && p.Name == "len":
		return "A3S_NTS"
	case p.Type == "char *":
		return "room"
	case p.Type == "size_t":
		return "sizeof room"
	case p.Type == "a3s_event_fn":
		return "ignore"
	case p.Type == "a3s_free_fn":
		return "count_free"
	case p.Name == "call", p.Name == "request":
		return "~(uint64_t)0"
	}
	return "0"
}

// use is one call, what its outputs hold before, and the statuses that it may give.
type use struct {
	outs, call string
	may        []string
}

// poison fills what a parameter points to.
var poison = map[string]string{"&buf": "buf.ptr = room", "&handle": "handle = 99", "&number": "number = 99", "&size": "size = 99"}

// misuses gives the calls of a function in which one thing is wrong.
func misuses(f function) []use {
	args := make([]string, len(f.Params))
	for i := range f.Params {
		args[i] = good(f, i)
	}
	var all []use
	add := func(i int, value string, may ...string) {
		wrong := slices.Clone(args)
		wrong[i] = value
		if strings.Contains(value, ", ") { // with its length
			wrong = slices.Delete(wrong, i+1, i+2)
		}
		outs := []string{"(void)0"}
		for _, a := range wrong {
			if poison[a] != "" {
				outs = append(outs, poison[a])
			}
		}
		all = append(all, use{strings.Join(outs, "; "), f.Name + "(" + strings.Join(wrong, ", ") + ")", may})
	}
	for i, p := range f.Params {
		switch {
		case p.Type == "a3s_handle":
			kinds := strings.Fields(taken[f.Name] + " " + p.Name)
			for _, o := range objects {
				if !slices.Contains(kinds, o) {
					add(i, o, "E_HANDLE")
				}
			}
		case p.Type == "const char *" && (p.Name == "method" || p.Name == "kind"):
			for _, v := range badNames {
				add(i, v, "E_INVALID", "E_UNSUPPORTED")
			}
		case p.Type == "const char *" && p.Name == "reason":
			for _, v := range badWords {
				add(i, v, "E_INVALID")
			}
		case p.Type == "const char *":
			may := []string{"E_INVALID", "E_NOTFOUND", "E_LIMIT"}
			if f.Name == "a3s_call_start" { // what the operation itself refuses is told at its end
				may = append(may, "OK")
			}
			for _, v := range badJSON {
				add(i, v, may...)
			}
		case p.Out && !p.Optional, p.Type == "a3s_event_fn":
			add(i, "NULL", "E_INVALID")
		case p.Type == "char *":
			add(i, "NULL", "E_INVALID")
		case p.Name == "timeout_ms" && strings.Contains(f.Name, "_wait"):
			add(i, "INT32_MIN", "OK", "E_NOTFOUND")
		case p.Name == "fd":
			add(i, "12345", "E_INVALID", "E_IO")
			add(i, "-7", "E_INVALID", "E_IO")
		case p.Name == "level":
			add(i, "-1", "E_INVALID")
			add(i, "99", "E_INVALID")
		}
	}
	return all
}

const program = `#define _GNU_SOURCE
#include <limits.h>
#include "check.h"

#define BIG ((64 << 20) + 1)
static char big[BIG + 1], deep[66], letters[301], room[64];
static a3s_buf buf;
static a3s_handle handle, agent, session, run, stream, registration, gone;
static uint64_t number;
static size_t size;
static int freed;

static void ignore(uintptr_t user_data, const char *json, size_t len) { (void)user_data; (void)json; (void)len; }
static void count_free(uintptr_t user_data) { (void)user_data; freed++; }

/* What is given must be one of the statuses; a call that fails gives nothing. */
static void judge(const char *call, const char *may, int64_t got) {
	char name[64];
	snprintf(name, sizeof name, " %%s ", got > 0 ? "above 0" : a3s_status_name((a3s_status)got));
	if (strstr(may, name) == NULL) {
		fprintf(stderr, "%%s gives%%s, may give%%s\n", call, name, may);
		exit(1);
	}
	if (got < 0 && (buf.ptr != NULL || buf.len != 0 || handle != 0 || number != 0 || size != 0)) {
		fprintf(stderr, "%%s fails and gives something\n", call);
		exit(1);
	}
	a3s_buf_free(&buf);
}

/* What a call is to write to holds something before. */
#define TRY(outs, may, call) do { \
	memset(&buf, 0, sizeof buf); \
	handle = number = size = 0; \
	outs; \
	judge(#call, may, (int64_t)(call)); \
} while (0)

int main(int argc, char **argv) {
	begin(argc, argv);
	memset(big, ' ', BIG);
	memset(deep, '[', 65);
	memset(letters, 'm', 300);
	agent = open_agent("agent.acl");
	session = open_session(agent);
	gone = start_run(session);
	OK(a3s_run_wait(gone, -1, &buf));
	a3s_buf_free(&buf);
	OK(a3s_close(gone, -1));
	run = start_run(session);
	OK(a3s_run_wait(run, -1, &buf));
	a3s_buf_free(&buf);
	stream = open_stream(run);
	OK(a3s_host_register(session, "tool", "{\"name\": \"mine\"}", A3S_NTS, &registration));
%s
	/* The objects are as they were. */
	OK(a3s_call(session, "session.info", NULL, 0, 0, &buf));
	a3s_buf_free(&buf);
	CHECK(drain(stream) > 0);
	OK(a3s_close(agent, -1));
	wait_nothing_left();
	printf("%%d", freed);
	return 0;
}
`

// Every function of the header, with one thing wrong at a time: objects of other kinds,
// that are gone or never were; texts that are none; nowhere to put the answer. The status
// is one that api.json names for the function, and a failed call gives nothing.
func TestBadInput(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(root, "capi", "api.json"))
	if err != nil {
		t.Fatal(err)
	}
	var api struct {
		Nouns []struct{ Functions []function }
	}
	if err := json.Unmarshal(b, &api); err != nil {
		t.Fatal(err)
	}
	var body strings.Builder
	uses, subscriptions := 0, 0
	for _, n := range api.Nouns {
		for _, f := range n.Functions {
			for _, u := range misuses(f) {
				for _, s := range u.may {
					if s != "OK" && !slices.Contains(f.Fails, s) {
						u.may = slices.DeleteFunc(slices.Clone(u.may), func(x string) bool { return x == s })
					}
				}
				if len(u.may) == 0 {
					t.Errorf("%s has no status for this misuse", u.call)
				}
				uses++
				if f.Name == "a3s_stream_subscribe" {
					subscriptions++
				}
				fmt.Fprintf(&body, "\tTRY(%s, \" %s \", %s);\n", u.outs, strings.Join(u.may, " "), u.call)
			}
		}
	}
	if uses < 200 {
		t.Errorf("only %d uses", uses)
	}
	dir := t.TempDir()
	source := filepath.Join(dir, "bad.c")
	if err := os.WriteFile(source, fmt.Appendf(nil, program, body.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "bad")
	cc := exec.Command("cc", "-std=c11", "-Wall", "-Wextra", "-pedantic", "-Wno-nonnull", "-pthread", "-g", "-I", filepath.Join(root, "include"), "-I", "c",
		source, filepath.Join("c", "second.c"), "-o", out, "-L", built, "-la3s", "-Wl,-rpath,"+built)
	if msg, err := cc.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, msg)
	}
	// A subscription that fails gives its user data back all the same.
	if got := run(t, out, folder(t)); got != fmt.Sprint(subscriptions) {
		t.Errorf("user data was given back %s times, want %d", got, subscriptions)
	}
}
