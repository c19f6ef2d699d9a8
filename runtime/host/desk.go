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

// maxReply bounds what one reply or chunk may carry.
const maxReply = 64 << 20

// Request is a question on its way to the host.
type Request struct {
	ID        uint64
	Kind      string // "tool", ...
	Name      string // of the registration
	Op        string // "call", ...
	Params    json.RawMessage
	SessionID string
	Deadline  time.Duration
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
	chunks  chan json.RawMessage
	reply   chan json.RawMessage
	gone    chan struct{} // closed when the asker left
}

// NewDesk makes a desk that sends its questions through s.
func NewDesk(s Sender) *Desk { return &Desk{send: s, open: map[uint64]*waiting{}} }

// Ask puts a question and waits for the reply. chunk, if not nil, gets progress, in
// order, on the caller's goroutine. When ctx is done the host is told with a cancel
// frame; the error is fault.Timeout if the request's own deadline ran out. A failure
// that the host reports is a *Failure.
func (d *Desk) Ask(ctx context.Context, r Request, chunk func(json.RawMessage)) (json.RawMessage, error) {
	w := &waiting{
		session: r.SessionID,
		chunks:  make(chan json.RawMessage, 64),
		reply:   make(chan json.RawMessage, 1),
		gone:    make(chan struct{}),
	}
	if err := d.add(&r, w); err != nil {
		return nil, err
	}
	defer d.drop(r.ID, w)
	if err := d.send.Request(r); err != nil {
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
		case b := <-w.reply:
			drainChunks(w, chunk)
			return decodeReply(b)
		case <-timer.C:
			d.send.Cancel(r.ID, "timeout")
			return nil, fault.New(fault.Timeout, "host."+r.Kind, "the host did not answer %s %q within %s", r.Kind, r.Name, r.Deadline)
		case <-ctx.Done():
			d.send.Cancel(r.ID, "cancelled")
			return nil, fault.From("host."+r.Kind, context.Cause(ctx))
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
	d.last++
	r.ID = d.last
	d.open[r.ID] = w
	return nil
}

func (d *Desk) drop(id uint64, w *waiting) {
	d.mu.Lock()
	delete(d.open, id)
	d.mu.Unlock()
	close(w.gone)
}

// Chunk hands in progress of a request. It waits while the asker is 64 chunks behind.
func (d *Desk) Chunk(id uint64, b []byte) error {
	if err := checkReply("host.chunk", b); err != nil {
		return err
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
	if err := checkReply("host.reply", b); err != nil {
		return err
	}
	d.mu.Lock()
	w := d.open[id]
	delete(d.open, id)
	d.mu.Unlock()
	if w == nil {
		return notOpen("host.reply", id)
	}
	w.reply <- append(json.RawMessage(nil), b...)
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

func notOpen(op string, id uint64) error {
	return fault.New(fault.NotFound, op, "no open request %d: it was answered, cancelled or never asked", id)
}

func checkReply(op string, b []byte) error {
	if len(b) > maxReply {
		return fault.New(fault.Limit, op, "the answer has %d bytes, more than %d", len(b), maxReply)
	}
	if !json.Valid(b) {
		return fault.New(fault.Invalid, op, "the answer is not valid JSON")
	}
	return nil
}

// Failure is what a host extension reports when it fails: the type and message of its
// exception.
type Failure struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// Error gives "type: message".
func (f *Failure) Error() string { return f.Type + ": " + f.Message }

func decodeReply(b []byte) (json.RawMessage, error) {
	var r struct {
		Result json.RawMessage `json:"result"`
		Error  *Failure        `json:"error"`
	}
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, &Failure{Type: "InvalidReply", Message: "the reply is not an object with result or error: " + err.Error()}
	}
	if r.Error != nil {
		return nil, r.Error
	}
	if r.Result == nil {
		return nil, &Failure{Type: "InvalidReply", Message: "the reply has neither result nor error"}
	}
	return r.Result, nil
}
