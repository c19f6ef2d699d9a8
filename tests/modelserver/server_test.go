package modelserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/a3s-lab/liba3s/internal/sse"
)

func serve(t *testing.T, answers ...Answer) *Server {
	t.Helper()
	s, err := New(answers...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func post(t *testing.T, url, body string) (status int, answer string, err error) {
	t.Helper()
	res, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	return res.StatusCode, string(data), err
}

// TestWires checks that what is composed says what was written, streamed and whole.
func TestWires(t *testing.T) {
	a := Answer{Reasoning: "hm so", Text: "Hello world", Calls: []Call{{ID: "c1", Name: "f", Arguments: `{"x":1}`}}, PromptTokens: 3, CompletionTokens: 2}
	for _, path := range []string{"/v1/chat/completions", "/api/chat", "/v1/messages"} {
		for _, stream := range []string{"true", "false"} {
			t.Run(path+" stream "+stream, func(t *testing.T) {
				s := serve(t, a)
				_, body, err := post(t, s.URL+path, `{"model":"m","stream":`+stream+`}`)
				if err != nil {
					t.Fatal(err)
				}
				joined := text(t, body)
				for _, want := range []string{"hm so", "Hello world", "c1", "f", `{"x":1}`} {
					if !strings.Contains(joined, want) {
						t.Errorf("%q is not in %s", want, joined)
					}
				}
				if r := s.Requests(); len(r) != 1 || r[0].Path != path || r[0].Field("model") != "m" {
					t.Errorf("recorded %v", r)
				}
			})
		}
	}
}

// text joins every string value of a body in the order of its events, by key.
func text(t *testing.T, body string) string {
	t.Helper()
	byKey := map[string]string{}
	var walk func(key string, v any)
	walk = func(key string, v any) {
		switch v := v.(type) {
		case string:
			byKey[key] += v
		case []any:
			for _, e := range v {
				walk(key, e)
			}
		case map[string]any:
			if (key == "arguments" || key == "input") && len(v) > 0 {
				data, _ := json.Marshal(v)
				byKey[key] += string(data)
				return
			}
			for k, e := range v {
				walk(k, e)
			}
		}
	}
	add := func(data []byte) {
		var v any
		if json.Unmarshal(data, &v) == nil {
			walk("", v)
		}
	}
	if strings.HasPrefix(body, "{") {
		in := sse.NewLines(strings.NewReader(body), 0)
		for line, _, err := in.Next(); err == nil; line, _, err = in.Next() {
			add(line)
		}
	} else {
		in := sse.NewReader(strings.NewReader(body), 0)
		for ev, err := in.Next(); err == nil; ev, err = in.Next() {
			add(ev.Data)
		}
	}
	var all []string
	for _, v := range byKey {
		all = append(all, v)
	}
	return strings.Join(all, "\n")
}

func TestSwitches(t *testing.T) {
	s := serve(t,
		Answer{Raw: "abcdef", CutAfter: 3, SplitBytes: true}, Answer{Raw: "abcdef", CutAfter: -1}, Answer{Raw: "abc", Abort: true},
		Answer{Status: 429, Raw: "slow", Header: map[string]string{"Retry-After": "1"}}, Answer{Raw: "late", DelayMS: 1})
	type got struct {
		status int
		body   string
		broken bool
	}
	var all []got
	for range 6 {
		status, body, err := post(t, s.URL+"/v1/chat/completions", "{}")
		all = append(all, got{status, body, err != nil})
	}
	want := []got{{200, "abc", false}, {200, "", false}, {200, "abc", true}, {429, "slow", false}, {200, "late", false},
		{501, "{\"error\":{\"message\":\"modelserver has no more answers\"}}\n", false}}
	if !reflect.DeepEqual(all, want) {
		t.Fatalf("got %v, want %v", all, want)
	}
}

func TestKeepOpen(t *testing.T) {
	s := serve(t, Answer{Raw: "abc", KeepOpen: true})
	res, err := http.Post(s.URL+"/api/chat", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(res.Body, make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.WaitIdle(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	_ = res.Body.Close()
	if err := s.WaitIdle(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestLoopAndControl(t *testing.T) {
	s := serve(t)
	s.Loop()
	if status, _, err := post(t, s.URL+"/_answers", `[{"raw":"a"},{"raw":"b"}]`); err != nil || status != 200 {
		t.Fatalf("got %d, %v", status, err)
	}
	var all string
	for range 3 {
		_, body, err := post(t, s.URL+"/api/chat", `{"n":1}`)
		if err != nil {
			t.Fatal(err)
		}
		all += body
	}
	if all != "aba" {
		t.Fatalf("got %q", all)
	}
	_, body, err := post(t, s.URL+"/_requests", "")
	var requests []Request
	if err != nil || json.Unmarshal([]byte(body), &requests) != nil || len(requests) != 3 || requests[2].Field("n") != 1.0 {
		t.Fatalf("got %s, %v", body, err)
	}
	for _, path := range []string{"/api/tags", "/api/show", "/api/version"} {
		if status, body, err := post(t, s.URL+path, "{}"); err != nil || status != 200 || !json.Valid([]byte(body)) {
			t.Errorf("%s: got %d, %s, %v", path, status, body, err)
		}
	}
	if status, _, _ := post(t, s.URL+"/elsewhere", "{}"); status != 404 {
		t.Errorf("got %d", status)
	}
}

// TestCommand drives the program as a test in another language would.
func TestCommand(t *testing.T) {
	dir := t.TempDir()
	bin := filepath.Join(dir, "modelserver")
	if out, err := exec.Command("go", "build", "-o", bin, "./cmd/modelserver").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	script := filepath.Join("testdata", "answers.jsonl")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, bin, script)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, _, err := sse.NewLines(out, 0).Next()
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	_, body, err := post(t, string(line)+"/api/chat", `{"stream":false}`)
	if err != nil || !strings.Contains(body, "Hello") {
		t.Fatalf("got %s, %v", body, err)
	}
	_ = in.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
}
