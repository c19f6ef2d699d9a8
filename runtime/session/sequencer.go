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

// sequencer is the one place where facts of a session become numbers, bytes on disk
// and frames for streams, in this order: reserve room, redact, number, encode once,
// append, flush, hand to streams (S2). Nobody waits for a reader under mu.
//
// A store may be slow, or ask the very thread that wants to read: so mu is held while it
// writes, and view, which those who look at the session take, never is. mu comes first.
type sequencer struct {
	sid       string
	kept      store.Session // nil: memory only
	redact    *policy.Redactor
	now       func() int64
	merge     bool
	retention Retention
	stall     time.Duration

	mu     sync.Mutex
	delta  *delta        // merged, not numbered yet; guarded by mu
	first  []record.Fact // written before the first other fact; guarded by mu
	broken error         // the store failed; nothing more is written; guarded by mu

	view    sync.RWMutex
	fold    *fold                     // what the facts add up to; the facts of a run change under mu and view
	streams map[*tape.Cursor]struct{} // of the session; guarded by view
	ended   bool                      // the session is closed; changed under mu and view
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
	s.view.Lock()
	defer s.view.Unlock()
	s.apply(r, facts, g)
	if r == nil {
		s.evictTraces()
		return nil
	}
	r.tape.Append(g.told...)
	s.trim(r)
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
		return fault.Of(fault.CodeSession, "session.write", "the session's journal failed before and is not trusted any more; call save() once the cause is mended, or resume the session: %v", s.broken)
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
		s.view.Lock()
		r.start = pos
		s.view.Unlock()
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

// apply folds the group. Both locks are held.
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
