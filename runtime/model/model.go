// Package model is the port to language models: one way to stream an answer, chunk
// by chunk, whatever the wire. Adapters hold every quirk of their wire; collecting
// and retrying live here. Floor 2.
package model

import (
	"context"
	"iter"

	"github.com/a3s-lab/liba3s/runtime/chat"
)

// Client is one model behind one wire.
type Client interface {
	// Stream asks the model and yields its answer chunk by chunk; the last chunk of
	// a whole answer is a Done. A failure is yielded once, as the last pair, as a
	// *fault.Error: the kind and whether a retry may help are decided there. A stream
	// that ends without Done and without an error is a fault of the adapter. Breaking
	// off the loop or cancelling ctx closes the connection. Calls may run at the same
	// time; each runs on the caller's goroutine.
	Stream(ctx context.Context, req Request) iter.Seq2[Chunk, error]
}

// Request is everything a model needs for one answer.
type Request struct {
	System   string
	Messages []chat.Message
	Tools    []chat.ToolSpec
	// Temperature, nil for the provider's default.
	Temperature *float64
	// MaxTokens bounds the answer; 0 leaves it to the provider.
	MaxTokens int
	// ThinkingBudget in tokens; 0 is off.
	ThinkingBudget int
	// Window is the context size in tokens that the runtime reckons with; 0 unknown.
	Window int
	// SessionID goes under the provider's session header, if one is configured.
	SessionID string
}

// ChunkKind says what a Chunk carries.
type ChunkKind uint8

// The chunk kinds, in the order an answer meets them.
const (
	// TextDelta carries Text of the answer.
	TextDelta ChunkKind = iota + 1
	// ReasoningDelta carries Text of the reasoning.
	ReasoningDelta
	// ToolStart opens a call: Slot, WireID (may be empty) and Name.
	ToolStart
	// ToolInput carries Text, a piece of the arguments of the call in Slot.
	ToolInput
	// Notice carries Text for the log: something the user should know, such as a
	// prompt that the server cut (NoticeKind names it).
	Notice
	// Done ends a whole answer: Usage, Stop and Meta.
	Done
)

// Chunk is one piece of an answer.
type Chunk struct {
	Kind ChunkKind
	Text string
	// Slot tells the calls of one answer apart, from 0 in the order they begin.
	Slot       int
	WireID     string
	Name       string
	NoticeKind string
	Usage      chat.Usage
	Stop       Stop
	Meta       Meta
}

// Stop is why the model stopped.
type Stop string

// The reasons a model stops for.
const (
	StopEnd    Stop = "end_turn"
	StopTools  Stop = "tool_use"
	StopLength Stop = "max_tokens"
	StopFilter Stop = "filtered"
)

// Meta says where an answer came from.
type Meta struct {
	Provider      string `json:"provider,omitempty"`
	RequestModel  string `json:"request_model,omitempty"`
	RequestURL    string `json:"request_url,omitempty"`
	ResponseID    string `json:"response_id,omitempty"`
	ResponseModel string `json:"response_model,omitempty"`
	FirstTokenMS  int64  `json:"first_token_ms,omitempty"`
	DurationMS    int64  `json:"duration_ms,omitempty"`
}
