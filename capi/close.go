package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/a3s-lab/liba3s/internal/safego"
	"github.com/a3s-lab/liba3s/runtime/fault"
)

// closeTimeout is the limit of a close that names none.
const closeTimeout = 10 * time.Second

// close ends h and everything below it. inside is the stream whose callback the calling
// thread is in, or 0.
func (r *rim) close(h Handle, timeoutMS int32, inside Handle) (fault.Status, error) {
	root, err := r.table.take(h)
	if err != nil {
		return 0, err
	}
	wait := closeTimeout
	if timeoutMS >= 0 {
		wait = time.Duration(timeoutMS) * time.Millisecond
	}
	// The runtime gets the caller's limit for its own steps; a caller that waits for
	// nothing still wants an orderly end.
	bound := wait
	if bound == 0 {
		bound = closeTimeout
	}
	all := walk(root, nil)
	pending := false
	for _, e := range all {
		if e.handle == inside && inside != 0 {
			pending = true
			e.value.(*stream).cancel() // no callback after the present one
		}
	}
	done := make(chan error, 1)
	safego.Go("a3s_close", nil, func() {
		ctx, cancel := context.WithTimeout(context.Background(), bound)
		defer cancel()
		err := safego.Call("a3s_close", func() error { return r.end(ctx, root, all) })
		r.table.done()
		done <- err
	})
	if pending {
		return fault.Pending, nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case err := <-done:
		return fault.OK, err
	case <-timer.C:
	}
	select {
	case err := <-done:
		return fault.OK, err
	default:
		return 0, fault.New(fault.Timeout, "", "not done within %v; the handle is dead and the rest goes on in the background", wait)
	}
}

// end ends root and all below it, in order: calls, registrations and the objects
// themselves, then the streams, which the objects' end has brought to theirs.
func (r *rim) end(ctx context.Context, root *entry, all []*entry) error {
	for _, e := range all {
		if e.kind != streamKind {
			e.cancel(closed)
			r.log.unfollow(e)
		}
	}
	// A stream that is closed by itself stops at once; below a parent it is read to
	// its end by who subscribed to it.
	if root.kind == streamKind || root.kind == runKind {
		stopStreams(all)
	}
	err := r.endObjects(ctx, root, all)
	for _, e := range all {
		if s, ok := e.value.(*stream); ok && s.subscribed.Load() {
			select {
			case <-s.idle:
			case <-ctx.Done():
			}
		}
	}
	stopStreams(all)
	for _, e := range all {
		if s, ok := e.value.(*stream); ok && s.subscribed.Load() {
			<-s.idle // a callback that never returns keeps the close counted
		}
		e.cancel(closed)
		e.calls.busy.Wait()
	}
	return err
}

func stopStreams(all []*entry) {
	for _, e := range all {
		if s, ok := e.value.(*stream); ok {
			s.stop()
		}
	}
}

// endObjects ends registrations first, then sessions side by side, then the agent.
func (r *rim) endObjects(ctx context.Context, root *entry, all []*entry) error {
	var errs []error
	for _, k := range []Kind{registrationKind, sessionKind, agentKind} {
		var mu sync.Mutex
		var wait sync.WaitGroup
		for _, e := range all {
			if e.kind != k {
				continue
			}
			wait.Add(1)
			safego.Go("a3s_close", nil, func() {
				defer wait.Done()
				err := safego.Call("a3s_close", func() error { return r.Close(ctx, e.value) })
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			})
		}
		wait.Wait()
	}
	err := errors.Join(errs...)
	if err != nil && ctx.Err() != nil {
		return fault.New(fault.Timeout, "", "the clean-up did not finish in time: %v", err)
	}
	return err
}
