package a3s

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/a3s-lab/liba3s/internal/safego"
	"github.com/a3s-lab/liba3s/internal/schema"
	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/tool"
)

// Tool is a tool of your program that the model can call.
type Tool struct{ t tool.Tool }

// ToolOption changes a tool.
type ToolOption func(*goTool)

// ReadOnly says that a call changes nothing and may be repeated: it is allowed where
// read-only tools are, and runs beside others. Without it a call counts as one that may
// do anything.
func ReadOnly() ToolOption { return func(t *goTool) { t.readOnly = true } }

// ToolTimeout bounds one call; the session's tool_timeout_ms bounds it too.
func ToolTimeout(d time.Duration) ToolOption { return func(t *goTool) { t.timeout = d } }

// NewTool makes a tool of a function. P is a struct: its json tags name the parameters,
// its jsonschema tags describe them. The text the function returns goes to the model; an
// error is a failed result with its text, and the run goes on. emit tells output while
// the function runs. ctx ends when the call is cancelled or its time is up.
func NewTool[P any](name, description string, fn func(ctx context.Context, p P, emit func(string)) (string, error), opts ...ToolOption) (*Tool, error) {
	var zero P
	params, err := schema.Of(zero)
	if err != nil {
		return nil, err
	}
	if _, err := schema.Compile(params); err != nil {
		return nil, err
	}
	t := &goTool{spec: chat.ToolSpec{Name: name, Description: description, Parameters: params}}
	for _, o := range opts {
		o(t)
	}
	t.run = func(ctx context.Context, args json.RawMessage, emit func(string)) (string, error) {
		var p P
		if err := json.Unmarshal(args, &p); err != nil {
			return "", fmt.Errorf("arguments: %w", err)
		}
		return fn(ctx, p, emit)
	}
	return &Tool{t}, nil
}

// RegisterTool gives a tool to this session. A name that is taken is an error of kind
// exists.
func (s *Session) RegisterTool(t *Tool) error { return s.s.AddTool(t.t) }

// UnregisterTool takes a tool back; one that is not there is fault.NotFound.
func (s *Session) UnregisterTool(name string) error { return s.s.RemoveTool(name) }

// goTool runs a Go function as a tool.
type goTool struct {
	spec     chat.ToolSpec
	readOnly bool
	timeout  time.Duration
	run      func(ctx context.Context, args json.RawMessage, emit func(string)) (string, error)
}

var _ tool.Tool = (*goTool)(nil)

func (t *goTool) Spec() chat.ToolSpec { return t.spec }

func (t *goTool) Effects(json.RawMessage) chat.Effects {
	if t.readOnly {
		return chat.Effects{Read: true, Idempotent: true}
	}
	return chat.Effects{Read: true, Write: true, Exec: true, Network: true}
}

// outcome of the function, as far as anybody still waits for it.
type outcome struct {
	text string
	err  error
}

// Run does not wait for a function that ignores the end of its context.
func (t *goTool) Run(ctx context.Context, env tool.Env, args json.RawMessage) (chat.Result, error) {
	inner := ctx
	if t.timeout > 0 {
		var cancel context.CancelFunc
		inner, cancel = context.WithTimeout(ctx, t.timeout)
		defer cancel()
	}
	done := make(chan outcome, 1)
	safego.Go("a3s.tool", func(err error) { done <- outcome{err: err} }, func() {
		text, err := t.run(inner, args, env.Emit)
		done <- outcome{text, err}
	})
	var o outcome
	select {
	case o = <-done:
	case <-inner.Done():
	}
	switch {
	case ctx.Err() != nil:
		return chat.Result{Output: o.text}, fault.From("tool."+t.spec.Name, ctx.Err())
	case inner.Err() != nil:
		ms := t.timeout.Milliseconds()
		return chat.Fail(chat.ErrorKind{Type: chat.TimedOut, Op: t.spec.Name, DurationMS: ms}, fmt.Sprintf("tool %s timed out after %d ms", t.spec.Name, ms)), nil
	case o.err != nil:
		return chat.Result{Output: "Tool execution error: " + o.err.Error(), ExitCode: 1}, nil
	}
	return chat.Result{Output: o.text}, nil
}
