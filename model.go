package a3s

import (
	"context"
	"encoding/json"

	"github.com/a3s-lab/liba3s/runtime/agent"
)

// Model answers conversations in the place of a provider.
type Model interface {
	// Answer answers a conversation. What is told through say comes as events at once; the
	// result ends the answer and may leave out what was told. It may be asked from several
	// goroutines at once. An error is an LLM_ERROR; a *ExtensionError may say that it is
	// Retryable, or of Kind "incomplete" if the answer was cut.
	Answer(ctx context.Context, r ModelRequest, say *ModelAnswer) (ModelResult, error)
}

// ModelFunc is a function as a Model.
type ModelFunc func(ctx context.Context, r ModelRequest, say *ModelAnswer) (ModelResult, error)

// Answer implements Model.
func (f ModelFunc) Answer(ctx context.Context, r ModelRequest, say *ModelAnswer) (ModelResult, error) {
	return f(ctx, r, say)
}

// ModelAnswer tells pieces of an answer. An error says that nobody listens any more.
type ModelAnswer struct{ chunk func(any) error }

// Text tells a piece of the answer.
func (a *ModelAnswer) Text(s string) error { return a.chunk(agent.HostModelChunk{Text: &s}) }

// Reasoning tells a piece of the reasoning.
func (a *ModelAnswer) Reasoning(s string) error { return a.chunk(agent.HostModelChunk{Reasoning: &s}) }

// ToolCall tells a whole call of a tool. args encodes to a JSON object; id is the model's
// own name of the call and may be empty.
func (a *ModelAnswer) ToolCall(id, tool string, args any) error {
	b, err := json.Marshal(args)
	if err != nil {
		return err
	}
	return a.chunk(agent.HostModelChunk{ToolCall: &ModelToolCall{ID: id, Name: tool, Arguments: b}})
}

// RegisterModel supplies a model, to be named host/NAME in default_model or the option
// Model of sessions that open afterwards. An answer has 10 minutes. Options: ContextTokens,
// OutputTokens, Reasoning, NoToolCalls, Timeout.
func (a *Agent) RegisterModel(ctx context.Context, name string, m Model, options ...ExtensionOption) (*Registration, error) {
	if none(m) {
		return nil, missing("model", "model")
	}
	return a.supply(ctx, "model", map[string]any{"name": name}, options, map[string]Handler{
		"stream": func(ctx context.Context, params json.RawMessage, chunk func(any) error) (any, error) {
			var r ModelRequest
			if err := json.Unmarshal(params, &r); err != nil {
				return nil, err
			}
			return m.Answer(ctx, r, &ModelAnswer{chunk})
		},
	})
}
