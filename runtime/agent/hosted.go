package agent

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"

	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/host"
	"github.com/a3s-lab/liba3s/runtime/policy"
	policyhost "github.com/a3s-lab/liba3s/runtime/policy/host"
	"github.com/a3s-lab/liba3s/runtime/prompt"
	prompthost "github.com/a3s-lab/liba3s/runtime/prompt/host"
	"github.com/a3s-lab/liba3s/runtime/session"
	"github.com/a3s-lab/liba3s/runtime/tool"
	toolhost "github.com/a3s-lab/liba3s/runtime/tool/host"
)

// registration is an extension of the host.
type registration struct {
	kind    *HostKind
	name    string
	session string    // empty for all sessions of the agent
	spec    extension // a pointer to the kind's description
	line    *host.Line
	part    any // what its kind made of it, if one thing serves all sessions
	stop    func()

	// attached are the sessions it was brought into, with the way back; guarded by
	// Agent.mu.
	attached map[string]func() error
	// attaching counts those it is being brought into; it rises under Agent.mu, while the
	// agent has this registration.
	attaching sync.WaitGroup
}

// Registration takes an extension of the host back.
type Registration struct{ undo func() error }

// Close takes the extension back: requests under way are withdrawn, new ones fail at once.
func (r *Registration) Close() error { return r.undo() }

// Supply lets the host supply an extension of a kind of HostKinds: to one session or, if
// s is nil, to every session of the agent that opens afterwards and, unless the kind is
// early, to those that are open. An extension that lives in this process gives by, which
// hears its requests; with nil they go to the control streams.
func (a *Agent) Supply(ctx context.Context, s *session.Session, kind string, spec json.RawMessage, by host.Sender) (*Registration, error) {
	sid := ""
	if s != nil {
		sid = s.ID()
	}
	k, err := kindNamed(kind)
	if err != nil {
		return nil, err
	}
	if err := k.place(sid); err != nil {
		return nil, err
	}
	e, err := k.decode(spec)
	if err != nil {
		return nil, err
	}
	base := e.Extends()
	r := &registration{
		kind: k, name: base.Name, session: sid, spec: e, attached: map[string]func() error{},
		line: host.NewLine(a.desk, k.Name, base.Name, base.Deadline(k.Deadline)),
	}
	r.line.To(by)
	if k.open != nil {
		if r.part, err = k.open(ctx, r); err != nil {
			return nil, err
		}
	}
	open, err := a.enter(r)
	if err != nil {
		return nil, err
	}
	if k.start != nil {
		r.stop = k.start(a, r)
	}
	for _, s := range open {
		if err := a.attach(ctx, r, s); err != nil && fault.KindOf(err) != fault.Closed {
			_ = a.forget(r)
			return nil, err
		}
	}
	return &Registration{func() error { return a.forget(r) }}, nil
}

// enter adds a registration and gives the open sessions it is for.
func (a *Agent) enter(r *registration) ([]*session.Session, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil, a.isClosed()
	}
	for _, x := range a.extensions {
		if x.kind == r.kind && x.name == r.name && (x.session == r.session || x.session == "" || r.session == "") {
			return nil, fault.New(fault.Exists, "host.register", "%s %q is registered already", r.kind.Name, r.name)
		}
	}
	if r.session != "" && a.sessions[r.session] == nil {
		return nil, fault.Of(fault.CodeSessionClosed, "host.register", "Session '%s' is closed", r.session)
	}
	a.extensions = append(a.extensions, r)
	if r.session != "" {
		return []*session.Session{a.sessions[r.session]}, nil
	}
	return slices.Collect(maps.Values(a.sessions)), nil
}

// attach brings an extension into an open session, once.
func (a *Agent) attach(ctx context.Context, r *registration, s *session.Session) error {
	if r.kind.attach == nil {
		return nil
	}
	a.mu.Lock()
	_, there := r.attached[s.ID()]
	there = there || !slices.Contains(a.extensions, r)
	if !there {
		r.attached[s.ID()] = func() error { return nil } // claimed
		r.attaching.Add(1)
	}
	a.mu.Unlock()
	if there {
		return nil
	}
	defer r.attaching.Done()
	detach, err := r.kind.attach(a, ctx, r, s)
	a.mu.Lock()
	kept := slices.Contains(a.extensions, r)
	switch {
	case err != nil:
		delete(r.attached, s.ID())
	case kept:
		r.attached[s.ID()] = detach
	}
	a.mu.Unlock()
	if err == nil && !kept { // taken back meanwhile
		return detach()
	}
	return err
}

// forget takes a registration back, everywhere.
func (a *Agent) forget(r *registration) error {
	a.mu.Lock()
	before := len(a.extensions)
	a.extensions = slices.DeleteFunc(a.extensions, func(x *registration) bool { return x == r })
	gone := len(a.extensions) == before
	detach := slices.Collect(maps.Values(r.attached))
	clear(r.attached)
	a.mu.Unlock()
	if gone {
		return nil // its session or the agent was closed, or it was taken back before
	}
	r.end()
	r.attaching.Wait() // its name is free when it is taken back
	for _, fn := range detach {
		if err := fn(); err != nil && fault.KindOf(err) != fault.NotFound {
			return err
		}
	}
	return nil
}

func (r *registration) end() {
	r.line.End()
	if r.stop != nil {
		r.stop()
	}
}

// leave drops what was registered with a session that is closed.
func (a *Agent) leave(sid string) {
	a.mu.Lock()
	var gone []*registration
	a.extensions = slices.DeleteFunc(a.extensions, func(r *registration) bool {
		delete(r.attached, sid)
		if r.session != sid {
			return false
		}
		gone = append(gone, r)
		return true
	})
	a.mu.Unlock()
	for _, r := range gone {
		r.end()
	}
}

// catchUp brings what was registered while a session opened into it.
func (a *Agent) catchUp(ctx context.Context, s *session.Session) error {
	for _, kind := range hostKinds {
		for _, r := range a.registered(kind.Name, s.ID()) {
			if err := a.attach(ctx, r, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// registered gives the extensions of a kind that a session has, oldest first.
func (a *Agent) registered(kind, sid string) []*registration {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []*registration
	for _, r := range a.extensions {
		if r.kind.Name == kind && (r.session == "" || r.session == sid) {
			out = append(out, r)
		}
	}
	return out
}

// named gives the agent's extension of a kind by name. The error says what to do.
func (a *Agent) named(kind, name string) (*registration, error) {
	for _, r := range a.registered(kind, "") {
		if r.name == name {
			return r, nil
		}
	}
	return nil, fault.New(fault.NotFound, "host."+kind, "the host has registered no %s %q: register it with the agent before the session opens", kind, name)
}

func (a *Agent) attachTool(ctx context.Context, r *registration, s *session.Session) (func() error, error) {
	t, err := a.hostTool(ctx, r, s.ID())
	if err != nil {
		return nil, err
	}
	return func() error { return s.RemoveTool(r.name) }, s.AddTool(t)
}

func (a *Agent) hostTool(ctx context.Context, r *registration, sid string) (tool.Tool, error) {
	return toolhost.Open(ctx, toolhost.Config{Spec: *r.spec.(*toolhost.ToolSpec), Line: r.line, SessionID: sid})
}

// hostTools gives the agent's tools for a session that is being built: it has them from
// its first moment, or never if its model cannot call any.
func (b *builder) hostTools(ctx context.Context) ([]tool.Tool, error) {
	var out []tool.Tool
	for _, r := range b.a.registered("tool", "") {
		t, err := b.a.hostTool(ctx, r, b.id)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
		b.early = append(b.early, r)
	}
	return out, nil
}

// settle notes what the session was built with, and takes out what was taken back
// meanwhile. Agent.mu is held.
func (b *builder) settle(s *session.Session) {
	for _, r := range b.early {
		if !slices.Contains(b.a.extensions, r) {
			_ = s.RemoveTool(r.name) // it is there: nobody else knows this session yet
			continue
		}
		r.attached[b.id] = func() error { return s.RemoveTool(r.name) }
	}
}

// checkers gives the permission checkers of a session that count now.
func (a *Agent) checkers(sid string) []policy.Checker {
	var out []policy.Checker
	for _, r := range a.registered("permission", sid) {
		failed := func(err error) {
			a.log(event.LogLine{Level: "warn", Message: err.Error(), SessionID: sid, ErrorKind: string(fault.KindOf(err))})
		}
		c, err := policyhost.Open(context.Background(), policyhost.Config{Spec: *r.spec.(*policyhost.PermissionSpec), Line: r.line, SessionID: sid, Failed: failed})
		if err == nil { // opening checks nothing that was not checked
			out = append(out, c)
		}
	}
	return out
}

// providers gives the context providers of a session that count now.
func (a *Agent) providers(sid string) []prompt.Provider {
	var out []prompt.Provider
	for _, r := range a.registered("context", sid) {
		if p, err := prompthost.Open(context.Background(), prompthost.Config{Line: r.line}); err == nil {
			out = append(out, p)
		}
	}
	return out
}
