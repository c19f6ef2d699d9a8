package main

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/a3s-lab/liba3s/internal/safego"
	"github.com/a3s-lab/liba3s/runtime/fault"
)

const (
	firstBuffer  = 4 << 10  // of a subscription; an idle one stays small
	fullBuffer   = 64 << 10 // it grows to this with the flow, and beyond for a large event
	defaultBatch = 256
)

// stream is a cursor with its one reader.
type stream struct {
	cursor cursor
	ctx    context.Context // ends when the stream is to deliver nothing more
	cancel context.CancelFunc

	reading    atomic.Bool
	subscribed atomic.Bool
	// idle is closed when the subscription has called free_ud; made by subscribe.
	idle chan struct{}
	once sync.Once
}

func newStream(c cursor) *stream {
	s := &stream{cursor: c}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// stop lets every reader return and frees the cursor. It may be called twice.
func (s *stream) stop() {
	s.cancel()
	s.once.Do(s.cursor.Close)
}

func (r *rim) openStream(source Handle, opts []byte) (Handle, error) {
	p, err := r.table.get(source, runKind, sessionKind, agentKind)
	if err != nil {
		return 0, err
	}
	c, err := r.OpenStream(p.ctx, p.value, opts)
	if err != nil {
		return 0, why(p, p.ctx, err)
	}
	return r.keepHandle(streamKind, newStream(c), p)
}

func (r *rim) stream(h Handle) (*stream, error) {
	e, err := r.table.get(h, streamKind)
	if err != nil {
		return nil, err
	}
	return e.value.(*stream), nil
}

// next reads a batch: n bytes, 0 if nothing came in time, or an error; needed is the
// buffer the next event wants with fault.Buffer.
func (s *stream) next(timeoutMS int32, events uint32, buf []byte) (n, needed int, err error) {
	if !s.reading.CompareAndSwap(false, true) {
		if s.subscribed.Load() {
			return 0, 0, fault.New(fault.Busy, "", "the stream has a subscription; its events go there")
		}
		return 0, 0, fault.New(fault.Busy, "", "another thread is reading this stream; use one reader per stream")
	}
	defer s.reading.Store(false)
	batch := math.MaxInt32
	if events > 0 && events < math.MaxInt32 {
		batch = int(events)
	}
	n, needed, err = s.cursor.TryNext(batch, buf)
	if n > 0 || err != nil || timeoutMS == 0 {
		return n, needed, err
	}
	deadline := time.Now().Add(time.Duration(timeoutMS) * time.Millisecond)
	for left := time.Duration(-1); n == 0 && err == nil; {
		if timeoutMS > 0 {
			left = max(0, time.Until(deadline))
		}
		ready, failed := s.cursor.Wait(left)
		if failed != nil && s.ctx.Err() == nil {
			return s.nextOtherwise(timeoutMS, batch, buf)
		}
		if failed == nil && !ready {
			return 0, 0, nil
		}
		n, needed, err = s.cursor.TryNext(batch, buf)
	}
	if err != nil && s.ctx.Err() != nil {
		return 0, 0, closed
	}
	return n, needed, err
}

// nextOtherwise waits where there is no descriptor to wait for.
func (s *stream) nextOtherwise(timeoutMS int32, batch int, buf []byte) (n, needed int, err error) {
	ctx, cancel := limit(s.ctx, timeoutMS)
	defer cancel()
	n, needed, err = s.cursor.Next(ctx, batch, buf)
	switch {
	case err == nil || n > 0:
		return n, 0, nil
	case s.ctx.Err() != nil:
		return 0, 0, closed
	case errors.Is(err, context.DeadlineExceeded):
		return 0, 0, nil
	}
	return 0, needed, err
}

// subscription is where a stream's events go.
type subscription struct {
	batch   uint32
	delay   time.Duration
	deliver func(json []byte) // calls out; holds no lock
	finish  func()            // calls free_ud
}

// subscribe starts the one goroutine that hands out the stream's events. If it fails,
// finish is the caller's to call.
func (s *stream) subscribe(sub subscription) error {
	if !s.reading.CompareAndSwap(false, true) {
		return fault.New(fault.Busy, "", "the stream already has a reader; a stream takes one")
	}
	if s.ctx.Err() != nil {
		s.reading.Store(false)
		return closed
	}
	s.idle = make(chan struct{})
	s.subscribed.Store(true)
	safego.Go("a3s_stream_subscribe", nil, func() {
		defer close(s.idle)
		defer sub.finish()
		s.pump(sub)
	})
	return nil
}

// pump delivers batches until the stream ends or is stopped.
func (s *stream) pump(sub subscription) {
	batch, first := defaultBatch, 1
	if sub.batch > 0 {
		batch = int(min(sub.batch, math.MaxInt32))
	}
	if sub.delay == 0 {
		first = batch
	}
	buf := make([]byte, firstBuffer)
	for s.ctx.Err() == nil {
		n, needed, err := s.cursor.Next(s.ctx, first, buf)
		switch {
		case n > 0:
		case fault.KindOf(err) == fault.Buffer:
			buf = make([]byte, needed+needed/4)
			continue
		case fault.KindOf(err) == fault.Woken:
			continue
		default:
			return // the end, or stopped
		}
		if first < batch {
			n = s.gather(sub.delay, batch-first, buf, n)
		}
		if s.ctx.Err() != nil {
			return
		}
		sub.deliver(buf[:n])
		if n > len(buf)/2 && len(buf) < fullBuffer {
			buf = make([]byte, 2*len(buf))
		}
	}
}

// gather waits a little and joins what came meanwhile to the array in buf[:n].
func (s *stream) gather(delay time.Duration, more int, buf []byte, n int) int {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.ctx.Done():
		return n
	}
	// The second array overwrites the first one's bracket, and its own becomes a comma.
	rest := buf[n-1:]
	if len(rest) < 2 {
		return n
	}
	m, _, _ := s.cursor.TryNext(more, rest) // an end or a short buffer shows up again
	if m == 0 {
		rest[0] = ']'
		return n
	}
	rest[0] = ','
	return n - 1 + m
}
