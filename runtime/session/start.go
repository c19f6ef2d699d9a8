package session

import (
	"cmp"
	"context"
	"strings"
	"unicode/utf8"

	"github.com/a3s-lab/liba3s/internal/safego"
	"github.com/a3s-lab/liba3s/internal/tape"
	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/record"
	"github.com/a3s-lab/liba3s/runtime/run"
)

// Prompt asks for a run.
type Prompt struct {
	Text string
	// History, if not nil, is the whole context: the run is isolated and leaves the
	// transcript alone (S21).
	History []chat.Message
}

// check refuses what no model can be sent.
func (p Prompt) check() error {
	bad := func(field, format string, args ...any) error {
		return fault.Of(fault.CodeInvalidRequest, "run.start", format, args...).With("field", field).With("reason", fault.BadValue)
	}
	switch {
	case strings.TrimSpace(p.Text) == "":
		return bad("prompt", "the prompt is empty")
	case !utf8.ValidString(p.Text):
		return bad("prompt", "the prompt is not UTF-8")
	case strings.IndexByte(p.Text, 0) >= 0:
		return bad("prompt", "the prompt holds a NUL")
	}
	for i, m := range p.History {
		if err := m.Check(); err != nil {
			return bad("history", "history[%d]: %s", i, fault.From("run.start", err).Message)
		}
	}
	return nil
}

// Run is one run of a session.
type Run struct {
	s      *Session
	log    *runLog
	ctx    context.Context
	cancel context.CancelCauseFunc
	done   chan struct{}
	over   bool   // it is ending and cannot be cancelled any more; guarded by Session.mu
	result Result // set before done is closed
	err    error  // set before done is closed
}

// Result is how a run that completed ended. The verification fields are those of a run
// without verification commands.
type Result struct {
	RunID                    string `json:"run_id"`
	Text                     string `json:"text"`
	ToolCallsCount           int    `json:"tool_calls_count"`
	PromptTokens             int    `json:"prompt_tokens"`
	CompletionTokens         int    `json:"completion_tokens"`
	TotalTokens              int    `json:"total_tokens"`
	VerificationStatus       string `json:"verification_status"`
	PendingVerificationCount int    `json:"pending_verification_count"`
	FailedVerificationCount  int    `json:"failed_verification_count"`
	VerificationReportCount  int    `json:"verification_report_count"`
	VerificationSummaryText  string `json:"verification_summary_text"`
	// VerificationSummary is the object behind verification_summary_json.
	VerificationSummary event.VerificationSummary `json:"verification_summary"`
}

// noVerification sums up a run that verified nothing.
var noVerification = event.VerificationSummary{Status: "skipped", PendingSubjects: []string{}, FailedSubjects: []string{}}

// Start takes the session's lease and begins a run on a goroutine of its own. It fails
// with SESSION_BUSY while another run is active; nothing is queued.
func (s *Session) Start(p Prompt) (*Run, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.admit(); err != nil {
		return nil, err
	}
	if s.active != nil {
		return nil, fault.Of(fault.CodeSessionBusy, "run.start", "Session '%s' already has an active operation", s.cfg.ID).With("run_id", s.active.ID())
	}
	r := &Run{s: s, done: make(chan struct{})}
	r.ctx, r.cancel = context.WithCancelCause(s.life)
	history := p.History
	r.log, history = s.seq.begin(s.cfg.Source.New, p.Text, history)
	s.active = r
	safego.Go("session.run", r.broken, func() { r.run(p, history) })
	return r, nil
}

// begin registers a run and gives it a copy of its context.
func (s *sequencer) begin(newID func(string) string, prompt string, history []chat.Message) (*runLog, []chat.Message) {
	s.view.Lock()
	defer s.view.Unlock()
	name := newID("run")
	for s.fold.byID[name] != nil { // a fixed id source begins anew after a resume
		name = newID("run")
	}
	r := newRunLog(name, s.sid, 0)
	r.isolated = history != nil
	r.snap.Prompt = s.redact.String(prompt)
	r.snap.CreatedAtMS = s.now()
	r.snap.UpdatedAtMS = r.snap.CreatedAtMS
	if history == nil {
		history = s.fold.messages
	}
	s.fold.add(r)
	for c := range s.streams {
		c.AddTape(r.tape, 0, s.backfill(r))
	}
	return r, append(make([]chat.Message, 0, len(history)+16), history...)
}

// ID is the run's id.
func (r *Run) ID() string { return r.log.snap.ID }

// Session is the session the run belongs to.
func (r *Run) Session() *Session { return r.s }

// Stream opens a stream of the run from event number from on.
func (r *Run) Stream(from int64) *tape.Cursor {
	c := tape.NewCursor(gapFrame)
	c.AddTape(r.log.tape, max(0, from), r.s.seq.backfill(r.log))
	c.Last()
	return c
}

// Wait waits for the end of the run. The error is how the run failed, or ctx's own; a
// run that has ended says so even if ctx has ended too.
func (r *Run) Wait(ctx context.Context) (Result, error) {
	select {
	case <-r.done:
		return r.result, r.err
	default:
	}
	select {
	case <-r.done:
		return r.result, r.err
	case <-ctx.Done():
		return Result{}, fault.Ended(ctx, "run.wait")
	}
}

// Done is closed when the run has ended and its last event is told.
func (r *Run) Done() <-chan struct{} { return r.done }

// Cancel asks the run to stop and returns at once. It reports whether it was the first
// to ask a run that still goes on; if so, the run ends as cancelled.
func (r *Run) Cancel(reason string) bool {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	if r.over || r.ctx.Err() != nil {
		return false
	}
	e := fault.Of(fault.CodeCancelled, "run", "the run was cancelled")
	if reason != "" {
		e = fault.Of(fault.CodeCancelled, "run", "the run was cancelled: %s", reason).With("cancel_reason", reason)
	}
	r.cancel(e)
	return true
}

// broken ends a run whose goroutine panicked.
func (r *Run) broken(err error) { r.finish(run.Outcome{}, err, false) }

// run is the goroutine of the run.
func (r *Run) run(p Prompt, history []chat.Message) {
	if c, args, ok := command(p.Text); ok {
		text, err := r.command(c, args)
		r.finish(run.Outcome{Text: text}, err, false)
		return
	}
	user := chat.Say(chat.User, r.s.cfg.Engine.Redact(p.Text))
	first := []record.Fact{
		{Event: event.AgentStart{Prompt: p.Text}},
		{Message: &record.Message{RunID: r.ID(), Isolated: r.log.isolated, Message: user}},
	}
	misfit := r.s.cfg.Engine.Fits(user)
	if misfit != nil {
		first = first[:1]
	}
	if err := cmp.Or(r.Commit(r.ctx, first...), misfit); err != nil {
		r.finish(run.Outcome{}, err, false)
		return
	}
	in := run.Input{RunID: r.ID(), Messages: append(history, user), Isolated: r.log.isolated, NewID: r.callID}
	out, err := r.s.cfg.Engine.Run(r.ctx, in, r)
	r.finish(out, err, !r.log.isolated)
}

// callID makes the id of a call. It goes over the wire where a provider gave none, and
// some take at most 40 bytes.
func (r *Run) callID() string {
	name := r.s.cfg.Source.New("call")
	if r.s.cfg.Source.Deterministic() {
		return name
	}
	return "call-" + strings.ReplaceAll(strings.TrimPrefix(name, "call-"), "-", "")
}

// Write implements record.Log.
func (r *Run) Write(ctx context.Context, facts ...record.Fact) error {
	return r.s.seq.append(ctx, r.log, false, facts...)
}

// Commit implements record.Log.
func (r *Run) Commit(ctx context.Context, facts ...record.Fact) error {
	return r.s.seq.append(ctx, r.log, true, facts...)
}

// Delta implements record.Log.
func (r *Run) Delta(ctx context.Context, p event.Payload) error {
	return r.s.seq.push(ctx, r.log, p)
}
