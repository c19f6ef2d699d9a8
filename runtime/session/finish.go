package session

import (
	"bytes"
	"context"
	"errors"

	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/record"
	"github.com/a3s-lab/liba3s/runtime/run"
)

// finish ends the run in the order of S9: terminal fact flushed, automatic save, lease
// freed, terminal told.
func (r *Run) finish(out run.Outcome, err error, save bool) {
	s := r.s
	f := fault.From("run", r.close(err))
	failed, first := s.seq.terminal(r.log, terminal(out, f))
	if !first {
		return // it has ended: what came afterwards broke
	}
	if f == nil {
		f = fault.From("run", failed)
	}
	defer close(r.done)
	defer s.seq.tellTerminal(r.log)
	defer r.free()
	if f != nil {
		r.err = withoutSecrets(f, s.cfg.Redact)
	} else {
		r.result = r.resultOf(out)
	}
	if save && s.cfg.AutoSave && s.isOpen() == nil { // closing never saves (S12)
		if err := s.Save(context.Background()); err != nil {
			f := withoutSecrets(fault.From("session.save", err), s.cfg.Redact)
			s.frame(event.PersistenceFailed{SessionID: s.cfg.ID, Operation: "auto_save", Error: f.Error()})
			s.log(event.LogLine{Level: "warn", Message: "automatic save failed: " + f.Error(), RunID: r.ID(), ErrorKind: string(f.Kind)})
		}
	}
}

// close says that the run is ending, and how: one that was asked to stop was cancelled,
// however far it came.
func (r *Run) close(err error) error {
	s := r.s
	s.mu.Lock()
	defer s.mu.Unlock()
	r.over = true
	if r.ctx.Err() == nil || errors.Is(err, fault.Of(fault.CodeCancelled, "", "")) {
		return err
	}
	return context.Cause(r.ctx)
}

// free gives the lease back.
func (r *Run) free() {
	r.cancel(nil)
	r.s.mu.Lock()
	r.s.active = nil
	r.s.mu.Unlock()
}

func terminal(out run.Outcome, f *fault.Error) event.Payload {
	if f != nil {
		return event.FromFault(f)
	}
	return event.AgentEnd{Text: out.Text, Usage: out.Usage, VerificationSummary: noVerification, Meta: metaOf(out.Meta)}
}

func (r *Run) resultOf(out run.Outcome) Result {
	r.s.seq.view.RLock()
	calls, text := r.log.calls, r.log.snap.ResultText
	r.s.seq.view.RUnlock()
	return Result{
		RunID: r.ID(), Text: text, ToolCallsCount: calls,
		PromptTokens: out.Usage.PromptTokens, CompletionTokens: out.Usage.CompletionTokens, TotalTokens: out.Usage.TotalTokens,
		VerificationStatus: noVerification.Status, VerificationSummaryText: "no verification was run", VerificationSummary: noVerification,
	}
}

// terminal writes and flushes how a run ended without telling it yet; first is false if
// it has ended before. Calls that are open get their outcomes. If the store fails all of
// it is numbered all the same, since every run ends in exactly one terminal event; but a
// run whose end is lost did not complete: then failed says why.
func (s *sequencer) terminal(r *runLog, p event.Payload) (failed error, first bool) {
	ctx := context.Background()
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.terminal != nil {
		return nil, false
	}
	lost := s.flushDelta(ctx)
	s.delta = nil
	if lost == nil {
		lost = s.release(ctx, r, func(deltaKey) bool { return true })
	}
	last := append(outcomes(r, "the run ended"), record.Fact{Event: p})
	g, err := s.encode(r, last)
	if err != nil { // metadata that cannot be encoded must not cost the terminal event
		failed = fault.New(fault.Internal, "run", "%v", err)
		last = []record.Fact{{Event: event.FromFault(fault.From("run", failed))}}
		g, _ = s.encode(r, last)
	}
	if lost == nil {
		lost = s.keep(ctx, r, g, true)
	}
	if _, completed := last[len(last)-1].Event.(event.AgentEnd); completed && lost != nil {
		failed = lost
		last[len(last)-1].Event = event.FromFault(fault.From("run", lost))
		g, _ = s.encode(r, last)
	}
	s.view.Lock()
	s.apply(r, last, g)
	for _, b := range g.told {
		r.untold = append(r.untold, bytes.Clone(b))
	}
	s.view.Unlock()
	g.free()
	return failed, true
}

// tellTerminal tells the last events of a run and ends its tape.
func (s *sequencer) tellTerminal(r *runLog) {
	s.view.Lock()
	defer s.view.Unlock()
	last := r.untold
	r.untold = nil
	r.tape.Append(last...)
	s.trim(r)
	r.tape.End()
	s.evict()
}
