package main

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

// Handle is what C holds of an object: kind (6 bits), the library's nonce (10),
// generation (24), index (24). 0 is never given out.
type Handle uint64

// Kind says what a handle stands for.
type Kind uint8

// The kinds.
const (
	agentKind Kind = 1 + iota
	sessionKind
	runKind
	streamKind
	registrationKind
	kinds
)

var kindNames = [kinds]string{"", "agent", "session", "run", "stream", "registration"}

const (
	indexBits      = 24
	generationBits = 24
	nonceBits      = 10
	maxGeneration  = 1<<generationBits - 1
	maxIndex       = 1<<indexBits - 1
)

// entry is a live object and its place in the tree: agents hold sessions, sessions hold
// runs, all of them hold streams.
type entry struct {
	handle Handle
	kind   Kind
	value  any // what op knows it by; *stream for a stream
	parent *entry

	// ctx ends when the entry is closed; everything that blocks on it uses it.
	ctx    context.Context
	cancel context.CancelCauseFunc
	calls  callSet

	children map[*entry]struct{} // guarded by table.mu
}

// slot is a place for an entry. Its generation rises each time it is emptied, and a slot
// is retired before its generation would come round again.
type slot struct {
	entry      atomic.Pointer[entry] // written with table.mu held
	generation uint32                // guarded by table.mu
}

// table gives out handles. All methods may be called concurrently. A look-up takes no
// lock, since every call from C begins with one.
type table struct {
	nonce uint64                  // of this load; two copies of the library do not share handles
	slots atomic.Pointer[[]*slot] // replaced with mu held; only ever grows

	mu      sync.RWMutex
	free    []uint32   // guarded by mu
	live    [kinds]int // guarded by mu
	closing int        // taken out, clean-up not done; guarded by mu
}

func newTable() *table {
	t := &table{nonce: rand.Uint64N(1<<nonceBits-1) + 1}
	t.slots.Store(&[]*slot{})
	return t
}

func (t *table) handle(k Kind, generation uint32, index int) Handle {
	return Handle(uint64(k)<<(nonceBits+generationBits+indexBits) | t.nonce<<(generationBits+indexBits) |
		uint64(generation)<<indexBits | uint64(index))
}

// put makes a handle for value below parent (nil for an agent). It fails if parent was
// closed meanwhile; value is then the caller's to end.
func (t *table) put(k Kind, value any, parent *entry) (*entry, error) {
	e := &entry{kind: k, value: value, parent: parent}
	e.ctx, e.cancel = context.WithCancelCause(context.Background())
	t.mu.Lock()
	defer t.mu.Unlock()
	if parent != nil && t.at(parent.handle) != parent {
		return nil, stale(parent.handle)
	}
	index, err := t.place()
	if err != nil {
		return nil, err
	}
	s := (*t.slots.Load())[index]
	e.handle = t.handle(k, s.generation, index)
	s.entry.Store(e)
	if parent != nil {
		if parent.children == nil {
			parent.children = map[*entry]struct{}{}
		}
		parent.children[e] = struct{}{}
	}
	t.live[k]++
	return e, nil
}

// place finds an empty slot. mu is held.
func (t *table) place() (index int, err error) {
	if n := len(t.free); n > 0 {
		index = int(t.free[n-1])
		t.free = t.free[:n-1]
		return index, nil
	}
	slots := *t.slots.Load()
	if len(slots) > maxIndex {
		return 0, fault.New(fault.Limit, "", "more than %d handles; close what is no longer used", maxIndex)
	}
	slots = append(slots, &slot{generation: 1}) // readers of the old slice do not see it
	t.slots.Store(&slots)
	return len(slots) - 1, nil
}

// get finds the entry of h, which must be of one of the wanted kinds.
func (t *table) get(h Handle, want ...Kind) (*entry, error) {
	e := t.at(h)
	if e == nil {
		return nil, stale(h)
	}
	for _, k := range want {
		if e.kind == k {
			return e, nil
		}
	}
	return nil, otherKind(e.kind, want)
}

func otherKind(is Kind, want []Kind) error {
	names := kindNames[want[0]]
	for _, k := range want[1:] {
		names += " or " + kindNames[k]
	}
	return fault.New(fault.Handle, "", "the handle is of kind %s; give one of kind %s", kindNames[is], names)
}

// at finds the entry of h.
func (t *table) at(h Handle) *entry {
	index, slots := int(h&maxIndex), *t.slots.Load()
	if index >= len(slots) {
		return nil
	}
	if e := slots[index].entry.Load(); e != nil && e.handle == h {
		return e
	}
	return nil
}

func stale(h Handle) error {
	if h == 0 {
		return fault.New(fault.Handle, "", "the handle is 0; use one that an open function gave")
	}
	return fault.New(fault.Handle, "", "no live object behind handle %#x; it was closed or never given out", uint64(h))
}

// take removes the entry of h and all below it from the table. Their handles are dead
// from here on. The caller must end with done.
func (t *table) take(h Handle) (*entry, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.at(h)
	if e == nil {
		return nil, stale(h)
	}
	if e.parent != nil {
		delete(e.parent.children, e)
	}
	t.closing++
	t.drop(e)
	return e, nil
}

// drop empties the slots of e and all below it. mu is held.
func (t *table) drop(e *entry) {
	index := uint32(e.handle & maxIndex)
	s := (*t.slots.Load())[index]
	s.entry.Store(nil)
	t.live[e.kind]--
	if s.generation < maxGeneration {
		s.generation++
		t.free = append(t.free, index)
	}
	for c := range e.children {
		t.drop(c)
	}
}

// done says that the clean-up behind a take has ended.
func (t *table) done() {
	t.mu.Lock()
	t.closing--
	t.mu.Unlock()
}

// below gives e and all entries below it.
func (t *table) below(e *entry) []*entry {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return walk(e, nil)
}

func walk(e *entry, all []*entry) []*entry {
	all = append(all, e)
	for c := range e.children {
		all = walk(c, all)
	}
	return all
}

// agents gives all live agents.
func (t *table) agents() []*entry {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var all []*entry
	for _, s := range *t.slots.Load() {
		if e := s.entry.Load(); e != nil && e.kind == agentKind {
			all = append(all, e)
		}
	}
	return all
}

// counts gives the number of live handles of each kind and of closes under way.
func (t *table) counts() (live [kinds]int, closing int) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.live, t.closing
}
