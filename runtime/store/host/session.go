package host

import (
	"bytes"
	"context"
	"iter"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/record"
	"github.com/a3s-lab/liba3s/runtime/store"
)

// session is one session held for writing.
type session struct {
	st *Store
	id string

	mu     sync.Mutex
	loaded bool              // guarded by mu
	closed bool              // guarded by mu
	gen    uint64            // guarded by mu
	count  int64             // facts of this generation; guarded by mu
	broken error             // an append that nobody knows the outcome of; guarded by mu
	blobs  map[string][]byte // of a host that keeps none; guarded by mu
}

var _ store.Session = (*session)(nil)

// alive refuses what may not be done after Close, ready also what may not before Load.
// s.mu is held.
func (s *session) alive(op string) error {
	if s.closed {
		return fault.New(fault.Closed, op, "session %q was given up", s.id)
	}
	return nil
}

func (s *session) ready(op string) error {
	if err := s.alive(op); err != nil {
		return err
	}
	if !s.loaded {
		return fault.New(fault.Internal, op, "session %q was not loaded first", s.id)
	}
	return nil
}

// Load implements store.Session.
func (s *session) Load(ctx context.Context) (store.Kept, error) {
	const op = "store.load"
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.alive(op); err != nil {
		return store.Kept{}, err
	}
	if s.loaded {
		return store.Kept{}, fault.New(fault.Internal, op, "session %q is loaded already", s.id)
	}
	first, err := s.page(ctx, 0)
	if err != nil {
		return store.Kept{}, err
	}
	kept := store.Kept{}
	if first.Snapshot != nil {
		if kept.Snapshot, err = record.ParseSnapshot([]byte(*first.Snapshot)); err != nil {
			return store.Kept{}, err
		}
		if err := kept.Snapshot.Validate(s.id); err != nil {
			return store.Kept{}, err
		}
	}
	s.gen, s.count, s.loaded = max(first.Generation, 1), int64(len(first.Facts)), true
	if first.Count != nil {
		s.count = *first.Count
	}
	kept.Facts = s.facts(ctx, s.gen, 0, s.count, first.Facts)
	return kept, nil
}

// page asks for facts from number from on and checks what comes.
func (s *session) page(ctx context.Context, from int64) (StoreLoaded, error) {
	const op = "store.load"
	var p StoreLoaded
	if err := s.st.ask(ctx, "load", s.id, StoreLoad{ID: s.id, From: from, Limit: page}, &p); err != nil {
		return p, err
	}
	if p.Generation > maxGeneration {
		return p, s.st.garbage(op, "gives session %q the generation %d", s.id, p.Generation)
	}
	if slices.Contains(p.Facts, "") {
		return p, s.st.garbage(op, "gives an empty fact of session %q", s.id)
	}
	if n := p.Count; n != nil && (*n > maxFacts || *n < from+int64(len(p.Facts)) || *n > from && len(p.Facts) == 0) {
		return p, s.st.garbage(op, "counts %d facts of session %q and gives %d from number %d on", *n, s.id, len(p.Facts), from)
	}
	return p, nil
}

// facts yields the facts [from, to) of a generation; known are the first ones, if they
// are at hand.
func (s *session) facts(ctx context.Context, gen uint64, from, to int64, known []string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		have := known
		for at := from; at < to; {
			if err := ctx.Err(); err != nil {
				yield(nil, fault.From("store.read", err))
				return
			}
			if len(have) == 0 {
				var err error
				if have, err = s.more(ctx, gen, at); err != nil {
					yield(nil, err)
					return
				}
			}
			for _, f := range have[:min(int64(len(have)), to-at)] {
				at++
				if !yield([]byte(f), nil) {
					return
				}
			}
			have = nil
		}
	}
}

// more gives some facts of a generation from number at on.
func (s *session) more(ctx context.Context, gen uint64, at int64) ([]string, error) {
	s.mu.Lock()
	err := s.current("store.read", gen)
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	p, err := s.page(ctx, at)
	if err != nil {
		return nil, err
	}
	if len(p.Facts) == 0 {
		return nil, s.st.garbage("store.read", "has lost the facts of session %q from number %d on", s.id, at)
	}
	return p.Facts, nil
}

// current refuses a generation that a save ended. s.mu is held.
func (s *session) current(op string, gen uint64) error {
	if err := s.ready(op); err != nil {
		return err
	}
	if gen != s.gen {
		return fault.New(fault.NotFound, op, "the facts of generation %d are no longer kept", gen)
	}
	return nil
}

// Append implements store.Session. An offset is the number of the fact, from 1, since 0
// means the first of a generation. After a failure nobody knows what the host has kept,
// so nothing is appended any more.
func (s *session) Append(ctx context.Context, group [][]byte) (record.Pos, error) {
	const op = "store.append"
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ready(op); err != nil {
		return record.Pos{}, err
	}
	if err := store.ValidFacts(group); err != nil {
		return record.Pos{}, err
	}
	a := StoreAppend{ID: s.id, Generation: s.gen, From: s.count}
	for i, f := range group {
		if !utf8.Valid(f) {
			return record.Pos{}, fault.New(fault.Invalid, op, "fact %d of %d is not valid UTF-8", i, len(group))
		}
		a.Facts = append(a.Facts, string(f))
	}
	pos := record.Pos{Generation: s.gen, Offset: s.count + 1}
	if len(group) == 0 {
		return pos, nil
	}
	if s.broken == nil {
		// A cancelled run still writes how it ended; the deadline bounds the wait.
		s.broken = s.st.ask(context.WithoutCancel(ctx), "append", s.id, a, &nothing{})
	}
	if s.broken != nil {
		return record.Pos{}, s.broken
	}
	s.count += int64(len(group))
	return pos, nil
}

// Flush implements store.Session: what was appended is flushed.
func (s *session) Flush(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ready("store.flush")
}

// Read implements store.Session.
func (s *session) Read(ctx context.Context, from record.Pos) iter.Seq2[[]byte, error] {
	const op = "store.read"
	fail := func(err error) iter.Seq2[[]byte, error] {
		return func(yield func([]byte, error) bool) { yield(nil, err) }
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ready(op); err != nil {
		return fail(err)
	}
	if err := ctx.Err(); err != nil {
		return fail(fault.From(op, err))
	}
	if from == (record.Pos{}) {
		from.Generation = s.gen
	}
	if err := s.current(op, from.Generation); err != nil {
		return fail(err)
	}
	first := max(from.Offset, 1) - 1
	if from.Offset < 0 || first > s.count {
		return fail(fault.New(fault.Invalid, op, "generation %d has no fact at %d", from.Generation, from.Offset))
	}
	return s.facts(ctx, s.gen, first, s.count, nil)
}

// Save implements store.Session.
func (s *session) Save(ctx context.Context, snap *record.Snapshot) error {
	const op = "store.save"
	if err := snap.Validate(s.id); err != nil {
		return err
	}
	doc, err := record.EncodeSnapshot(snap)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ready(op); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fault.From(op, err)
	}
	p := StoreSave{ID: s.id, Generation: s.gen + 1, Snapshot: string(bytes.TrimSpace(doc))}
	// Once asked it is not withdrawn, since its outcome must be known.
	if err := s.st.ask(context.WithoutCancel(ctx), "save", s.id, p, &nothing{}); err != nil {
		if !reported(err) { // whether it was done is not known
			s.broken = err
		}
		return err
	}
	s.gen, s.count, s.broken = s.gen+1, 0, nil
	return nil
}

// Blobs implements store.Session.
func (s *session) Blobs() store.Blobs { return blobs{s} }

// Close implements store.Session.
func (s *session) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed, s.blobs = true, nil
	s.st.release(s.id)
	return nil
}
