package host

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"github.com/a3s-lab/liba3s/runtime/fault"
	desk "github.com/a3s-lab/liba3s/runtime/host"
	"github.com/a3s-lab/liba3s/runtime/model"
)

// Bounds of one answer.
const (
	// MaxAnswer bounds all chunks together, and the result, in bytes.
	MaxAnswer = 16 << 20
	maxCalls  = 128
	maxName   = 256
)

// output turns what the host says into chunks and remembers what was told.
type output struct {
	yield     func(model.Chunk) bool
	first     time.Time // when the first chunk came
	bytes     int
	text      strings.Builder
	reasoning strings.Builder
	calls     int
}

// chunk takes one piece of the host's.
func (o *output) chunk(b json.RawMessage) error {
	if o.first.IsZero() {
		o.first = time.Now()
	}
	if o.bytes += len(b); o.bytes > MaxAnswer {
		return garbage("its answer is larger than %d bytes", MaxAnswer)
	}
	var c ModelChunk
	if err := desk.Strict(b, MaxAnswer, &c); err != nil {
		return garbage("a chunk: %v", err)
	}
	switch {
	case c.Text != nil && c.Reasoning == nil && c.ToolCall == nil:
		o.text.WriteString(*c.Text)
		return o.say(model.TextDelta, *c.Text)
	case c.Reasoning != nil && c.Text == nil && c.ToolCall == nil:
		o.reasoning.WriteString(*c.Reasoning)
		return o.say(model.ReasoningDelta, *c.Reasoning)
	case c.ToolCall != nil && c.Text == nil && c.Reasoning == nil:
		return o.call(*c.ToolCall)
	}
	return garbage("a chunk needs exactly one of text, reasoning, tool_call")
}

// finish tells what the chunks did not, and gives the end of the answer.
func (o *output) finish(r ModelResult) (model.Chunk, error) {
	if err := o.say(model.ReasoningDelta, rest(r.Reasoning, o.reasoning.String())); err != nil {
		return model.Chunk{}, err
	}
	if err := o.say(model.TextDelta, rest(r.Text, o.text.String())); err != nil {
		return model.Chunk{}, err
	}
	for _, c := range r.ToolCalls[min(o.calls, len(r.ToolCalls)):] {
		if err := o.call(c); err != nil {
			return model.Chunk{}, err
		}
	}
	u := r.Usage
	if min(u.PromptTokens, u.CompletionTokens, u.TotalTokens, u.CacheReadTokens, u.CacheWriteTokens) < 0 {
		return model.Chunk{}, garbage("it counts fewer than 0 tokens")
	}
	if u.TotalTokens == 0 {
		u.TotalTokens = u.PromptTokens + u.CompletionTokens
	}
	done := model.Chunk{Kind: model.Done, Usage: u, Stop: r.Stop}
	switch r.Stop {
	case model.StopEnd, model.StopTools, model.StopLength, model.StopFilter:
	case "":
		done.Stop = model.StopEnd
		if o.calls > 0 {
			done.Stop = model.StopTools
		}
	default:
		return model.Chunk{}, garbage("stop %q is none of end_turn, tool_use, max_tokens, filtered", desk.Cut(string(r.Stop), 80))
	}
	return done, nil
}

// rest gives what of the whole text was not told yet. A whole that does not begin with
// what was told changes nothing: told is told.
func rest(whole, told string) string {
	after, ok := strings.CutPrefix(whole, told)
	if !ok {
		return ""
	}
	return after
}

func (o *output) say(kind model.ChunkKind, text string) error {
	if text == "" {
		return nil
	}
	return o.tell(model.Chunk{Kind: kind, Text: text})
}

func (o *output) tell(c model.Chunk) error {
	if !o.yield(c) {
		return errLeft
	}
	return nil
}

// call tells a whole call. What its arguments are worth is for the Gate to say.
func (o *output) call(c ModelToolCall) error {
	switch {
	case c.Name == "" || len(c.Name) > maxName:
		return garbage("a tool call needs a name of 1 to %d bytes", maxName)
	case o.calls == maxCalls:
		return garbage("more than %d tool calls in one answer", maxCalls)
	}
	slot := o.calls
	o.calls++
	if err := o.tell(model.Chunk{Kind: model.ToolStart, Slot: slot, WireID: desk.Cut(c.ID, maxName), Name: c.Name}); err != nil {
		return err
	}
	args := arguments(c.Arguments)
	if args == "" {
		return nil
	}
	return o.tell(model.Chunk{Kind: model.ToolInput, Slot: slot, Text: args})
}

// arguments gives the text of a call's arguments: a JSON string is what the model wrote.
func arguments(raw json.RawMessage) string {
	var text string
	if bytes.HasPrefix(raw, []byte(`"`)) && json.Unmarshal(raw, &text) == nil {
		return text
	}
	if string(raw) == "null" {
		return ""
	}
	return string(raw)
}

func garbage(format string, args ...any) error {
	return fault.Of(fault.CodeLLM, op, "the host's model gave an answer that cannot be used: "+format, args...).With("reason", "invalid_reply")
}
