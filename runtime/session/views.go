package session

import (
	"context"
	"encoding/json"
	"math"
	"slices"

	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/record"
)

// Page is a part of a run's events.
type Page struct {
	Events                  []json.RawMessage `json:"events"`
	FirstAvailableSequence  *int64            `json:"first_available_sequence"`
	LatestSequenceExclusive int64             `json:"latest_sequence_exclusive"`
	NextAfterSequence       *int64            `json:"next_after_sequence"`
	RetentionGap            bool              `json:"retention_gap"`
	HasMore                 bool              `json:"has_more"`
}

// ActiveTool is a call that runs now.
type ActiveTool struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	StartedAtMS int64  `json:"started_at_ms"`
}

// Runs gives every run that is kept, oldest first.
func (s *Session) Runs() []record.RunSnapshot {
	s.seq.view.RLock()
	defer s.seq.view.RUnlock()
	out := make([]record.RunSnapshot, 0, len(s.seq.fold.runs))
	for _, r := range s.seq.fold.runs {
		out = append(out, r.snap)
	}
	return out
}

// RunSnapshot gives one run; ok is false if there is none.
func (s *Session) RunSnapshot(id string) (snap record.RunSnapshot, ok bool) {
	s.seq.view.RLock()
	defer s.seq.view.RUnlock()
	if r := s.seq.fold.byID[id]; r != nil {
		return r.snap, true
	}
	return snap, false
}

// RunEvents gives the kept events of a run as envelopes; none for an unknown run.
func (s *Session) RunEvents(id string) []json.RawMessage {
	p, ok := s.RunEventPage(id, nil, 1<<31)
	if !ok {
		return []json.RawMessage{}
	}
	return p.Events
}

// RunEventPage gives up to limit kept events behind number after (nil: from the
// beginning); ok is false for an unknown run.
func (s *Session) RunEventPage(id string, after *int64, limit int) (p Page, ok bool) {
	s.seq.view.RLock()
	defer s.seq.view.RUnlock()
	r := s.seq.fold.byID[id]
	if r == nil {
		return p, false
	}
	from := int64(0)
	if after != nil {
		from = min(*after, math.MaxInt64-1) + 1
	}
	s.seq.trim(r) // what was kept for a reader that has read it meanwhile
	first, next, _ := r.tape.Bounds()
	p = Page{Events: []json.RawMessage{}, LatestSequenceExclusive: r.tellable(next), NextAfterSequence: after}
	if first < next {
		p.FirstAvailableSequence = &first
	}
	p.RetentionGap = from < next && from < first
	start := max(from, first)
	for _, b := range r.tape.Items(start, limit) {
		p.Events = append(p.Events, b)
	}
	if n := int64(len(p.Events)); n > 0 {
		last := start + n - 1
		p.NextAfterSequence = &last
	}
	p.HasMore = start+int64(len(p.Events)) < next
	return p, true
}

// tellable is event_count as a reader may see it: without the terminal event that is
// written and not told yet.
func (r *runLog) tellable(next int64) int64 {
	if r.untold != nil {
		return next
	}
	return r.snap.EventCount
}

// Current gives the active run; ok is false if there is none.
func (s *Session) Current() (snap record.RunSnapshot, ok bool) {
	s.mu.Lock()
	active := s.active
	s.mu.Unlock()
	if active == nil {
		return snap, false
	}
	return s.RunSnapshot(active.ID())
}

// Active gives the active run, nil if there is none.
func (s *Session) Active() *Run {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.active
}

// ActiveTools gives the calls that run now, oldest first.
func (s *Session) ActiveTools() []ActiveTool {
	s.mu.Lock()
	active := s.active
	s.mu.Unlock()
	out := []ActiveTool{}
	if active == nil {
		return out
	}
	s.seq.view.RLock()
	defer s.seq.view.RUnlock()
	for id, a := range active.log.active {
		out = append(out, ActiveTool{ID: id, Name: a.Name, StartedAtMS: a.StartedAtMS})
	}
	slices.SortFunc(out, func(a, b ActiveTool) int {
		if a.StartedAtMS != b.StartedAtMS {
			return int(a.StartedAtMS - b.StartedAtMS)
		}
		return cmpString(a.ID, b.ID)
	})
	return out
}

// CancelActive asks the active run to stop; false if there is none or it was asked.
func (s *Session) CancelActive(reason string) bool {
	r := s.Active()
	return r != nil && r.Cancel(reason)
}

// CancelRun asks a run to stop if it is the active one.
func (s *Session) CancelRun(id string) bool {
	r := s.Active()
	return r != nil && r.ID() == id && r.Cancel("")
}

// Artifact gives an artifact by URI; ok is false if there is none.
func (s *Session) Artifact(ctx context.Context, uri string) (record.Artifact, bool, error) {
	a, err := s.cfg.Engine.Artifacts.Record(ctx, uri)
	if fault.KindOf(err) == fault.NotFound {
		return record.Artifact{}, false, nil
	}
	return a, err == nil, err
}

// Traces gives the summaries of tool executions, oldest first.
func (s *Session) Traces() []record.TraceEvent {
	s.seq.view.RLock()
	defer s.seq.view.RUnlock()
	return append([]record.TraceEvent{}, s.seq.fold.traces...)
}

// ToolNames gives the names of all tools, sorted.
func (s *Session) ToolNames() []string { return s.cfg.Engine.Tools.Names() }

// ToolDefinitions gives what a model may be told of the tools, sorted by name.
func (s *Session) ToolDefinitions() []chat.ToolSpec { return s.cfg.Engine.Tools.Specs() }
