package session

import (
	"context"
	"time"

	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/record"
)

// control says that facts are questions, answers or the end of a run, which never wait.
func control(facts []record.Fact) bool {
	for _, f := range facts {
		switch f.Event.(type) {
		case event.ConfirmationRequired, event.ConfirmationReceived, event.ConfirmationTimeout, event.AgentEnd, event.Error:
		default:
			return false
		}
	}
	return true
}

// room waits until the memory log of a run without a store may grow: nothing that an
// open stream has not read is dropped before stall_timeout_ms (S5). A stream that is
// later than that loses what is dropped then, and is not waited for again until it has
// caught up.
func (s *sequencer) room(ctx context.Context, r *runLog) {
	if r == nil || s.kept != nil || s.retention.Unbounded {
		return
	}
	var deadline *time.Timer // most facts find room at once
	for {
		first, next, bytes := r.tape.Bounds()
		if next-first < int64(s.retention.MaxEventsPerRun) && bytes < s.retention.MaxEventBytesPerRun {
			return
		}
		low, moved := r.tape.Behind()
		if low > first {
			return
		}
		if deadline == nil {
			deadline = time.NewTimer(s.stall)
			defer deadline.Stop()
		}
		select {
		case <-moved:
		case <-deadline.C:
			r.tape.Trim(first + (next-first)/8 + 1)
			return
		case <-ctx.Done():
			return // the terminal event must not wait; the caller sees ctx itself
		}
	}
}

// trim keeps the memory of a run within its bounds; without a store what an open stream
// still has to read stays.
func (s *sequencer) trim(r *runLog) {
	if s.retention.Unbounded {
		return
	}
	first, next, bytes := r.tape.Bounds()
	to := max(first, next-int64(s.retention.MaxEventsPerRun))
	if bytes > s.retention.MaxEventBytesPerRun {
		to = max(to, first+(next-first)/8+1) // an eighth at a time
	}
	to = min(to, next-1)
	if to > first && s.kept == nil {
		low, _ := r.tape.Behind()
		to = min(to, low)
	}
	if to > first {
		r.tape.Trim(to)
	}
}

// evict drops what is over the retention limits: oldest ended runs first. s.view is held.
func (s *sequencer) evict() {
	if s.retention.Unbounded {
		return
	}
	f := s.fold
	var bytes int64
	for _, r := range f.runs {
		_, _, n := r.tape.Bounds()
		bytes += n
	}
	for len(f.runs) > 1 && (len(f.runs) > s.retention.MaxRunsRetained || bytes > maxSessionBytes) && f.runs[0].tape.Ended() {
		r := f.runs[0]
		_, next, n := r.tape.Bounds()
		bytes -= n
		r.tape.Trim(next)
		f.runs = f.runs[1:]
		delete(f.byID, r.snap.ID)
	}
	s.evictTraces()
}

// evictTraces drops the oldest traces over the limit. s.view is held.
func (s *sequencer) evictTraces() {
	limit := s.retention.MaxTraceEvents
	if f := s.fold; !s.retention.Unbounded && len(f.traces) > limit {
		f.traces = f.traces[len(f.traces)-limit:]
	}
}
