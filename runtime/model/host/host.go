// Package host is a model that the host implements, and the transport that the host may
// put under the models reached over HTTP. It owns the mapping of requests, chunks and
// results and their bounds; retrying is model's, the judgement of tool arguments the
// Gate's. Floor 8.
package host

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"time"

	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/fault"
	desk "github.com/a3s-lab/liba3s/runtime/host"
	"github.com/a3s-lab/liba3s/runtime/model"
)

const op = "model.host"

// Deadline of one answer where nobody says how long it may take.
const Deadline = 10 * time.Minute

// ModelSpec describes a model of the host. Its name N is used as the model "host/N".
type ModelSpec struct {
	desk.Extension
	// Context is the size of the model's window in tokens; 0 is 200000.
	Context int `json:"context,omitempty"`
	// Output bounds an answer in tokens; 0 leaves it to the host.
	Output int `json:"output,omitempty"`
	// ToolCall says whether the model can call tools; absent is true.
	ToolCall *bool `json:"tool_call,omitempty"`
	// Reasoning says that the model takes a thinking budget.
	Reasoning bool `json:"reasoning,omitempty"`
	// Stream asks with "stream", whose answer may come in chunks; false asks with
	// "complete". Absent is true.
	Stream *bool `json:"stream,omitempty"`
}

// Check refuses a description that makes no sense.
func (s *ModelSpec) Check() error {
	for field, n := range map[string]int{"context": s.Context, "output": s.Output} {
		if n < 0 {
			return fault.New(fault.Invalid, "host.register", "%s must not be negative, got %d", field, n).With("field", field).With("reason", fault.BadValue)
		}
	}
	return s.Extension.Check()
}

// ModelRequest are the parameters of "stream" and "complete".
type ModelRequest struct {
	// Model is the name it was registered under.
	Model    string          `json:"model"`
	System   string          `json:"system,omitempty"`
	Messages []chat.Message  `json:"messages"`
	Tools    []chat.ToolSpec `json:"tools"`
	// Temperature is absent where the model's own default holds.
	Temperature *float64 `json:"temperature,omitempty"`
	// MaxTokens bounds the answer; absent is no bound.
	MaxTokens int `json:"max_tokens,omitempty"`
	// ThinkingBudget in tokens; absent is no thinking.
	ThinkingBudget int    `json:"thinking_budget,omitempty"`
	SessionID      string `json:"session_id,omitempty"`
}

// ModelToolCall is a call that the model proposes.
type ModelToolCall struct {
	// ID is the model's own id of the call; it may be absent.
	ID   string `json:"id,omitempty"`
	Name string `json:"name"`
	// Arguments are an object, or the text that the model wrote.
	Arguments json.RawMessage `json:"arguments,omitempty"`
}

// ModelChunk is a piece of an answer. Exactly one field is set.
type ModelChunk struct {
	// Text is a piece of the answer.
	Text *string `json:"text,omitempty"`
	// Reasoning is a piece of the reasoning.
	Reasoning *string `json:"reasoning,omitempty"`
	// ToolCall is a whole call.
	ToolCall *ModelToolCall `json:"tool_call,omitempty"`
}

// ModelResult ends an answer. Text, reasoning and calls are the whole ones; what the
// chunks said already is not told again, so all three may be absent after chunks.
type ModelResult struct {
	Text      string          `json:"text,omitempty"`
	Reasoning string          `json:"reasoning,omitempty"`
	ToolCalls []ModelToolCall `json:"tool_calls,omitempty"`
	// Usage counts the tokens; absent ones count as 0.
	Usage chat.Usage `json:"usage,omitzero"`
	// Stop is end_turn, tool_use, max_tokens or filtered; absent is the first or second.
	Stop model.Stop `json:"stop,omitempty"`
	// ResponseID and Model say where the answer came from.
	ResponseID string `json:"response_id,omitempty"`
	Model      string `json:"model,omitempty"`
}

// Config is a model and the way to the host.
type Config struct {
	Spec ModelSpec
	Line *desk.Line
	// Timeout bounds one answer; 0 is Deadline. The line's own deadline bounds it too.
	Timeout time.Duration
}

// Client asks the host. It may be used concurrently.
type Client struct{ cfg Config }

var _ model.Client = (*Client)(nil)

// Open makes a client. It asks nothing.
func Open(_ context.Context, cfg Config) (*Client, error) {
	if cfg.Timeout <= 0 {
		cfg.Timeout = cfg.Line.Deadline()
	}
	cfg.Timeout = min(cfg.Timeout, cfg.Line.Deadline())
	return &Client{cfg}, nil
}

// Stream implements model.Client.
func (c *Client) Stream(ctx context.Context, req model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		err := c.stream(ctx, req, func(chunk model.Chunk) bool { return yield(chunk, nil) })
		if err != nil && !errors.Is(err, errLeft) {
			yield(model.Chunk{}, err)
		}
	}
}

// errLeft says that the reader of a stream is gone, errGarbage matches what output says
// of answers that cannot be used.
var (
	errLeft    = errors.New("the reader left")
	errGarbage = fault.Of(fault.CodeLLM, "", "")
)

func (c *Client) stream(ctx context.Context, req model.Request, yield func(model.Chunk) bool) error {
	out := &output{yield: yield}
	began := time.Now()
	q := desk.Question{
		Op: "stream", Params: c.params(req), SessionID: req.SessionID, Deadline: c.cfg.Timeout, Max: MaxAnswer,
		Chunk: out.chunk,
	}
	if s := c.cfg.Spec.Stream; s != nil && !*s {
		q.Op = "complete"
	}
	var result ModelResult
	if err := c.cfg.Line.Ask(ctx, q, &result); err != nil {
		return c.explain(ctx, err)
	}
	done, err := out.finish(result)
	if err != nil {
		return err
	}
	done.Meta = model.Meta{
		Provider: "host", RequestModel: c.cfg.Line.Name(), ResponseID: desk.Cut(result.ResponseID, 256), ResponseModel: desk.Cut(result.Model, 256),
		DurationMS: time.Since(began).Milliseconds(),
	}
	if !out.first.IsZero() {
		done.Meta.FirstTokenMS = out.first.Sub(began).Milliseconds()
	}
	if !yield(done) {
		return errLeft
	}
	return nil
}

func (c *Client) params(req model.Request) ModelRequest {
	p := ModelRequest{
		Model: c.cfg.Line.Name(), System: req.System, Messages: []chat.Message{}, Tools: []chat.ToolSpec{}, Temperature: req.Temperature,
		MaxTokens: req.MaxTokens, ThinkingBudget: req.ThinkingBudget, SessionID: req.SessionID,
	}
	for _, m := range req.Messages {
		p.Messages = append(p.Messages, wire(m))
	}
	for _, t := range req.Tools {
		if len(t.Parameters) == 0 {
			t.Parameters = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		p.Tools = append(p.Tools, t)
	}
	return p
}

// wire gives a message in a form that is JSON whatever a model once wrote.
func wire(m chat.Message) chat.Message {
	blocks := make([]chat.Block, len(m.Content))
	for i, b := range m.Content {
		if b.Type == chat.ToolUse {
			b.Input = model.WireInput(b.Input)
		}
		blocks[i] = b
	}
	m.Content = blocks
	return m
}

// explain makes an LLM_ERROR of whatever went wrong, but for the end of ctx.
func (c *Client) explain(ctx context.Context, err error) error {
	name := c.cfg.Line.Name()
	switch f := desk.Explain(err); {
	case errors.Is(err, errLeft), errors.Is(err, errGarbage):
		return err
	case f != nil && f.Kind == "incomplete":
		return model.Incomplete(op, f.Error())
	case f != nil:
		e := fault.Of(fault.CodeLLM, op, "the host's model %q failed: %v", name, f).With("exception", map[string]any{"type": f.Type, "message": f.Message})
		e.Retryable = f.Retryable
		if f.RetryAfterMS > 0 {
			e.With("retry_after_ms", f.RetryAfterMS)
		}
		return e
	case ctx.Err() != nil:
		return fault.Ended(ctx, op)
	case fault.KindOf(err) == fault.Timeout:
		return fault.Of(fault.CodeLLM, op, "the host's model %q did not answer within %s", name, c.cfg.Timeout).With("reason", "timeout").Retry()
	}
	return fault.Of(fault.CodeLLM, op, "the host's model %q cannot be asked: %s", name, strings.TrimSpace(fault.From(op, err).Message))
}
