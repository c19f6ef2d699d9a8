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

const (
	// Deadline of a call without a tool time-out (reference: host requests).
	Deadline = 10 * time.Minute
	// MaxAnswer bounds one answer in bytes.
	MaxAnswer = 64 << 20
)

// ToolSpec describes a tool of the host.
type ToolSpec struct {
	desk.Extension
	// Description is what the model is told of the tool.
	Description string `json:"description,omitempty"`
	// Parameters is the JSON schema of the arguments; absent is an empty object.
	Parameters json.RawMessage `json:"parameters,omitempty" jsonschema:"type=object"`
	// ReadOnly says that a call changes nothing and may be repeated; without it a call
	// counts as running a program that may do anything.
	ReadOnly bool `json:"read_only,omitempty"`
}

// ToolCallRequest are the parameters of "call".
type ToolCallRequest struct {
	// Args fit the tool's parameters.
	Args   json.RawMessage `json:"args" jsonschema:"type=object"`
	CallID string          `json:"call_id"`
}

// ToolChunk is a piece of output while the tool runs.
type ToolChunk struct {
	Delta string `json:"delta"`
}

// ToolResult is the result of "call".
type ToolResult struct {
	// Output is the text that the model gets.
	Output *string `json:"output"`
	// ExitCode is 0 for success.
	ExitCode int            `json:"exit_code,omitempty"`
	Metadata map[string]any `json:"metadata,omitempty"`
	// Error says in a typed way what failed.
	Error *chat.ErrorKind `json:"error_kind,omitempty"`
}

// Config is a host tool and the way to the host.
type Config struct {
	Spec ToolSpec
	Line *desk.Line
	// SessionID names the session whose calls these are.
	SessionID string
}

// Tool asks the host. It may be used concurrently.
type Tool struct{ cfg Config }

var _ tool.Tool = (*Tool)(nil)

// Check refuses the description of a tool that no model can call, and completes it.
func (s *ToolSpec) Check() error {
	if err := s.Extension.Check(); err != nil {
		return err
	}
	if len(s.Parameters) == 0 {
		s.Parameters = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	if _, err := schema.Compile(s.Parameters); err != nil {
		return fault.New(fault.Invalid, "host.register", "parameters of tool %q: %s", s.Name, fault.From("", err).Message).With("field", "parameters").With("reason", fault.BadValue)
	}
	return nil
}

// Open makes a tool of a checked description.
func Open(_ context.Context, cfg Config) (*Tool, error) { return &Tool{cfg}, nil }

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

// Run implements tool.Tool.
func (t *Tool) Run(ctx context.Context, env tool.Env, args json.RawMessage) (chat.Result, error) {
	deadline := t.deadline(env)
	var reply json.RawMessage
	err := t.cfg.Line.Ask(ctx, desk.Question{
		Op: "call", Params: ToolCallRequest{args, env.Call.ID}, SessionID: t.cfg.SessionID, Deadline: deadline, Max: MaxAnswer,
		Chunk: func(c json.RawMessage) error {
			var chunk ToolChunk
			if json.Unmarshal(c, &chunk) == nil {
				env.Emit(chunk.Delta)
			}
			return nil
		},
	}, &reply)
	if err != nil {
		return t.failed(ctx, err, deadline)
	}
	return read(t.cfg.Spec.Name, reply), nil
}

func (t *Tool) deadline(env tool.Env) time.Duration {
	if env.Timeout <= 0 {
		return t.cfg.Spec.Deadline(Deadline)
	}
	return min(env.Timeout, t.cfg.Spec.Deadline(env.Timeout))
}

// failed makes a result of a failure: the host's exception with its type and message, a
// time-out, or a host that is not there.
func (t *Tool) failed(ctx context.Context, err error, deadline time.Duration) (chat.Result, error) {
	name := t.cfg.Spec.Name
	switch f := desk.Explain(err); {
	case f != nil:
		return chat.Result{Output: fmt.Sprintf("Tool execution error: %s: %s", f.Type, f.Message), ExitCode: 1, Metadata: map[string]any{"exception": map[string]any{"type": f.Type, "message": f.Message}}}, nil
	case ctx.Err() != nil:
		return chat.Result{}, err
	}
	switch fault.KindOf(err) {
	case fault.Timeout:
		return chat.Fail(chat.ErrorKind{Type: chat.TimedOut, Op: name, DurationMS: deadline.Milliseconds()}, fmt.Sprintf("tool %s timed out: the host did not answer within %s", name, deadline)), nil
	case fault.Cancelled:
		return chat.Fail(chat.ErrorKind{Type: chat.WasCancelled, Op: name}, fmt.Sprintf("tool %s was cancelled: %v", name, err)), nil
	}
	return chat.Fail(chat.ErrorKind{Type: chat.Unsupported, Message: err.Error()}, fmt.Sprintf("tool %s cannot be called: %v", name, err)), nil
}

// read makes a result of the host's reply; what cannot be read is a failed result.
func read(name string, reply json.RawMessage) chat.Result {
	var a ToolResult
	if err := json.Unmarshal(reply, &a); err != nil || a.Output == nil {
		why := `it needs {"output": string}`
		if misfit := (*json.UnmarshalTypeError)(nil); errors.As(err, &misfit) && misfit.Field != "" {
			why = fault.Misfit(misfit.Field, misfit)
		}
		return chat.Result{Output: fmt.Sprintf("tool %s gave an answer that cannot be read: %s", name, why), ExitCode: 1}
	}
	return chat.Result{Output: *a.Output, ExitCode: a.ExitCode, Metadata: a.Metadata, Error: a.Error}
}
