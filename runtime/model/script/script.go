// Package script is a model that plays a written script, so that tests, demonstrations
// and every language can run the real agent loop without a network. It owns the grammar
// of scripts and their playing; reading the file is left to the caller. Floor 8: a
// back-end of model.
//
// A script is text, one step a line:
//
//	# a comment; blank lines are skipped
//	say TEXT          answer text, streamed word by word
//	think TEXT        reasoning, streamed word by word
//	call TOOL JSON    a tool call; the arguments are passed on exactly as written
//	wait MS           wait for real milliseconds; cancelling ends it
//	expect REGEX      fail the run unless the request matches (RE2 syntax)
//	fail KIND TEXT    end the turn with an error
//	end               close the turn
//
// Each call of the model plays one turn: the steps up to the next end or fail, or to the
// end of the script. Steps keep their order. TEXT is taken as it stands after one blank;
// two say (or two think) that follow each other within a turn are two lines of one text.
//
// expect sees the whole request as text: the system prompt, a line "Tools: " with the
// names of the tools that are offered, then every message's text
// and tool results in order, each on lines of its own; the last message is at the end.
//
// KIND is "retryable" (a retryable LLM_ERROR), "cut" (the stream ends without its end,
// as when a connection is lost), "context" (the request does not fit: CONTEXT_ERROR) or
// any error kind, such as "provider" or "denied".
package script

import (
	"context"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/model"
)

// op names this package in errors.
const op = "model.script"

// Config is a script.
type Config struct {
	// Text is the script.
	Text string
	// Model is the name the answers carry; empty is "main".
	Model string
}

// Client plays one script. It has one position: turns are consumed in order over all
// calls and runs. Its methods may be called concurrently; each call takes a turn.
type Client struct {
	model string
	turns []turn

	mu   sync.Mutex
	next int // guarded by mu
}

var _ model.Client = (*Client)(nil)

// Open parses a script. A mistake is a CONFIG_ERROR with its line.
func Open(_ context.Context, cfg Config) (*Client, error) {
	turns, err := parse(cfg.Text)
	if err != nil {
		return nil, err
	}
	if cfg.Model == "" {
		cfg.Model = "main"
	}
	return &Client{model: cfg.Model, turns: turns}, nil
}

// Stream plays the next turn. Past the last one it is an LLM_ERROR.
func (c *Client) Stream(ctx context.Context, req model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		if ctx.Err() != nil {
			yield(model.Chunk{}, fault.From(op, ctx.Err()))
			return
		}
		turn, ok := c.take()
		if !ok {
			yield(model.Chunk{}, fault.Of(fault.CodeLLM, op, "script has no more turns: all %d were played", len(c.turns)))
			return
		}
		p := player{ctx: ctx, req: req, yield: yield}
		for _, s := range turn {
			if !p.play(s) {
				return
			}
		}
		p.done(c.model)
	}
}

func (c *Client) take() (turn, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next >= len(c.turns) {
		return nil, false
	}
	c.next++
	return c.turns[c.next-1], true
}

// player plays one turn. Its methods return false when the turn is over.
type player struct {
	ctx   context.Context
	req   model.Request
	yield func(model.Chunk, error) bool

	last  verb // the step before
	slots int
	bytes int // of the answer
}

func (p *player) play(s step) bool {
	if p.ctx.Err() != nil {
		return p.fail(fault.From(op, p.ctx.Err()))
	}
	joins := p.last == s.verb
	if s.verb != wait && s.verb != expect {
		p.last = s.verb
	}
	switch s.verb {
	case say:
		return p.words(model.TextDelta, s.text, joins)
	case think:
		return p.words(model.ReasoningDelta, s.text, joins)
	case call:
		return p.call(s)
	case wait:
		return p.wait(s.wait)
	case expect:
		return p.expect(s)
	}
	return p.end(s)
}

func (p *player) words(kind model.ChunkKind, text string, joins bool) bool {
	if joins {
		text = "\n" + text
	}
	p.bytes += len(text)
	for _, w := range split(text) {
		if p.ctx.Err() != nil {
			return p.fail(fault.From(op, p.ctx.Err()))
		}
		if !p.yield(model.Chunk{Kind: kind, Text: w}, nil) {
			return false
		}
	}
	return true
}

func (p *player) call(s step) bool {
	slot := p.slots
	p.slots++
	p.bytes += len(s.tool) + len(s.text)
	if !p.yield(model.Chunk{Kind: model.ToolStart, Slot: slot, Name: s.tool}, nil) {
		return false
	}
	return s.text == "" || p.yield(model.Chunk{Kind: model.ToolInput, Slot: slot, Text: s.text}, nil)
}

func (p *player) wait(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-p.ctx.Done():
		return p.fail(fault.From(op, p.ctx.Err()))
	}
}

func (p *player) expect(s step) bool {
	got := render(p.req)
	if s.re.MatchString(got) {
		return true
	}
	return p.fail(fault.Of(fault.CodeLLM, op, "line %d: the request does not match %q; it ends with %q", s.line, s.text, tail(got, 400)).
		With("reason", "expectation").With("line", s.line))
}

func (p *player) end(s step) bool {
	switch s.kind {
	case "cut":
		return false
	case "retryable":
		return p.fail(fault.Of(fault.CodeLLM, op, "%s", s.text).Retry())
	case "context":
		return p.fail(fault.Of(fault.CodeContext, op, "%s", s.text))
	}
	return p.fail(fault.New(fault.Kind(s.kind), op, "%s", s.text))
}

func (p *player) fail(err error) bool {
	p.yield(model.Chunk{}, err)
	return false
}

// done closes a whole turn. Usage is reckoned from bytes, so that it is the same in
// every run of the same script.
func (p *player) done(name string) {
	u := chat.Usage{PromptTokens: len(render(p.req)) / 4, CompletionTokens: p.bytes / 4}
	u.TotalTokens = u.PromptTokens + u.CompletionTokens
	stop := model.StopEnd
	if p.slots > 0 {
		stop = model.StopTools
	}
	p.yield(model.Chunk{Kind: model.Done, Usage: u, Stop: stop, Meta: model.Meta{Provider: "script", RequestModel: name, ResponseModel: name}}, nil)
}

// split cuts text after each run of blanks, so that the pieces add up to text.
func split(text string) []string {
	var words []string
	start, blank := 0, false
	for i := range len(text) {
		now := text[i] == ' ' || text[i] == '\n' || text[i] == '\t'
		if blank && !now {
			words = append(words, text[start:i])
			start = i
		}
		blank = now
	}
	if start < len(text) {
		words = append(words, text[start:])
	}
	return words
}

// render writes a request as the text that expect sees.
func render(req model.Request) string {
	var parts []string
	if req.System != "" {
		parts = append(parts, req.System)
	}
	names := make([]string, len(req.Tools))
	for i, t := range req.Tools {
		names[i] = t.Name
	}
	if len(names) > 0 {
		parts = append(parts, "Tools: "+strings.Join(names, ", "))
	}
	for _, m := range req.Messages {
		for _, b := range m.Content {
			switch b.Type {
			case chat.Text:
				parts = append(parts, b.Text)
			case chat.ToolResult:
				parts = append(parts, b.Content)
			}
		}
	}
	return strings.Join(parts, "\n")
}

// tail gives the last n bytes of s or a little less, whole letters only.
func tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	s = s[len(s)-n:]
	for len(s) > 0 && s[0]&0xC0 == 0x80 {
		s = s[1:]
	}
	return s
}
