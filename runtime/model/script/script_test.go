package script

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/model"
	"github.com/a3s-lab/liba3s/runtime/model/modeltest"
)

func open(t *testing.T, text string) *Client {
	t.Helper()
	c, err := Open(context.Background(), Config{Text: text})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// play gives the chunks of one call in short form, and its error.
func play(ctx context.Context, c *Client, req model.Request) (got []string, err error) {
	kinds := map[model.ChunkKind]string{model.TextDelta: "text ", model.ReasoningDelta: "think ", model.ToolInput: "input "}
	for chunk, e := range c.Stream(ctx, req) {
		switch {
		case e != nil:
			err = e
		case chunk.Kind == model.ToolStart:
			got = append(got, "call "+chunk.Name)
		case chunk.Kind == model.Done:
			got = append(got, "done "+string(chunk.Stop))
		default:
			got = append(got, kinds[chunk.Kind]+chunk.Text)
		}
	}
	return got, err
}

func TestPlay(t *testing.T) {
	req := model.Request{System: "be kind", Messages: []chat.Message{
		chat.Say(chat.User, "what is in a.txt?"),
		{Role: chat.Assistant, Content: []chat.Block{{Type: chat.ToolUse, ID: "1", Name: "read"}}},
		{Role: chat.Tool, Content: []chat.Block{{Type: chat.ToolResult, ToolUseID: "1", Content: "forty-two"}}},
	}}
	llm := func(format string, args ...any) *fault.Error { return fault.Of(fault.CodeLLM, op, format, args...) }
	type want struct {
		chunks []string
		err    *fault.Error
	}
	tests := []struct {
		name   string
		script string
		want   []want
	}{
		{"words keep their blanks", "say Hello  big world", []want{{[]string{"text Hello  ", "text big ", "text world", "done end_turn"}, nil}}},
		{"lines join, order stays", "think hm\nsay a b\r\nsay c\n  call f {\"a\": 1}\nsay d\ncall g\nend\n", []want{
			{[]string{"think hm", "text a ", "text b", "text \n", "text c", "call f", `input {"a": 1}`, "text d", "call g", "done tool_use"}, nil}}},
		{"arguments stay as written", `call f {"a":  [1,`, []want{{[]string{"call f", `input {"a":  [1,`, "done tool_use"}, nil}}},
		{"turns go on over calls", "# first\nsay a\nend\n\nend\nsay b", []want{
			{[]string{"text a", "done end_turn"}, nil}, {[]string{"done end_turn"}, nil}, {[]string{"text b", "done end_turn"}, nil},
			{nil, llm("script has no more turns: all 3 were played")}}},
		{"failures close their turn", "say a\nfail retryable busy\nend\nfail provider broken\nfail context too big\nfail denied no\nsay ok", []want{
			{[]string{"text a"}, llm("busy").Retry()}, {nil, llm("broken")}, {nil, fault.Of(fault.CodeContext, op, "too big")},
			{nil, fault.New(fault.Denied, op, "no")}, {[]string{"text ok", "done end_turn"}, nil}}},
		{"cut ends without an end", "say a\nfail cut", []want{{[]string{"text a"}, nil}}},
		{"expect sees the whole request", "expect be kind\nexpect forty-two$\nexpect (?s)a\\.txt.*forty\nsay ok", []want{{[]string{"text ok", "done end_turn"}, nil}}},
		{"expect says what differed", "say a\nexpect forty-three", []want{{[]string{"text a"},
			llm("line 2: the request does not match \"forty-three\"; it ends with \"be kind\\nwhat is in a.txt?\\nforty-two\"").With("reason", "expectation").With("line", 2)}}},
		{"an empty script", "# nothing\n", []want{{nil, llm("script has no more turns: all 0 were played")}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := open(t, tt.script)
			for i, w := range tt.want {
				got, err := play(context.Background(), c, req)
				if !reflect.DeepEqual(got, w.chunks) {
					t.Fatalf("turn %d: got %q, want %q", i, got, w.chunks)
				}
				if (w.err == nil) != (err == nil) || err != nil && !reflect.DeepEqual(err, error(w.err)) {
					t.Fatalf("turn %d: got %#v, want %#v", i, err, w.err)
				}
			}
		})
	}
}

func TestUsage(t *testing.T) {
	c := open(t, "say 12345678\ncall abcd {}")
	a, err := model.Collect(context.Background(), c.Stream(context.Background(), model.Request{Messages: []chat.Message{chat.Say(chat.User, "12345678")}}), nil)
	want := chat.Usage{PromptTokens: 2, CompletionTokens: 3, TotalTokens: 5}
	if err != nil || a.Usage != want || a.Meta != (model.Meta{Provider: "script", RequestModel: "main", ResponseModel: "main"}) {
		t.Fatalf("got %+v, %v", a, err)
	}
}

func TestParseErrors(t *testing.T) {
	tests := []struct{ script, want string }{
		{"say a\n\nshout b", `Config error: line 3: unknown step "shout"; steps are say, think, call, wait, expect, fail and end`},
		{"call ", `Config error: line 1: call needs the name of a tool`},
		{"wait soon", `Config error: line 1: wait needs a number of milliseconds, not "soon"`},
		{"wait -1", `Config error: line 1: wait needs a number of milliseconds, not "-1"`},
		{"expect (", "Config error: line 1: expect needs a regular expression: error parsing regexp: missing closing ): `(`"},
		{"fail oops x", `Config error: line 1: fail needs an error kind, retryable, cut or context, not "oops"`},
		{"end it", `Config error: line 1: end stands alone, not before "it"`},
		{"say \xff", "Config error: the script is not valid UTF-8"},
	}
	for _, tt := range tests {
		_, err := Open(context.Background(), Config{Text: tt.script})
		if err == nil || err.Error() != tt.want || !errors.Is(err, fault.Of(fault.CodeConfig, "", "")) {
			t.Errorf("%q: got %v, want %s", tt.script, err, tt.want)
		}
	}
}

func TestWaitAndCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, "wait 250\nsay a\nend\nwait 60000\nsay b")
		start := time.Now()
		if got, err := play(t.Context(), c, model.Request{}); err != nil || len(got) != 2 || time.Since(start) != 250*time.Millisecond {
			t.Fatalf("got %q, %v after %v", got, err, time.Since(start))
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if got, err := play(ctx, c, model.Request{}); fault.KindOf(err) != fault.Cancelled || got != nil {
			t.Fatalf("got %q, %v", got, err)
		}
	})
	t.Run("a cancelled call takes no turn", func(t *testing.T) {
		c := open(t, "say a")
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := play(ctx, c, model.Request{}); fault.KindOf(err) != fault.Cancelled {
			t.Fatalf("got %v", err)
		}
		if got, err := play(context.Background(), c, model.Request{}); err != nil || len(got) != 2 {
			t.Fatalf("got %q, %v", got, err)
		}
	})
	t.Run("leaving early", func(t *testing.T) {
		for range open(t, "say a b c").Stream(context.Background(), model.Request{}) {
			break
		}
	})
}

// FuzzOpen checks that a script is either refused or plays to its end, and that the
// words of a say add up to its text.
func FuzzOpen(f *testing.F) {
	f.Add("say a b\ncall f {}\nend\nfail cut\n# c\nexpect .*\nthink x")
	f.Add("fail retryable a\nend\nend")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "wait") {
			return
		}
		c, err := Open(context.Background(), Config{Text: text})
		if err != nil {
			if fault.From("", err).Code != fault.CodeConfig {
				t.Fatal(err)
			}
			return
		}
		for range c.turns {
			_, _ = play(context.Background(), c, model.Request{})
		}
		if strings.Join(split(text), "") != text {
			t.Fatalf("%q was split into %q", text, split(text))
		}
	})
}

func TestSuite(t *testing.T) {
	modeltest.Run(t, modeltest.Features{Reasoning: true, Malformed: true}, func(t *testing.T, turns ...modeltest.Turn) model.Client {
		var b strings.Builder
		line := func(verb, text string) {
			for l := range strings.Lines(text) {
				b.WriteString(verb + " " + strings.TrimSuffix(l, "\n") + "\n")
			}
		}
		for _, turn := range turns {
			line("think", turn.Reasoning)
			line("say", turn.Text)
			for _, c := range turn.Calls {
				b.WriteString("call " + c.Name + " " + c.Args + "\n")
			}
			b.WriteString(map[modeltest.Fail]string{
				modeltest.None: "end\n", modeltest.Cut: "fail cut\n", modeltest.Hang: "wait 60000\nend\n",
				modeltest.Busy: "fail retryable busy\n", modeltest.Reject: "fail provider no\n"}[turn.Fail])
		}
		return open(t, b.String())
	})
}
