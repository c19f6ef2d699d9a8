package extensions

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/host"
	"github.com/a3s-lab/liba3s/runtime/session"
)

const hostModel = `default_model = "host/mine"`

func TestModelStreams(t *testing.T) {
	p := start(t, hostModel, map[string]string{"a.txt": "hello\n"})
	turn := 0
	p.on("model/stream", func(a asked) (any, error) {
		if turn++; turn == 1 {
			want(t, "model", a.param("model"), "mine")
			for _, c := range []object{{"reasoning": "hm"}, {"text": "Let me "}, {"text": "look."}, {"tool_call": object{"id": "w1", "name": "read", "arguments": object{"file_path": "a.txt"}}}} {
				if err := a.chunk(c); err != nil {
					t.Error(err)
				}
			}
			return object{"text": "Let me look.", "usage": object{"prompt_tokens": 10, "completion_tokens": 5}}, nil
		}
		return object{"text": "It says hello.", "usage": object{"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25}}, nil
	})
	p.register("model", object{"name": "mine", "context": 50_000})
	s := p.session(nil)
	r := p.run(s, "what is in a.txt?")
	if r.err != nil || r.text != "It says hello." {
		t.Fatalf("%q, %v", r.text, r.err)
	}
	want(t, "events", r.types(), []string{
		"agent_start", "turn_start", "reasoning_delta", "text_delta", "tool_start", "tool_input_delta", "tool_execution_start", "tool_end",
		"turn_end", "turn_start", "text_delta", "turn_end", "agent_end",
	})
	want(t, "usage", r.payload("agent_end")["usage"].(object)["total_tokens"], 40)
	if h := s.History(); len(h) != 4 || h[1].Text() != "Let me look." || h[1].ReasoningContent != "hm" || h[1].Calls()[0].WireID != "w1" {
		t.Errorf("history %+v", h)
	}
	want(t, "info", s.Info().Model, "host/mine")
}

func TestModelAnswers(t *testing.T) {
	big := strings.Repeat("x", 17<<20)
	for _, c := range []struct {
		name    string
		chunks  []any
		result  any
		err     error
		text    string
		failure string // in the message
		retry   bool
		asks    int // with a model that may be tried twice
	}{
		{name: "chunks alone", chunks: []any{object{"text": "all"}}, result: object{}, text: "all"},
		{name: "null ends it", chunks: []any{object{"text": "all"}}, result: nil, text: "all"},
		{name: "the rest", chunks: []any{object{"text": "one "}}, result: object{"text": "one two"}, text: "one two"},
		{name: "said otherwise", chunks: []any{object{"text": "one"}}, result: object{"text": "two"}, text: "one"},
		{name: "arguments as text", chunks: nil, result: object{"tool_calls": []object{{"name": "nope", "arguments": "{}"}}}, text: "", failure: "still calling"},
		{name: "unknown key", result: object{"txt": "x"}, failure: "unknown field"},
		{name: "wrong type", result: object{"text": 5}, failure: "cannot be read"},
		{name: "bad stop", result: object{"text": "x", "stop": "whim"}, failure: "whim"},
		{name: "negative usage", result: object{"text": "x", "usage": object{"prompt_tokens": -1}}, failure: "fewer than 0"},
		{name: "empty answer", result: object{}, failure: "empty answer"},
		{name: "two in a chunk", chunks: []any{object{"text": "a", "reasoning": "b"}}, result: object{}, failure: "exactly one"},
		{name: "nothing in a chunk", chunks: []any{object{}}, result: object{}, failure: "exactly one"},
		{name: "a list for a chunk", chunks: []any{raw("[]")}, result: object{}, failure: "cannot be read"},
		{name: "a call without a name", chunks: []any{object{"tool_call": object{"arguments": object{}}}}, result: object{}, failure: "needs a name"},
		{name: "too much", result: object{"text": big}, failure: "bytes"},
		{name: "raises", err: errors.New("no network"), failure: "ValueError: no network"},
		{name: "raises, may be tried again", err: &host.Failure{Type: "Busy", Message: "later", Retryable: true}, failure: "Busy: later", retry: true, asks: 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := start(t, hostModel, nil)
			p.on("model/stream", func(a asked) (any, error) {
				for _, x := range c.chunks {
					_ = a.chunk(x)
				}
				return c.result, c.err
			})
			p.register("model", object{"name": "mine"})
			r := p.run(p.session(object{"circuit_breaker_threshold": max(c.asks, 1), "max_tool_rounds": 1}), "hi")
			if c.failure == "" {
				if r.err != nil || r.text != c.text {
					t.Fatalf("%q, %v", r.text, r.err)
				}
				return
			}
			f := wantError(t, "run", r.err, fault.CodeLLM, c.failure)
			if f.Retryable != c.retry || c.asks > 0 && p.heard("model", "stream") != c.asks {
				t.Errorf("retryable %v, asked %d times", f.Retryable, p.heard("model", "stream"))
			}
		})
	}
}

func TestModelComplete(t *testing.T) {
	p := start(t, `default_model = "host/mine"
providers "host" { models "mine" { limit = { context = 4096 } } }`, nil)
	p.on("model/complete", func(a asked) (any, error) {
		tools, _ := a.param("tools").([]any)
		want(t, "tools", len(tools), 0)
		return object{"text": "done"}, nil
	})
	p.register("model", object{"name": "mine", "stream": false, "tool_call": false})
	s := p.session(nil)
	if !strings.Contains(s.Info().InitWarning, "cannot call tools") {
		t.Errorf("warning %q", s.Info().InitWarning)
	}
	if r := p.run(s, "hi"); r.text != "done" || r.err != nil {
		t.Fatalf("%q %v", r.text, r.err)
	}
}

func TestModelTimeouts(t *testing.T) {
	for name, c := range map[string]struct{ spec, options object }{
		"of the description": {object{"name": "mine", "timeout_ms": 40}, object{"circuit_breaker_threshold": 2}},
		"of the session":     {object{"name": "mine"}, object{"circuit_breaker_threshold": 2, "llm_api_timeout_ms": 40}},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, hostModel, nil)
			p.on("model/stream", func(asked) (any, error) { return nil, errSilent })
			p.register("model", c.spec)
			r := p.run(p.session(c.options), "hi")
			f := wantError(t, "run", r.err, fault.CodeLLM, "within 40ms")
			if !f.Retryable || p.heard("model", "stream") != 2 {
				t.Errorf("retryable %v after %d requests", f.Retryable, p.heard("model", "stream"))
			}
			p.withdraws("model", "timeout")
		})
	}
}

// A cancelled run withdraws the request, and a reply that comes later finds nothing.
func TestModelCancelled(t *testing.T) {
	p := start(t, hostModel, nil)
	late := make(chan error, 1)
	p.on("model/stream", func(a asked) (any, error) {
		_ = a.chunk(object{"text": "half"})
		<-a.ctx.Done()
		late <- p.agent.Reply(a.Request, []byte(`{"result":{}}`))
		return nil, errSilent
	})
	p.register("model", object{"name": "mine"})
	s := p.session(nil)
	r, err := s.Start(session.Prompt{Text: "hi"})
	if err != nil {
		t.Fatal(err)
	}
	p.until("the request", func() bool { return len(p.requests) > 0 })
	for s.Info(); len(s.RunEvents(r.ID())) < 3; {
	}
	r.Cancel("enough")
	out := p.finish(r)
	wantError(t, "run", out.err, fault.CodeCancelled)
	if kind := fault.KindOf(<-late); kind != fault.NotFound {
		t.Errorf("a late reply met %q", kind)
	}
	p.withdraws("model", "cancelled")
	if h := s.History(); len(h) != 2 || !h[1].Partial || h[1].Text() != "half" {
		t.Errorf("history %+v", h)
	}
}

func TestModelNotRegistered(t *testing.T) {
	p := start(t, hostModel, nil)
	_, err := p.trySession(nil)
	wantError(t, "open", err, fault.CodeSessionConfig, "'model'", "registered no model", "before the session opens")
	s0 := start(t, `default_model = "offline/search"`, nil)
	s := s0.session(nil)
	_, err = s0.tryRegister("model", object{"name": "mine"}, s)
	wantError(t, "register", err, fault.CodeInvalidRequest, "with the agent, before the session")
}

// A host that is not there fails at once, and one that leaves while it is waited for too.
func TestModelHostGone(t *testing.T) {
	p := deaf(t, hostModel, nil)
	p.register("model", object{"name": "mine"})
	r := p.run(p.session(nil), "hi")
	wantError(t, "no stream", r.err, fault.CodeLLM, "no control stream")

	p = start(t, hostModel, nil)
	p.on("model/stream", func(asked) (any, error) {
		p.stream.Close()
		return nil, errSilent
	})
	p.register("model", object{"name": "mine"})
	r = p.run(p.session(nil), "hi")
	f := wantError(t, "left", r.err, fault.CodeLLM, "closed its control stream")
	if f.Retryable {
		t.Error("a host that is gone is worth no retry")
	}
}

// While the host answers it may use the library, the same session included.
func TestModelReentrant(t *testing.T) {
	p := start(t, hostModel, nil)
	var s *session.Session
	p.on("model/stream", func(asked) (any, error) {
		if n := len(s.History()); n != 1 {
			t.Errorf("history of %d", n)
		}
		if _, err := s.Start(session.Prompt{Text: "another"}); fault.KindOf(err) != fault.Busy {
			t.Errorf("a second run: %v", err)
		}
		res, err := s.Tool(bg, "ls", json.RawMessage(`{}`))
		if err != nil || res.ExitCode != 0 {
			t.Errorf("%+v %v", res, err)
		}
		return object{"text": "done"}, nil
	})
	p.register("model", object{"name": "mine"})
	s = p.session(nil)
	if r := p.run(s, "hi"); r.text != "done" {
		t.Fatal(r.err)
	}
}

func TestModelTakenBack(t *testing.T) {
	p := start(t, hostModel, nil)
	p.on("model/stream", func(asked) (any, error) { return object{"text": "done"}, nil })
	reg := p.register("model", object{"name": "mine"})
	s := p.session(nil)
	if err := reg.Close(); err != nil {
		t.Fatal(err)
	}
	if err := reg.Close(); err != nil {
		t.Errorf("a second close: %v", err)
	}
	wantError(t, "run", p.run(s, "hi").err, fault.CodeLLM, "took its model")
	p.register("model", object{"name": "mine"}) // the name is free again
	_, err := p.tryRegister("model", object{"name": "mine"})
	wantError(t, "twice", err, fault.CodeAlreadyExists)
}

// Exactly one reply counts.
func TestSecondReply(t *testing.T) {
	p := start(t, hostModel, nil)
	second := make(chan error, 2)
	p.on("model/stream", func(a asked) (any, error) {
		if err := p.agent.Reply(a.Request, []byte(`{"result":{"text":"first"}}`)); err != nil {
			t.Error(err)
		}
		second <- p.agent.Reply(a.Request, []byte(`{"result":{"text":"second"}}`))
		second <- a.chunk(object{"text": "late"})
		return nil, errSilent
	})
	p.register("model", object{"name": "mine"})
	r := p.run(p.session(nil), "hi")
	want(t, "text", r.text, "first")
	for range 2 {
		if kind := fault.KindOf(<-second); kind != fault.NotFound {
			t.Errorf("a second answer met %q", kind)
		}
	}
}
