package a3s_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	a3s "github.com/a3s-lab/liba3s"
)

// object is JSON in the words of a test.
type object = map[string]any

// handling gives the handlers of a kind with one operation.
func handling(op string, h a3s.Handler) map[string]a3s.Handler { return map[string]a3s.Handler{op: h} }

// answering is a handler with one answer.
func answering(result any, err error) a3s.Handler {
	return func(context.Context, json.RawMessage, func(any) error) (any, error) { return result, err }
}

// allowAll lets every call run.
func allowAll() *a3s.SessionOptions {
	return &a3s.SessionOptions{PermissionPolicy: &a3s.PermissionPolicy{DefaultDecision: "allow"}}
}

type Worn struct{ error }

// mean panics wherever it can.
type mean struct{}

func (mean) MarshalJSON() ([]byte, error) { panic("mean") }
func (mean) Error() string                { panic("mean") }

func TestWhatAHandlerAnswers(t *testing.T) {
	cases := []struct {
		name string
		h    a3s.Handler
		want string
	}{
		{"a struct", answering(struct {
			Output string `json:"output"`
		}{"one"}, nil), "one"},
		{"raw", answering(json.RawMessage(`{"output": "two"}`), nil), "two"},
		{"a number", answering(json.RawMessage(`5`), nil), `an answer that cannot be read`},
		{"nothing", answering(nil, nil), `an answer that cannot be read`},
		{"no JSON", answering(json.RawMessage(`{"output":`), nil), "InvalidReply: the answer is not valid JSON"},
		{"no UTF-8", answering(json.RawMessage("\"\xff\""), nil), "InvalidReply: the answer is not valid UTF-8"},
		{"what cannot be encoded", answering(func() {}, nil), "InvalidReply: json: unsupported type"},
		{"what panics when it is encoded", answering(mean{}, nil), "InvalidReply: panic: mean"},
		{"an error that panics", answering(nil, mean{}), "InvalidReply: panic: mean"},
		{"a plain error", answering(nil, errors.New("no voice")), "Tool execution error: Error: no voice"},
		{"an error with a type", answering(nil, fmt.Errorf("the shoe: %w", Worn{errors.New("is worn")})), "Worn: the shoe: is worn"},
		{"an error of files", answering(nil, &fs.PathError{Op: "open", Path: "x", Err: fs.ErrNotExist}), "PathError: open x: file does not exist"},
		{"an error of the library", answering(nil, &a3s.Error{Code: "LLM_ERROR", Message: "tired"}), "LLM_ERROR: LLM error: tired"},
		{"a failure", answering(nil, &a3s.ExtensionError{Type: "Tired", Message: "later"}), "Tired: later"},
		{"a failure without a type", answering(nil, &a3s.ExtensionError{Message: "later"}), "Error: later"},
		{"a failure with words", answering(nil, fmt.Errorf("today: %w", &a3s.ExtensionError{Type: "Tired", Message: "later"})), "Tired: today: Tired: later"},
		{"a panic", func(context.Context, json.RawMessage, func(any) error) (any, error) { panic("ouch") }, "Tool execution error: panic: ouch"},
		{"the end of its goroutine", func(context.Context, json.RawMessage, func(any) error) (any, error) {
			runtime.Goexit()
			return nil, nil
		}, "the goroutine of the handler was ended"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := scripted(t, "call speak {}\nend\nsay done", allowAll())
			if _, err := s.RegisterExtension(t.Context(), "tool", object{"name": "speak"}, handling("call", c.h)); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Send(t.Context(), "go", nil); err != nil {
				t.Fatal(err)
			}
			if got := s.History()[2].Content[0].Content; !strings.Contains(got, c.want) {
				t.Errorf("the model was told %q, want %q", got, c.want)
			}
		})
	}
}

// A kind is asked for an operation that nobody answers.
func TestAnOperationWithoutAFunction(t *testing.T) {
	s := scripted(t, "call speak {}\nend\nsay done", allowAll())
	if _, err := s.RegisterExtension(t.Context(), "tool", object{"name": "speak"}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Send(t.Context(), "go", nil); err != nil {
		t.Fatal(err)
	}
	if got := s.History()[2].Content[0].Content; !strings.Contains(got, "no function answers operation call of tool speak") {
		t.Errorf("%q", got)
	}
}

// Pieces come in order; a handler knows what it is asked, and may use the library: the
// same session, and others.
func TestAHandlerUsesTheLibrary(t *testing.T) {
	s := scripted(t, "call count {}\nend\nsay done\nend\nsay inner", allowAll())
	h := func(ctx context.Context, _ json.RawMessage, chunk func(any) error) (any, error) {
		r, ok := a3s.HostRequestFrom(ctx)
		deadline, bounded := ctx.Deadline()
		if !ok || r.Kind != "tool" || r.Name != "count" || r.Operation != "call" || r.SessionID != s.ID() || !bounded || !deadline.Equal(r.Deadline) || time.Until(deadline) > 10*time.Minute {
			return nil, fmt.Errorf("it was asked %+v", r)
		}
		for i := range 100 {
			if err := chunk(object{"delta": fmt.Sprint(i)}); err != nil {
				return nil, err
			}
		}
		listed, err := s.Tool(ctx, "ls", object{"path": "."})
		if err != nil {
			return nil, err
		}
		if _, err := s.Start("more", nil); !errors.Is(err, &a3s.Error{Code: "SESSION_BUSY"}) {
			return nil, fmt.Errorf("a second run: %v", err)
		}
		return object{"output": listed.Output}, nil
	}
	if _, err := s.RegisterExtension(t.Context(), "tool", object{"name": "count"}, handling("call", h)); err != nil {
		t.Fatal(err)
	}
	var told strings.Builder
	for e, err := range s.Stream(t.Context(), "go") {
		if err != nil {
			t.Fatal(err)
		}
		if e.Type == "tool_output_delta" {
			var p struct{ Delta string }
			_ = json.Unmarshal(e.Payload, &p)
			told.WriteString(p.Delta)
		}
	}
	var want strings.Builder
	for i := range 100 {
		fmt.Fprint(&want, i)
	}
	if told.String() != want.String() {
		t.Errorf("pieces %q", told.String())
	}
	if got := s.History()[2].Content[0].Content; !strings.Contains(got, "turns.txt") {
		t.Errorf("the tool said %q", got)
	}
	if _, ok := a3s.HostRequestFrom(t.Context()); ok {
		t.Error("a request where there is none")
	}
}

// The end of the asker reaches the handler with its reason; what it says then does not count.
func TestAHandlerIsCancelled(t *testing.T) {
	for reason, end := range map[string]func(*a3s.Session){
		"cancelled": func(s *a3s.Session) { s.Cancel() },
		"timeout":   func(*a3s.Session) {},
	} {
		t.Run(reason, func(t *testing.T) {
			s := scripted(t, "call wait {}\nend\nsay done", allowAll())
			begun, cause := make(chan struct{}), make(chan error, 1)
			h := func(ctx context.Context, _ json.RawMessage, chunk func(any) error) (any, error) {
				close(begun)
				<-ctx.Done()
				cause <- context.Cause(ctx)
				cause <- chunk(object{"delta": "too late"})
				return object{"output": "too late"}, nil
			}
			spec := object{"name": "wait", "timeout_ms": 600_000}
			if reason == "timeout" {
				spec["timeout_ms"] = 20
			}
			if _, err := s.RegisterExtension(t.Context(), "tool", spec, handling("call", h)); err != nil {
				t.Fatal(err)
			}
			r, err := s.Start("go", nil)
			if err != nil {
				t.Fatal(err)
			}
			<-begun
			end(s)
			var e *a3s.Error
			if err := <-cause; !errors.As(err, &e) || e.Details["reason"] != reason {
				t.Errorf("the cause is %v", err)
			}
			if err := <-cause; err == nil {
				t.Error("a late piece was taken")
			}
			_, _ = r.Wait(t.Context())
			for _, m := range s.History() {
				for _, b := range m.Content {
					if strings.Contains(b.Content, "too late") {
						t.Errorf("the model was told %q", b.Content)
					}
				}
			}
		})
	}
}

func TestRegistrations(t *testing.T) {
	agent, s := scriptedAgent(t, "say hi", nil)
	register := func(kind string, spec any) (*a3s.Registration, error) {
		return agent.RegisterExtension(t.Context(), kind, spec, handling("call", answering(object{"output": "x"}, nil)))
	}
	r, err := register("tool", object{"name": "mine"})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.Tool(t.Context(), "mine", nil); err != nil || got.Output != "x" {
		t.Errorf("%+v, %v", got, err)
	}
	dead, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		name string
		code a3s.Code
		do   func() error
	}{
		{"a kind that is not built", "UNSUPPORTED_OPERATION", func() error { _, err := register("hook", object{}); return err }},
		{"no kind", "UNSUPPORTED_OPERATION", func() error { _, err := register("", object{}); return err }},
		{"a name that is taken", "ALREADY_EXISTS", func() error { _, err := register("tool", object{"name": "mine"}); return err }},
		{"no name", "INVALID_REQUEST", func() error { _, err := register("tool", nil); return err }},
		{"no object", "INVALID_REQUEST", func() error { _, err := register("tool", 5); return err }},
		{"what cannot be encoded", "INVALID_REQUEST", func() error { _, err := register("tool", make(chan int)); return err }},
		{"a deep one", "INVALID_REQUEST", func() error {
			_, err := register("tool", json.RawMessage(strings.Repeat("[", 100)+strings.Repeat("]", 100)))
			return err
		}},
		{"no function", "INVALID_REQUEST", func() error {
			_, err := s.RegisterExtension(t.Context(), "tool", object{"name": "other"}, handling("call", nil))
			return err
		}},
		{"an early kind of a session", "INVALID_REQUEST", func() error {
			_, err := s.RegisterExtension(t.Context(), "model", object{"name": "m"}, nil)
			return err
		}},
		{"a context that has ended", "CANCELLED", func() error {
			_, err := s.RegisterExtension(dead, "tool", object{"name": "other"}, nil)
			return err
		}},
	} {
		if err := c.do(); code(t, err) != c.code {
			t.Errorf("%s: %v, want %s", c.name, err, c.code)
		}
	}
	for range 2 {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	if got, err := s.Tool(t.Context(), "mine", nil); err != nil || got.ExitCode == 0 {
		t.Errorf("after Close: %+v, %v", got, err)
	}
	if err := agent.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := register("tool", object{"name": "late"}); code(t, err) != "SESSION_CLOSED" {
		t.Error(err)
	}
}

// Extensions come and go while they are used, from many goroutines; what is asked of one
// that is taken back ends at once.
func TestExtensionsComeAndGo(t *testing.T) {
	agent, s := scriptedAgent(t, "say hi", nil)
	var all sync.WaitGroup
	for i := range 8 {
		name := fmt.Sprint("tool", i)
		all.Go(func() {
			for range 20 {
				r, err := agent.RegisterExtension(t.Context(), "tool", object{"name": name}, handling("call", answering(object{"output": name}, nil)))
				if err != nil {
					t.Error(err)
					return
				}
				if got, err := s.Tool(t.Context(), name, nil); err != nil || got.Output != name {
					t.Errorf("%+v %v", got, err)
				}
				if err := r.Close(); err != nil {
					t.Error(err)
				}
				if got, err := s.Tool(t.Context(), name, nil); err != nil || got.ExitCode == 0 {
					t.Errorf("after Close: %+v %v", got, err)
				}
			}
		})
	}
	all.Wait()
}

// A handler that is asked when its registration, its session or its agent is closed hears
// of it, and who asked gets a failure.
func TestCloseWhileAHandlerIsAsked(t *testing.T) {
	for name, end := range map[string]func(*a3s.Agent, *a3s.Session, *a3s.Registration) error{
		"registration": func(_ *a3s.Agent, _ *a3s.Session, r *a3s.Registration) error { return r.Close() },
		"session":      func(_ *a3s.Agent, s *a3s.Session, _ *a3s.Registration) error { return s.Close(context.Background()) },
		"agent":        func(a *a3s.Agent, _ *a3s.Session, _ *a3s.Registration) error { return a.Close(context.Background()) },
	} {
		t.Run(name, func(t *testing.T) {
			agent, s := scriptedAgent(t, "say hi", nil)
			begun, told := make(chan struct{}), make(chan error, 1)
			r, err := s.RegisterExtension(t.Context(), "tool", object{"name": "wait"}, handling("call", func(ctx context.Context, _ json.RawMessage, _ func(any) error) (any, error) {
				close(begun)
				<-ctx.Done()
				told <- context.Cause(ctx)
				return object{"output": "too late"}, nil
			}))
			if err != nil {
				t.Fatal(err)
			}
			type answer struct {
				r   a3s.ToolResult
				err error
			}
			answered := make(chan answer, 1)
			go func() {
				r, err := s.Tool(context.Background(), "wait", nil)
				answered <- answer{r, err}
			}()
			<-begun
			if err := end(agent, s, r); err != nil {
				t.Error(err)
			}
			var e *a3s.Error
			if cause := <-told; !errors.As(cause, &e) || e.Details["reason"] != "cancelled" {
				t.Errorf("the handler was told %v", cause)
			}
			if a := <-answered; a.err == nil && a.r.ExitCode == 0 {
				t.Errorf("it was answered %+v", a.r)
			}
		})
	}
}
