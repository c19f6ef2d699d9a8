package session

import (
	"context"
	"time"

	"github.com/a3s-lab/liba3s/internal/safego"
	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/fault"
)

// The shares of closing (S12).
const (
	closeRun   = 2 * time.Second
	closeTools = 1 * time.Second
)

// Close ends the session: no new work, questions rejected, the run cancelled and its
// terminal event kept, tools gone, journal flushed and given up, streams ended. It
// never saves. Reading goes on to work. If ctx ends first the error is fault.Timeout
// and the rest goes on in the background. A second Close waits for the first.
func (s *Session) Close(ctx context.Context) error {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	s.mu.Unlock()
	if first {
		safego.Go("session.close", func(err error) { s.log(event.LogLine{Level: "error", Message: err.Error()}) }, s.wind)
	}
	select { // one that is closed says so even if ctx has ended too
	case <-s.done:
		return nil
	default:
	}
	select {
	case <-s.done:
		return nil
	case <-ctx.Done():
		return fault.New(fault.Timeout, "session.close", "session %q is still closing; the rest goes on in the background", s.cfg.ID)
	}
}

// wind does the work of Close.
func (s *Session) wind() {
	defer close(s.done)
	s.CancelConfirmations("the session was closed")
	if r := s.Active(); r != nil {
		r.Cancel("the session was closed")
		ctx, cancel := context.WithTimeout(context.Background(), closeRun)
		wait(ctx, r.done)
		cancel()
	}
	s.stop(fault.Of(fault.CodeCancelled, "session", "the session was closed"))
	direct := make(chan struct{})
	safego.Go("session.close", nil, func() { s.direct.Wait(); close(direct) })
	ctx, cancel := context.WithTimeout(context.Background(), closeTools)
	defer cancel()
	wait(ctx, direct)
	if r := s.Active(); r != nil { // a tool that does not let go keeps the run, not the session
		wait(ctx, r.done)
	}
	if s.cfg.Withdraw != nil {
		s.cfg.Withdraw("the session was closed")
	}
	s.seq.shut()
	if s.cfg.Kept != nil {
		if err := safego.Call("session.close", s.cfg.Kept.Close); err != nil {
			s.log(event.LogLine{Level: "error", Message: "the store did not close: " + err.Error()})
		}
	}
	if s.cfg.Closed != nil {
		s.cfg.Closed()
	}
}

// Done is closed when the session is closed for good.
func (s *Session) Done() <-chan struct{} { return s.done }

func wait(ctx context.Context, done <-chan struct{}) {
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// shut flushes the journal and ends the streams. Facts after it are refused.
func (s *sequencer) shut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.flushDelta(context.Background())
	if s.kept != nil && s.broken == nil {
		if err := safego.Call("session.close", func() error { return s.kept.Flush(context.Background()) }); err != nil {
			s.broken = err
		}
	}
	if s.broken == nil && s.kept != nil {
		s.broken = fault.Of(fault.CodeSessionClosed, "session", "Session '%s' is closed", s.sid)
	}
	s.view.Lock()
	defer s.view.Unlock()
	s.ended = true
	for c := range s.streams {
		c.Last()
	}
}
