package agent

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/a3s-lab/liba3s/internal/id"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/record"
	"github.com/a3s-lab/liba3s/runtime/session"
	"github.com/a3s-lab/liba3s/runtime/store"
	"github.com/a3s-lab/liba3s/runtime/workspace"
	"github.com/a3s-lab/liba3s/runtime/workspace/local"
)

// The defaults of the contract, section 2.1.
const (
	defaultToolRounds   = 50
	defaultParseRetries = 2
	defaultDuplicates   = 3
	defaultBreaker      = 3
	defaultThreshold    = 0.8
	defaultStall        = time.Minute
	parallelReads       = 8
)

// SessionSpec asks for a session: a new one in a workspace, or a kept one by id.
type SessionSpec struct {
	Workspace string
	Resume    string
	// Cwd completes relative paths of this request; empty is the agent's.
	Cwd     string
	Options *Options
}

// OpenSession opens a new session, or resumes a kept one. No model is contacted and
// nothing is executed.
func (a *Agent) OpenSession(ctx context.Context, spec SessionSpec) (*session.Session, error) {
	b := &builder{a: a, spec: spec, o: spec.Options, cwd: cmp.Or(spec.Cwd, a.setup.Cwd)}
	if b.o == nil {
		b.o = new(Options)
	}
	if err := b.name(); err != nil {
		return nil, err
	}
	if err := a.claim(b.id); err != nil {
		return nil, err
	}
	s, err := b.build(ctx)
	a.mu.Lock()
	delete(a.opening, b.id)
	closed := a.closed
	if err == nil && !closed {
		a.sessions[b.id] = s
		b.settle(s)
	}
	a.mu.Unlock()
	if err == nil && !closed {
		if err := a.catchUp(ctx, s); err != nil {
			_ = s.Close(context.WithoutCancel(ctx))
			return nil, fault.From("session.open", err)
		}
	}
	if err != nil {
		b.undo()
		return nil, fault.From("session.open", err)
	}
	if closed { // the agent was closed meanwhile
		_ = s.Close(context.WithoutCancel(ctx))
		return nil, a.isClosed()
	}
	return s, nil
}

func (a *Agent) isClosed() error {
	return fault.Of(fault.CodeSessionClosed, "session.open", "the agent is closed")
}

// claim reserves an id: one live session of a name in an agent.
func (a *Agent) claim(name string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.closed:
		return a.isClosed()
	case a.sessions[name] != nil || a.opening[name]:
		return fault.Of(fault.CodeSessionBusy, "session.open", "Session '%s' is open in this agent; close it first", name)
	}
	a.opening[name] = true
	return nil
}

// builder connects the parts of one session.
type builder struct {
	a       *Agent
	spec    SessionSpec
	o       *Options
	cwd     string
	id      string
	source  *id.Source
	kept    store.Session
	ws      workspace.Workspace
	warning []string
	closers []func()
	early   []*registration // extensions that the session is built with
}

func (b *builder) undo() {
	for _, fn := range b.closers {
		fn()
	}
	if b.kept != nil {
		_ = b.kept.Close()
	}
}

// name decides the id and the source of ids and time.
func (b *builder) name() error {
	var f id.Fixed
	if h := b.o.HostEnv; h != nil {
		f = id.Fixed{Prefix: h.SequentialIDPrefix, TimeMS: h.FixedTimeMS}
	}
	var err error
	if b.source, err = id.NewSource(f); err != nil {
		return err
	}
	switch {
	case b.spec.Resume != "" && b.o.SessionID != nil && *b.o.SessionID != b.spec.Resume:
		return fault.Option("session_id", fault.BadValue, "is %q, but session %q is to be resumed", *b.o.SessionID, b.spec.Resume)
	case b.spec.Resume != "":
		b.id = b.spec.Resume
	case b.o.SessionID != nil:
		b.id = *b.o.SessionID
	case f.Prefix != nil:
		b.id = b.source.New("session")
	default:
		b.id = id.New("")
	}
	return store.ValidID(b.id)
}

func (b *builder) build(ctx context.Context) (*session.Session, error) {
	old, err := b.openStore(ctx)
	if err != nil {
		return nil, err
	}
	root, err := b.root(old)
	if err != nil {
		return nil, err
	}
	if err := b.openWorkspace(ctx, root); err != nil {
		return nil, err
	}
	data := b.data(old)
	engine, err := b.engine(ctx, &data)
	if err != nil {
		return nil, err
	}
	gate, err := b.gate(engine, &data)
	if err != nil {
		return nil, err
	}
	return session.Open(ctx, session.Config{
		ID: b.id, Engine: engine, Gate: gate, Data: data, Kept: b.kept, Journal: or(b.o.Journal, true), AutoSave: or(b.o.AutoSave, false),
		Source: b.source, Redact: b.a.redact, Retention: b.retention(), StallTimeout: ms(b.o.StallTimeoutMS, defaultStall),
		Warning: strings.Join(b.warning, "; "), Log: b.a.log, Closed: b.closed, Owner: b.a,
		Withdraw: func(reason string) { b.a.desk.CancelSession(b.id, reason) },
	})
}

// closed forgets the session and gives its parts up.
func (b *builder) closed() {
	b.a.mu.Lock()
	delete(b.a.sessions, b.id)
	b.a.mu.Unlock()
	b.a.leave(b.id)
	for _, fn := range b.closers {
		fn()
	}
}

// root is the folder of the workspace.
func (b *builder) root(old *record.SessionData) (string, error) {
	path := b.spec.Workspace
	if w := b.o.WorkspaceBackend; w != nil && w.Root != "" {
		path = w.Root
	}
	if w := b.o.WorkspaceBackend; w != nil && w.Kind == "host" {
		return "", nil // it has a root of its own
	}
	if path == "" && old != nil {
		path = old.Config.Workspace
		if path != "" && !strings.HasPrefix(path, "/") {
			return "", fault.Option("workspace_backend", fault.BadValue, "is missing: the session worked in %q, which is no folder of this machine", path)
		}
	}
	if path == "" {
		return "", fault.Option("workspace", fault.BadValue, "is missing: name the folder the session works in")
	}
	return absolute(b.cwd, path), nil
}

func (b *builder) openWorkspace(ctx context.Context, root string) error {
	if w := b.o.WorkspaceBackend; w != nil && w.Kind == "host" {
		return b.openHostWorkspace(ctx, w.Name)
	}
	var protect []string
	if dir := b.storeDir(); dir != "" {
		protect = append(protect, dir)
	}
	w, err := local.Open(ctx, local.Config{Root: root, Env: b.a.setup.Env, Protect: protect})
	if err != nil {
		return err
	}
	b.closers = append(b.closers, func() { _ = w.Close() })
	b.ws = w
	return nil
}
