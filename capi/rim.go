package main

import (
	"context"
	"errors"
	"time"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

// rim is the library as C sees it, without C types.
type rim struct {
	core
	table *table
	log   logSink
}

func newRim(c core) *rim { return &rim{core: c, table: newTable()} }

// closed is why things end when their handle is closed.
var closed = fault.New(fault.Closed, "", "the handle was closed meanwhile")

// limit bounds a wait: below 0 not at all.
func limit(ctx context.Context, ms int32) (context.Context, context.CancelFunc) {
	if ms < 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, time.Duration(ms)*time.Millisecond)
}

// why turns the end of a bounded wait into its reason: the handle was closed, the
// caller's time ran out, or what the operation said.
func why(e *entry, ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	var f *fault.Error
	told := errors.As(err, &f)
	if told && f.Kind != fault.Cancelled && f.Kind != fault.Timeout {
		return err
	}
	switch {
	case e.ctx.Err() != nil:
		return context.Cause(e.ctx)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fault.New(fault.Timeout, "", "not done within the time-out; give more time or cancel")
	}
	return err
}

func (r *rim) openAgent(request []byte) (Handle, error) {
	a, err := r.OpenAgent(context.Background(), request)
	if err != nil {
		return 0, err
	}
	e, err := r.keep(agentKind, a, nil)
	if err != nil {
		return 0, err
	}
	r.log.follow(r, e)
	return e.handle, nil
}

func (r *rim) openSession(agent Handle, request []byte) (Handle, error) {
	p, err := r.table.get(agent, agentKind)
	if err != nil {
		return 0, err
	}
	s, err := r.OpenSession(p.ctx, p.value, request)
	if err != nil {
		return 0, why(p, p.ctx, err)
	}
	return r.keepHandle(sessionKind, s, p)
}

func (r *rim) startRun(session Handle, request []byte) (Handle, error) {
	p, err := r.table.get(session, sessionKind)
	if err != nil {
		return 0, err
	}
	run, err := r.StartRun(p.ctx, p.value, request)
	if err != nil {
		return 0, why(p, p.ctx, err)
	}
	return r.keepHandle(runKind, run, p)
}

func (r *rim) register(on Handle, kind string, spec []byte) (Handle, error) {
	p, err := r.table.get(on, agentKind, sessionKind)
	if err != nil {
		return 0, err
	}
	reg, err := r.Register(p.ctx, p.value, kind, spec)
	if err != nil {
		return 0, why(p, p.ctx, err)
	}
	return r.keepHandle(registrationKind, reg, p)
}

// keep makes a handle for value. If its parent was closed meanwhile, value is ended.
func (r *rim) keep(k Kind, value any, parent *entry) (*entry, error) {
	e, err := r.table.put(k, value, parent)
	if err == nil {
		return e, nil
	}
	if s, ok := value.(*stream); ok {
		s.stop()
	} else if k != runKind {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		err = errors.Join(err, r.Close(ctx, value))
	}
	return nil, err
}

func (r *rim) keepHandle(k Kind, value any, parent *entry) (Handle, error) {
	e, err := r.keep(k, value, parent)
	if err != nil {
		return 0, err
	}
	return e.handle, nil
}

func (r *rim) input(run Handle, input []byte) error {
	e, err := r.table.get(run, runKind)
	if err != nil {
		return err
	}
	return why(e, e.ctx, r.Input(e.ctx, e.value, input))
}

func (r *rim) cancelRun(run Handle, reason string) error {
	e, err := r.table.get(run, runKind)
	if err != nil {
		return err
	}
	return why(e, e.ctx, r.Cancel(e.ctx, e.value, reason))
}

func (r *rim) waitRun(run Handle, timeoutMS int32) ([]byte, error) {
	e, err := r.table.get(run, runKind)
	if err != nil {
		return nil, err
	}
	ctx, cancel := limit(e.ctx, timeoutMS)
	defer cancel()
	result, err := r.Wait(ctx, e.value)
	// Only the wait's own end is translated: a run that was cancelled says so itself.
	if ctx.Err() != nil {
		err = why(e, ctx, err)
	}
	return result, err
}

func (r *rim) chunk(on Handle, request uint64, json []byte) error {
	e, err := r.table.get(on, agentKind, sessionKind)
	if err != nil {
		return err
	}
	return why(e, e.ctx, r.Chunk(e.ctx, e.value, request, json))
}

func (r *rim) reply(on Handle, request uint64, json []byte) error {
	e, err := r.table.get(on, agentKind, sessionKind)
	if err != nil {
		return err
	}
	return why(e, e.ctx, r.Reply(e.ctx, e.value, request, json))
}
