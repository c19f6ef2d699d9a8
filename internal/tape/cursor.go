package tape

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

// Gap makes the frame that stands for lost items [from, to) of the tape label.
type Gap func(label string, from, to int64) []byte

// Cursor reads tapes and loose frames, one after the other, in the order they were
// added. One goroutine may read at a time; the other methods may be called from any.
type Cursor struct {
	gap Gap

	read sync.Mutex // held by the one reader

	mu     sync.Mutex
	parts  []*part // guarded by mu
	last   bool    // no part will follow; guarded by mu
	closed bool    // guarded by mu
	queued int     // bytes of loose frames; guarded by mu

	woken atomic.Bool   // the reader is to come back
	ready atomic.Bool   // something happened since the reader saw nothing
	wake  chan struct{} // capacity 1

	fdmu  sync.Mutex
	fd    int          // guarded by fdmu; -1 if none
	waits sync.RWMutex // held by who waits for fd, so that it stays open
}

// NewCursor makes a cursor without parts.
func NewCursor(gap Gap) *Cursor {
	return &Cursor{gap: gap, wake: make(chan struct{}, 1), fd: -1}
}

// AddTape lets the cursor go on with t from number from on. fill may be nil.
func (c *Cursor) AddTape(t *Tape, from int64, fill Backfill) {
	p := &part{tape: t, fill: fill}
	p.pos.Store(from)
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return
	}
	c.parts = append(c.parts, p)
	c.mu.Unlock()
	t.attach(c)
	c.mu.Lock()
	closed := c.closed
	c.mu.Unlock()
	if closed { // closed in between: Close has not seen the tape
		t.detach(c)
	}
	c.signal()
}

// AddFrame lets the cursor go on with one loose frame. It reports whether the frame
// was taken: above limit bytes of waiting frames it is dropped (limit 0: never).
func (c *Cursor) AddFrame(frame []byte, limit int) bool {
	c.mu.Lock()
	if c.closed || limit > 0 && c.queued > 0 && c.queued+len(frame) > limit {
		c.mu.Unlock()
		return false
	}
	c.parts = append(c.parts, &part{frame: frame})
	c.queued += len(frame)
	c.mu.Unlock()
	c.signal()
	return true
}

// Last says that no part will be added: after the present ones the cursor ends.
func (c *Cursor) Last() {
	c.mu.Lock()
	c.last = true
	c.mu.Unlock()
	c.signal()
}

// Next writes one JSON array of up to limit items into buf and returns its length. It
// blocks until there is at least one item, ctx is done (ctx.Err()), the stream has
// ended (fault.End), Wake was called (fault.Woken) or the cursor is closed
// (fault.Closed). If buf cannot hold the next item it returns fault.Buffer and the
// size needed; nothing is lost.
func (c *Cursor) Next(ctx context.Context, limit int, buf []byte) (n, needed int, err error) {
	for {
		n, needed, err = c.TryNext(limit, buf)
		if n > 0 || err != nil {
			return n, needed, err
		}
		select {
		case <-c.wake:
		case <-ctx.Done():
			return 0, 0, ctx.Err()
		}
	}
}

// Wait blocks the calling thread, not only the goroutine, until there is something to
// read, the cursor is closed or the time is up (negative: never), and reports whether it
// may be worth to read. It is for threads that came from C: their goroutines are bound to
// them, so that a channel wakes one thread to wake another, and this wakes one.
func (c *Cursor) Wait(timeout time.Duration) (bool, error) {
	c.waits.RLock()
	defer c.waits.RUnlock()
	fd, err := c.FD()
	if err != nil {
		return false, err
	}
	return waitFD(fd, timeout)
}

// TryNext is Next without blocking: 0, 0, nil says that nothing is there now.
func (c *Cursor) TryNext(limit int, buf []byte) (n, needed int, err error) {
	if !c.read.TryLock() {
		c.mu.Lock()
		closed := c.closed
		c.mu.Unlock()
		if closed { // who holds the lock closes it
			return 0, 0, errClosed
		}
		return 0, 0, fault.New(fault.Busy, "stream.next", "another thread is reading this stream; use one reader per stream")
	}
	defer c.read.Unlock()
	if limit <= 0 {
		return 0, 0, fault.New(fault.Invalid, "stream.next", "max_events is %d; ask for at least 1", limit)
	}
	for {
		n, needed, err = c.batch(limit, buf)
		if n > 0 || err != nil {
			return n, needed, err
		}
		if !c.rest() {
			return 0, 0, nil
		}
	}
}

// rest clears the readiness and looks again; it reports whether something came between.
func (c *Cursor) rest() (again bool) {
	c.fdmu.Lock()
	c.ready.Store(false)
	if c.fd >= 0 {
		drainFD(c.fd)
	}
	c.fdmu.Unlock()
	if c.pending() {
		c.signal()
		return true
	}
	return false
}

// pending says whether a batch would give something now.
func (c *Cursor) pending() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.woken.Load() || c.last && len(c.parts) == 0 {
		return true
	}
	if len(c.parts) == 0 {
		return false
	}
	p := c.parts[0]
	if p.frame != nil {
		return true
	}
	if p.loading {
		return false
	}
	_, ready, done := p.tape.state(p.pos.Load())
	return ready || done
}

// batch fills buf with what is there.
func (c *Cursor) batch(limit int, buf []byte) (int, int, error) {
	if len(buf) < 2 {
		return 0, 2, fault.New(fault.Buffer, "stream.next", "the buffer has %d bytes; give at least 2", len(buf))
	}
	w, count, needed := 1, 0, 0
	for count < limit && needed == 0 {
		p, err := c.head()
		if err != nil && count == 0 {
			return 0, 0, err
		}
		if p == nil {
			break
		}
		var got int
		var done bool
		w, got, needed, done = c.take(p, buf, w, limit-count)
		count += got
		if done {
			c.pop(p)
		} else if got == 0 {
			break
		}
	}
	if count == 0 {
		if needed > 0 {
			return 0, needed, fault.New(fault.Buffer, "stream.next", "the next event needs a buffer of %d bytes", needed)
		}
		return 0, 0, nil
	}
	buf[0], buf[w] = '[', ']'
	return w + 1, 0, nil
}

// head gives the part to read, or why there is none.
func (c *Cursor) head() (*part, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return nil, errClosed
	case c.woken.Swap(false):
		return nil, fault.New(fault.Woken, "stream.next", "woken")
	case len(c.parts) > 0:
		return c.parts[0], nil
	case c.last:
		return nil, errEnd
	}
	return nil, nil
}

// take copies items of p into buf. done says that p is used up; needed that the next
// item does not fit an empty buffer.
func (c *Cursor) take(p *part, buf []byte, w, limit int) (end, got, needed int, done bool) {
	if p.frame != nil {
		end, needed = put(buf, w, p.frame)
		if end == w {
			return w, 0, needed, false
		}
		return end, 1, 0, true
	}
	pos := p.pos.Load()
	first, _, ended := p.tape.state(pos)
	if ended {
		return w, 0, 0, true
	}
	if pos < first {
		return c.old(p, buf, w, limit, first)
	}
	c.drop(p)
	w, now, needed := p.tape.fill(buf, w, pos, limit)
	p.pos.Store(now)
	_, _, ended = p.tape.state(now)
	return w, int(now - pos), needed, ended
}

// put copies one item; the returned end is w if it does not fit, and needed is set if
// it does not fit an empty buffer either.
func put(buf []byte, w int, item []byte) (end, needed int) {
	n := len(item) + 1
	if w > 1 {
		n++
	}
	if w+n > len(buf) {
		if w == 1 {
			return w, len(item) + 2
		}
		return w, 0
	}
	if w > 1 {
		buf[w] = ','
		w++
	}
	return w + copy(buf[w:], item), 0
}

// at is the cursor's position on t.
func (c *Cursor) at(t *Tape) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.parts {
		if p.tape == t {
			return p.pos.Load()
		}
	}
	return 1<<63 - 1
}

// pop drops the first part.
func (c *Cursor) pop(p *part) {
	c.mu.Lock()
	c.parts[0] = nil
	c.parts = c.parts[1:]
	c.queued -= len(p.frame)
	c.mu.Unlock()
	if p.tape != nil {
		c.drop(p)
		p.tape.detach(c)
	}
}

// signal makes the cursor readable.
func (c *Cursor) signal() {
	if c.ready.Swap(true) {
		return
	}
	select {
	case c.wake <- struct{}{}:
	default:
	}
	c.fdmu.Lock()
	if c.fd >= 0 {
		raiseFD(c.fd)
	}
	c.fdmu.Unlock()
}

// FD gives a descriptor that is readable while items or the end are pending. It is the
// cursor's own: never read or close it.
func (c *Cursor) FD() (int, error) {
	fd, err := c.ensureFD()
	if err == nil && c.pending() {
		c.signal()
	}
	return fd, err
}

func (c *Cursor) ensureFD() (int, error) {
	c.fdmu.Lock()
	defer c.fdmu.Unlock()
	if c.fd >= 0 {
		return c.fd, nil
	}
	c.mu.Lock()
	closed := c.closed
	c.mu.Unlock()
	if closed {
		return -1, errClosed
	}
	fd, err := openFD()
	if err != nil {
		return -1, fault.New(fault.IO, "stream.fd", "eventfd: %v; raise the limit of open files", err)
	}
	c.fd = fd
	if c.ready.Load() {
		raiseFD(fd)
	}
	return fd, nil
}

// Wake lets a blocked or the next Next return fault.Woken, once.
func (c *Cursor) Wake() {
	c.woken.Store(true)
	c.signal()
}

// Close ends the cursor. A blocked Next returns fault.Closed.
func (c *Cursor) Close() {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return
	}
	c.closed = true
	c.mu.Unlock()
	c.signal()
	c.read.Lock() // the reader, if any, is on its way out
	defer c.read.Unlock()
	c.mu.Lock()
	parts := c.parts
	c.parts, c.queued = nil, 0
	c.mu.Unlock()
	for _, p := range parts {
		if p.tape != nil {
			c.drop(p)
			p.tape.detach(c)
		}
	}
	c.waits.Lock()
	defer c.waits.Unlock()
	c.fdmu.Lock()
	defer c.fdmu.Unlock()
	if c.fd >= 0 {
		closeFD(c.fd)
		c.fd = -1
	}
}
