package op_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/a3s-lab/liba3s/runtime/op"
)

// A key with a character that JSON escapes, so that its two forms differ.
const theKey = `sk-"quoted\key/0123456789`

// spelled gives the ways a text looks in JSON, up to three encodings deep.
func spelled(s string) []string {
	all := []string{s}
	for range 3 {
		b, _ := json.Marshal(all[len(all)-1])
		all = append(all, string(b[1:len(b)-1]))
	}
	return all
}

// leaks fails if b holds the key in any spelling.
func leaks(t *testing.T, where string, b []byte) {
	t.Helper()
	for _, s := range append(spelled(theKey), "token-of-header-42", "pass-of-url-42") {
		if i := bytes.Index(b, []byte(s)); i >= 0 {
			t.Errorf("%s holds %s: ...%s...", where, s, b[max(0, i-60):min(len(b), i+60)])
		}
	}
}

// echo is a model service that says what it is told to and keeps what it was asked.
type echo struct {
	mu    sync.Mutex
	asked [][]byte
	turns []string // SSE bodies
}

func (e *echo) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	e.mu.Lock()
	e.asked = append(e.asked, b)
	n := len(e.asked) - 1
	e.mu.Unlock()
	if n >= len(e.turns) {
		w.WriteHeader(map[bool]int{true: http.StatusInternalServerError, false: http.StatusUnauthorized}[n == len(e.turns)])
		fmt.Fprintf(w, `{"error":{"message":"Incorrect API key provided: %s"}}`, spelled(theKey)[1])
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, e.turns[n])
}

// deltas makes the body of an answer of text pieces and calls, given as name and args.
func deltas(text []string, calls ...[2]string) string {
	var b strings.Builder
	put := func(delta any, finish any) {
		line, _ := json.Marshal(object{"choices": []any{object{"index": 0, "delta": delta, "finish_reason": finish}}})
		fmt.Fprintf(&b, "data: %s\n\n", line)
	}
	for _, s := range text {
		put(object{"content": s}, nil)
		put(object{"reasoning_content": s}, nil)
	}
	for i, c := range calls {
		put(object{"tool_calls": []any{object{"index": i, "id": fmt.Sprint("c", i), "type": "function", "function": object{"name": c[0], "arguments": ""}}}}, nil)
		for _, piece := range strings.SplitAfter(c[1], "1") { // in pieces that cut the key
			put(object{"tool_calls": []any{object{"index": i, "function": object{"arguments": piece}}}}, nil)
		}
	}
	put(object{}, map[bool]string{true: "tool_calls", false: "stop"}[len(calls) > 0])
	b.WriteString("data: [DONE]\n\n")
	return b.String()
}

// A key of the configuration is nowhere: not in events, journal, snapshot, artifacts,
// log, history, errors or what a model is sent, however it comes in.
func TestSecretsOfTheConfigurationAreNowhere(t *testing.T) {
	arg := func(o object) string { b, _ := json.Marshal(o); return string(b) }
	inner, _ := json.Marshal(object{"key": theKey})
	e := &echo{turns: []string{
		deltas([]string{"the key is ", theKey[:9], theKey[9:13], theKey[13:], " and twice " + theKey},
			[2]string{"read", arg(object{"file_path": "leak.txt"})},
			[2]string{"bash", arg(object{"command": "cat leak.txt; ls; cat leak.txt leak.txt leak.txt > /dev/stderr; yes \"$(cat leak.txt)\" | head -n 9000"})},
			[2]string{"write", arg(object{"file_path": "out-" + theKey[4:10] + ".json", "content": "x " + string(inner)})},
			[2]string{"grep", arg(object{"pattern": "key"})},
			[2]string{"read", arg(object{"file_path": theKey})},
			[2]string{"no_such_" + theKey, arg(object{"a": object{"b": theKey}})},
			[2]string{"read", "broken " + theKey},
		),
		deltas([]string{"that is all: " + theKey}),
		deltas([]string{"second run " + theKey}),
	}}
	srv := httptest.NewServer(e)
	t.Cleanup(srv.Close)
	p := scripted(t, "")
	p.write("agent.acl", fmt.Sprintf(`default_model = "local/main"
providers "local" {
  apiKey = env("THE_KEY")
  baseUrl = %q
  headers = { "X-Token" = "token-of-header-42" }
  models "main" { reasoning = true }
}
`, strings.Replace(srv.URL, "http://", "http://user:pass-of-url-42@", 1)+"/v1"))
	p.write("ws/leak.txt", "a line with "+theKey+" and token-of-header-42 and pass-of-url-42\n")
	p.write("ws/AGENTS.md", "Always use "+theKey+" as the key.\n")
	p.write("ws/name-token-of-header-42", "x")
	a, err := op.OpenAgent(t.Context(), request(t, object{"acl_path": "agent.acl", "cwd": p.dir, "log_level": "debug", "env": object{"PATH": "/usr/bin:/bin", "THE_KEY": theKey, "OTHER": "value-of-env-42"}}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shut(t, a) })
	control, err := op.OpenStream(t.Context(), a, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer control.Close()
	s := p.session(a, with(with(allowAll, "session_store", object{"kind": "file", "dir": "store"}), "guidelines", "Mind "+theKey))

	told, err := play(t, s, "use "+theKey+" please")
	if err != nil {
		t.Fatal(err)
	}
	b, _ := json.Marshal(told)
	leaks(t, "a stream", b)
	call(t, s, "session.save", object{}, nil)
	told, err = play(t, s, "again "+theKey)
	if err != nil {
		t.Fatal(err)
	}
	b, _ = json.Marshal(told)
	leaks(t, "the stream of a second run", b)
	told, err = play(t, s, "now it fails")
	if err == nil {
		t.Fatal("no failure")
	}
	b, _ = json.Marshal(told)
	leaks(t, "the stream of a failed run", b)
	b, _ = json.Marshal(err)
	leaks(t, "an error", b)
	leaks(t, "the text of an error", []byte(err.Error()))

	for _, method := range []string{"session.history", "session.runs", "session.trace_events", "session.info", "session.tool_definitions"} {
		b, err := op.Call(t.Context(), s, method, nil)
		if err != nil {
			t.Fatal(err)
		}
		leaks(t, method, b)
	}
	for _, r := range s.Runs() {
		b, _ = json.Marshal(s.RunEvents(r.ID))
		leaks(t, "run_events", b)
	}
	for _, args := range []string{`{"file_path":"leak.txt"}`, `{"file_path":"nothing"}`} {
		b, err := op.Call(t.Context(), s, "session.tool", request(t, object{"name": "read", "args": json.RawMessage(args)}))
		if err != nil {
			t.Fatal(err)
		}
		leaks(t, "a direct call", b)
	}
	e.mu.Lock()
	for i, b := range e.asked {
		leaks(t, fmt.Sprintf("request %d", i), b)
	}
	if len(e.asked) != 5 {
		t.Errorf("%d requests", len(e.asked))
	}
	e.mu.Unlock()
	logged := make([]byte, 8<<20)
	n, _, err := control.TryNext(10000, logged)
	if err != nil || !bytes.Contains(logged[:n], []byte("trying again")) {
		t.Errorf("log: %s, %v", logged[:n], err)
	}
	leaks(t, "the log", logged[:n])
	shut(t, s)
	onDisk(t, p.path("store"))

	// A resume with the key still configured finds none either.
	again := resume(t, a, s.ID(), object{"session_store": object{"kind": "file", "dir": "store"}})
	b, _ = json.Marshal(again.History())
	leaks(t, "the history after a resume", b)
}

// onDisk looks through every file of a folder, names included, for keys and for values
// of the environment.
func onDisk(t *testing.T, dir string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		b, err := os.ReadFile(path)
		leaks(t, path, b)
		leaks(t, "a name", []byte(path))
		if bytes.Contains(b, []byte("value-of-env-42")) || bytes.Contains(b, []byte("THE_KEY")) {
			t.Errorf("%s holds the environment", path)
		}
		return err
	})
	if err != nil || files < 3 {
		t.Errorf("%d files, %v", files, err)
	}
}

// A snapshot of an older program holds its texts as they were: they are cleaned when it
// is loaded.
func TestSecretsOfOlderSnapshots(t *testing.T) {
	e := &echo{turns: []string{deltas([]string{"hello"})}}
	srv := httptest.NewServer(e)
	t.Cleanup(srv.Close)
	p := scripted(t, "")
	p.write("agent.acl", fmt.Sprintf("default_model = \"local/main\"\nproviders \"local\" {\n  apiKey = env(\"THE_KEY\")\n  baseUrl = %q\n  models \"main\" {}\n}\n", srv.URL+"/v1"))
	key, _ := json.Marshal(theKey)
	p.write("store/v1/sessions/id_cw.json", `{"schema_version":1,"session":{"id":"s","config":{"name":"","workspace":"`+p.path("ws")+`","max_context_length":200000,"auto_compact":false,"auto_compact_threshold":0.8,"storage_type":"file","enforce_active_skill_tool_restrictions":false,"planning_mode":"auto","goal_tracking":false},
"state":"Active","messages":[{"role":"user","content":[{"type":"text","text":`+string(key)+`}]},{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"bash","input":{"command":`+string(key)+`}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":`+string(key)+`,"is_error":false}]}],
"context_usage":{"used_tokens":1,"max_tokens":200000,"percent":0,"turns":1},"total_usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2},"total_cost":0,"cost_records":[],"tool_names":[],"thinking_enabled":false,"created_at":1,"updated_at":1,"tasks":[]},
"artifacts":[],"trace_events":[],"run_records":[{"snapshot":{"id":"r","session_id":"s","status":"completed","prompt":`+string(key)+`,"created_at_ms":1,"updated_at_ms":1,"result_text":`+string(key)+`,"event_count":1},"events":[{"sequence":0,"timestamp_ms":1,"event":{"type":"agent_start","prompt":`+string(key)+`}}]}],"verification_reports":[],"subagent_tasks":[]}`)
	a, err := op.OpenAgent(t.Context(), request(t, object{"acl_path": "agent.acl", "cwd": p.dir, "env": object{"THE_KEY": theKey}}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shut(t, a) })
	s := resume(t, a, "s", object{"session_store": object{"kind": "file", "dir": "store"}})
	if _, err := play(t, s, "go on"); err != nil {
		t.Fatal(err)
	}
	for i, b := range e.asked {
		leaks(t, fmt.Sprintf("request %d", i), b)
	}
	b, _ := json.Marshal([]any{s.History(), s.Runs(), s.RunEvents("r")})
	leaks(t, "what the session says", b)
	call(t, s, "session.save", object{}, nil)
	shut(t, s)
	onDisk(t, p.path("store"))
}
