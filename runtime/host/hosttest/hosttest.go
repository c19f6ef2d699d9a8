// Package hosttest is a host for tests: a desk whose requests are answered by a Go
// function, each on a goroutine of its own, as a program on the other side of a control
// stream would. Floor 3.
package hosttest

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"

	"github.com/a3s-lab/liba3s/runtime/host"
)

// Raw is a result that is sent as it is, well formed or not.
type Raw string

// ErrSilent is returned by a handler that leaves a request without an answer.
var ErrSilent = errors.New("silent")

// Handler answers one request. ctx ends when the request is withdrawn; chunk sends
// progress. What it returns is the result; an error is the reported failure, as it is if
// it is a *host.Failure.
type Handler func(ctx context.Context, r host.Request, chunk func(any)) (any, error)

// Host is the other side of a desk.
type Host struct {
	Desk *host.Desk
	// Deaf makes every request fail at once, as with no control stream. Set it before
	// the first request.
	Deaf bool

	t      testing.TB
	handle Handler
	work   sync.WaitGroup

	mu        sync.Mutex
	requests  []host.Request                // guarded by mu
	withdrawn map[uint64]string             // reasons; guarded by mu
	open      map[uint64]context.CancelFunc // guarded by mu
}

// New makes a host. The end of the test waits for its handlers.
func New(t testing.TB, handle Handler) *Host {
	h := &Host{t: t, handle: handle, withdrawn: map[uint64]string{}, open: map[uint64]context.CancelFunc{}}
	h.Desk = host.NewDesk(h)
	t.Cleanup(func() {
		h.mu.Lock()
		for _, cancel := range h.open {
			cancel()
		}
		h.mu.Unlock()
		h.work.Wait()
	})
	return h
}

// Request implements host.Sender.
func (h *Host) Request(r host.Request) error {
	if h.Deaf {
		return errors.New("nobody hears")
	}
	ctx, cancel := context.WithCancel(context.Background())
	h.mu.Lock()
	h.requests = append(h.requests, r)
	h.open[r.ID] = cancel
	h.mu.Unlock()
	h.work.Go(func() { h.serve(ctx, r) })
	return nil
}

// Cancel implements host.Sender.
func (h *Host) Cancel(id uint64, reason string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.withdrawn[id] = reason
	if cancel := h.open[id]; cancel != nil {
		cancel()
	}
}

func (h *Host) serve(ctx context.Context, r host.Request) {
	result, err := h.handle(ctx, r, func(c any) {
		_ = h.Desk.Chunk(r.ID, Encode(h.t, c)) // it may be withdrawn by now
	})
	if errors.Is(err, ErrSilent) {
		return
	}
	_ = h.Desk.Reply(r.ID, h.reply(result, err))
}

func (h *Host) reply(result any, err error) []byte {
	if err == nil {
		return []byte(`{"result":` + string(Encode(h.t, result)) + `}`)
	}
	var f *host.Failure
	if !errors.As(err, &f) {
		f = &host.Failure{Type: "Error", Message: err.Error()}
	}
	return Encode(h.t, host.Reply{Error: f})
}

// Encode gives the JSON of v; a Raw as it is.
func Encode(t testing.TB, v any) []byte {
	if raw, ok := v.(Raw); ok {
		return []byte(raw)
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Errorf("encode %T: %v", v, err)
	}
	return b
}

// Requests gives what was asked so far, in order.
func (h *Host) Requests() []host.Request {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]host.Request(nil), h.requests...)
}

// Withdrawn gives the reason for which a request was withdrawn; empty if it was not.
func (h *Host) Withdrawn(id uint64) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.withdrawn[id]
}
