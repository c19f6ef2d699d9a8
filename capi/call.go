package main

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/a3s-lab/liba3s/internal/safego"
	"github.com/a3s-lab/liba3s/runtime/fault"
)

// maxCalls bounds the started calls of one handle whose results nobody took.
const maxCalls = 1024

// lastCall is the number of the last call of this process.
var lastCall atomic.Uint64

// call is one operation under way, or the result of a started one.
type call struct {
	id     uint64
	cancel context.CancelFunc
	done   chan struct{}
	result []byte // set before done is closed
	err    error  // set before done is closed
}

// callSet holds the calls of one handle.
type callSet struct {
	mu      sync.Mutex
	running map[uint64]*call // guarded by mu
	started map[uint64]*call // results not taken yet; guarded by mu
	busy    sync.WaitGroup   // operations that op has not returned from
}

// begin adds a call. A started one is kept until its result is taken.
func (s *callSet) begin(c *call, started bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if started && len(s.started) >= maxCalls {
		return fault.New(fault.Limit, "", "%d started calls of this handle were never waited for; take their results with a3s_call_wait", maxCalls)
	}
	if s.running == nil {
		s.running, s.started = map[uint64]*call{}, map[uint64]*call{}
	}
	s.running[c.id] = c
	if started {
		s.started[c.id] = c
	}
	s.busy.Add(1)
	return nil
}

func (s *callSet) end(c *call) {
	s.mu.Lock()
	delete(s.running, c.id)
	s.mu.Unlock()
	s.busy.Done()
}

func (s *callSet) find(id uint64) *call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.started[id]
}

// takeCall removes c and reports whether it was there: one waiter gets the result.
func (s *callSet) takeCall(c *call) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.started[c.id]
	delete(s.started, c.id)
	return ok
}

// cancelAll cancels every call under way.
func (s *callSet) cancelAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.running {
		c.cancel()
	}
}

// count is the number of calls under way or waiting to be taken.
func (s *callSet) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.started)
	for id := range s.running {
		if _, ok := s.started[id]; !ok {
			n++
		}
	}
	return n
}

// call runs an operation and waits for it; past the time-out it is cancelled and its
// acknowledgement awaited.
func (r *rim) call(on Handle, method string, params []byte, timeoutMS int32) ([]byte, error) {
	e, err := r.table.get(on, agentKind, sessionKind, runKind)
	if err != nil {
		return nil, err
	}
	if timeoutMS == 0 {
		timeoutMS = -1
	}
	bounded, stop := limit(e.ctx, timeoutMS)
	defer stop()
	ctx, cancel := context.WithCancel(bounded)
	defer cancel()
	c := &call{id: lastCall.Add(1), cancel: cancel}
	if err := e.calls.begin(c, false); err != nil {
		return nil, err
	}
	defer e.calls.end(c)
	result, err := r.operate(ctx, e, method, params)
	return result, why(e, bounded, err)
}

// operate runs one operation of op, or one that only test builds have.
func (r *rim) operate(ctx context.Context, e *entry, method string, params []byte) ([]byte, error) {
	if fn := testOperation(method); fn != nil {
		return fn(ctx)
	}
	return r.Call(ctx, e.value, method, params)
}

// startCall runs an operation in the background and gives its number.
func (r *rim) startCall(on Handle, method string, params []byte) (uint64, error) {
	e, err := r.table.get(on, agentKind, sessionKind, runKind)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancel(e.ctx)
	c := &call{id: lastCall.Add(1), cancel: cancel, done: make(chan struct{})}
	if err := e.calls.begin(c, true); err != nil {
		cancel()
		return 0, err
	}
	safego.Go("a3s_call_start", nil, func() {
		defer e.calls.end(c)
		defer cancel()
		err := safego.Call(method, func() (err error) {
			c.result, err = r.operate(ctx, e, method, params)
			return err
		})
		c.err = why(e, ctx, err)
		close(c.done)
		r.Tell(e.value, c.id, c.result, c.err)
	})
	return c.id, nil
}

// waitCall takes the result of a started call.
func (r *rim) waitCall(on Handle, id uint64, timeoutMS int32) ([]byte, error) {
	e, err := r.table.get(on, agentKind, sessionKind, runKind)
	if err != nil {
		return nil, err
	}
	c := e.calls.find(id)
	if c == nil {
		return nil, unknownCall(id)
	}
	ctx, cancel := limit(context.Background(), timeoutMS)
	defer cancel()
	select {
	case <-c.done:
	default:
		select {
		case <-c.done:
		case <-ctx.Done():
			return nil, fault.New(fault.Timeout, "", "call %d is still running; wait longer or cancel it", id)
		}
	}
	if !e.calls.takeCall(c) {
		return nil, unknownCall(id)
	}
	return c.result, c.err
}

func unknownCall(id uint64) error {
	return fault.New(fault.NotFound, "", "no call %d on this handle; its result was taken, or it was started on another handle", id)
}

// cancelCall asks one call to stop, or with 0 all calls of a handle and below it.
func (r *rim) cancelCall(on Handle, id uint64) error {
	e, err := r.table.get(on, agentKind, sessionKind, runKind)
	if err != nil {
		return err
	}
	if id == 0 {
		for _, b := range r.table.below(e) {
			b.calls.cancelAll()
		}
		return nil
	}
	c := e.calls.find(id)
	if c == nil {
		return unknownCall(id)
	}
	c.cancel()
	return nil
}
