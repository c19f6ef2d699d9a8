package prompt

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/model"
)

// The figures of compaction (reference: governance 5.4).
const (
	keepMessages     = 20
	summaryTokens    = 8000
	summaryTimeout   = 60 * time.Second
	protectedTokens  = 40000
	minSummaryInput  = 512
	maxSummaryInput  = 600000
	prunedMarker     = "[older tool output removed to save context; call the tool again if it matters]"
	summaryIntro     = "Summary of the conversation so far:\n\n"
	targetOfTrigger  = 0.6
	bytesPerTokenMax = 3
)

//go:embed summarize.md
var summarize string

// Compaction says when and how a transcript is compacted.
type Compaction struct {
	On        bool
	Threshold float64 // share of the window
}

// Compacted is the outcome of a compaction: the first Count messages gave way to With.
type Compacted struct {
	Count    int
	With     []chat.Message
	Summary  string
	Percent  float64 // of the window, before
	Messages []chat.Message
}

// Due says whether a request of used tokens calls for compaction.
func (b *Builder) Due(used int) bool {
	return b.Compaction.On && b.Window > 0 && float64(used) >= b.Compaction.Threshold*float64(b.Window)
}

// Prune shortens old tool output in a copy of messages: the newest output is protected
// up to a share of the window, what lies before it becomes a marker. It changes what
// the model is sent, never the transcript.
func (b *Builder) Prune(messages []chat.Message) []chat.Message {
	left := protectedTokens
	if b.Window > 0 {
		left = min(left, b.Window/4)
	}
	out := append([]chat.Message(nil), messages...)
	for i := len(out) - 1; i >= 0; i-- {
		if !out[i].Answers() {
			continue
		}
		blocks := append([]chat.Block(nil), out[i].Content...)
		for j := len(blocks) - 1; j >= 0; j-- {
			blocks[j].Content, left = pruneText(blocks[j].Content, left)
		}
		out[i].Content = blocks
	}
	return out
}

// pruneText keeps what fits into left tokens, cutting the middle of the text that
// straddles the edge.
func pruneText(s string, left int) (string, int) {
	n := model.EstimateText(s)
	switch {
	case n <= left:
		return s, left - n
	case left <= 0 || left*4 < 200:
		if len(s) <= len(prunedMarker) {
			return s, 0
		}
		return prunedMarker, 0
	}
	return middle(s, left*4), 0
}

// middle keeps the head and tail of s, n bytes in all.
func middle(s string, n int) string {
	if len(s) <= n {
		return s
	}
	tail := s[len(s)-n/2:]
	for len(tail) > 0 && tail[0]&0xc0 == 0x80 {
		tail = tail[1:]
	}
	return cut(s, n-n/2) + fmt.Sprintf("\n[... %d bytes left out ...]\n", len(s)-n) + tail
}

// Compact summarises the older part of messages with one plain model call. It leaves
// messages alone and returns an error if that fails; nil, nil says that there is
// nothing to gain.
func (b *Builder) Compact(ctx context.Context, client model.Client, system string, messages []chat.Message, tools []chat.ToolSpec) (*Compacted, error) {
	keep := b.keepFrom(messages)
	if keep < 2 {
		return nil, nil
	}
	before := model.Estimate(model.Request{System: system, Messages: messages, Tools: tools})
	ctx, cancel := context.WithTimeout(ctx, summaryTimeout)
	defer cancel()
	summary, err := b.summary(ctx, client, messages)
	if err != nil {
		return nil, err
	}
	target := int(targetOfTrigger * b.Compaction.Threshold * float64(b.Window))
	fixed := model.EstimateText(system) + toolTokens(tools)
	with := head(messages, keep, summary)
	for b.Window > 0 && fixed+messageTokens(with...)+messageTokens(messages[keep:]...) > target {
		next := b.cutAfter(messages, keep+1)
		if next <= keep {
			break
		}
		keep = next
		with = head(messages, keep, summary)
	}
	after := append(slices.Clone(with), messages[keep:]...)
	if b.Window > 0 && fixed+messageTokens(after...) >= before {
		return nil, fault.Of(fault.CodeContext, "prompt.compact", "compaction cannot help: system prompt and tools fill the window")
	}
	percent := 0.0
	if b.Window > 0 {
		percent = 100 * float64(before) / float64(b.Window)
	}
	return &Compacted{Count: keep, With: with, Summary: summary, Percent: percent, Messages: after}, nil
}

// keepFrom gives the index of the first message that stays.
func (b *Builder) keepFrom(messages []chat.Message) int {
	return b.cutAfter(messages, len(messages)-min(keepMessages, len(messages)/2))
}

// cutAfter gives the first index from i on where the transcript may be cut: never
// between a call and its result, and never behind the last exchange.
func (b *Builder) cutAfter(messages []chat.Message, i int) int {
	for i < len(messages) && messages[i].Answers() {
		i++
	}
	if i < len(messages) {
		return i
	}
	i = len(messages) - 1
	for i > 0 && messages[i].Answers() {
		i--
	}
	return i
}

// head is what takes the place of messages: the summary and, if the user's latest
// instruction is among them, that instruction.
func head(messages []chat.Message, keep int, summary string) []chat.Message {
	with := []chat.Message{chat.Say(chat.User, summaryIntro+summary)}
	for j := len(messages) - 1; j >= 0; j-- {
		if messages[j].Role == chat.User && !messages[j].Answers() {
			if j < keep {
				with = append(with, messages[j])
			}
			break
		}
	}
	return with
}

// summary asks the model for a summary; the transcript is untrusted data to it.
func (b *Builder) summary(ctx context.Context, client model.Client, messages []chat.Message) (string, error) {
	limit := maxSummaryInput
	if b.Window > 0 {
		limit = min(max(b.Window*bytesPerTokenMax, minSummaryInput), maxSummaryInput)
	}
	req := model.Request{
		System:    strings.TrimSpace(summarize),
		Messages:  []chat.Message{chat.Say(chat.User, middle(render(messages), limit))},
		MaxTokens: summaryTokens, Window: b.Window, SessionID: b.SessionID,
	}
	var text strings.Builder
	done := false
	for c, err := range client.Stream(ctx, req) {
		if err != nil {
			return "", err
		}
		switch c.Kind {
		case model.TextDelta:
			text.WriteString(c.Text)
		case model.Done:
			done = true
		}
	}
	s := strings.TrimSpace(text.String())
	if !done || s == "" {
		return "", fault.Of(fault.CodeLLM, "prompt.compact", "the model gave no summary")
	}
	return cut(s, summaryTokens*4), nil
}

// render writes messages as text for the summary.
func render(messages []chat.Message) string {
	var w strings.Builder
	for _, m := range messages {
		if m.ReasoningContent != "" {
			fmt.Fprintf(&w, "%s, thinking: %s\n", m.Role, m.ReasoningContent)
		}
		for _, c := range m.Content {
			switch c.Type {
			case chat.Text:
				fmt.Fprintf(&w, "%s: %s\n", m.Role, c.Text)
			case chat.ToolUse:
				fmt.Fprintf(&w, "call %s %s\n", c.Name, compactJSON(c.Input))
			case chat.ToolResult:
				fmt.Fprintf(&w, "result: %s\n", c.Content)
			}
		}
	}
	return w.String()
}

func compactJSON(b json.RawMessage) string { return cut(string(b), 4096) }
