package a3s

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/a3s-lab/liba3s/internal/schema"
	"github.com/a3s-lab/liba3s/runtime/agent"
	"github.com/a3s-lab/liba3s/runtime/chat"
)

// Tool is a tool of your program that the model can call.
type Tool struct {
	spec map[string]any
	call Handler
}

// ToolOutput is the result of a tool with all that it may say.
type ToolOutput struct {
	// Text is what the model gets.
	Text string
	// ExitCode is 0 for success.
	ExitCode int
	// Metadata is for programs: it is told with the event tool_end.
	Metadata map[string]any
	// ErrorKind says in a typed way what failed.
	ErrorKind *ErrorKind
}

// ErrorKind says what a tool failed with.
type ErrorKind = chat.ErrorKind

// NewTool makes a tool of a function. P is a struct: its json tags name the parameters,
// its jsonschema tags describe them, and those without omitempty are required. What the
// function returns goes to the model: a string or a ToolOutput as it is, anything else as
// JSON. An error is a failed result with its type and text, and the run goes on. emit
// tells output while the function runs. A P that JSON cannot describe, such as one with a
// channel or one that contains itself, is refused with INVALID_REQUEST. ctx ends when the call is cancelled or its time is
// up: see Handler. Options: ReadOnly, Timeout. A call has 10 minutes, or the option
// tool_timeout_ms of the session.
func NewTool[P, R any](name, description string, fn func(ctx context.Context, p P, emit func(string)) (R, error), options ...ExtensionOption) (*Tool, error) {
	if fn == nil {
		return nil, missing("tool", "function")
	}
	var zero P
	params, err := schema.Of(zero)
	if err != nil {
		return nil, err
	}
	if _, err := schema.Compile(params); err != nil {
		return nil, err
	}
	call := func(ctx context.Context, raw json.RawMessage, chunk func(any) error) (any, error) {
		var r agent.HostToolCall
		var p P
		if err := json.Unmarshal(raw, &r); err != nil {
			return nil, err
		}
		if err := json.Unmarshal(r.Args, &p); err != nil {
			return nil, fmt.Errorf("arguments: %w", err)
		}
		emit := func(s string) { _ = chunk(agent.HostToolChunk{Delta: s}) } // nobody may listen any more
		result, err := fn(ctx, p, emit)
		if err != nil {
			return nil, err
		}
		return toolResult(result)
	}
	return &Tool{describe(map[string]any{"name": name, "description": description, "parameters": params}, options), call}, nil
}

func toolResult(v any) (agent.HostToolResult, error) {
	switch v := v.(type) {
	case string:
		return agent.HostToolResult{Output: &v}, nil
	case ToolOutput:
		return agent.HostToolResult{Output: &v.Text, ExitCode: v.ExitCode, Metadata: v.Metadata, Error: v.ErrorKind}, nil
	case *ToolOutput:
		if v != nil {
			return toolResult(*v)
		}
	}
	b, err := json.Marshal(v)
	text := string(b)
	return agent.HostToolResult{Output: &text}, err
}
