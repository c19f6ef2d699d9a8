package openai

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/a3s-lab/liba3s/internal/httpx"
	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/model"
	"github.com/a3s-lab/liba3s/runtime/model/modeltest"
	"github.com/a3s-lab/liba3s/tests/modelserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start gives a server with these answers and a client of it.
func start(t *testing.T, cfg Config, answers ...modelserver.Answer) (*modelserver.Server, *Client) {
	t.Helper()
	s, err := modelserver.New(answers...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	h, err := httpx.New(httpx.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	cfg.HTTP, cfg.BaseURL = h, s.URL
	if cfg.Model == "" {
		cfg.Model = "m"
	}
	c, err := Open(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s, c
}

func ask(t *testing.T, c *Client) (model.Answer, error) {
	t.Helper()
	return model.Collect(t.Context(), c.Stream(t.Context(), model.Request{Messages: []chat.Message{chat.Say(chat.User, "hi")}}), nil)
}

// calls gives the calls of an answer in short form.
func calls(a model.Answer) (out []string) {
	for _, c := range a.Message.Calls() {
		out = append(out, c.WireID+" "+c.Name+" "+string(c.Args))
	}
	return out
}

func TestSuite(t *testing.T) {
	open := func(cfg Config, change func(*modelserver.Answer)) modeltest.Open {
		return func(t *testing.T, turns ...modeltest.Turn) model.Client {
			var answers []modelserver.Answer
			for _, turn := range turns {
				a := modelserver.From(turn)
				change(&a)
				answers = append(answers, a)
			}
			_, c := start(t, cfg, answers...)
			return c
		}
	}
	all := modeltest.Features{Reasoning: true, Malformed: true, Usage: true}
	none := func(*modelserver.Answer) {}
	t.Run("stream", func(t *testing.T) { modeltest.Run(t, all, open(Config{Stream: true}, none)) })
	t.Run("byte by byte", func(t *testing.T) {
		modeltest.Run(t, all, open(Config{Stream: true}, func(a *modelserver.Answer) {
			// A very long answer sent byte by byte takes seconds and shows nothing new.
			a.SplitBytes = len(a.Calls) != 1 || len(a.Calls[0].Arguments) < 1000
		}))
	})
	t.Run("no index, odd choices", func(t *testing.T) {
		modeltest.Run(t, all, open(Config{Stream: true}, func(a *modelserver.Answer) { a.NoIndex, a.OddChoices = true, true }))
	})
	t.Run("no index, no ids", func(t *testing.T) {
		modeltest.Run(t, all, open(Config{Stream: true}, func(a *modelserver.Answer) { a.NoIndex, a.NoIDs = true, true }))
	})
}

func TestWhole(t *testing.T) {
	_, c := start(t, Config{}, modelserver.Answer{Reasoning: "hm", Text: "a", Calls: []modelserver.Call{{ID: "1", Name: "f", Arguments: `{"x": 1}`}}, PromptTokens: 3, CompletionTokens: 4},
		modelserver.Answer{Raw: `{"choices":[{"message":{"content":[{"type":"text","text":"parts"}],"reasoning":"r"},"finish_reason":"length"}],"usage":{"total_tokens":0,"total_characters":9,"prompt_tokens_details":{"cached_tokens":2}}}`})
	a, err := ask(t, c)
	if err != nil || a.Message.Text() != "a" || a.Message.ReasoningContent != "hm" || !reflect.DeepEqual(calls(a), []string{`1 f {"x": 1}`}) ||
		a.Usage != (chat.Usage{PromptTokens: 3, CompletionTokens: 4, TotalTokens: 7}) || a.Stop != model.StopTools {
		t.Fatalf("got %+v, %v", a, err)
	}
	a, err = ask(t, c)
	if err != nil || a.Message.Text() != "parts" || a.Message.ReasoningContent != "r" || a.Stop != model.StopLength || a.Usage != (chat.Usage{TotalTokens: 9, CacheReadTokens: 2}) {
		t.Fatalf("got %+v, %v", a, err)
	}
}

// stream builds a raw stream: each part is the inside of a choice, or a whole line if it
// begins with a letter or a colon.
func stream(parts ...string) string {
	var b strings.Builder
	for _, p := range parts {
		switch {
		case p == "":
			b.WriteString("\n")
		case p[0] != '{':
			b.WriteString(p + "\n\n")
		default:
			b.WriteString(`data: {"id":"r1","model":"m2","choices":[` + p + "]}\n\n")
		}
	}
	return b.String()
}

func TestStreamCases(t *testing.T) {
	tool := func(s string) string { return `{"index":0,"delta":{"tool_calls":[` + s + `]}}` }
	say := func(s string) string { return `{"index":0,"delta":{"content":"` + s + `"}}` }
	const finish, stop, done = `{"index":0,"delta":{},"finish_reason":"tool_calls"}`, `{"index":0,"delta":{},"finish_reason":"stop"}`, "data: [DONE]"
	long := strings.Repeat("x", 70<<10)
	type want struct {
		text, reasoning string
		calls           []string
		stop            model.Stop
		usage           chat.Usage
	}
	tests := []struct {
		name string
		body string
		want want
	}{
		{"OAI-01 two calls without index, by id", stream(tool(`{"id":"a","function":{"name":"f","arguments":"{}"}}`), tool(`{"id":"b","function":{"name":"g","arguments":"{\"x\":1}"}}`), finish, done),
			want{calls: []string{"a f {}", `b g {"x":1}`}, stop: model.StopTools}},
		{"OAI-01 in one chunk, pieces by id", stream(tool(`{"id":"a","function":{"name":"f","arguments":"{"}},{"id":"b","function":{"name":"g","arguments":"{\"y\""}}`), tool(`{"id":"b","function":{"arguments":":2}"}}`), tool(`{"id":"a","function":{"arguments":"}"}}`), finish, done),
			want{calls: []string{"a f {}", `b g {"y":2}`}, stop: model.StopTools}},
		{"OAI-01 in one chunk, pieces by position", stream(tool(`{"function":{"name":"f","arguments":""}},{"function":{"name":"f","arguments":""}}`), tool(`{"function":{"arguments":"{\"a\":1}"}},{"function":{"arguments":"{\"b\":2}"}}`), finish, done),
			want{calls: []string{` f {"a":1}`, ` f {"b":2}`}, stop: model.StopTools}},
		{"OAI-01 every call has index 0", stream(tool(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`), tool(`{"index":0,"id":"b","function":{"name":"f","arguments":"{"}}`), tool(`{"index":0,"function":{"arguments":"}"}}`), finish, done),
			want{calls: []string{"a f {}", "b f {}"}, stop: model.StopTools}},
		{"OAI-02 pieces by index", stream(tool(`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}`), tool(`{"index":1,"id":"b","function":{"name":"g"}}`), tool(`{"index":0,"function":{"arguments":"{\"x\""}}`), tool(`{"index":1,"function":{"arguments":"{}"}}`), tool(`{"index":0,"function":{"arguments":":1}"}}`), finish, done),
			want{calls: []string{`a f {"x":1}`, "b g {}"}, stop: model.StopTools}},
		{"OAI-03 usage in a chunk without choices", stream(say("a"), stop, `data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7,"prompt_tokens_details":{"cached_tokens":4}}}`, done),
			want{text: "a", stop: model.StopEnd, usage: chat.Usage{PromptTokens: 5, CompletionTokens: 2, TotalTokens: 7, CacheReadTokens: 4}}},
		{"OAI-07 no ids, one tool twice", stream(tool(`{"function":{"name":"f","arguments":"{\"a\":1}"}}`), tool(`{"function":{"name":"f","arguments":"{\"a\":2}"}}`), finish, done),
			want{calls: []string{` f {"a":1}`, ` f {"a":2}`}, stop: model.StopTools}},
		{"OAI-07 the name as id", stream(tool(`{"id":"f","function":{"name":"f","arguments":"{\"a\":1}"}},{"id":"f","function":{"name":"f","arguments":"{\"a\":2}"}}`), finish, done),
			want{calls: []string{`f f {"a":1}`, `f f {"a":2}`}, stop: model.StopTools}},
		{"OAI-11 null and empty choices", stream(`data: {"choices":null}`, `data: {"choices":[]}`, say("a"), `data: {"choices":null}`, stop, done), want{text: "a", stop: model.StopEnd}},
		{"SSE-01 a line of 70 KiB", stream(tool(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":\"`+long+`\"}"}}`), finish, done),
			want{calls: []string{`a f {"x":"` + long + `"}`}, stop: model.StopTools}},
		{"SSE-02 blocks without data", stream("retry: 3000", ": note", say("a"), ": note", stop, done), want{text: "a", stop: model.StopEnd}},
		{"a finish reason without the terminator", stream(say("a"), stop), want{text: "a", stop: model.StopEnd}},
		{"the terminator without a line end", stream(say("a"), stop) + done, want{text: "a", stop: model.StopEnd}},
		{"the terminator without a finish reason", stream(say("a"), done), want{text: "a", stop: model.StopEnd}},
		{"GLM-01 only reasoning", stream(`{"index":0,"delta":{"content":"","reasoning_content":"hm"}}`, `{"index":0,"delta":{"content":null,"reasoning":"m"}}`, stop, done), want{reasoning: "hmm", stop: model.StopEnd}},
		{"stop beside calls", stream(tool(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`), stop, done), want{calls: []string{"a f {}"}, stop: model.StopTools}},
		{"JSON-01 the limit is told beside calls", stream(tool(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"a"}}`), `{"index":0,"delta":{},"finish_reason":"length"}`, done), want{calls: []string{`a f {"a`}, stop: model.StopLength}},
		{"filtered", stream(say("a"), `{"index":0,"delta":{},"finish_reason":"content_filter"}`, done), want{text: "a", stop: model.StopFilter}},
		{"arguments as an object, and null", stream(tool(`{"index":0,"id":"a","function":{"name":"f","arguments":{"x": 1}}},{"index":1,"id":"b","function":{"name":"g","arguments":null}}`), finish, done), want{calls: []string{`a f {"x": 1}`, "b g "}, stop: model.StopTools}},
		{"the name comes late", stream(tool(`{"index":0,"id":"a","function":{"arguments":"{"}}`), tool(`{"index":0,"function":{"name":"f","arguments":"}"}}`), finish, done), want{calls: []string{"a f {}"}, stop: model.StopTools}},
		{"arguments repeated at the end", stream(tool(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}`), tool(`{"index":0,"function":{"arguments":"1}"}}`), tool(`{"index":0,"function":{"name":"f","arguments":"{\"x\":1}"}}`), finish, done), want{calls: []string{`a f {"x":1}`}, stop: model.StopTools}},
		{"text told again and again", stream(say("He"), say("Hello"), say("Hello wor"), say("Hello world"), say("Hello world"), stop, done), want{text: "Hello world", stop: model.StopEnd}},
		{"text that only looks so", stream(say("1"), say("10"), say("0"), say("100"), stop, done), want{text: "1100100", stop: model.StopEnd}},
		{"text that looks so to the end", stream(say("1"), say("10"), stop, done), want{text: "110", stop: model.StopEnd}},
		{"a second choice is not read", stream(`{"index":1,"delta":{"content":"no"}},{"index":0,"delta":{"content":"a"}}`, stop, done), want{text: "a", stop: model.StopEnd}},
		{"usage inside the choice", stream(say("a"), `{"index":0,"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":1,"completion_tokens":1}}`, done), want{text: "a", stop: model.StopEnd, usage: chat.Usage{PromptTokens: 1, CompletionTokens: 1, TotalTokens: 2}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, c := start(t, Config{Stream: true}, modelserver.Answer{Raw: tt.body})
			a, err := ask(t, c)
			if err != nil {
				t.Fatal(err)
			}
			got := want{a.Message.Text(), a.Message.ReasoningContent, calls(a), a.Stop, a.Usage}
			if !reflect.DeepEqual(got, tt.want) {
				t.Fatalf("got  %.400v\nwant %.400v", got, tt.want)
			}
		})
	}
}

func TestStreamErrors(t *testing.T) {
	const text = `{"index":0,"delta":{"content":"a"}}`
	const call = `{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}}`
	tests := []struct {
		name    string
		answer  modelserver.Answer
		code    fault.Code
		retry   bool
		message string // how it begins
		kept    string
	}{
		{"SSE-03 a clean close after two call deltas", modelserver.Answer{Raw: stream(text, call, call)}, fault.CodeLLM, true, "stream incomplete", "a"},
		{"SSE-03 a broken connection", modelserver.Answer{Raw: stream(text, call), Abort: true}, fault.CodeLLM, true, "stream incomplete", "a"},
		{"SSE-03 cut inside a line", modelserver.Answer{Raw: stream(text, text), CutAfter: len(stream(text)) + 30}, fault.CodeLLM, true, "stream incomplete", "a"},
		{"nothing at all", modelserver.Answer{CutAfter: -1}, fault.CodeLLM, true, "stream incomplete", ""},
		{"an error object", modelserver.Answer{Raw: stream(text, `data: {"error":{"message":"no\ncredit","type":"insufficient_quota","code":null}}`)}, fault.CodeLLM, false, "the model service reported an error: no credit", "a"},
		{"an error of the moment", modelserver.Answer{Raw: stream(`data: {"error":{"message":"busy","code":503}}`)}, fault.CodeLLM, true, "the model service reported an error: busy", ""},
		{"an error as text", modelserver.Answer{Raw: stream(`data: {"error":"busy"}`)}, fault.CodeLLM, false, "the model service reported an error: busy", ""},
		{"an error by name", modelserver.Answer{Raw: "event: error\ndata: {\"message\":\"busy\",\"type\":\"server_error\"}\n\n"}, fault.CodeLLM, true, "the model service reported an error: busy", ""},
		{"a web page", modelserver.Answer{Raw: "<html>", Header: map[string]string{"Content-Type": "text/html; charset=utf-8"}}, fault.CodeLLM, false, "http://127.0.0.1", ""},
		{"not JSON", modelserver.Answer{Raw: stream("data: <html>")}, fault.CodeLLM, false, "the model service sent an event that is not the expected JSON", ""},
		{"OAI-04 a stream without any choice", modelserver.Answer{Raw: stream(`data: {"choices":[],"prompt_filter_results":[{"content_filter_results":{"hate":{"filtered":true}}}]}`, "data: [DONE]")}, fault.CodeLLM, false, "the model service gave no answer: no choices; its content filter says [{", ""},
		{"the window", modelserver.Answer{Status: 400, Raw: `{"error":{"message":"too many tokens","code":"context_length_exceeded"}}`}, fault.CodeContext, false, "the request does not fit the model's window: too many tokens", ""},
		{"the window, inside the stream", modelserver.Answer{Raw: stream(`data: {"error":{"message":"too many","code":"context_length_exceeded"}}`)}, fault.CodeContext, false, "the request does not fit", ""},
		{"SSE-01 above the ceiling", modelserver.Answer{Raw: stream(text, `{"index":0,"delta":{"content":"`+strings.Repeat("x", 5000)+`"}}`)}, fault.CodeLLM, false, "one event of the stream is larger than 4096 bytes", "a"},
		{"NET-05 a long Retry-After", modelserver.Answer{Status: 429, Header: map[string]string{"Retry-After": "400"}}, fault.CodeLLM, true, `"127.0.0.1`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, c := start(t, Config{Stream: true, MaxEvent: 4096}, tt.answer)
			a, err := ask(t, c)
			e := fault.From("", err)
			if e == nil || e.Code != tt.code || e.Retryable != tt.retry || !strings.HasPrefix(e.Message, tt.message) || e.Op != op && e.Op != "model.stream" {
				t.Fatalf("got %#v", e)
			}
			if !a.Partial || a.Message.Text() != tt.kept || len(a.Message.Calls()) != 0 {
				t.Fatalf("kept %+v", a)
			}
			if err := s.WaitIdle(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// NET-05: the long wait is surfaced at once through the retry wrapper.
func TestNET05(t *testing.T) {
	s, c := start(t, Config{Stream: true}, modelserver.Answer{Status: 429, Header: map[string]string{"Retry-After": "400"}}, modelserver.Answer{Text: "late"})
	r := model.Retry(c, model.RetryConfig{Sleep: func(context.Context, time.Duration) error { t.Error("it waited"); return nil }})
	_, err := model.Collect(t.Context(), r.Stream(t.Context(), model.Request{}), nil)
	if model.RetryAfter(err) != 400*time.Second || len(s.Requests()) != 1 {
		t.Fatalf("got %v", err)
	}
}

func TestOAI04(t *testing.T) {
	_, c := start(t, Config{}, modelserver.Answer{Raw: `{"id":"1","choices":[],"content_filter_results":{"violence":{"filtered":true}}}`}, modelserver.Answer{Raw: `{"choices":null}`}, modelserver.Answer{Raw: `{"error":{"message":"no"}}`}, modelserver.Answer{Raw: `[`})
	for _, want := range []struct{ reason, message string }{
		{"filtered", `LLM error: the model service gave no answer: no choices; its content filter says {"violence":{"filtered":true}}`},
		{"no_choices", "LLM error: the model service gave no answer: no choices"},
		{"", "LLM error: the model service reported an error: no"},
		{"", "LLM error: the model service did not answer with the expected JSON: unexpected end of JSON input; it begins with \"[\""},
	} {
		_, err := ask(t, c)
		e := fault.From("", err)
		reason, _ := e.Details["reason"].(string)
		if e.Error() != want.message || reason != want.reason || e.Retryable {
			t.Fatalf("got %#v", e)
		}
	}
}

// SSE-05: the terminator ends the turn although the socket stays open, and the client
// closes it.
func TestSSE05(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer modelserver.Answer
	}{{"terminator", modelserver.Answer{Text: "a", KeepOpen: true}}, {"finish reason only", modelserver.Answer{Text: "a", KeepOpen: true, NoDone: true}}} {
		t.Run(tt.name, func(t *testing.T) {
			s, c := start(t, Config{Stream: true, FinishGrace: time.Millisecond}, tt.answer)
			a, err := ask(t, c)
			if err != nil || a.Message.Text() != "a" {
				t.Fatalf("got %+v, %v", a, err)
			}
			if err := s.WaitIdle(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// UTF8-01: letters that are split between bytes come out whole.
func TestUTF801(t *testing.T) {
	_, c := start(t, Config{Stream: true}, modelserver.Answer{Text: "ä€🙂", SplitBytes: true})
	a, err := model.Collect(t.Context(), c.Stream(t.Context(), model.Request{}), func(ch model.Chunk) error {
		if strings.ContainsRune(ch.Text, '\uFFFD') {
			t.Errorf("a broken letter in %q", ch.Text)
		}
		return nil
	})
	if err != nil || a.Message.Text() != "ä€🙂" {
		t.Fatalf("got %+v, %v", a, err)
	}
}

func TestRequest(t *testing.T) {
	s, c := start(t, Config{Stream: true, Model: "gpt", APIKey: "sk-1", SessionIDHeader: "X-Session", Headers: map[string]string{"x-a": "b"}, Extra: map[string]any{"thinking": map[string]string{"type": "enabled"}}}, modelserver.Answer{Text: "a"})
	zero := 0.0
	use := func(id, wire, args string) chat.Block {
		return chat.Block{Type: chat.ToolUse, ID: id, WireID: wire, Name: "f", Input: json.RawMessage(args)}
	}
	req := model.Request{System: "sys", Temperature: &zero, MaxTokens: 5, SessionID: "s1",
		Tools: []chat.ToolSpec{{Name: "f", Description: "d", Parameters: json.RawMessage(`{"type":"object","properties":{"b":{},"a":{}}}`)}, {Name: "g"}},
		Messages: []chat.Message{
			chat.Say(chat.User, "hi"),
			{Role: chat.Assistant, Content: []chat.Block{use("t1", "w1", `{"x": 1}`), use("t2", "", `{"x`)}}, // OAI-05: no text
			{Role: chat.Tool, Content: []chat.Block{{Type: chat.ToolResult, ToolUseID: "t1", Content: "r1"}, {Type: chat.ToolResult, ToolUseID: "t2", Content: ""}, {Type: chat.ToolResult, ToolUseID: "t1", Content: "again"}}},
			{Role: chat.Assistant, ReasoningContent: "hm", Content: []chat.Block{{Type: chat.Text, Text: "so"}}},
			{Role: chat.Assistant, Partial: true},
			chat.Say(chat.User, "on"),
		}}
	if _, err := model.Collect(t.Context(), c.Stream(t.Context(), req), nil); err != nil {
		t.Fatal(err)
	}
	want := `{"model":"gpt","stream":true,"stream_options":{"include_usage":true},"temperature":0,"max_tokens":5,"thinking":{"type":"enabled"},
	"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object","properties":{"b":{},"a":{}}}}},{"type":"function","function":{"name":"g","parameters":{"type":"object","properties":{}}}}],
	"messages":[{"role":"system","content":"sys"},{"role":"user","content":"hi"},
	{"role":"assistant","content":null,"reasoning_content":"","tool_calls":[{"id":"w1","type":"function","function":{"name":"f","arguments":"{\"x\": 1}"}},{"id":"t2","type":"function","function":{"name":"f","arguments":"{\"__parse_error\":\"{\\\"x\"}"}}]},
	{"role":"tool","content":"r1","tool_call_id":"w1"},{"role":"tool","content":"","tool_call_id":"t2"},
	{"role":"assistant","content":"so","reasoning_content":"hm"},{"role":"user","content":"on"}]}`
	got := s.Requests()[0]
	if !sameJSON(t, string(got.Body), want) {
		t.Fatalf("got  %s\nwant %s", got.Body, want)
	}
	h := got.Header
	if got.Path != "/v1/chat/completions" || h.Get("Authorization") != "Bearer sk-1" || h.Get("X-Session") != "s1" || h.Get("X-A") != "b" || h.Get("Accept") != "text/event-stream" {
		t.Fatalf("got %s %v", got.Path, h)
	}
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var x, y any
	if err := errors.Join(json.Unmarshal([]byte(a), &x), json.Unmarshal([]byte(b), &y)); err != nil {
		t.Fatal(err)
	}
	return reflect.DeepEqual(x, y)
}

func TestEndpoint(t *testing.T) {
	const zhipu = "/api/paas/v4/chat/completions"
	tests := []struct{ base, path, want string }{
		{"", "", "https://api.openai.com/v1/chat/completions"},
		{"https://a.b/", "", "https://a.b/v1/chat/completions"},
		{"https://a.b/v1/", "", "https://a.b/v1/chat/completions"},
		{"https://a.b/x/v1", "", "https://a.b/x/v1/chat/completions"},
		{"https://a.b/v1/chat/completions", "", "https://a.b/v1/chat/completions"},
		{"https://a.b/api/coding", "", "https://a.b/api/coding/chat/completions"},
		{"https://a.b/v3", "", "https://a.b/v3/chat/completions"},
		{"https://a.b/c?api-version=1", "", "https://a.b/c/v1/chat/completions?api-version=1"},
		{"https://open.bigmodel.cn", zhipu, "https://open.bigmodel.cn" + zhipu},
		{"https://open.bigmodel.cn/api/paas/v4/", zhipu, "https://open.bigmodel.cn" + zhipu},
	}
	for _, tt := range tests {
		got, err := endpoint(tt.base, tt.path)
		if err != nil || got.String() != tt.want {
			t.Errorf("%q: got %v, %v, want %s", tt.base, got, err, tt.want)
		}
	}
}

func TestOpenErrors(t *testing.T) {
	h, err := httpx.New(httpx.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	for _, tt := range []struct {
		name string
		cfg  Config
		want string
	}{
		{"no transport", Config{Model: "m"}, "Internal error: no HTTP client was given"},
		{"no model", Config{HTTP: h}, "Config error: no model is named"},
		{"no URL", Config{HTTP: h, Model: "m", BaseURL: "a.b"}, `Config error: the base URL "a.b" is not an http or https address`},
		{"a key with a line break", Config{HTTP: h, Model: "m", APIKey: "sk-1\nx"}, "Config error: the API key cannot be sent: it holds a line break or another forbidden character"},
		{"a bad header", Config{HTTP: h, Model: "m", Headers: map[string]string{"a b": "c"}}, `Config error: the header "a b" cannot be sent: its name or value holds a forbidden character`},
		{"a bad session header", Config{HTTP: h, Model: "m", SessionIDHeader: "a:"}, `Config error: the session id header "a:" is no header name`},
	} {
		if _, err := Open(t.Context(), tt.cfg); err == nil || err.Error() != tt.want {
			t.Errorf("%s: got %v, want %s", tt.name, err, tt.want)
		}
	}
	s, c := start(t, Config{APIKey: "sk-1", Headers: map[string]string{"AUTHORIZATION": "Basic x"}}, modelserver.Answer{Text: "a"})
	if _, err := ask(t, c); err != nil || s.Requests()[0].Header.Get("Authorization") != "Basic x" {
		t.Fatalf("got %v, %v", s.Requests(), err)
	}
}
