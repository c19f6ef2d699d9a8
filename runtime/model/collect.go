package model

import (
	"context"
	"encoding/json"
	"iter"
	"strings"

	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/fault"
)

// Answer is what a stream of chunks adds up to.
type Answer struct {
	// Message is the assistant's message: text and tool_use blocks in the order they
	// came, reasoning apart. A tool_use block carries WireID, Name and Input exactly as
	// the model wrote it, malformed or empty included; ID is left to the caller.
	Message chat.Message
	Usage   chat.Usage
	Stop    Stop
	Meta    Meta
	// Partial says that no Done came: Message holds what was received, marked partial
	// and without its calls, since none of them is known to be complete.
	Partial bool
}

// Collect reads seq to its end and adds the chunks up. onChunk, if not nil, sees every
// chunk first, in order, on the caller's goroutine; an error from it ends the reading
// and is returned as it is. Whatever is returned as error, the answer holds what was
// received until then. A stream that ends with neither Done nor an error is Incomplete;
// a ctx that ended meanwhile is told as such. Chunks after Done are not read.
func Collect(ctx context.Context, seq iter.Seq2[Chunk, error], onChunk func(Chunk) error) (Answer, error) {
	var c collector
	for chunk, err := range seq {
		if err != nil {
			return c.partial(), fault.From("model.stream", err)
		}
		if onChunk != nil {
			if err := onChunk(chunk); err != nil {
				return c.partial(), err
			}
		}
		c.add(chunk)
		if chunk.Kind == Done {
			return c.answer(), nil
		}
	}
	if ctx.Err() != nil {
		return c.partial(), fault.From("model.stream", ctx.Err())
	}
	return c.partial(), Incomplete("model.stream", "")
}

// Incomplete is the error of a stream that stopped before its end, and why, if anything
// says so. A retry may help.
func Incomplete(op, cause string) *fault.Error {
	e := fault.Of(fault.CodeLLM, op, "stream incomplete: the model service stopped before the end of its answer").
		With("incomplete", true).Retry()
	if cause != "" {
		e.Message += ": " + cause
		e.With("cause", cause)
	}
	return e
}

// collector adds chunks up. The builders keep long answers linear in their size.
type collector struct {
	blocks    []*part
	slots     map[int]*part
	reasoning strings.Builder
	done      Chunk
}

type part struct {
	call         bool
	wireID, name string
	text         strings.Builder
}

func (c *collector) add(chunk Chunk) {
	switch chunk.Kind {
	case TextDelta:
		if chunk.Text == "" {
			return
		}
		if n := len(c.blocks); n == 0 || c.blocks[n-1].call {
			c.blocks = append(c.blocks, &part{})
		}
		c.blocks[len(c.blocks)-1].text.WriteString(chunk.Text)
	case ReasoningDelta:
		c.reasoning.WriteString(chunk.Text)
	case ToolStart:
		p := c.slot(chunk.Slot)
		p.wireID, p.name = chunk.WireID, chunk.Name
	case ToolInput:
		c.slot(chunk.Slot).text.WriteString(chunk.Text)
	case Done:
		c.done = chunk
	}
}

// slot gives the call in slot i. A piece of input without a start makes a call without
// a name, which the Gate refuses, rather than input that vanishes.
func (c *collector) slot(i int) *part {
	if p := c.slots[i]; p != nil {
		return p
	}
	if c.slots == nil {
		c.slots = map[int]*part{}
	}
	p := &part{call: true}
	c.slots[i] = p
	c.blocks = append(c.blocks, p)
	return p
}

func (c *collector) answer() Answer {
	m := chat.Message{Role: chat.Assistant, ReasoningContent: c.reasoning.String()}
	for _, p := range c.blocks {
		if p.call {
			m.Content = append(m.Content, chat.Block{Type: chat.ToolUse, WireID: p.wireID, Name: p.name, Input: json.RawMessage(p.text.String())})
			continue
		}
		m.Content = append(m.Content, chat.Block{Type: chat.Text, Text: p.text.String()})
	}
	return Answer{Message: m, Usage: c.done.Usage, Stop: c.done.Stop, Meta: c.done.Meta}
}

func (c *collector) partial() Answer {
	a := c.answer()
	a.Partial, a.Message.Partial = true, true
	kept := a.Message.Content[:0]
	for _, b := range a.Message.Content {
		if b.Type == chat.Text {
			kept = append(kept, b)
		}
	}
	a.Message.Content = kept
	if len(kept) == 0 {
		a.Message.Content = nil
	}
	return a
}
