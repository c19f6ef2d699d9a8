// Package mem keeps sessions in the memory of one Store object: they outlive their
// Close, so that a resume with the same object finds them, and end with the process.
// Every write is flushed at once, since there is nothing to flush to. Floor 8.
package mem

import (
	"context"
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/record"
	"github.com/a3s-lab/liba3s/runtime/store"
)

// Config has nothing to say; it is here so that every back-end opens alike.
type Config struct{}

// Store keeps sessions in memory.
type Store struct {
	mu   sync.Mutex
	kept map[string]*kept // guarded by mu
}

var _ store.Store = (*Store)(nil)

// kept is what remains of a session between its opens. All is guarded by Store.mu.
// The byte slices in it are never changed, only replaced.
type kept struct {
	owner    string // of the open session
	open     bool
	snapshot []byte // the document, so that nobody shares its parts; nil for none
	gen      uint64
	facts    [][]byte
	blobs    map[string][]byte
}

// void says that nothing was ever put into it.
func (k *kept) void() bool { return k.snapshot == nil && len(k.facts) == 0 && len(k.blobs) == 0 }

// Open gives an empty store.
func Open(ctx context.Context, _ Config) (*Store, error) {
	if err := ctx.Err(); err != nil {
		return nil, fault.From("store.open", err)
	}
	return &Store{kept: map[string]*kept{}}, nil
}

// Open implements store.Store.
func (s *Store) Open(ctx context.Context, id, owner string) (store.Session, error) {
	const op = "store.open"
	if err := store.ValidID(id); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fault.From(op, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.kept[id]
	if k == nil {
		k = &kept{gen: 1, blobs: map[string][]byte{}}
		s.kept[id] = k
	}
	if k.open {
		return nil, busy(op, id, k.owner)
	}
	k.open, k.owner = true, owner
	return &session{st: s, id: id, k: k}, nil
}

func busy(op, id, owner string) error {
	return fault.Of(fault.CodeSessionBusy, op, "session %q is in use by %q; close it there first", id, owner).With("owner", owner)
}

// List implements store.Store.
func (s *Store) List(ctx context.Context) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, fault.From("store.list", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := slices.Sorted(maps.Keys(s.kept))
	return slices.DeleteFunc(ids, func(id string) bool {
		return s.kept[id].snapshot == nil && len(s.kept[id].facts) == 0
	}), nil
}

// Delete implements store.Store.
func (s *Store) Delete(ctx context.Context, id string) error {
	const op = "store.delete"
	if err := store.ValidID(id); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fault.From(op, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.kept[id]; k != nil && k.open {
		return busy(op, id, k.owner)
	}
	delete(s.kept, id)
	return nil
}

// session is one session held for writing.
type session struct {
	st     *Store
	id     string
	k      *kept
	loaded bool // guarded by st.mu
	closed bool // guarded by st.mu
}

var _ store.Session = (*session)(nil)

// alive refuses what may not be done after Close, ready also what may not before
// Load. st.mu is held.
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
	s.st.mu.Lock()
	defer s.st.mu.Unlock()
	if err := s.alive(op); err != nil {
		return store.Kept{}, err
	}
	if s.loaded {
		return store.Kept{}, fault.New(fault.Internal, op, "session %q is loaded already", s.id)
	}
	found := store.Kept{Facts: yield(ctx, op, s.k.facts)}
	if s.k.snapshot != nil {
		snap, err := record.ParseSnapshot(s.k.snapshot)
		if err != nil {
			return store.Kept{}, err
		}
		found.Snapshot = snap
	}
	s.loaded = true
	return found, nil
}

// yield gives copies of facts. The list is only ever appended to or replaced, so the
// part of it that facts shows stays as it is.
func yield(ctx context.Context, op string, facts [][]byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for _, f := range facts {
			if err := ctx.Err(); err != nil {
				yield(nil, fault.From(op, err))
				return
			}
			if !yield(slices.Clone(f), nil) {
				return
			}
		}
	}
}

// Append implements store.Session. An offset is the number of the fact, from 1, since
// 0 means the first of a generation.
func (s *session) Append(_ context.Context, group [][]byte) (record.Pos, error) {
	const op = "store.append"
	s.st.mu.Lock()
	defer s.st.mu.Unlock()
	if err := s.ready(op); err != nil {
		return record.Pos{}, err
	}
	if err := store.ValidFacts(group); err != nil {
		return record.Pos{}, err
	}
	pos := record.Pos{Generation: s.k.gen, Offset: int64(len(s.k.facts)) + 1}
	for _, f := range group {
		s.k.facts = append(s.k.facts, slices.Clone(f))
	}
	return pos, nil
}

// Flush implements store.Session.
func (s *session) Flush(context.Context) error {
	s.st.mu.Lock()
	defer s.st.mu.Unlock()
	return s.ready("store.flush")
}

// Read implements store.Session.
func (s *session) Read(ctx context.Context, from record.Pos) iter.Seq2[[]byte, error] {
	const op = "store.read"
	facts, err := s.from(op, from)
	if err != nil {
		return func(yield func([]byte, error) bool) { yield(nil, err) }
	}
	return yield(ctx, op, facts)
}

func (s *session) from(op string, from record.Pos) ([][]byte, error) {
	s.st.mu.Lock()
	defer s.st.mu.Unlock()
	if err := s.ready(op); err != nil {
		return nil, err
	}
	if from == (record.Pos{}) {
		from.Generation = s.k.gen
	}
	if from.Generation != s.k.gen {
		return nil, fault.New(fault.NotFound, op, "the facts of generation %d are no longer kept", from.Generation)
	}
	first := max(from.Offset, 1) - 1
	if from.Offset < 0 || first > int64(len(s.k.facts)) {
		return nil, fault.New(fault.Invalid, op, "generation %d has no fact at %d", from.Generation, from.Offset)
	}
	return s.k.facts[first:len(s.k.facts):len(s.k.facts)], nil
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
	s.st.mu.Lock()
	defer s.st.mu.Unlock()
	if err := s.ready(op); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fault.From(op, err)
	}
	s.k.snapshot, s.k.facts = doc, nil
	s.k.gen++
	return nil
}

// Blobs implements store.Session.
func (s *session) Blobs() store.Blobs { return blobs{s} }

// Close implements store.Session.
func (s *session) Close() error {
	s.st.mu.Lock()
	defer s.st.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed, s.k.open = true, false
	if s.k.void() {
		delete(s.st.kept, s.id)
	}
	return nil
}
