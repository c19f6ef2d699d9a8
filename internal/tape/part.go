package tape

import (
	"bytes"
	"context"
	"sync/atomic"

	"github.com/a3s-lab/liba3s/internal/safego"
)

// Backfill reads items of a tape that were trimmed from memory, from number from on, in
// rising order. next gives one item after the other with its number, nil at the end;
// stop must be called once. It may take its time: it is read on a goroutine of its own.
type Backfill func(ctx context.Context, from int64) (next func() (int64, []byte, error), stop func())

// What is read from a backfill at once.
const (
	aheadItems = 256
	aheadBytes = 256 << 10
)

// part is a tape from a position on, or one loose frame.
type part struct {
	frame []byte
	tape  *Tape
	pos   atomic.Int64
	fill  Backfill

	// The reader's: what was read and not told yet, and how what is being read is ended.
	ahead  []old
	ctx    context.Context
	cancel context.CancelFunc

	loading bool  // a goroutine reads on; guarded by the cursor's mu
	loaded  []old // what it read; guarded by the cursor's mu
	gone    bool  // nobody wants what it reads; guarded by the cursor's mu

	// The open backfill: the loading goroutine's while there is one.
	next func() (int64, []byte, error)
	stop func()
}

// old is an item that is no longer in memory. Without an item nothing is kept before n.
type old struct {
	n    int64
	item []byte
}

// old gives items that are no longer in memory, from the backfill, or a gap; nothing
// while the backfill is still being read.
func (c *Cursor) old(p *part, buf []byte, w, limit int, first int64) (end, got, needed int, done bool) {
	for got < limit && p.pos.Load() < first && c.fetched(p, first) {
		pos, o := p.pos.Load(), p.ahead[0]
		if o.item == nil && o.n <= pos { // nothing was lost before it
			p.ahead = p.ahead[1:]
			continue
		}
		item, to := o.item, o.n+1
		if o.n > pos { // lost: the gap comes first, the item after it
			item, to = c.gap(p.tape.Label, pos, o.n), o.n
		}
		if end, needed = put(buf, w, item); end == w {
			return w, got, needed, false
		}
		w = end
		p.pos.Store(to)
		got++
		if to > o.n || o.item == nil {
			p.ahead = p.ahead[1:]
		}
	}
	return w, got, 0, false
}

// fetched makes sure that there is an item ahead. If not, one is being read when it returns
// false, and the cursor is signalled when it is there.
func (c *Cursor) fetched(p *part, first int64) bool {
	if len(p.ahead) > 0 {
		return true
	}
	if p.fill == nil {
		p.ahead = []old{{n: first}}
		return true
	}
	if p.cancel == nil {
		p.ctx, p.cancel = context.WithCancel(context.Background())
	}
	c.mu.Lock()
	p.ahead, p.loaded = p.loaded, nil
	start := len(p.ahead) == 0 && !p.loading
	if start {
		p.loading = true
	}
	c.mu.Unlock()
	if start {
		ctx := p.ctx
		safego.Go("stream.backfill", nil, func() { c.load(ctx, p, first) })
	}
	return len(p.ahead) > 0
}

// load reads on from the backfill, up to number first of the tape or some way before.
func (c *Cursor) load(ctx context.Context, p *part, first int64) {
	var got []old
	defer func() {
		if len(got) == 0 { // it broke: what it would have given is told as a gap
			got = []old{{n: first}}
		}
		c.mu.Lock()
		p.loading, p.loaded = false, got
		gone := p.gone
		c.mu.Unlock()
		if gone {
			p.release()
			return
		}
		c.signal()
	}()
	pos := p.pos.Load()
	for size := 0; len(got) < aheadItems && size < aheadBytes; {
		n, item := p.pull(ctx, pos, first)
		got = append(got, old{n, bytes.Clone(item)})
		if item == nil {
			return
		}
		pos, size = n+1, size+len(item)
	}
}

// pull gives the next old item from number pos on, or number first and no item at the end
// of what is kept. A backfill ends where its source ended when it was opened, so only one
// that was opened just now says that there is no more; an unreadable one is told as a gap.
func (p *part) pull(ctx context.Context, pos, first int64) (int64, []byte) {
	for fresh := false; ; {
		if p.next == nil {
			p.next, p.stop = p.fill(ctx, pos)
			fresh = true
		}
		n, item, err := p.next()
		ended := err != nil || item == nil
		switch {
		case !ended && n < pos:
			continue
		case !ended && n < first:
			return n, item
		}
		p.release()
		if fresh || !ended { // what is from first on is in memory
			return first, nil
		}
	}
}

// drop lets go of what was read ahead and of the backfill, or has the goroutine that
// reads it do so.
func (c *Cursor) drop(p *part) {
	if p.cancel == nil {
		return
	}
	p.cancel()
	p.ahead, p.cancel = nil, nil
	c.mu.Lock()
	loading := p.loading
	p.loaded, p.gone = nil, loading
	c.mu.Unlock()
	if !loading {
		p.release()
	}
}

func (p *part) release() {
	if p.stop != nil {
		p.stop()
	}
	p.next, p.stop = nil, nil
}
