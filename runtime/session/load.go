package session

import (
	"context"
	"encoding/json"
	"iter"
	"slices"

	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/policy"
	"github.com/a3s-lab/liba3s/runtime/record"
)

// load folds what the store holds, and settles runs that a dead process left open.
func (s *Session) load(ctx context.Context) error {
	if s.cfg.Kept == nil {
		return nil
	}
	kept, err := s.cfg.Kept.Load(ctx)
	if err != nil {
		return err
	}
	s.warn(kept.Warning)
	f := s.seq.fold
	f.artifacts = []record.Artifact{}
	if kept.Snapshot != nil {
		if err := s.restore(kept.Snapshot); err != nil {
			return err
		}
	}
	facts, err := s.replay(kept.Facts)
	if err != nil {
		return err
	}
	f.names(s.cfg.Source.Taken)
	if s.cfg.Journal {
		s.seq.kept = s.cfg.Kept
	}
	switch {
	case kept.Snapshot != nil:
	case facts == 0:
		d := s.cfg.Data
		d.ID, d.CreatedAt, d.UpdatedAt, d.State = s.cfg.ID, s.createdAt, s.createdAt, "Active"
		s.seq.first = []record.Fact{{Mark: &record.Mark{Session: &d}}}
	case f.data != nil:
		s.createdAt = f.data.CreatedAt
	}
	if err := s.cfg.Engine.Artifacts.Restore(ctx, f.artifacts); err != nil {
		return err
	}
	f.artifacts = nil
	return s.settleRuns(ctx)
}

// replay folds a journal, keeping memory to the live state, and counts its facts.
func (s *Session) replay(facts iter.Seq2[[]byte, error]) (n int, err error) {
	f := s.seq.fold
	for raw, err := range facts {
		if err != nil {
			return n, err
		}
		l, err := record.Decode(raw)
		if err != nil {
			return n, err
		}
		if err := f.line(s.cfg.ID, raw, l); err != nil {
			return n, err
		}
		if l.Event != nil {
			s.bound(f.byID[l.Event.Metadata.RunID])
		}
		n++
	}
	return n, nil
}

// bound keeps a run that is being loaded within the retention limits.
func (s *Session) bound(r *runLog) {
	s.seq.trim(r)
	if r.tape.Ended() {
		s.seq.evict()
	}
}

// restore folds a snapshot. Older programs kept texts as they were, so that secrets
// leave them here.
func (s *Session) restore(snap *record.Snapshot) error {
	f := s.seq.fold
	s.cfg.Data.Extra = snap.Session.Extra
	s.extra = snap.Extra
	s.reports, s.subagents = snap.VerificationReports, snap.SubagentTasks
	s.createdAt = snap.Session.CreatedAt
	var err error
	if f.messages, err = cleaned(snap.Session.Messages, s.cfg.Redact); err != nil {
		return err
	}
	f.usage = snap.Session.TotalUsage
	f.turns, f.lastUsed = snap.Session.ContextUsage.Turns, snap.Session.ContextUsage.UsedTokens
	f.traces = snap.TraceEvents
	f.artifacts = snap.Artifacts
	f.data = &snap.Session
	for _, rec := range snap.RunRecords {
		r, err := restoreRun(s.cfg.ID, rec, s.cfg.Redact)
		if err != nil {
			return err
		}
		f.add(r)
		s.bound(r)
	}
	if n := len(f.runs); n > 0 && !f.runs[n-1].snap.Status.Terminal() {
		events := snap.RunRecords[len(snap.RunRecords)-1].Events
		f.runs[n-1].reopen(f.messages, len(events) > 0 && events[0].Sequence == 0)
	}
	return nil
}

// restoreRun rebuilds a run from its record.
func restoreRun(sid string, rec record.RunRecord, redact *policy.Redactor) (*runLog, error) {
	first := rec.Snapshot.EventCount
	if len(rec.Events) > 0 {
		first = rec.Events[0].Sequence
	}
	r := newRunLog(rec.Snapshot.ID, sid, first)
	r.snap = rec.Snapshot
	r.snap.Prompt, r.snap.ResultText, r.snap.Error = redact.String(r.snap.Prompt), redact.String(r.snap.ResultText), redact.String(r.snap.Error)
	for _, e := range rec.Events {
		env, err := e.Envelope(rec.Snapshot.ID, sid)
		if err != nil {
			return nil, err
		}
		b, err := json.Marshal(env)
		if err != nil {
			return nil, fault.Of(fault.CodeSerialization, "session.load", "run %q event %d: %v", rec.Snapshot.ID, e.Sequence, err)
		}
		if _, next, _ := r.tape.Bounds(); e.Sequence > next { // 6.x may keep events with holes
			r.tape.Skip(e.Sequence)
		}
		r.tape.Append(redact.Bytes(b))
		r.lastMS = e.TimestampMS
		r.reopenEvent(env)
	}
	r.next = rec.Snapshot.EventCount
	r.tape.Skip(r.next)
	if r.snap.Status.Terminal() {
		r.tape.End()
	}
	return r, nil
}

// reopenEvent notes what is under way in a run that was saved while it ran.
func (r *runLog) reopenEvent(env event.Envelope) {
	if r.snap.Status.Terminal() {
		return
	}
	p, err := event.Decode(env.Type, env.Payload)
	if err != nil {
		return // a payload of another version opens nothing
	}
	switch e := p.(type) {
	case event.ToolExecutionStart:
		r.started[e.ID] = startedOf(e, env.Metadata.TimestampMS)
	case event.ConfirmationRequired:
		r.questions[e.ToolID] = chat.Call{ID: e.ToolID, Name: e.ToolName, Args: e.Args}
	case event.ConfirmationReceived:
		delete(r.questions, e.ToolID)
	case event.ConfirmationTimeout:
		delete(r.questions, e.ToolID)
	case event.ToolEnd:
		delete(r.started, e.ID)
	}
}

// reopen finds the calls of the transcript's last assistant message without outcome. If
// the events of the run are not whole, since they were trimmed before it was saved, the
// intent of a call may be missing: then nobody knows that the call was not started.
func (r *runLog) reopen(messages []chat.Message, whole bool) {
	answered := map[string]bool{}
	for i := len(messages) - 1; i >= 0; i-- {
		m := messages[i]
		for _, b := range m.Content {
			answered[b.ToolUseID] = true
		}
		if m.Role == chat.Assistant {
			for _, c := range m.Calls() {
				if answered[c.ID] {
					continue
				}
				r.open = append(r.open, c)
				if _, known := r.started[c.ID]; !known && !whole {
					r.started[c.ID] = startedCall{call: c}
				}
			}
			return
		}
	}
}

// settleRuns writes how the runs of a dead process ended (S13, S14): nothing is
// executed, and what may have happened is said to be unknown.
func (s *Session) settleRuns(ctx context.Context) error {
	for _, r := range s.seq.fold.runs {
		if r.snap.Status.Terminal() {
			continue
		}
		if err := s.seq.append(ctx, r, true, settlement(r)...); err != nil {
			return err
		}
		r.tape.End()
		s.log(event.LogLine{Level: "warn", Message: "the run was interrupted by the end of its process", RunID: r.snap.ID, ErrorKind: "interrupted"})
	}
	return nil
}

func settlement(r *runLog) []record.Fact {
	var facts []record.Fact
	interrupted := "interrupted"
	for _, c := range sortedCalls(r.questions) {
		facts = append(facts, record.Fact{Event: event.ConfirmationReceived{ToolID: c.ID, Reason: &interrupted}})
	}
	unknown := 0
	for _, st := range r.started {
		if !st.readOnly {
			unknown++
		}
	}
	facts = append(facts, outcomes(r, "its process ended")...)
	f := fault.Of(fault.CodeInterrupted, "session.resume", "the process that ran it ended; nothing was repeated").With("outcome_unknown", unknown)
	return append(facts, record.Fact{Event: event.FromFault(f)})
}

// outcomes settles the calls that are open at the end of a run: those of the model in
// their order, then those that other calls made.
func outcomes(r *runLog, end string) []record.Fact {
	var facts []record.Fact
	inner := map[string]chat.Call{}
	for id, st := range r.started {
		inner[id] = st.call
	}
	for _, c := range r.open {
		facts = append(facts, record.Fact{Event: outcome(c, r.started, end)})
		delete(inner, c.ID)
	}
	for _, c := range sortedCalls(inner) {
		facts = append(facts, record.Fact{Event: outcome(c, r.started, end)})
	}
	return facts
}

// outcome of a call that nobody finished.
func outcome(c chat.Call, started map[string]startedCall, end string) event.ToolEnd {
	e := event.ToolEnd{ID: c.ID, Name: c.Name, Args: c.Args, ExitCode: 1}
	st, ran := started[c.ID]
	switch {
	case !ran:
		e.Output, e.ErrorKind = "tool "+c.Name+" was not started: "+end, &chat.ErrorKind{Type: chat.WasCancelled, Op: c.Name}
	case st.readOnly:
		e.Output = "tool " + c.Name + " was interrupted: " + end + "; it changed nothing and may be called again"
		e.ErrorKind = &chat.ErrorKind{Type: chat.WasInterrupted, Op: c.Name}
	default:
		e.Output = end + " while tool " + c.Name + " was running: whether it took effect is not known; look before you repeat it"
		e.ErrorKind = &chat.ErrorKind{Type: chat.OutcomeUnknown, Op: c.Name}
	}
	return e
}

func sortedCalls(m map[string]chat.Call) []chat.Call {
	var out []chat.Call
	for _, c := range m {
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b chat.Call) int { return cmpString(a.ID, b.ID) })
	return out
}
