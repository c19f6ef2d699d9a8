package a3s_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	a3s "github.com/a3s-lab/liba3s"
)

// run sends a prompt and gives what the model said.
func run(t *testing.T, s *a3s.Session, prompt string) string {
	t.Helper()
	r, err := s.Send(t.Context(), prompt, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r.Text
}

// told gives what the model was told of its calls, in order.
func told(s *a3s.Session) string {
	var all strings.Builder
	for _, m := range s.History() {
		for _, b := range m.Content {
			if b.Type == "tool_result" {
				all.WriteString(b.Content + "\n")
			}
		}
	}
	return all.String()
}

// guard lets reading run, and shows only what is not secret.
type guard struct{ asked []string }

func (g *guard) Check(ctx context.Context, c a3s.PermissionCheck) (a3s.PermissionDecision, error) {
	g.asked = append(g.asked, c.Tool)
	switch {
	case c.Tool == "ls":
		return a3s.PermissionDecision{Decision: a3s.Allow}, nil
	case c.Tool == "read":
		return a3s.PermissionDecision{Decision: a3s.Deny, Reason: "not " + string(c.Args)}, nil
	}
	return a3s.PermissionDecision{Decision: a3s.Allow}, errors.New("who knows")
}

func (g *guard) Expose(_ context.Context, e a3s.PermissionExpose) (bool, error) {
	return e.Tool != "grep", nil
}

const glances = `expect Tools: [^\n]*ls
call ls {"path":"."}
call read {"file_path":"turns.txt"}
call glob {"pattern":"*"}
end
say done
end
`

func TestPermissionChecker(t *testing.T) {
	s := scripted(t, glances, nil)
	g := &guard{}
	if _, err := s.RegisterPermissionChecker(t.Context(), "guard", g); err != nil {
		t.Fatal(err)
	}
	run(t, s, "look")
	for _, want := range []string{"turns.txt", `not {"file_path":"turns.txt"}`, "who knows"} {
		if !strings.Contains(told(s), want) {
			t.Errorf("%q is not in %q", want, told(s))
		}
	}
	if strings.Join(g.asked, " ") != "ls read glob" {
		t.Error(g.asked)
	}
	plain := scripted(t, "expect Tools: [^\\n]*grep[^\\n]*\nsay hi", nil) // a function shows all tools
	f := a3s.PermissionCheckerFunc(g.Check)
	if _, err := plain.RegisterPermissionChecker(t.Context(), "guard", f); err != nil {
		t.Fatal(err)
	}
	run(t, plain, "look")
}

func TestExposedTools(t *testing.T) {
	s := scripted(t, "expect Tools: [^\\n]*grep\nsay hi", nil)
	if _, err := s.RegisterPermissionChecker(t.Context(), "guard", &guard{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Send(t.Context(), "look", nil); err == nil || !strings.Contains(err.Error(), "grep") {
		t.Errorf("grep was shown: %v", err)
	}
}

func TestContextProvider(t *testing.T) {
	s := scripted(t, "expect the moon is full\nsay hi\nend\nsay ho", nil)
	p := a3s.ContextProviderFunc(func(_ context.Context, q a3s.ContextQuery) ([]a3s.ContextItem, error) {
		if q.Query != "what is new" || q.MaxResults < 1 || q.SessionID != s.ID() {
			return nil, errors.New("another question")
		}
		return []a3s.ContextItem{{ID: "1", Content: "the moon is full"}}, nil
	})
	r, err := s.RegisterContextProvider(t.Context(), "almanac", p)
	if err != nil {
		t.Fatal(err)
	}
	run(t, s, "what is new")
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	nothing := a3s.ContextProviderFunc(func(context.Context, a3s.ContextQuery) ([]a3s.ContextItem, error) { return nil, nil })
	if _, err := s.RegisterContextProvider(t.Context(), "almanac", nothing); err != nil {
		t.Fatal(err)
	}
	run(t, s, "and now")
}

func TestCommand(t *testing.T) {
	agent, s := scriptedAgent(t, "say hi", nil)
	answer := func(_ context.Context, args string, c a3s.CommandContext) (string, error) {
		if args == "" {
			return "", errors.New("no place")
		}
		return args + " of " + c.SessionID, nil
	}
	if _, err := agent.RegisterCommand(t.Context(), "deploy", "deploys", answer, a3s.Usage("/deploy PLACE")); err != nil {
		t.Fatal(err)
	}
	if got := run(t, s, "/deploy home"); got != "home of "+s.ID() {
		t.Errorf("%q", got)
	}
	if got := run(t, s, "/deploy"); !strings.Contains(got, "no place") {
		t.Errorf("%q", got)
	}
	for _, c := range s.Commands() {
		if c.Name == "deploy" && (c.Description != "deploys" || *c.Usage != "/deploy PLACE") {
			t.Errorf("%+v", c)
		}
	}
}

func TestLog(t *testing.T) {
	s := scripted(t, "say hi", nil)
	lines := make(chan a3s.LogLine, 8)
	if _, err := s.RegisterLog(t.Context(), "file", func(_ context.Context, l a3s.LogLine) { lines <- l }, a3s.Level("warn")); err != nil {
		t.Fatal(err)
	}
	broken := a3s.ContextProviderFunc(func(context.Context, a3s.ContextQuery) ([]a3s.ContextItem, error) {
		return nil, errors.New("no almanac")
	})
	if _, err := s.RegisterContextProvider(t.Context(), "almanac", broken); err != nil {
		t.Fatal(err)
	}
	run(t, s, "hello")
	if l := <-lines; l.Level != "warn" || l.SessionID != s.ID() || !strings.Contains(l.Message, "no almanac") {
		t.Errorf("%+v", l)
	}
}

func TestModel(t *testing.T) {
	agent, _ := scriptedAgent(t, "say hi", nil)
	var mu sync.Mutex
	var asked []a3s.ModelRequest
	answer := func(ctx context.Context, r a3s.ModelRequest, say *a3s.ModelAnswer) (a3s.ModelResult, error) {
		mu.Lock()
		asked = append(asked, r)
		n := len(asked)
		mu.Unlock()
		switch n {
		case 1:
			return a3s.ModelResult{}, errors.Join(say.Reasoning("hm"), say.Text("I "), say.Text("look"), say.ToolCall("", "ls", nil), say.ToolCall("c2", "ls", map[string]any{"path": "."}))
		case 2:
			return a3s.ModelResult{Text: "done", Usage: a3s.TokenUsage{PromptTokens: 3, CompletionTokens: 1, TotalTokens: 4}}, nil
		case 3:
			if say.ToolCall("", "ls", func() {}) == nil {
				return a3s.ModelResult{}, errors.New("a function was taken for arguments")
			}
			return a3s.ModelResult{}, &a3s.ExtensionError{Message: "tired", Retryable: true}
		case 4:
			return a3s.ModelResult{}, errors.New("very tired")
		}
		<-ctx.Done()
		return a3s.ModelResult{}, ctx.Err()
	}
	if _, err := agent.RegisterModel(t.Context(), "mine", a3s.ModelFunc(answer), a3s.ContextTokens(50000), a3s.OutputTokens(99)); err != nil {
		t.Fatal(err)
	}
	s, err := agent.Session(t.Context(), t.TempDir(), &a3s.SessionOptions{Model: a3s.Ptr("host/mine")})
	if err != nil {
		t.Fatal(err)
	}
	if got := run(t, s, "hello"); got != "done" {
		t.Errorf("%q", got)
	}
	if first := asked[0]; first.Model != "mine" || first.Messages[0].Text() != "hello" || len(first.Tools) == 0 || first.MaxTokens != 99 || first.SessionID != s.ID() {
		t.Errorf("%+v", first)
	}
	var e *a3s.Error
	if _, err := s.Send(t.Context(), "again", nil); code(t, err) != "LLM_ERROR" || !errors.As(err, &e) || !strings.Contains(err.Error(), "very tired") {
		t.Error(err)
	}
	if len(asked) != 4 { // the retryable failure was retried
		t.Errorf("asked %d times", len(asked))
	}
	r, err := s.Start("last", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Cancel("enough")
	if _, err := r.Wait(t.Context()); code(t, err) != "CANCELLED" {
		t.Error(err)
	}
}

// What is nil, and an option of another kind, are refused by every registration.
func unasked(context.Context, a3s.ModelRequest, *a3s.ModelAnswer) (a3s.ModelResult, error) {
	panic("a model that was refused is asked")
}

func TestTypedRegistrationsRefuse(t *testing.T) {
	agent, s := scriptedAgent(t, "say hi", nil)
	ctx := t.Context()
	text := func(context.Context, string, a3s.CommandContext) (string, error) { return "", nil }
	write := func(context.Context, a3s.LogLine) {}
	checks := []func() (*a3s.Registration, error){
		func() (*a3s.Registration, error) { return s.RegisterPermissionChecker(ctx, "x", nil) },
		func() (*a3s.Registration, error) {
			return s.RegisterPermissionChecker(ctx, "x", a3s.PermissionCheckerFunc(nil))
		},
		func() (*a3s.Registration, error) { return s.RegisterPermissionChecker(ctx, "x", (*guard)(nil)) },
		func() (*a3s.Registration, error) {
			return s.RegisterPermissionChecker(ctx, "x", &guard{}, a3s.ReadOnly())
		},
		func() (*a3s.Registration, error) { return s.RegisterContextProvider(ctx, "x", nil) },
		func() (*a3s.Registration, error) { return s.RegisterCommand(ctx, "x", "", nil) },
		func() (*a3s.Registration, error) { return s.RegisterCommand(ctx, "x y", "", text) },
		func() (*a3s.Registration, error) { return s.RegisterLog(ctx, "x", nil) },
		func() (*a3s.Registration, error) { return s.RegisterLog(ctx, "x", write, a3s.Level("loud")) },
		func() (*a3s.Registration, error) { return s.RegisterLog(ctx, "x", write, a3s.Timeout(-1)) },
		func() (*a3s.Registration, error) { return s.RegisterTool(ctx, nil) },
		func() (*a3s.Registration, error) { return agent.RegisterModel(ctx, "x", nil) },
		func() (*a3s.Registration, error) {
			return agent.RegisterModel(ctx, "x", a3s.ModelFunc(unasked), a3s.OutputTokens(-1))
		},
		func() (*a3s.Registration, error) {
			return agent.RegisterModel(ctx, "x", a3s.ModelFunc(unasked), a3s.ContextTokens(-1))
		},
		func() (*a3s.Registration, error) { return agent.RegisterTransport(ctx, "x", nil) },
		func() (*a3s.Registration, error) {
			_, err := agent.RegisterSessionStore(ctx, "x", nil)
			return nil, err
		},
		func() (*a3s.Registration, error) { _, err := agent.RegisterWorkspace(ctx, "x", nil); return nil, err },
	}
	for i, check := range checks {
		if _, err := check(); code(t, err) != "INVALID_REQUEST" {
			t.Errorf("%d: %v", i, err)
		}
	}
	if _, err := a3s.NewTool[greeting, string]("x", "", nil); code(t, err) != "INVALID_REQUEST" {
		t.Error(err)
	}
}

// A tool may answer with more than a text.
func TestToolResults(t *testing.T) {
	type none struct{}
	tool := func(v any) func(context.Context, none, func(string)) (any, error) {
		return func(context.Context, none, func(string)) (any, error) { return v, nil }
	}
	for want, v := range map[string]any{
		`{"a":1}`: map[string]int{"a": 1},
		"null":    nil,
		"whole":   a3s.ToolOutput{Text: "whole", ExitCode: 3, Metadata: map[string]any{"k": "v"}, ErrorKind: &a3s.ErrorKind{Type: "not_found"}},
		"pointer": &a3s.ToolOutput{Text: "pointer"},
		"raw":     "raw",
	} {
		s := scripted(t, "say hi", nil)
		made, err := a3s.NewTool("mine", "", tool(v), a3s.ReadOnly(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.RegisterTool(t.Context(), made); err != nil {
			t.Fatal(err)
		}
		r, err := s.Tool(t.Context(), "mine", json.RawMessage(`{}`))
		if err != nil || r.Output != want {
			t.Errorf("%v: %+v, %v", v, r, err)
		}
		if whole := want == "whole"; whole != (r.ExitCode == 3) || whole != (r.Metadata["k"] == "v") || whole != (r.ErrorKind != nil && r.ErrorKind.Type == "not_found") {
			t.Errorf("%v: %+v", v, r)
		}
	}
}
