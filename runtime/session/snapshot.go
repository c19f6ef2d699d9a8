package session

import (
	"context"
	"encoding/json"
	"math"
	"slices"

	"github.com/a3s-lab/liba3s/internal/safego"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/record"
)

// Save commits the session to its store as one snapshot and starts a new journal
// (S16). Without a store it does nothing. It also heals a session whose journal failed:
// the snapshot holds all that was told.
func (s *Session) Save(ctx context.Context) error {
	if s.cfg.Kept == nil {
		return nil
	}
	q := s.seq
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ended {
		return fault.Of(fault.CodeSessionClosed, "session.save", "Session '%s' is closed", s.cfg.ID)
	}
	if q.broken == nil {
		_ = q.flushDelta(ctx) // if it fails it stays, and the snapshot is all the more wanted
	}
	snap, err := s.snapshot()
	if err != nil {
		return err
	}
	if err := safego.Call("session.save", func() error { return s.cfg.Kept.Save(ctx, snap) }); err != nil {
		return fault.Of(fault.CodeSession, "session.save", "Failed to save session %s: %v", s.cfg.ID, err)
	}
	q.first, q.broken = nil, nil
	q.view.Lock()
	defer q.view.Unlock()
	for _, r := range q.fold.runs { // the old journal is gone
		r.start = record.Pos{}
	}
	return nil
}

// snapshot gathers the whole state. The sequencer's lock is held, so that no fact comes
// in between.
func (s *Session) snapshot() (*record.Snapshot, error) {
	artifacts, err := s.cfg.Engine.Artifacts.All(context.Background()) // asks the store
	if err != nil {
		return nil, err
	}
	s.seq.view.RLock()
	defer s.seq.view.RUnlock()
	f := s.seq.fold
	snap := &record.Snapshot{
		SchemaVersion: 1, Session: s.data(f), TraceEvents: slices.Clone(f.traces),
		VerificationReports: s.reports, SubagentTasks: s.subagents, Extra: s.extra,
		Artifacts: artifacts,
	}
	for _, r := range f.runs {
		rec, err := r.record()
		if err != nil {
			return nil, err
		}
		snap.RunRecords = append(snap.RunRecords, rec)
	}
	snap.Normalise()
	return snap, snap.Validate(s.cfg.ID)
}

func (s *Session) data(f *fold) record.SessionData {
	d := s.cfg.Data
	d.ID, d.State = s.cfg.ID, "Active"
	d.Messages, d.TotalUsage = slices.Clone(f.messages), f.usage
	d.CreatedAt, d.UpdatedAt = s.createdAt, s.cfg.Source.NowMS()/1000
	d.ToolNames = s.cfg.Engine.Tools.Names()
	d.ContextUsage = record.ContextUsage{UsedTokens: f.lastUsed, MaxTokens: d.Config.MaxContextLength, Turns: f.turns}
	if d.ContextUsage.MaxTokens > 0 {
		d.ContextUsage.Percent = math.Round(10000*float64(f.lastUsed)/float64(d.ContextUsage.MaxTokens)) / 100
	}
	if f.data != nil { // what an earlier generation counted carries over
		d.TotalCost, d.CostRecords, d.Tasks = f.data.TotalCost, f.data.CostRecords, f.data.Tasks
	}
	return d
}

// record gives the run with the events in memory.
func (r *runLog) record() (record.RunRecord, error) {
	rec := record.RunRecord{Snapshot: r.snap}
	for _, b := range r.events(0, math.MaxInt) {
		e, err := flat(b)
		if err != nil {
			return rec, fault.Of(fault.CodeSerialization, "session.save", "run %q: %v", r.snap.ID, err)
		}
		rec.Events = append(rec.Events, e)
	}
	return rec, nil
}

// metaOf encodes where an answer came from; nothing if nobody said.
func metaOf(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil || string(b) == "{}" {
		return nil
	}
	return b
}
