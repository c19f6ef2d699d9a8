// Package host is a tool that the host implements: a call becomes a host request, its
// chunks become output, its reply the result. Floor 8.
package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/a3s-lab/liba3s/internal/schema"
	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/fault"
	desk "github.com/a3s-lab/liba3s/runtime/host"
	"github.com/a3s-lab/liba3s/runtime/tool"
)

// defaultDeadline of a call without a tool time-out (reference: host requests).
const defaultDeadline = 10 * time.Minute

// Spec describes a host tool.
type Spec struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	// ReadOnly says that a call changes nothing and may be repeated; without it a call
	// counts as running a program that may do anything.
	ReadOnly bool `json:"read_only,omitempty"`
	// TimeoutMS bounds one call; 0 is the session's tool time-out, else 10 minutes.
	TimeoutMS int64 `json:"timeout_ms,omitempty"`
}

// Config is a host tool and the way to the host.
type Config struct {
	Spec Spec
	Desk *desk.Desk
	// SessionID names the session whose calls these are.
	SessionID string
}

// Tool asks the host. It may be used concurrently.
type Tool struct{ cfg Config }

var _ tool.Tool = (*Tool)(nil)

// Open checks the description of a host tool.
func Open(_ context.Context, cfg Config) (*Tool, error) {
	s := &cfg.Spec
	switch {
	case s.Name == "" || len(s.Name) > 64:
		return nil, fault.New(fault.Invalid, "host.register", "a tool needs a name of 1 to 64 bytes, got %q", s.Name).With("field", "name").With("reason", fault.BadValue)
	case s.TimeoutMS < 0:
		return nil, fault.New(fault.Invalid, "host.register", "timeout_ms must not be negative, got %d", s.TimeoutMS).With("field", "timeout_ms").With("reason", fault.BadValue)
	}
	if len(s.Parameters) == 0 {
		s.Parameters = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	if _, err := schema.Compile(s.Parameters); err != nil {
		return nil, fault.New(fault.Invalid, "host.register", "parameters of tool %q: %v", s.Name, err).With("field", "parameters").With("reason", fault.BadValue)
	}
	return &Tool{cfg}, nil
}

// Spec implements tool.Tool.
func (t *Tool) Spec() chat.ToolSpec {
	return chat.ToolSpec{Name: t.cfg.Spec.Name, Description: t.cfg.Spec.Description, Parameters: t.cfg.Spec.Parameters}
}

// Effects implements tool.Tool: what the host did not declare harmless may do anything.
func (t *Tool) Effects(json.RawMessage) chat.Effects {
	if t.cfg.Spec.ReadOnly {
		return chat.Effects{Read: true, Idempotent: true}
	}
	return chat.Effects{Read: true, Write: true, Exec: true, Network: true}
}

// answer is what the host replies with.
type answer struct {
	Output   *string         `json:"output"`
	ExitCode int             `json:"exit_code"`
	Metadata map[string]any  `json:"metadata"`
	Error    *chat.ErrorKind `json:"error_kind"`
}

// Run implements tool.Tool.
func (t *Tool) Run(ctx context.Context, env tool.Env, args json.RawMessage) (chat.Result, error) {
	name := t.cfg.Spec.Name
	params, err := json.Marshal(map[string]any{"args": args, "call_id": env.Call.ID})
	if err != nil {
		return chat.Result{}, fault.New(fault.Internal, "tool.host", "%v", err)
	}
	deadline := t.deadline(env)
	reply, err := t.cfg.Desk.Ask(ctx, desk.Request{Kind: "tool", Name: name, Op: "call", Params: params, SessionID: t.cfg.SessionID, Deadline: deadline}, func(c json.RawMessage) {
		var chunk struct {
			Delta string `json:"delta"`
		}
		if json.Unmarshal(c, &chunk) == nil {
			env.Emit(chunk.Delta)
		}
	})
	if err != nil {
		return t.failed(ctx, err, deadline)
	}
	return read(name, reply), nil
}

func (t *Tool) deadline(env tool.Env) time.Duration {
	d := defaultDeadline
	if env.Timeout > 0 {
		d = env.Timeout
	}
	if own := time.Duration(t.cfg.Spec.TimeoutMS) * time.Millisecond; own > 0 && (own < d || env.Timeout == 0) {
		d = own
	}
	return d
}

// failed makes a result of a failure: the host's exception with its type and message, a
// time-out, or a host that is not there.
func (t *Tool) failed(ctx context.Context, err error, deadline time.Duration) (chat.Result, error) {
	var f *desk.Failure
	name := t.cfg.Spec.Name
	switch {
	case errors.As(err, &f):
		return chat.Result{Output: fmt.Sprintf("Tool execution error: %s: %s", f.Type, f.Message), ExitCode: 1, Metadata: map[string]any{"exception": map[string]any{"type": f.Type, "message": f.Message}}}, nil
	case ctx.Err() != nil:
		return chat.Result{}, err
	case fault.KindOf(err) == fault.Timeout:
		return chat.Fail(chat.ErrorKind{Type: chat.TimedOut, Op: name, DurationMS: deadline.Milliseconds()}, fmt.Sprintf("tool %s timed out: the host did not answer within %s", name, deadline)), nil
	case fault.KindOf(err) == fault.Unsupported:
		return chat.Fail(chat.ErrorKind{Type: chat.Unsupported, Message: err.Error()}, fmt.Sprintf("tool %s cannot be called: the host does not listen for requests", name)), nil
	}
	return chat.Fail(chat.ErrorKind{Type: chat.Unsupported, Message: err.Error()}, fmt.Sprintf("tool %s failed: %v", name, err)), nil
}

// read makes a result of the host's reply; what cannot be read is a failed result.
func read(name string, reply json.RawMessage) chat.Result {
	var a answer
	if err := json.Unmarshal(reply, &a); err != nil || a.Output == nil {
		return chat.Result{Output: fmt.Sprintf("tool %s gave an answer that cannot be read: it needs {\"output\": string}", name), ExitCode: 1}
	}
	return chat.Result{Output: *a.Output, ExitCode: a.ExitCode, Metadata: a.Metadata, Error: a.Error}
}
