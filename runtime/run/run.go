// Package run is the loop of one run: ask the model, gate its calls, execute them,
// repeat until the model stops, a limit is met or the run is cancelled. It writes
// every step to a record.Log and keeps nothing; identity, order and keeping are
// session's. Floor 6.
package run

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/a3s-lab/liba3s/runtime/artifact"
	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/model"
	"github.com/a3s-lab/liba3s/runtime/policy"
	"github.com/a3s-lab/liba3s/runtime/prompt"
	"github.com/a3s-lab/liba3s/runtime/record"
	"github.com/a3s-lab/liba3s/runtime/tool"
)

// Limits bound a run. Zero values are replaced by nothing: agent sets them all.
type Limits struct {
	MaxToolRounds int           // tool rounds of one run
	ToolTimeout   time.Duration // of one call; 0 for none
	MaxTime       time.Duration // of the whole run; 0 for none
	Parallel      int           // read-only calls at once
}

// Engine has the parts a run needs; one serves all runs of a session, one at a time.
type Engine struct {
	Model     model.Client
	Prompt    *prompt.Builder
	Tools     *tool.Registry
	Gate      *policy.Gate
	Artifacts *artifact.Store
	// Env is the part of a tool's Env that is the same for every call.
	Env    tool.Env
	Limits Limits
	// Redact removes the known secrets from what a tool or the host says, before the
	// model or anybody else sees it.
	Redact func(string) string
	// Log takes lines for the host's log. Never nil.
	Log func(event.LogLine)
}

// Input is what one run starts from. The caller has written agent_start and, behind
// the transcript, the user's message.
type Input struct {
	RunID string
	// Messages is the context of the run, the user's prompt last; the run may change it.
	Messages []chat.Message
	Isolated bool // messages are facts, but not of the transcript
	NewID    func() string
}

// Outcome is how a run that completed ended. Its last message is written.
type Outcome struct {
	Text  string
	Usage chat.Usage
	Meta  model.Meta
}

// state is what one run knows while it runs.
type state struct {
	*Engine
	in       Input
	log      record.Log
	gate     *policy.RunGate
	system   string
	tools    []chat.ToolSpec
	messages []chat.Message
	usage    chat.Usage
	reported int             // tokens of the latest answer's conversation, as the provider counted
	pruned   bool            // old tool output is left out of requests
	tainted  map[string]bool // ids of calls whose arguments hold a secret
	stuck    bool            // compaction could not help; said once (case TOK-01)
}

// Run asks and acts until the model stops. The error is how the run failed; whatever it
// is, all facts up to there are written and no tool is running any more.
func (e *Engine) Run(ctx context.Context, in Input, log record.Log) (Outcome, error) {
	if e.Limits.MaxTime > 0 {
		over := fault.Of(fault.CodeTimeout, "run", "the run took longer than max_execution_time_ms (%d)", e.Limits.MaxTime.Milliseconds())
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, e.Limits.MaxTime, over)
		defer cancel()
	}
	system, err := e.system(ctx)
	if err != nil {
		return Outcome{}, stopped(ctx, err)
	}
	known, err := e.background(ctx, in, log)
	if err != nil {
		return Outcome{}, stopped(ctx, err)
	}
	if known != "" {
		system += "\n\n" + known
	}
	s := &state{Engine: e, in: in, log: log, gate: e.Gate.Run(), system: system, messages: in.Messages, tools: e.visible(ctx), tainted: map[string]bool{}}
	if in.Isolated { // the session's own transcript holds no secret
		for i, m := range s.messages {
			s.messages[i] = e.scrub(m)
		}
	}
	out, err := s.loop(ctx)
	return out, stopped(ctx, err)
}

// Fits refuses a prompt that no window could hold, before it becomes part of a transcript
// that would never fit again.
func (e *Engine) Fits(prompt chat.Message) error { return e.Prompt.Fits(prompt) }

// system makes the system prompt; the project's notes may hold a secret.
func (e *Engine) system(ctx context.Context) (string, error) {
	text, err := e.Prompt.System(ctx)
	return e.Redact(text), err
}

// stopped prefers the reason a context was ended for over its consequences.
func stopped(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// Offers describes the tools by the effects of their plainest call.
func (e *Engine) Offers() []policy.Offer {
	var out []policy.Offer
	for _, name := range e.Tools.Names() {
		if t, ok := e.Tools.Get(name); ok {
			effects := t.Effects(json.RawMessage("{}"))
			out = append(out, policy.Offer{Name: name, ReadOnly: effects.ReadOnly(), Own: effects.Own})
		}
	}
	return out
}

// visible gives the specifications of the tools the policy shows to the model.
func (e *Engine) visible(ctx context.Context) []chat.ToolSpec {
	shown, _ := e.Gate.Expose(ctx, e.Offers())
	return slices.DeleteFunc(e.Tools.Specs(), func(s chat.ToolSpec) bool { return !slices.Contains(shown, s.Name) })
}

func (s *state) loop(ctx context.Context) (Outcome, error) {
	for turn := 1; ; turn++ {
		reply, err := s.turn(ctx, turn)
		if err != nil {
			return Outcome{}, err
		}
		calls := reply.Message.Calls()
		if len(calls) == 0 {
			return Outcome{Text: reply.Message.Text(), Usage: s.usage, Meta: reply.Meta}, s.endTurn(ctx, turn, reply.Usage)
		}
		if turn > s.Limits.MaxToolRounds {
			return Outcome{}, s.giveUp(ctx, calls)
		}
		if err := s.act(ctx, calls); err != nil {
			return Outcome{}, err
		}
		if err := s.endTurn(ctx, turn, reply.Usage); err != nil {
			return Outcome{}, err
		}
	}
}

// turn makes one model call and writes its message.
func (s *state) turn(ctx context.Context, turn int) (model.Answer, error) {
	if err := s.compact(ctx); err != nil {
		return model.Answer{}, err
	}
	messages := s.messages
	if s.pruned {
		messages = s.Prompt.Prune(messages)
	}
	req, err := s.Prompt.Request(s.system, messages, s.tools)
	if err != nil {
		return model.Answer{}, err
	}
	reply, err := s.ask(ctx, turn, req)
	if err != nil {
		return reply, s.partial(ctx, reply, err)
	}
	if err := s.write(ctx, reply.Message); err != nil {
		return reply, err
	}
	return reply, nil
}

func (s *state) endTurn(ctx context.Context, turn int, u chat.Usage) error {
	s.reported = u.PromptTokens + u.CompletionTokens
	s.usage = s.usage.Add(u)
	return s.log.Write(ctx, record.Fact{Event: event.TurnEnd{Turn: turn, Usage: u}})
}

// write adds a message to the transcript and to the facts.
func (s *state) write(ctx context.Context, m chat.Message) error {
	s.messages = append(s.messages, m)
	return s.log.Write(ctx, record.Fact{Message: &record.Message{RunID: s.in.RunID, Isolated: s.in.Isolated, Message: m}})
}

// partial keeps what a broken answer had said so far; its calls are dropped, since
// nobody knows whether they were whole.
func (s *state) partial(ctx context.Context, reply model.Answer, cause error) error {
	text := reply.Message.Text()
	if text == "" && reply.Message.ReasoningContent == "" {
		return cause
	}
	m := chat.Message{Role: chat.Assistant, Content: []chat.Block{}, ReasoningContent: reply.Message.ReasoningContent, Partial: true}
	if text != "" {
		m.Content = append(m.Content, chat.Block{Type: chat.Text, Text: text})
	}
	if err := s.write(ctx, m); err != nil {
		return err
	}
	return cause
}

// compact replaces the older part of the transcript when the window fills. A failure
// leaves it alone and the run goes on; that nothing can help is said once.
func (s *state) compact(ctx context.Context) error {
	if s.stuck || !s.Prompt.Compaction.On { // before the estimate, which reads the whole conversation
		return nil
	}
	if !s.Prompt.Due(max(s.reported, s.estimate(s.messages))) {
		return nil
	}
	s.pruned = true // leaving out old tool output is the gentler way
	if !s.Prompt.Due(s.estimate(s.Prompt.Prune(s.messages))) {
		return nil
	}
	c, err := s.shorten(ctx, s.system, s.messages, s.tools)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil || c == nil {
		s.stuck = true
		msg := "the transcript is too short"
		if err != nil {
			msg = err.Error()
		}
		s.Log(event.LogLine{Level: "warn", Message: "compaction did not help: " + msg, RunID: s.in.RunID, ErrorKind: "compaction_failed"})
		return nil
	}
	before := len(s.messages)
	s.messages, s.reported = c.Messages, 0
	s.stuck = s.Prompt.Due(s.estimate(s.messages)) // it helped as far as it could
	return s.compacted(ctx, c, before, s.in.Isolated, s.log)
}

// shorten compacts messages; a summary is a model's text as any other.
func (e *Engine) shorten(ctx context.Context, system string, messages []chat.Message, tools []chat.ToolSpec) (*prompt.Compacted, error) {
	c, err := e.Prompt.Compact(ctx, e.Model, system, messages, tools)
	if err != nil || c == nil {
		return nil, err
	}
	c.Summary = e.Redact(c.Summary)
	for i, m := range c.With {
		c.With[i] = e.scrub(m)
		c.Messages[i] = c.With[i]
	}
	return c, nil
}

func (s *state) estimate(messages []chat.Message) int {
	return model.Estimate(model.Request{System: s.system, Messages: messages, Tools: s.tools})
}

// compacted writes the facts of a compaction. One of an isolated run changes no
// transcript.
func (e *Engine) compacted(ctx context.Context, c *prompt.Compacted, before int, isolated bool, log record.Log) error {
	var facts []record.Fact
	if !isolated {
		facts = append(facts, record.Fact{Mark: &record.Mark{Replace: &record.Replace{Count: c.Count, With: c.With}}})
	}
	facts = append(facts, record.Fact{Event: event.ContextCompacted{
		SessionID: e.Prompt.SessionID, BeforeMessages: before, AfterMessages: len(c.Messages), PercentBefore: c.Percent, Summary: c.Summary,
	}})
	return log.Commit(ctx, facts...)
}

// Compact compacts a transcript at the user's word, whatever the window says. Nil says
// that there is nothing to gain.
func (e *Engine) Compact(ctx context.Context, messages []chat.Message, log record.Log) (*prompt.Compacted, error) {
	system, err := e.system(ctx)
	if err != nil {
		return nil, stopped(ctx, err)
	}
	c, err := e.shorten(ctx, system, messages, e.visible(ctx))
	if err != nil || c == nil {
		return nil, stopped(ctx, err)
	}
	return c, e.compacted(ctx, c, len(messages), false, log)
}
