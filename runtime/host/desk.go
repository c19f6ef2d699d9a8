// Package host is the desk where the library's questions to the host wait for their
// answers. Every extension the host supplies (a tool, a model, a store, ...) is asked
// the same way: a request frame with an id goes out, chunks and exactly one reply come
// back, from any thread. How frames reach the host is the sender's business. Floor 2.
package host

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

// Request is a question on its way to the host.
type Request struct {
	ID        uint64
	Kind      string // "tool", ...
	Name      string // of the registration
	Op        string // "call", ...
	Params    json.RawMessage
	SessionID string
	Deadline  time.Duration
	// Lasting questions are not withdrawn when their session closes: a store is asked
	// until the last fact is written.
	Lasting bool
	// Max bounds the result in bytes; 0 is DefaultResult.
	Max int
	// To hears this question, and its withdrawal, instead of the desk's sender: an
	// extension that lives in the process itself needs no frames. Nil is the desk's.
	To Sender

	line *Line // that asks; nil for none
}

// Sender carries frames to the host. Its methods must not block on the host and must
// not call the desk back on the same goroutine.
type Sender interface {
	// Request tells a question; an error says that nobody will ever see it.
	Request(r Request) error
	// Cancel withdraws a question.
	Cancel(id uint64, reason string)
}

// Desk holds the open questions of one agent. Methods may be called concurrently.
type Desk struct {
	send Sender

	mu     sync.Mutex
	last   uint64              // guarded by mu
	open   map[uint64]*waiting // guarded by mu
	closed bool                // guarded by mu
}

type waiting struct {
	session string
	lasting bool
	direct  bool // the request says who hears it
	line    *Line
	send    Sender
	chunks  chan json.RawMessage
	limit   int           // bytes of a result
	reply   chan answer   // capacity 1
	end     chan ending   // capacity 1
	gone    chan struct{} // closed when the asker left
}

// ending is why a question ends without a reply.
type ending struct {
	err    error
	reason string // for the host
}

// NewDesk makes a desk that sends its questions through s.
func NewDesk(s Sender) *Desk { return &Desk{send: s, open: map[uint64]*waiting{}} }

// Ask puts a question and waits for the reply. chunk, if not nil, gets progress, in
// order, on the caller's goroutine. When ctx is done the host is told with a cancel
// frame; the error is fault.Timeout if the request's own deadline ran out, and
// fault.Unsupported at once if nobody hears requests, or does not any more. A reply that
// was accepted counts, whatever else happens in the same moment. A failure that the
// host reports is a *Failure. No lock is held while the host thinks, so it may
// use the library meanwhile.
func (d *Desk) Ask(ctx context.Context, r Request, chunk func(json.RawMessage)) (json.RawMessage, error) {
	if err := ctx.Err(); err != nil {
		return nil, fault.Ended(ctx, "host."+r.Kind)
	}
	if r.Max <= 0 {
		r.Max = DefaultResult
	}
	w := &waiting{
		session: r.SessionID,
		lasting: r.Lasting,
		direct:  r.To != nil,
		line:    r.line,
		send:    d.send,
		chunks:  make(chan json.RawMessage, 64),
		limit:   r.Max,
		reply:   make(chan answer, 1),
		end:     make(chan ending, 1),
		gone:    make(chan struct{}),
	}
	if w.direct {
		w.send = r.To
	}
	if err := d.add(&r, w); err != nil {
		return nil, err
	}
	defer close(w.gone)
	defer d.take(r.ID)
	if err := w.send.Request(r); err != nil {
		return nil, fault.From("host.ask", err)
	}
	timer := time.NewTimer(r.Deadline)
	defer timer.Stop()
	for {
		select {
		case c := <-w.chunks:
			if chunk != nil {
				chunk(c)
			}
		case a := <-w.reply:
			drainChunks(w, chunk)
			return a.result, a.err
		case e := <-w.end:
			w.send.Cancel(r.ID, e.reason)
			return nil, e.err
		case <-timer.C:
			if d.take(r.ID) == nil {
				continue // the end came in the same moment
			}
			w.send.Cancel(r.ID, "timeout")
			return nil, fault.New(fault.Timeout, "host."+r.Kind, "the host did not answer %s %q within %s", r.Kind, r.Name, r.Deadline)
		case <-ctx.Done():
			if d.take(r.ID) == nil {
				continue
			}
			w.send.Cancel(r.ID, "cancelled")
			return nil, fault.Ended(ctx, "host."+r.Kind)
		}
	}
}

func drainChunks(w *waiting, chunk func(json.RawMessage)) {
	for {
		select {
		case c := <-w.chunks:
			if chunk != nil {
				chunk(c)
			}
		default:
			return
		}
	}
}

func (d *Desk) add(r *Request, w *waiting) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return fault.New(fault.Closed, "host.ask", "the agent is closed")
	}
	if r.line != nil && r.line.ended.Load() { // here, so that none slips in behind End
		return r.line.gone()
	}
	d.last++
	r.ID = d.last
	d.open[r.ID] = w
	return nil
}

// take closes a question for further replies; nil if it was closed before.
func (d *Desk) take(id uint64) *waiting {
	d.mu.Lock()
	defer d.mu.Unlock()
	w := d.open[id]
	delete(d.open, id)
	return w
}

// Chunk hands in progress of a request. It waits while the asker is 64 chunks behind.
func (d *Desk) Chunk(id uint64, b []byte) error {
	if err := checkSize("host.chunk", b); err != nil {
		return err
	}
	if err := checkText("host.chunk", b); err != nil {
		return err
	}
	if !json.Valid(b) {
		return noJSON("host.chunk")
	}
	d.mu.Lock()
	w := d.open[id]
	d.mu.Unlock()
	if w == nil {
		return notOpen("host.chunk", id)
	}
	select {
	case w.chunks <- append(json.RawMessage(nil), b...):
		return nil
	case <-w.gone:
		return notOpen("host.chunk", id)
	}
}

// Reply answers a request. Exactly one reply counts: a second or late one is
// fault.NotFound.
func (d *Desk) Reply(id uint64, b []byte) error {
	if err := checkSize("host.reply", b); err != nil {
		return err
	}
	d.mu.Lock()
	w := d.open[id]
	d.mu.Unlock()
	if w == nil {
		return notOpen("host.reply", id)
	}
	a := answer{err: garbage("the answer has %d bytes, more than %d", len(b)-envelope, w.limit)}
	if len(b) <= max(w.limit, DefaultResult)+envelope { // a larger one is not worth reading
		var err error
		if a, err = decodeReply("host.reply", b); err != nil {
			return err
		}
	}
	if d.take(id) == nil {
		return notOpen("host.reply", id) // another answer was faster
	}
	w.reply <- a
	return nil
}

// Open counts the questions that wait.
func (d *Desk) Open() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.open)
}

// Close refuses further questions. Those that wait end with their askers' contexts.
func (d *Desk) Close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
}

// Lost ends every question that the desk's sender has sent: whoever could have answered
// is gone, and there is nothing to wait for.
func (d *Desk) Lost() {
	d.finish(func(w *waiting) bool { return !w.direct }, ending{fault.New(fault.Unsupported, "host.ask", "the host closed its control stream before it answered").With("reason", "host_gone"), "lost"})
}

// CancelSession withdraws the questions of a session and counts them; late replies find
// nothing. Lasting ones stay.
func (d *Desk) CancelSession(id, reason string) int {
	e := ending{fault.Of(fault.CodeCancelled, "host.ask", "withdrawn: %s", reason), "cancelled"}
	return d.finish(func(w *waiting) bool { return w.session == id && !w.lasting }, e)
}

func (d *Desk) finish(which func(*waiting) bool, e ending) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := 0
	for id, w := range d.open {
		if which(w) {
			delete(d.open, id)
			w.end <- e // it has room: an open question was not ended before
			n++
		}
	}
	return n
}

func notOpen(op string, id uint64) error {
	return fault.New(fault.NotFound, op, "no open request %d: it was answered, cancelled or never asked", id)
}
