package tape

import (
	"context"
	"sync/atomic"
)

// Backfill reads items of a tape that were trimmed from memory, from number from on, in
// rising order. next gives one item after the other with its number, nil at the end;
// stop must be called once.
type Backfill func(ctx context.Context, from int64) (next func() (int64, []byte, error), stop func())

// part is a tape from a position on, or one loose frame.
type part struct {
	frame []byte
	tape  *Tape
	pos   atomic.Int64
	fill  Backfill
	next  func() (int64, []byte, error)
	stop  func()
	held  []byte // an item that did not fit
	heldN int64  // its number
}

// old gives items that are no longer in memory, from the backfill, or a gap.
func (c *Cursor) old(p *part, buf []byte, w, limit int, first int64) (end, got, needed int, done bool) {
	for got < limit && p.pos.Load() < first {
		pos := p.pos.Load()
		n, item := p.pull(first)
		to := n + 1
		if n > pos { // lost: the gap comes first, the item after it
			p.heldN, p.held = n, item
			item, to = c.gap(p.tape.Label, pos, n), n
		}
		if end, needed = put(buf, w, item); end == w {
			if to > n {
				p.heldN, p.held = n, item
			}
			return w, got, needed, false
		}
		w = end
		p.pos.Store(to)
		got++
	}
	return w, got, 0, false
}

// pull gives the next old item, or number first and no item at the end of what is kept.
// A backfill ends where its source ended when it was opened, so only one that was opened
// just now says that there is no more; an unreadable one is told as a gap.
func (p *part) pull(first int64) (int64, []byte) {
	if p.held != nil {
		n, item := p.heldN, p.held
		p.held = nil
		return n, item
	}
	for fresh := false; p.fill != nil; {
		if p.next == nil {
			p.next, p.stop = p.fill(context.Background(), p.pos.Load())
			fresh = true
		}
		n, item, err := p.next()
		ended := err != nil || item == nil
		switch {
		case !ended && n < p.pos.Load():
			continue
		case !ended && n < first:
			return n, item
		}
		p.release()
		if fresh || !ended { // what is from first on is in memory
			break
		}
	}
	return first, nil
}

func (p *part) release() {
	if p.stop != nil {
		p.stop()
	}
	p.next, p.stop = nil, nil
}
