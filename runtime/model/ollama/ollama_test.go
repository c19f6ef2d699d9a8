package ollama

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

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

var tools = []chat.ToolSpec{{Name: "f"}, {Name: "g"}}

func ask(t *testing.T, c *Client) (model.Answer, error) {
	t.Helper()
	req := model.Request{Tools: tools, Messages: []chat.Message{chat.Say(chat.User, "hi")}}
	return model.Collect(t.Context(), c.Stream(t.Context(), req), nil)
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
	all := modeltest.Features{Reasoning: true, Usage: true}
	bytewise := func(a *modelserver.Answer) {
		// A very long answer sent byte by byte takes seconds and shows nothing new.
		a.SplitBytes = len(a.Calls) != 1 || len(a.Calls[0].Arguments) < 1000
	}
	t.Run("stream", func(t *testing.T) { modeltest.Run(t, all, open(Config{Stream: true}, func(*modelserver.Answer) {})) })
	t.Run("byte by byte", func(t *testing.T) { modeltest.Run(t, all, open(Config{Stream: true}, bytewise)) })
	t.Run("tags, no ids", func(t *testing.T) {
		modeltest.Run(t, all, open(Config{Stream: true}, func(a *modelserver.Answer) { a.Tags, a.NoIDs = true, true }))
	})
}

// lines makes a raw stream of messages; one that is no object goes as it is.
func lines(parts ...string) string {
	var b strings.Builder
	for _, p := range parts {
		if strings.HasPrefix(p, `{"content"`) || strings.HasPrefix(p, `{"thinking"`) || strings.HasPrefix(p, `{"tool_calls"`) {
			p = `{"model":"m2","done":false,"message":` + p + `}`
		}
		b.WriteString(p + "\n")
	}
	return b.String()
}

const done = `{"model":"m2","done":true,"done_reason":"stop","prompt_eval_count":3,"eval_count":2,"message":{"content":""}}`

func say(s string) string {
	data, _ := json.Marshal(s)
	return `{"content":` + string(data) + `}`
}

func TestStreamCases(t *testing.T) {
	type want struct {
		text, reasoning string
		calls           []string
		stop            model.Stop
	}
	text := func(s string) want { return want{text: s, stop: model.StopEnd} }
	bare := func(c ...string) want { return want{calls: c, stop: model.StopTools} }
	tests := []struct {
		name      string
		reasoning bool
		body      string
		want      want
	}{
		{"OLL-01 a bare call", false, lines(say(`{"name":"f","parameters":{}}`), done), bare(" f {}")},
		{"OLL-01 in pieces", false, lines(say(" {\n \"na"), say(`me":"f","arg`), say(`uments":{"x": 1}}`), done), bare(` f {"x": 1}`)},
		{"OLL-01 in a fence", false, lines(say("```json\n{\"name\":\"f\",\"arguments\":{}}\n```"), done), bare(" f {}")},
		{"OLL-01 marked, two", false, lines(say("<tool_call>\n{\"name\":\"f\",\"arguments\":{\"x\":\"</tool_call>\"}}\n</tool_call>\n<tool_call>{\"name\":\"g\",\"arguments\":{}}</tool_call>"), done), bare(` f {"x":"</tool_call>"}`, " g {}")},
		{"OLL-01 a list, nested", false, lines(say(`[{"type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]`), done), bare(` f {"x":1}`)},
		{"OLL-01 an unknown tool stays text", false, lines(say(`{"name":"h","parameters":{}}`), done), text(`{"name":"h","parameters":{}}`)},
		{"OLL-01 plain JSON stays text", false, lines(say(`{"name":"f"`), say(`,"age":3}`), done), text(`{"name":"f","age":3}`)},
		{"OLL-01 a call within prose stays text", false, lines(say(`Use {"name":"f","parameters":{}}`), done), text(`Use {"name":"f","parameters":{}}`)},
		{"OLL-01 a call before prose stays text", false, lines(say(`{"name":"f","parameters":{}} is a call`), done), text(`{"name":"f","parameters":{}} is a call`)},
		{"OLL-01 half a call stays text", false, lines(say(`{"name":"f","par`), done), text(`{"name":"f","par`)},
		{"OLL-01 code in a fence stays text", false, lines(say("```go\nfunc f() {}\n```"), done), text("```go\nfunc f() {}\n```")},
		{"OLL-02 calls in a chunk that is not the last", false, lines(`{"content":"","tool_calls":[{"function":{"name":"f","arguments":{"n":12345678901234567890}}},{"id":"c2","function":{"index":1,"name":"f","arguments":{}}}]}`, done), bare(` f {"n":12345678901234567890}`, "c2 f {}")},
		{"OLL-02 calls in the last chunk", false, lines(`{"model":"m2","done":true,"done_reason":"stop","message":{"content":"","tool_calls":[{"function":{"name":"f","arguments":null}}]}}`), bare(" f ")},
		{"OLL-03 the call is in the reasoning", true, lines(`{"thinking":"I call <tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>","content":""}`, done), want{"", `I call <tool_call>{"name":"f","arguments":{}}</tool_call>`, []string{" f {}"}, model.StopTools}},
		{"OLL-07 tags in one chunk", false, lines(say("<think>a</think>b"), done), want{"b", "a", nil, model.StopEnd}},
		{"OLL-07 tags split over chunks", true, lines(say("\n<th"), say("ink>"), say("a</thi"), say("nk>"), say("\n\n"), say("b"), done), want{"b", "a", nil, model.StopEnd}},
		{"OLL-07 something like a tag", true, lines(say("<think>a </th x <"), say("/think>b"), done), want{"b", "a </th x ", nil, model.StopEnd}},
		{"OLL-07 a closing tag alone", false, lines(say("a</think>b"), done), want{"b", "a", nil, model.StopEnd}},
		{"OLL-07 a closing tag alone, split", true, lines(say("a"), say("</thi"), say("nk>b"), done), want{"b", "a", nil, model.StopEnd}},
		{"OLL-07 an opening tag alone", true, lines(say("<think>a"), done), want{"", "a", nil, model.StopEnd}},
		{"OLL-07 only the beginning of a tag", false, lines(say("<thi"), done), text("<thi")},
		{"OLL-07 tags in an answer", false, lines(say("The tag "), say("<think>x</think> is"), done), text("The tag <think>x</think> is")},
		{"OLL-08 the field", true, lines(`{"thinking":"a","content":""}`, `{"content":"b"}`, done), want{"b", "a", nil, model.StopEnd}},
		{"OLL-08 a call after tags", true, lines(say("<think>a</think>{\"name\":\"f\",\"parameters\":{}}"), done), want{"", "a", []string{" f {}"}, model.StopTools}},
		{"the limit", false, lines(say("a"), `{"done":true,"done_reason":"length"}`), want{text: "a", stop: model.StopLength}},
		{"a last line without its end", false, lines(say("a")) + done, text("a")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, split := range []bool{false, true} {
				_, c := start(t, Config{Stream: true, Reasoning: tt.reasoning}, modelserver.Answer{Raw: tt.body, SplitBytes: split})
				a, err := ask(t, c)
				if err != nil {
					t.Fatal(err)
				}
				got := want{a.Message.Text(), a.Message.ReasoningContent, calls(a), a.Stop}
				if !reflect.DeepEqual(got, tt.want) {
					t.Fatalf("got  %+v\nwant %+v", got, tt.want)
				}
			}
		})
	}
}

func TestStreamErrors(t *testing.T) {
	tests := []struct {
		name    string
		answer  modelserver.Answer
		code    fault.Code
		retry   bool
		message string // how it begins
	}{
		{"cut", modelserver.Answer{Raw: lines(say("a"))}, fault.CodeLLM, true, "stream incomplete"},
		{"cut inside a line", modelserver.Answer{Raw: lines(say("a"), say("b")), CutAfter: 60}, fault.CodeLLM, true, "stream incomplete"},
		{"cut by force", modelserver.Answer{Raw: lines(say("a")), Abort: true}, fault.CodeLLM, true, "stream incomplete"},
		{"calls without an end", modelserver.Answer{Raw: lines(say("a"), `{"tool_calls":[{"function":{"name":"f","arguments":{}}}]}`)}, fault.CodeLLM, true, "stream incomplete"},
		{"OLL-12 an error line", modelserver.Answer{Raw: lines(say("a"), `{"error":"out of memory"}`)}, fault.CodeLLM, false, "the server reported an error: out of memory"},
		{"OLL-12 an error object", modelserver.Answer{Raw: lines(say("a"), `{"error":{"message":"out of memory"}}`)}, fault.CodeLLM, false, "the server reported an error: out of memory"},
		{"OLL-12 an unknown shape", modelserver.Answer{Raw: lines(say("a"), `{"error parsing tool call":"raw='{'"}`)}, fault.CodeLLM, false, `the model wrote a tool call that the server cannot read: {"error parsing tool call":"raw='{'"}`},
		{"OLL-12 no shape at all", modelserver.Answer{Raw: lines(say("a"), `{"what":1}`)}, fault.CodeLLM, false, `the server reported an error: {"what":1}`},
		{"a web page", modelserver.Answer{Raw: "<html>\n", Header: map[string]string{"Content-Type": "text/html; charset=utf-8"}}, fault.CodeLLM, false, "http://127.0.0.1"},
		{"not JSON", modelserver.Answer{Raw: lines(say("a"), "<html>")}, fault.CodeLLM, false, "the server sent a line that is not the expected JSON"},
		{"OLL-04 the user's turn was cut off", modelserver.Answer{Status: 500, Raw: `{"error":"no user query found in messages"}`}, fault.CodeContext, false, "the request does not fit the context size asked for"},
		{"the window", modelserver.Answer{Status: 400, Raw: `{"error":"the input length exceeds the context length"}`}, fault.CodeContext, false, "the request does not fit the context size asked for"},
		{"OLL-06 a call that the server cannot parse", modelserver.Answer{Status: 500, Raw: `{"error":"error parsing tool call: raw='x'"}`}, fault.CodeLLM, false, "the model wrote a tool call that the server cannot read: error parsing tool call: raw='x'"},
		{"busy", modelserver.Answer{Status: 503, Raw: `{"error":"server busy"}`}, fault.CodeLLM, true, `"127.0.0.1`},
		{"no such model", modelserver.Answer{Status: 404, Raw: `{"error":"model not found"}`}, fault.CodeLLM, false, `"127.0.0.1`},
		{"above the ceiling", modelserver.Answer{Raw: lines(say(strings.Repeat("x", 5000)))}, fault.CodeLLM, false, "one event of the stream is larger than 4096 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, c := start(t, Config{Stream: true, MaxLine: 4096}, tt.answer)
			a, err := ask(t, c)
			e := fault.From("", err)
			if e == nil || e.Code != tt.code || e.Retryable != tt.retry || !strings.HasPrefix(e.Message, tt.message) || !a.Partial || len(a.Message.Calls()) != 0 {
				t.Fatalf("got %#v, %+v", e, a)
			}
			if err := s.WaitIdle(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// OLL-05: a prompt that was cut is told, whole ones are not.
func TestOLL05(t *testing.T) {
	long := strings.Repeat("word ", 12560) // about 15.7k tokens
	tests := []struct {
		name   string
		window int
		prompt string
		count  int
		notice bool
	}{
		{"cut to 2k", 32768, long, 2048, true},
		{"cut to the window", 8192, long, 8100, true},
		{"evaluated", 32768, long, 15000, false},
		{"the estimate was a third too high", 32768, long, 11000, false},
		{"a small prompt", 32768, "hi", 1, false},
		{"no count", 32768, long, 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, c := start(t, Config{Stream: true, Window: tt.window}, modelserver.Answer{Text: "a", PromptTokens: tt.count})
			var notices []string
			_, err := model.Collect(t.Context(), c.Stream(t.Context(), model.Request{Messages: []chat.Message{chat.Say(chat.User, tt.prompt)}}), func(ch model.Chunk) error {
				if ch.Kind == model.Notice {
					notices = append(notices, ch.NoticeKind)
				}
				return nil
			})
			if err != nil || (len(notices) == 1 && notices[0] == "context_truncated") != tt.notice {
				t.Fatalf("got %v, %v", notices, err)
			}
			options, _ := s.Requests()[0].Field("options").(map[string]any)
			if options["num_ctx"] != float64(tt.window) {
				t.Fatalf("options %v", options)
			}
		})
	}
}

func TestWhole(t *testing.T) {
	_, c := start(t, Config{}, modelserver.Answer{Reasoning: "hm", Text: "a", Calls: []modelserver.Call{{ID: "1", Name: "f", Arguments: `{"x": 1}`}}, PromptTokens: 3, CompletionTokens: 4},
		modelserver.Answer{Raw: `{"message":{"content":"a"},"done":false}`}, modelserver.Answer{Raw: `{"error":"x"}`})
	a, err := ask(t, c)
	if err != nil || a.Message.Text() != "a" || a.Message.ReasoningContent != "hm" || !reflect.DeepEqual(calls(a), []string{`1 f {"x":1}`}) ||
		a.Usage != (chat.Usage{PromptTokens: 3, CompletionTokens: 4, TotalTokens: 7}) || a.Stop != model.StopTools {
		t.Fatalf("got %+v, %v", a, err)
	}
	if _, err = ask(t, c); err == nil || !strings.Contains(err.Error(), "stream incomplete") {
		t.Fatalf("got %v", err)
	}
	if _, err = ask(t, c); err == nil || err.Error() != "LLM error: the server reported an error: x" {
		t.Fatalf("got %v", err)
	}
}

func TestRequest(t *testing.T) {
	s, c := start(t, Config{Stream: true, Model: "qwen3", Reasoning: true, APIKey: "k1", SessionIDHeader: "X-Session"}, modelserver.Answer{Text: "a"}, modelserver.Answer{Text: "a"})
	zero := 0.0
	req := model.Request{System: "sys", Temperature: &zero, MaxTokens: 5, SessionID: "s1", Window: 4096,
		Tools: []chat.ToolSpec{{Name: "f", Description: "d", Parameters: json.RawMessage(`{"type":"object","properties":{"b":{"minimum":1}},"additionalProperties":false}`)}, {Name: "g"}},
		Messages: []chat.Message{
			chat.Say(chat.User, "hi"),
			{Role: chat.Assistant, ReasoningContent: "hm", Content: []chat.Block{
				{Type: chat.ToolUse, ID: "t1", WireID: "w1", Name: "f", Input: json.RawMessage(`{"x":12345678901234567890}`)},
				{Type: chat.ToolUse, ID: "t2", Name: "g", Input: json.RawMessage(`{"x`)}}},
			{Role: chat.Tool, Content: []chat.Block{{Type: chat.ToolResult, ToolUseID: "t1", Content: "r1"}, {Type: chat.ToolResult, ToolUseID: "t1", Content: "again"}}},
			{Role: chat.Assistant, Partial: true},
			chat.Say(chat.User, "on"),
		}}
	if _, err := model.Collect(t.Context(), c.Stream(t.Context(), req), nil); err != nil {
		t.Fatal(err)
	}
	want := `{"model":"qwen3","stream":true,"truncate":false,"shift":false,"think":true,"options":{"num_ctx":4096,"num_predict":5,"temperature":0},
	"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object","properties":{"b":{"minimum":1}},"additionalProperties":false}}},{"type":"function","function":{"name":"g","parameters":{"type":"object","properties":{}}}}],
	"messages":[{"role":"system","content":"sys"},{"role":"user","content":"hi"},
	{"role":"assistant","content":"","thinking":"hm","tool_calls":[{"id":"w1","function":{"name":"f","arguments":{"x":12345678901234567890}}},{"id":"t2","function":{"name":"g","arguments":{"__parse_error":"{\"x"}}}]},
	{"role":"tool","content":"r1","tool_name":"f","tool_call_id":"w1"},{"role":"user","content":"on"}]}`
	got := s.Requests()[0]
	if !sameJSON(t, string(got.Body), want) || !strings.Contains(string(got.Body), "12345678901234567890") {
		t.Fatalf("got  %s\nwant %s", got.Body, want)
	}
	if got.Path != "/api/chat" || got.Header.Get("Authorization") != "Bearer k1" || got.Header.Get("X-Session") != "s1" {
		t.Fatalf("got %s %v", got.Path, got.Header)
	}
	t.Run("the window is never left out, thinking is", func(t *testing.T) {
		s, c := start(t, Config{Stream: true}, modelserver.Answer{Text: "a"})
		if _, err := ask(t, c); err != nil {
			t.Fatal(err)
		}
		r := s.Requests()[0]
		options, _ := r.Field("options").(map[string]any)
		if options["num_ctx"] != float64(DefaultWindow) || r.Field("think") != nil {
			t.Fatalf("got %s", r.Body)
		}
	})
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var x, y any
	if err := errors.Join(json.Unmarshal([]byte(a), &x), json.Unmarshal([]byte(b), &y)); err != nil {
		t.Fatal(err)
	}
	return reflect.DeepEqual(x, y)
}

func TestOpen(t *testing.T) {
	h, err := httpx.New(httpx.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	for base, want := range map[string]string{
		"": "http://127.0.0.1:11434/api/chat", "http://a:1/": "http://a:1/api/chat", "http://a/api": "http://a/api/chat",
		"http://a/v1/": "http://a/api/chat", "http://a/x/api/chat": "http://a/x/api/chat",
	} {
		c, err := Open(t.Context(), Config{HTTP: h, Model: "m", BaseURL: base})
		if err != nil || c.url.String() != want {
			t.Errorf("%q: got %v, %v", base, c, err)
		}
	}
	for _, tt := range []struct {
		cfg  Config
		want string
	}{
		{Config{Model: "m"}, "Internal error: no HTTP client was given"},
		{Config{HTTP: h}, "Config error: no model is named"},
		{Config{HTTP: h, Model: "m", BaseURL: "a.b"}, `Config error: the base URL "a.b" is not an http or https address`},
		{Config{HTTP: h, Model: "m", APIKey: "a\nb"}, "Config error: the API key cannot be sent: it holds a line break or another forbidden character"},
	} {
		if _, err := Open(t.Context(), tt.cfg); err == nil || err.Error() != tt.want {
			t.Errorf("got %v, want %s", err, tt.want)
		}
	}
}

// FuzzLines feeds bytes as a stream: whatever comes, the client ends with a Done or a
// typed error.
func FuzzLines(f *testing.F) {
	f.Add(lines(say("<think>a</think>{\"name\":\"f\",\"parameters\":{}}"), done))
	f.Add(lines(`{"tool_calls":[{"function":{"name":"f","arguments":[1]}}]}`, `{"error":{"message":1}}`))
	f.Fuzz(func(t *testing.T, body string) {
		dones := 0
		c := &Client{cfg: Config{MaxLine: 1 << 16, Reasoning: len(body)%2 == 0}}
		c.url, _ = httpx.ParseURL("http://localhost")
		o := newOutput(c, model.Request{Tools: tools}, func(ch model.Chunk, _ error) bool {
			if ch.Kind == model.Done {
				dones++
			}
			return true
		})
		err := c.read(context.Background(), httpx.Request{Op: op, URL: c.url}, strings.NewReader(body), o)
		if (err == nil) != (dones == 1) {
			t.Fatalf("error %v and %d Done", err, dones)
		}
		if err != nil && fault.KindOf(err) == fault.Internal {
			t.Fatal(err)
		}
	})
}

// FuzzContent checks that how content is cut into chunks makes no difference.
func FuzzContent(f *testing.F) {
	for _, s := range []string{"<think>a</think>b", " <thi", "a</think>b", "<think>a", `{"name":"f","parameters":{}}`, "```json\n{\"name\"", "[ {\"na"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, content string) {
		if len(content) >= maxUnopened {
			return // beyond it the closing tag alone is not waited for
		}
		run := func(pieces ...string) (reasoning, text string, n int) {
			th, sn := thinking{expected: true}, newSniffer(tools)
			for _, p := range pieces {
				r, c := th.add(p)
				reasoning, text = reasoning+r, text+sn.add(c)
			}
			r, c := th.end()
			reasoning, text = reasoning+r, text+sn.add(c)
			bare, rest := sn.end()
			return reasoning, text + rest, len(bare)
		}
		r1, t1, n1 := run(content)
		r2, t2, n2 := run(strings.Split(content, "")...)
		if r1 != r2 || t1 != t2 || n1 != n2 {
			t.Fatalf("at once %q, %q, %d; in pieces %q, %q, %d", r1, t1, n1, r2, t2, n2)
		}
	})
}
