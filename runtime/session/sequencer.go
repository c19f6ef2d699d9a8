package session

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/a3s-lab/liba3s/internal/safego"
	"github.com/a3s-lab/liba3s/internal/tape"
	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/policy"
	"github.com/a3s-lab/liba3s/runtime/record"
	"github.com/a3s-lab/liba3s/runtime/store"
)

const (
	mergeFor   = 10 * time.Millisecond // how long a delta may wait for its neighbours (S1)
	mergeBytes = 4 << 10               // and how many bytes they may be (S1)
)

// sequencer is the one place where facts of a session become numbers, bytes on disk
// and frames for streams, in this order: reserve room, redact, number, encode once,
// append, flush, hand to streams (S2). Nobody waits for a reader under mu.
type sequencer struct {
	sid       string
	kept      store.Session // nil: memory only
	redact    *policy.Redactor
	now       func() int64
	merge     bool
	retention Retention
	stall     time.Duration

	mu      sync.Mutex
	fold    *fold                     // what the facts add up to; guarded by mu
	streams map[*tape.Cursor]struct{} // of the session; guarded by mu
	delta   *delta                    // merged, not numbered yet; guarded by mu
	first   []record.Fact             // written before the first other fact; guarded by mu
	ended   bool                      // the session is closed; guarded by mu
	broken  error                     // the store failed; nothing more is written; guarded by mu
}

// delta is a row of neighbouring pieces of one stream that become one event.
type delta struct {
	run   *runLog
	key   deltaKey
	text  []byte
	timer *time.Timer
}

// deltaKey says which pieces may be joined (S4).
type deltaKey struct{ kind, id, name string }

func keyOf(p event.Payload) (deltaKey, string) {
	switch e := p.(type) {
	case event.TextDelta:
		return deltaKey{kind: e.Type()}, e.Text
	case event.ReasoningDelta:
		return deltaKey{kind: e.Type()}, e.Text
	case event.ToolInputDelta:
		return deltaKey{kind: e.Type(), id: e.ID}, e.Delta
	case event.ToolOutputDelta:
		return deltaKey{kind: e.Type(), id: e.ID, name: e.Name}, e.Delta
	}
	return deltaKey{}, ""
}

// ofTool says that the pieces are a tool's, which may come beside those of others.
func (k deltaKey) ofTool() bool { return k.kind == event.ToolOutputDelta{}.Type() }

func (k deltaKey) payload(text string) event.Payload {
	switch k.kind {
	case event.TextDelta{}.Type():
		return event.TextDelta{Text: text}
	case event.ReasoningDelta{}.Type():
		return event.ReasoningDelta{Text: text}
	case event.ToolInputDelta{}.Type():
		return event.ToolInputDelta{ID: k.id, Delta: text}
	}
	return event.ToolOutputDelta{ID: k.id, Name: k.name, Delta: text}
}

// push hands in a piece of a stream.
func (s *sequencer) push(ctx context.Context, r *runLog, p event.Payload) error {
	key, text := keyOf(p)
	if key.kind == "" {
		return fault.New(fault.Internal, "session.delta", "%s is not a delta", p.Type())
	}
	s.room(ctx, r)
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.terminal != nil {
		return r.isOver()
	}
	if s.delta != nil && (s.delta.key != key || s.delta.run != r) {
		if err := s.flushDelta(ctx); err != nil {
			return err
		}
	}
	if err := s.release(ctx, r, func(k deltaKey) bool { return k != key && !k.ofTool() }); err != nil {
		return err
	}
	whole := text
	if s.redact != nil {
		text = r.held(key, s.redact).Push(text)
	}
	if text == "" {
		return nil
	}
	if !s.merge {
		if text != whole {
			p = key.payload(text)
		}
		return s.write(ctx, r, false, record.Fact{Event: p})
	}
	if s.delta == nil {
		d := &delta{run: r, key: key}
		d.timer = time.AfterFunc(mergeFor, func() { s.expire(d) })
		s.delta = d
	}
	s.delta.text = append(s.delta.text, text...)
	if len(s.delta.text) >= mergeBytes {
		return s.flushDelta(ctx)
	}
	return nil
}

// expire writes a delta that has waited long enough. A failure shows up at the run's
// next fact, which begins with the same delta.
func (s *sequencer) expire(d *delta) {
	_ = safego.Call("session.merge", func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.delta != d {
			return nil
		}
		return s.flushDelta(context.Background())
	})
}

// flushDelta writes the merged delta, which stays if that fails. s.mu is held.
func (s *sequencer) flushDelta(ctx context.Context) error {
	d := s.delta
	if d == nil {
		return nil
	}
	d.timer.Stop()
	if err := s.write(ctx, d.run, false, record.Fact{Event: d.key.payload(string(d.text))}); err != nil {
		return err
	}
	s.delta = nil
	return nil
}

// release tells the ends of streams that might have been the beginning of a secret:
// those of the model once anything else follows, those of a tool at its end.
func (s *sequencer) release(ctx context.Context, r *runLog, over func(deltaKey) bool) error {
	for _, h := range r.takeHeld(over) {
		if text := h.stream.Flush(); text != "" {
			if err := s.write(ctx, r, false, record.Fact{Event: h.key.payload(text)}); err != nil {
				return err
			}
		}
	}
	return nil
}

// over says which streams end with a group of facts.
func over(facts []record.Fact) func(deltaKey) bool {
	ended := map[string]bool{}
	last := false
	for _, f := range facts {
		switch e := f.Event.(type) {
		case event.ToolEnd:
			ended[e.ID] = true
		case event.AgentEnd, event.Error:
			last = true
		}
	}
	return func(k deltaKey) bool {
		return last || !k.ofTool() || ended[k.id]
	}
}

// append writes a group of facts of a run and tells its events. flush makes it durable.
func (s *sequencer) append(ctx context.Context, r *runLog, flush bool, facts ...record.Fact) error {
	if !control(facts) {
		s.room(ctx, r)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r != nil && r.terminal != nil {
		return r.isOver()
	}
	if err := s.flushDelta(ctx); err != nil {
		return err
	}
	if r != nil {
		if err := s.release(ctx, r, over(facts)); err != nil {
			return err
		}
	}
	return s.write(ctx, r, flush, facts...)
}

// write is the order of S2 for one group. s.mu is held.
func (s *sequencer) write(ctx context.Context, r *runLog, flush bool, facts ...record.Fact) error {
	g, err := s.encode(r, facts)
	if err != nil {
		return err
	}
	defer g.free()
	if err := s.keep(ctx, r, g, flush); err != nil {
		return err
	}
	s.apply(r, facts, g)
	if r != nil {
		r.tape.Append(g.told...)
		s.trim(r)
	}
	return nil
}

// group is a row of encoded facts that is written at once. Its memory is used again:
// the store and the tape copy what they keep.
type group struct {
	buf   []byte // the facts, one behind the other
	ends  []int  // where each ends in buf
	metas []event.Metadata
	lines [][]byte // for the journal
	told  [][]byte // for the streams

	redacted []int // which facts lost a secret
}

var groups = sync.Pool{New: func() any { return new(group) }}

// keepGroup is the largest buffer that is kept for the next group.
const keepGroup = 64 << 10

func (g *group) free() {
	if cap(g.buf) > keepGroup {
		return
	}
	clear(g.metas) // the ids of a session that may be gone
	g.buf, g.ends, g.metas, g.lines, g.told = g.buf[:0], g.ends[:0], g.metas[:0], g.lines[:0], g.told[:0]
	g.redacted = g.redacted[:0]
	groups.Put(g)
}

// encode redacts, numbers and encodes.
func (s *sequencer) encode(r *runLog, facts []record.Fact) (*group, error) {
	g := groups.Get().(*group)
	told := int64(0)
	for i, f := range facts {
		start := len(g.buf)
		var m event.Metadata
		if f.Event == nil {
			b, err := record.Encode(f)
			if err != nil {
				return nil, err
			}
			g.buf = append(g.buf, b...)
		} else {
			m = event.Metadata{RunID: r.snap.ID, SessionID: s.sid, Sequence: r.next + told, TimestampMS: max(s.now(), r.lastMS)}
			b, err := event.Append(g.buf, f.Event, m)
			if err != nil {
				return nil, fault.New(fault.Internal, "session.encode", "%s: %v", f.Event.Type(), err)
			}
			g.buf = b
			told++
		}
		if s.redact != nil {
			if clean := s.redact.Bytes(g.buf[start:]); len(clean) > 0 && &clean[0] != &g.buf[start] {
				g.buf = append(g.buf[:start], clean...)
				g.redacted = append(g.redacted, i)
			}
		}
		g.ends = append(g.ends, len(g.buf))
		g.metas = append(g.metas, m)
	}
	start := 0
	for i, end := range g.ends { // only now does buf stay where it is
		line := g.buf[start:end:end]
		g.lines = append(g.lines, line)
		if facts[i].Event != nil {
			g.told = append(g.told, line)
		}
		start = end
	}
	return g, nil
}

// keep hands the group to the store. Once that fails nothing more is written before a
// save: nobody knows what the store has.
func (s *sequencer) keep(ctx context.Context, r *runLog, g *group, flush bool) error {
	if s.kept == nil {
		return nil
	}
	if s.broken != nil {
		return s.broken
	}
	ctx = context.WithoutCancel(ctx) // a cancelled run still writes how it ended
	lines := g.lines
	if s.first != nil {
		head, err := s.encode(nil, s.first)
		if err != nil {
			return err
		}
		lines = append(head.lines, lines...)
	}
	pos, err := s.hand(ctx, lines, flush)
	if err != nil {
		s.broken = err
		return err
	}
	s.first = nil
	if r != nil && r.next == 0 {
		r.start = pos
	}
	return nil
}

// hand gives lines to the store, which may be the host's and panic.
func (s *sequencer) hand(ctx context.Context, lines [][]byte, flush bool) (pos record.Pos, err error) {
	err = safego.Call("session.write", func() (err error) {
		pos, err = s.kept.Append(ctx, lines)
		return err
	})
	if err != nil {
		return pos, fault.Of(fault.CodeSession, "session.write", "the session's journal cannot be written: %v", err)
	}
	if !flush {
		return pos, nil
	}
	if err = safego.Call("session.write", func() error { return s.kept.Flush(ctx) }); err != nil {
		return pos, fault.Of(fault.CodeSession, "session.write", "the session's journal cannot be flushed: %v", err)
	}
	return pos, nil
}

// apply folds the group. s.mu is held.
func (s *sequencer) apply(r *runLog, facts []record.Fact, g *group) {
	for i, f := range facts {
		if slices.Contains(g.redacted, i) {
			f = asTold(g.lines[i], f)
		}
		switch {
		case f.Event != nil:
			s.fold.event(r, f.Event, g.metas[i])
		case f.Message != nil:
			s.fold.message(r, *f.Message)
		case f.Mark != nil:
			s.fold.mark(*f.Mark)
		}
	}
}

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
// still has to read stays. s.mu is held.
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
