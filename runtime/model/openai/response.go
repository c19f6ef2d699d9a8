package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"

	api "github.com/sashabaranov/go-openai"

	"github.com/a3s-lab/liba3s/internal/httpx"
	"github.com/a3s-lab/liba3s/internal/sse"
	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/model"
)

// answer is one chunk of a stream or a whole answer, as far as we read it. Only what is
// needed is decoded: an odd value in a field that nobody uses must not end a turn.
type answer struct {
	ID      string          `json:"id"`
	Model   string          `json:"model"`
	Choices []choice        `json:"choices"` // may be null or empty (cases OAI-03, OAI-11)
	Usage   *usage          `json:"usage"`
	Error   json.RawMessage `json:"error"`
	// Notes of a content filter, told when there is no choice (case OAI-04).
	Filter  json.RawMessage `json:"content_filter_results"`
	Prompts json.RawMessage `json:"prompt_filter_results"`
}

type choice struct {
	Index        int              `json:"index"`
	Delta        delta            `json:"delta"`
	Message      delta            `json:"message"`
	FinishReason api.FinishReason `json:"finish_reason"`
	Usage        *usage           `json:"usage"`
}

type delta struct {
	Content          content    `json:"content"`
	Refusal          string     `json:"refusal"`
	ReasoningContent string     `json:"reasoning_content"`
	Reasoning        content    `json:"reasoning"`
	ToolCalls        []toolCall `json:"tool_calls"`
}

type usage struct {
	api.Usage
	TotalCharacters int `json:"total_characters"`
}

// content is text, or the parts in which some services wrap it.
type content string

func (c *content) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		*c = content(text)
		return nil
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(data, &parts) == nil {
		for _, p := range parts {
			*c += content(p.Text)
		}
	}
	return nil
}

// toolCall is the library's type with arguments that may be an object instead of text.
type toolCall struct{ api.ToolCall }

func (t *toolCall) UnmarshalJSON(data []byte) error {
	var raw struct {
		Index    *int   `json:"index"`
		ID       string `json:"id"`
		Function struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"function"`
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	t.Index, t.ID, t.Function.Name = raw.Index, raw.ID, raw.Function.Name
	args := raw.Function.Arguments
	if bytes.Equal(args, []byte("null")) {
		return nil
	}
	if json.Unmarshal(args, &t.Function.Arguments) != nil {
		t.Function.Arguments = string(args)
	}
	return nil
}

// output turns answers into chunks.
type output struct {
	yield func(model.Chunk, error) bool
	left  bool // the reader is gone
	start time.Time
	meta  model.Meta

	text, reasoning merge
	calls           slots
	usage           usage
	chosen          bool // some choice came
	finish          api.FinishReason
	filter          string
}

func (o *output) emit(c model.Chunk) {
	if o.left || c.Text == "" && (c.Kind == model.TextDelta || c.Kind == model.ReasoningDelta || c.Kind == model.ToolInput) {
		return
	}
	if o.meta.FirstTokenMS == 0 && c.Kind != model.Done {
		o.meta.FirstTokenMS = max(time.Since(o.start).Milliseconds(), 1)
	}
	o.left = !o.yield(c, nil)
}

// take yields what is new in a; whole says that it is a whole answer.
func (o *output) take(a answer, whole bool) {
	if a.ID != "" {
		o.meta.ResponseID = a.ID
	}
	if a.Model != "" {
		o.meta.ResponseModel = a.Model
	}
	if a.Usage != nil {
		o.usage = *a.Usage
	}
	for _, raw := range []json.RawMessage{a.Filter, a.Prompts} {
		if len(raw) > 2 && string(raw) != "null" {
			o.filter = httpx.Clean(string(raw[:min(len(raw), 1024)]))
		}
	}
	for _, ch := range a.Choices {
		if ch.Index != 0 {
			continue // one answer was asked for
		}
		o.chosen = true
		if ch.Usage != nil {
			o.usage = *ch.Usage
		}
		d := ch.Delta
		if whole {
			d = ch.Message
		}
		o.delta(d)
		if ch.FinishReason != "" && ch.FinishReason != api.FinishReasonNull {
			o.finish = ch.FinishReason
		}
	}
}

func (o *output) delta(d delta) {
	think := d.ReasoningContent
	if think == "" {
		think = string(d.Reasoning)
	}
	if think != "" {
		o.emit(model.Chunk{Kind: model.ReasoningDelta, Text: o.reasoning.add(think)})
	}
	say := string(d.Content) + d.Refusal
	if say != "" {
		o.emit(model.Chunk{Kind: model.ReasoningDelta, Text: o.reasoning.flush()})
		o.emit(model.Chunk{Kind: model.TextDelta, Text: o.text.add(say)})
	}
	if len(d.ToolCalls) > 0 {
		o.flush()
	}
	for pos, call := range d.ToolCalls {
		s, n := o.calls.place(call.ToolCall, pos, len(d.ToolCalls))
		if s.name == "" {
			s.name = call.Function.Name
		}
		if s.id == "" {
			s.id = call.ID
		}
		if !s.started && s.name != "" {
			s.started = true
			o.emit(model.Chunk{Kind: model.ToolStart, Slot: n, WireID: s.id, Name: s.name})
			o.emit(model.Chunk{Kind: model.ToolInput, Slot: n, Text: s.args.String()})
		}
		if fresh := s.input(call.Function.Arguments); s.started {
			o.emit(model.Chunk{Kind: model.ToolInput, Slot: n, Text: fresh})
		}
	}
}

// flush yields text that was held back.
func (o *output) flush() {
	o.emit(model.Chunk{Kind: model.ReasoningDelta, Text: o.reasoning.flush()})
	o.emit(model.Chunk{Kind: model.TextDelta, Text: o.text.flush()})
}

// done closes a whole answer.
func (o *output) done() error {
	if !o.chosen {
		e := fault.Of(fault.CodeLLM, op, "the model service gave no answer: no choices")
		if o.filter != "" {
			e.Message += "; its content filter says " + o.filter
			return e.With("reason", "filtered")
		}
		return e.With("reason", "no_choices")
	}
	o.flush()
	for n, s := range o.calls.all {
		if !s.started { // a call whose name never came: the Gate refuses it
			o.emit(model.Chunk{Kind: model.ToolStart, Slot: n, WireID: s.id})
			o.emit(model.Chunk{Kind: model.ToolInput, Slot: n, Text: s.args.String()})
		}
		o.emit(model.Chunk{Kind: model.ToolInput, Slot: n, Text: s.text.flush()})
	}
	o.meta.DurationMS = time.Since(o.start).Milliseconds()
	o.emit(model.Chunk{Kind: model.Done, Usage: o.usage.chat(), Stop: o.stop(), Meta: o.meta})
	return nil
}

func (o *output) stop() model.Stop {
	switch {
	case o.finish == api.FinishReasonLength:
		return model.StopLength
	case o.finish == api.FinishReasonContentFilter:
		return model.StopFilter
	case len(o.calls.all) > 0: // some services say "stop" beside calls
		return model.StopTools
	}
	return model.StopEnd
}

// readStream reads server-sent events up to the terminator.
func (c *Client) readStream(ctx context.Context, call httpx.Request, body io.ReadCloser, out *output) error {
	events := sse.NewReader(body, c.cfg.MaxEvent)
	var grace *time.Timer
	for !out.left {
		ev, err := events.Next()
		if err != nil {
			if grace != nil && !grace.Stop() && ctx.Err() == nil {
				err = io.EOF // we closed it ourselves
			}
			return c.ended(ctx, call, out, err)
		}
		if bytes.Equal(bytes.TrimSpace(ev.Data), []byte("[DONE]")) {
			return out.done()
		}
		var a answer
		if err := json.Unmarshal(ev.Data, &a); err != nil {
			if !ev.Whole {
				return model.Incomplete(op, "")
			}
			return fault.Of(fault.CodeLLM, op, "the model service sent an event that is not the expected JSON: %v; it begins with %q", err, head(ev.Data))
		}
		if e := reported(a.Error, ev.Name, ev.Data); e != nil {
			return e
		}
		out.take(a, false)
		if out.finish != "" && grace == nil {
			grace = time.AfterFunc(c.cfg.FinishGrace, func() { _ = body.Close() })
			defer grace.Stop()
		}
	}
	return nil
}

// ended judges a stream that ended without the terminator.
func (c *Client) ended(ctx context.Context, call httpx.Request, out *output, err error) error {
	var long *sse.TooLongError
	switch {
	case out.finish != "" && err == io.EOF:
		return out.done()
	case err == io.EOF:
		return model.Incomplete(op, "")
	case errors.As(err, &long):
		return fault.Of(fault.CodeLLM, op, "%v", long).WithKind(fault.Limit)
	case ctx.Err() == nil:
		return model.Incomplete(op, httpx.Clean(fault.From(op, httpx.Broken(ctx, call, err)).Message))
	}
	return httpx.Broken(ctx, call, err)
}

// readWhole reads an answer that comes at once.
func (c *Client) readWhole(ctx context.Context, call httpx.Request, body io.Reader, out *output) error {
	data, err := httpx.ReadAll(ctx, call, body, 0)
	if err != nil {
		return err
	}
	var a answer
	if err := json.Unmarshal(data, &a); err != nil {
		return fault.Of(fault.CodeLLM, op, "the model service did not answer with the expected JSON: %v; it begins with %q", err, head(data))
	}
	if e := reported(a.Error, "", data); e != nil {
		return e
	}
	out.take(a, true)
	return out.done()
}

func head(data []byte) string {
	return strings.ToValidUTF8(string(data[:min(len(data), 200)]), "")
}

func (u usage) chat() (c chat.Usage) {
	c.PromptTokens, c.CompletionTokens, c.TotalTokens = u.PromptTokens, u.CompletionTokens, u.TotalTokens
	if u.PromptTokensDetails != nil {
		c.CacheReadTokens = u.PromptTokensDetails.CachedTokens
	}
	if c.TotalTokens == 0 {
		c.TotalTokens = u.TotalCharacters
	}
	if c.TotalTokens == 0 {
		c.TotalTokens = c.PromptTokens + c.CompletionTokens
	}
	return c
}
