package a3s

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/a3s-lab/liba3s/internal/tape"
	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/session"
)

// Session is one conversation in one workspace. Methods may be called concurrently; one
// run at a time is active.
type Session struct {
	owner
	s *session.Session
}

// Run is one run of a session.
type Run struct{ r *session.Run }

// Request is a prompt with what belongs to it.
type Request struct {
	// Prompt is the words of the user, or a slash command.
	Prompt string
	// History, if it is not nil, is the whole context of an isolated run, which leaves the
	// transcript as it is.
	History []Message
}

// Start begins a run and returns at once. A history that is not nil is the whole
// context of an isolated run. The error has code SESSION_BUSY while another run is
// active, SESSION_CLOSED after Close.
func (s *Session) Start(prompt string, history []Message) (*Run, error) {
	if history != nil {
		if _, err := encode("run.start", "history", history); err != nil {
			return nil, err
		}
	}
	r, err := s.s.Start(session.Prompt{Text: prompt, History: history})
	if err != nil {
		return nil, err
	}
	return &Run{r}, nil
}

// Send runs a prompt and waits. A run that fails is an error, with what it failed with.
// When ctx ends the run is cancelled; after that ctx starts none. See Start for history.
func (s *Session) Send(ctx context.Context, prompt string, history []Message) (Result, error) {
	if err := over(ctx, "session.send"); err != nil {
		return Result{}, err
	}
	r, err := s.Start(prompt, history)
	if err != nil {
		return Result{}, err
	}
	result, err := r.Wait(ctx)
	if ctx.Err() == nil {
		return result, err
	}
	r.Cancel("the context ended")
	result, err = r.Wait(context.WithoutCancel(ctx))
	return result, because(ctx, err)
}

// Run is Send of a prompt in the session's own conversation.
func (s *Session) Run(ctx context.Context, prompt string) (Result, error) {
	return s.Send(ctx, prompt, nil)
}

// SendRequest is Send of a Request.
func (s *Session) SendRequest(ctx context.Context, r Request) (Result, error) {
	return s.Send(ctx, r.Prompt, r.History)
}

// Stream runs a prompt and yields its events. The last one is agent_end or error: a run
// that fails is an event, not an error. An error is yielded once if the run cannot
// start. When ctx ends the run is cancelled and its last events still come. Breaking
// off the loop leaves the run going; use Cancel to stop it.
func (s *Session) Stream(ctx context.Context, prompt string) iter.Seq2[Event, error] {
	return s.StreamRequest(ctx, Request{Prompt: prompt})
}

// StreamRequest is Stream of a Request.
func (s *Session) StreamRequest(ctx context.Context, request Request) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if err := over(ctx, "run.start"); err != nil {
			yield(Event{}, err)
			return
		}
		r, err := s.Start(request.Prompt, request.History)
		if err != nil {
			yield(Event{}, err)
			return
		}
		stop := context.AfterFunc(ctx, func() { r.Cancel("the context ended") })
		defer stop()
		for e, err := range r.Events(0) {
			if !yield(e, err) {
				return
			}
		}
	}
}

// ID is the run's id.
func (r *Run) ID() string { return r.r.ID() }

// Snapshot says what is known of the run; false if it is not kept any more.
func (r *Run) Snapshot() (RunSnapshot, bool) { return r.r.Session().RunSnapshot(r.ID()) }

// Wait waits for the end of the run. The error is how it failed.
func (r *Run) Wait(ctx context.Context) (Result, error) { return r.r.Wait(ctx) }

// Cancel asks the run to stop and returns at once; false if it had ended or was asked
// before.
func (r *Run) Cancel(reason string) bool { return r.r.Cancel(reason) }

// Events yields the events of the run from number from on, until it has ended. Every
// call is a stream of its own.
func (r *Run) Events(from int64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		c := r.r.Stream(from)
		defer c.Close()
		read(c, yield)
	}
}

// Events yields the events of all runs of the session from now on, until the session is
// closed or the loop is left.
func (s *Session) Events(ctx context.Context) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		c, err := s.s.Stream()
		if err != nil {
			yield(Event{}, err)
			return
		}
		defer func() {
			c.Close()
			s.s.Release(c)
		}()
		stop := context.AfterFunc(ctx, c.Wake)
		defer stop()
		read(c, yield)
	}
}

// read yields what a cursor gives until it ends or is woken.
func read(c *tape.Cursor, yield func(Event, error) bool) {
	buf := make([]byte, 64<<10)
	for {
		n, needed, err := c.Next(context.Background(), 256, buf)
		switch fault.KindOf(err) {
		case fault.Buffer:
			buf = make([]byte, needed)
			continue
		case fault.End, fault.Woken:
			return
		}
		if err != nil {
			yield(Event{}, err)
			return
		}
		var batch []Event
		if err := json.Unmarshal(buf[:n], &batch); err != nil {
			yield(Event{}, fault.New(fault.Internal, "stream", "an event cannot be decoded: %v", err))
			return
		}
		for _, e := range batch {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// History gives the transcript.
func (s *Session) History() []Message { return s.s.History() }

// Cancel asks the active run to stop and returns at once; false if there is none or it
// was asked before.
func (s *Session) Cancel() bool { return s.s.CancelActive("") }

// CancelRun asks a run to stop if it is the active one.
func (s *Session) CancelRun(id string) bool { return s.s.CancelRun(id) }

// Save commits the session to its store; without a store nothing happens.
func (s *Session) Save(ctx context.Context) error { return because(ctx, s.s.Save(ctx)) }

// Close ends the session; reading goes on to work. If ctx ends first the error has code
// TIMEOUT and the rest goes on in the background.
func (s *Session) Close(ctx context.Context) error { return because(ctx, s.s.Close(ctx)) }

// Runs gives the runs that are kept, oldest first.
func (s *Session) Runs() []RunSnapshot { return s.s.Runs() }

// RunSnapshot gives one run; false if there is none.
func (s *Session) RunSnapshot(id string) (RunSnapshot, bool) { return s.s.RunSnapshot(id) }

// RunEvents gives the kept events of a run; none for an unknown run.
func (s *Session) RunEvents(id string) ([]Event, error) { return decodeAll(s.s.RunEvents(id)) }

// RunEventPage gives up to limit kept events behind number after; false for an unknown
// run. A limit below 1 is 256; after nil or below 0 is from the beginning.
func (s *Session) RunEventPage(id string, after *int64, limit int) (Page, bool) {
	if limit < 1 {
		limit = 256
	}
	if after != nil && *after < 0 {
		after = nil
	}
	return s.s.RunEventPage(id, after, limit)
}

// CurrentRun gives the active run; false if there is none.
func (s *Session) CurrentRun() (RunSnapshot, bool) { return s.s.Current() }

// ActiveTools gives the calls that run now, oldest first.
func (s *Session) ActiveTools() []ActiveTool { return s.s.ActiveTools() }

// TraceEvents gives the summaries of tool executions, direct ones too, oldest first.
func (s *Session) TraceEvents() []TraceEvent { return s.s.Traces() }

// PendingConfirmations gives the open questions.
func (s *Session) PendingConfirmations() []Pending { return s.s.Pending() }

// ConfirmToolUse answers a question; false if it is not open any more or never was.
func (s *Session) ConfirmToolUse(toolID string, approved bool, reason string) bool {
	return s.s.Confirm(toolID, approved, reason) == session.AnswerAccepted
}

// CancelConfirmations rejects every open question and counts them.
func (s *Session) CancelConfirmations() int {
	return s.s.CancelConfirmations("withdrawn by the host")
}

// ToolNames gives the names of all tools, sorted.
func (s *Session) ToolNames() []string { return s.s.ToolNames() }

// ToolDefinitions gives name, description and parameters of all tools.
func (s *Session) ToolDefinitions() []ToolSpec { return s.s.ToolDefinitions() }

// Commands gives the slash commands, sorted by name.
func (s *Session) Commands() []Command { return s.s.Commands() }

// Artifact gives an artifact by URI; false if there is none.
func (s *Session) Artifact(ctx context.Context, uri string) (Artifact, bool, error) {
	return s.s.Artifact(ctx, uri)
}

func decodeAll(raws []json.RawMessage) ([]Event, error) {
	out := make([]event.Envelope, len(raws))
	for i, b := range raws {
		if err := json.Unmarshal(b, &out[i]); err != nil {
			return nil, fault.New(fault.Internal, "session.run_events", "event %d cannot be decoded: %v", i, err)
		}
	}
	return out, nil
}
