// Package tape keeps encoded events in memory and lets any number of cursors read
// them in batches. The bytes of neighbouring events lie side by side with a comma
// between them, so a batch is one copy, and cursors share what they read: a stream
// costs no memory of its own. It knows nothing of sessions or stores: what has been
// trimmed is fetched through a Backfill. Floor 1.
package tape

import (
	"maps"
	"slices"
	"sync"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

const (
	firstChunk = 2 << 10  // an idle session stays small
	lastChunk  = 64 << 10 // chunks double up to this size
	maxSpare   = 16       // chunks; what one trim of a full run frees
	usualItem  = 224      // an event with a short text
)

// Tape is an append-only row of encoded items with consecutive numbers. Old items are
// trimmed from the front. All methods may be called concurrently.
type Tape struct {
	// Label names the tape in gaps (the run id).
	Label string

	mu      sync.Mutex
	chunks  []*chunk // guarded by mu
	spare   []*chunk // trimmed, for the next items; guarded by mu
	first   int64    // number of the oldest item kept; guarded by mu
	next    int64    // number of the next item; guarded by mu
	bytes   int64    // kept; guarded by mu
	ended   bool     // guarded by mu
	cursors map[*Cursor]struct{}
	moved   chan struct{} // closed and replaced when a cursor advances; guarded by mu
}

type chunk struct {
	first int64   // number of its first item
	buf   []byte  // items with commas between
	ends  []int32 // ends[i] is the end of item i in buf
}

// New makes a tape whose first item will have number first.
func New(label string, first int64) *Tape {
	return &Tape{Label: label, first: first, next: first}
}

// Append adds items and wakes the cursors. The bytes are copied.
func (t *Tape) Append(items ...[]byte) {
	t.mu.Lock()
	for _, it := range items {
		t.add(it)
	}
	t.signal()
	t.mu.Unlock()
}

func (t *Tape) add(item []byte) {
	c := t.tail(len(item) + 1)
	if len(c.buf) > 0 {
		c.buf = append(c.buf, ',')
	}
	c.buf = append(c.buf, item...)
	c.ends = append(c.ends, int32(len(c.buf)))
	t.bytes += int64(len(item))
	t.next++
}

// tail gives a chunk with room for n bytes.
func (t *Tape) tail(n int) *chunk {
	size := firstChunk
	if len(t.chunks) > 0 {
		c := t.chunks[len(t.chunks)-1]
		if len(c.buf)+n <= cap(c.buf) {
			return c
		}
		size = min(2*cap(c.buf), lastChunk)
	}
	c := t.fresh(size, n)
	c.first = t.next
	t.chunks = append(t.chunks, c)
	return c
}

// fresh gives an empty chunk of about size bytes with room for n.
func (t *Tape) fresh(size, n int) *chunk {
	if last := len(t.spare) - 1; last >= 0 && n <= lastChunk {
		c := t.spare[last]
		t.spare = t.spare[:last]
		c.buf, c.ends = c.buf[:0], c.ends[:0]
		return c
	}
	items := size / usualItem
	if n >= size {
		size, items = n, 1
	}
	return &chunk{buf: make([]byte, 0, size), ends: make([]int32, 0, items)}
}

// End says that no item will follow; cursors get fault.End after the last one.
func (t *Tape) End() {
	t.mu.Lock()
	t.ended = true
	t.spare = nil
	t.signal()
	t.mu.Unlock()
}

// Ended says whether End was called.
func (t *Tape) Ended() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ended
}

// Bounds gives the number of the oldest item kept, the number of the next one, and
// the bytes kept.
func (t *Tape) Bounds() (first, next, bytes int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.first, t.next, t.bytes
}

// Trim drops items below number to.
func (t *Tape) Trim(to int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	to = min(to, t.next)
	for t.first < to {
		c := t.chunks[0]
		i := int(t.first - c.first)
		t.bytes -= int64(c.end(i) - c.start(i))
		t.first++
		if i == len(c.ends)-1 {
			t.chunks[0] = nil
			t.chunks = t.chunks[1:]
			if cap(c.buf) == lastChunk && !t.ended && len(t.spare) < maxSpare {
				t.spare = append(t.spare, c)
			}
		}
	}
}

// start is where item i of c begins.
func (c *chunk) start(i int) int {
	if i == 0 {
		return 0
	}
	return c.end(i-1) + 1 // behind the comma
}

// end is where item i of c ends.
func (c *chunk) end(i int) int { return int(c.ends[i]) }

// Skip sets the number of the next item to n if it is above. What is kept so far is
// dropped then, since the items of a tape have consecutive numbers.
func (t *Tape) Skip(n int64) {
	if _, next, _ := t.Bounds(); n <= next {
		return
	}
	t.Trim(n)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.first, t.next = n, n
}

// Items copies up to limit items from number from on.
func (t *Tape) Items(from int64, limit int) [][]byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out [][]byte
	for n := max(from, t.first); n < t.next && len(out) < limit; n++ {
		c := t.chunk(n)
		i := int(n - c.first)
		out = append(out, append([]byte(nil), c.buf[c.start(i):c.end(i)]...))
	}
	return out
}

// chunk finds the chunk that holds item n, which must be kept.
func (t *Tape) chunk(n int64) *chunk {
	lo, hi := 0, len(t.chunks)-1
	for lo < hi {
		mid := (lo + hi + 1) / 2
		if t.chunks[mid].first <= n {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	return t.chunks[lo]
}

// Behind gives the lowest position of the open cursors from which nothing was trimmed
// yet, the number of the next item without such a cursor, and a channel that is closed
// when a cursor advances or goes.
func (t *Tape) Behind() (low int64, moved <-chan struct{}) {
	t.mu.Lock()
	first := t.first
	low = t.next
	cursors := slices.Collect(maps.Keys(t.cursors))
	if t.moved == nil {
		t.moved = make(chan struct{})
	}
	moved = t.moved
	t.mu.Unlock() // a cursor's lock comes before a tape's
	for _, c := range cursors {
		if at := c.at(t); at >= first {
			low = min(low, at)
		}
	}
	return low, moved
}

// advanced wakes who waits in Behind. t.mu is held.
func (t *Tape) advanced() {
	if t.moved != nil {
		close(t.moved)
		t.moved = nil
	}
}

// signal wakes the cursors. t.mu is held.
func (t *Tape) signal() {
	for c := range t.cursors {
		c.signal()
	}
}

func (t *Tape) attach(c *Cursor) {
	t.mu.Lock()
	if t.cursors == nil {
		t.cursors = map[*Cursor]struct{}{}
	}
	t.cursors[c] = struct{}{}
	t.mu.Unlock()
}

func (t *Tape) detach(c *Cursor) {
	t.mu.Lock()
	delete(t.cursors, c)
	t.advanced()
	t.mu.Unlock()
}

// fill copies items from number pos on into buf[w:], each with a comma before it when
// w > 1, leaving one byte for the closing bracket. It returns the new end of buf, the
// new position, and the size of the next item if not even one fitted. Nothing is copied
// if the item at pos was trimmed meanwhile.
func (t *Tape) fill(buf []byte, w int, pos int64, limit int) (int, int64, int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	start := pos
	for limit > 0 && pos >= t.first && pos < t.next {
		c := t.chunk(pos)
		i := int(pos - c.first)
		from, room := c.start(i), len(buf)-w-1
		if w > 1 {
			room--
		}
		n := 0
		for n < limit && i+n < len(c.ends) && c.end(i+n)-from <= room {
			n++
		}
		if n == 0 {
			if w == 1 {
				return w, pos, c.end(i) - from + 2
			}
			break
		}
		if w > 1 {
			buf[w] = ','
			w++
		}
		w += copy(buf[w:], c.buf[from:c.end(i+n-1)])
		pos += int64(n)
		limit -= n
	}
	if pos > start {
		t.advanced()
	}
	return w, pos, 0
}

// state says where the tape stands for a cursor at pos.
func (t *Tape) state(pos int64) (first int64, ready, done bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.first, pos < t.next, t.ended && pos >= t.next
}

var (
	errEnd    = fault.New(fault.End, "stream.next", "the stream has ended")
	errClosed = fault.New(fault.Closed, "stream.next", "the stream is closed")
)
