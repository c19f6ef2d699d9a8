package ollama

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	api "github.com/ollama/ollama/api"

	"github.com/a3s-lab/liba3s/internal/httpx"
	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/model"
)

// answer is one line of a stream or a whole answer, as far as we read it.
type answer struct {
	Model      string          `json:"model"`
	Message    *reply          `json:"message"`
	Done       *bool           `json:"done"`
	DoneReason string          `json:"done_reason"`
	Error      json.RawMessage `json:"error"`
	api.Metrics
}

// reply holds arguments as the model wrote them, which the library's type would reorder
// into numbers of its own.
type reply struct {
	Content   string     `json:"content"`
	Thinking  string     `json:"thinking"`
	ToolCalls []toolCall `json:"tool_calls"`
}

// output turns answers into chunks.
type output struct {
	yield func(model.Chunk, error) bool
	left  bool // the reader is gone
	whole bool // the answer is complete
	start time.Time
	meta  model.Meta

	req    model.Request
	window int

	think thinking // takes reasoning out of the content
	sniff sniffer  // takes bare calls out of the text
	calls int
	said  bool // some text was yielded
	// thoughts keeps the reasoning while nothing else has come: a call may hide in it.
	thoughts []byte
}

func newOutput(c *Client, req model.Request, yield func(model.Chunk, error) bool) *output {
	return &output{
		yield: yield, start: time.Now(), req: req, window: c.window(req),
		meta:  model.Meta{Provider: c.cfg.Provider, RequestModel: c.cfg.Model, RequestURL: httpx.Show(c.url)},
		think: thinking{expected: c.cfg.Reasoning},
		sniff: newSniffer(req.Tools),
	}
}

func (o *output) emit(c model.Chunk) {
	if o.left {
		return
	}
	if o.meta.FirstTokenMS == 0 && c.Kind != model.Done {
		o.meta.FirstTokenMS = max(since(o.start), 1)
	}
	o.left = !o.yield(c, nil)
}

// take yields what is new in a.
func (o *output) take(a answer) {
	if a.Model != "" {
		o.meta.ResponseModel = a.Model
	}
	if a.Message != nil {
		if a.Message.Thinking != "" {
			o.think.expected = false // this server tells reasoning apart itself (case OLL-08)
			o.reason(a.Message.Thinking)
		}
		reasoning, content := o.think.add(a.Message.Content)
		o.reason(reasoning)
		o.say(o.sniff.add(content))
		// Calls come in any chunk, whatever the reason for stopping says (case OLL-02).
		for _, c := range a.Message.ToolCalls {
			o.settle()
			o.say(o.sniff.stop())
			o.call(c)
		}
	}
	if a.Done != nil && *a.Done {
		o.done(a)
	}
}

func (o *output) reason(s string) {
	if s == "" {
		return
	}
	if o.sniff.on && len(o.thoughts) < maxBare {
		o.thoughts = append(o.thoughts, s...)
	}
	o.emit(model.Chunk{Kind: model.ReasoningDelta, Text: s})
}

func (o *output) say(s string) {
	if s == "" {
		return
	}
	o.said = true
	o.emit(model.Chunk{Kind: model.TextDelta, Text: s})
}

func (o *output) call(c toolCall) {
	slot := o.calls
	o.calls++
	o.emit(model.Chunk{Kind: model.ToolStart, Slot: slot, WireID: c.ID, Name: c.Function.Name})
	if args := written(c.Function.Arguments); args != "" {
		o.emit(model.Chunk{Kind: model.ToolInput, Slot: slot, Text: args})
	}
}

// written gives arguments as the model wrote them; some proxies wrap them in a string.
func written(raw json.RawMessage) string {
	raw = bytes.TrimSpace(raw)
	var s string
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	if raw[0] == '"' && json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// settle ends the search for reasoning in the content.
func (o *output) settle() {
	reasoning, content := o.think.end()
	o.reason(reasoning)
	o.say(o.sniff.add(content))
}

func (o *output) done(a answer) {
	o.settle()
	bare, rest := o.sniff.end()
	o.say(rest)
	if !o.said && o.calls == 0 && len(bare) == 0 {
		bare = o.sniff.inside(string(o.thoughts)) // case OLL-03
	}
	for _, c := range bare {
		o.call(c)
	}
	if text := o.truncated(a.PromptEvalCount); text != "" {
		o.emit(model.Chunk{Kind: model.Notice, NoticeKind: "context_truncated", Text: text})
	}
	stop := model.StopEnd
	switch {
	case a.DoneReason == "length":
		stop = model.StopLength
	case o.calls > 0:
		stop = model.StopTools
	}
	o.meta.DurationMS = since(o.start)
	usage := chat.Usage{PromptTokens: a.PromptEvalCount, CompletionTokens: a.EvalCount, TotalTokens: a.PromptEvalCount + a.EvalCount}
	o.whole = true
	o.emit(model.Chunk{Kind: model.Done, Usage: usage, Stop: stop, Meta: o.meta})
}

// truncated tells whether the server evaluated much less than it was sent (case OLL-05).
// The estimate may be wrong by a third, so only a clear gap counts; servers that count
// only what their cache did not hold give no clear sign for small prompts.
func (o *output) truncated(evaluated int) string {
	estimate := model.Estimate(o.req)
	if evaluated <= 0 || estimate < 512 {
		return ""
	}
	full := estimate > o.window && evaluated <= o.window && evaluated >= o.window*9/10
	if evaluated >= estimate/2 && !full {
		return ""
	}
	return fmt.Sprintf("the server evaluated %d tokens of a prompt of about %d: it was probably cut; the context size asked for is %d", evaluated, estimate, o.window)
}
