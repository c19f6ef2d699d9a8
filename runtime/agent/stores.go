package agent

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"github.com/a3s-lab/liba3s/internal/id"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/record"
	"github.com/a3s-lab/liba3s/runtime/store"
	"github.com/a3s-lab/liba3s/runtime/store/file"
	storehost "github.com/a3s-lab/liba3s/runtime/store/host"
	"github.com/a3s-lab/liba3s/runtime/store/mem"
	workspacehost "github.com/a3s-lab/liba3s/runtime/workspace/host"
)

// memories are the in-memory stores of the process by instance. They live as long as
// the process: the host object that stands for one may be used with several agents.
var memories struct {
	mu sync.Mutex
	m  map[string]*mem.Store
}

func memoryStore(ctx context.Context, instance string) (*mem.Store, error) {
	memories.mu.Lock()
	defer memories.mu.Unlock()
	if memories.m == nil {
		memories.m = map[string]*mem.Store{}
	}
	if s := memories.m[instance]; s != nil {
		return s, nil
	}
	s, err := mem.Open(ctx, mem.Config{})
	if err == nil {
		memories.m[instance] = s
	}
	return s, err
}

// DropMemory forgets an in-memory store: what is kept in it is gone.
func DropMemory(instance string) {
	memories.mu.Lock()
	delete(memories.m, instance)
	memories.mu.Unlock()
}

// storeDir is the folder of a file store, empty for others.
func (b *builder) storeDir() string {
	switch s := b.o.SessionStore; {
	case s != nil && s.Kind == "file":
		return absolute(b.cwd, s.Dir)
	case s == nil && b.a.cfg.StorageFile && b.a.cfg.SessionsDir != "":
		return absolute(b.cwd, b.a.cfg.SessionsDir)
	}
	return ""
}

func (b *builder) storageType() string {
	switch {
	case b.storeDir() != "":
		return "file"
	case b.o.SessionStore != nil && b.o.SessionStore.Kind == "host":
		return "host"
	case b.kept != nil:
		return "memory"
	}
	return ""
}

// ListStored gives the ids of the sessions kept in a store, open or not, sorted. where
// nil is the store of the configuration.
func (a *Agent) ListStored(ctx context.Context, where *SessionStore, cwd string) ([]string, error) {
	b := &builder{a: a, o: &Options{SessionStore: where}, cwd: cmp.Or(cwd, a.setup.Cwd)}
	if err := b.o.checkParts(); err != nil {
		return nil, err
	}
	st, err := b.store(ctx)
	if err != nil {
		return nil, err
	}
	if st == nil {
		return nil, fault.Option("session_store", fault.BadValue, "is missing, and the configuration names no sessions_dir")
	}
	return st.List(ctx)
}

// store gives the store of the options or of the configuration; nil if there is none.
func (b *builder) store(ctx context.Context) (store.Store, error) {
	if dir := b.storeDir(); dir != "" {
		return file.Open(ctx, file.Config{Dir: dir, Hook: b.a.setup.StoreHook})
	}
	switch s := b.o.SessionStore; {
	case s == nil:
		return nil, nil
	case s.Kind == "host":
		r, err := b.a.named("store", s.Name)
		if err != nil {
			return nil, fault.Option("session_store", fault.BadValue, "%v", err)
		}
		return r.part.(*storehost.Store), nil
	default:
		return memoryStore(ctx, s.InstanceID)
	}
}

// openStore takes the session's place in its store. For a resume it gives the kept
// session's data, or SESSION_ERROR if there is none.
func (b *builder) openStore(ctx context.Context) (*record.SessionData, error) {
	st, err := b.store(ctx)
	if err != nil {
		return nil, err
	}
	if st == nil {
		if b.spec.Resume != "" {
			return nil, fault.Of(fault.CodeSession, "session.open", "resume_session needs a session_store")
		}
		return nil, nil
	}
	kept, err := st.Open(ctx, b.id, fmt.Sprintf("liba3s %s", id.New("owner")))
	if err != nil {
		return nil, err
	}
	b.kept = &keptSession{Session: kept}
	return b.peek(ctx)
}

// peek loads what is kept once, and gives it to the session later.
func (b *builder) peek(ctx context.Context) (*record.SessionData, error) {
	k := b.kept.(*keptSession)
	loaded, err := k.Session.Load(ctx)
	if err != nil {
		return nil, err
	}
	k.loaded = &loaded
	if loaded.Snapshot != nil {
		return b.known(&loaded.Snapshot.Session)
	}
	for line, err := range loaded.Facts {
		if err != nil {
			return nil, err
		}
		l, err := record.Decode(line)
		if err != nil {
			return nil, err
		}
		if l.Mark != nil && l.Mark.Session != nil {
			return b.known(l.Mark.Session)
		}
		break
	}
	if b.spec.Resume != "" {
		return nil, fault.Of(fault.CodeSession, "session.open", "Session not found: %s", b.id)
	}
	return nil, nil
}

// known gives the kept data to a resume. A new session must not take over a kept one.
func (b *builder) known(d *record.SessionData) (*record.SessionData, error) {
	if b.spec.Resume == "" {
		return nil, fault.Option("session_id", fault.BadValue, "%q is kept in this store already; resume it or choose another id", b.id)
	}
	return d, nil
}

// keptSession gives a load that was made early.
type keptSession struct {
	store.Session
	loaded *store.Kept
}

// Load implements store.Session.
func (k *keptSession) Load(context.Context) (store.Kept, error) { return *k.loaded, nil }

// openHostWorkspace opens a workspace that the host registered.
func (b *builder) openHostWorkspace(ctx context.Context, name string) error {
	r, err := b.a.named("workspace", name)
	if err != nil {
		return fault.Option("workspace_backend", fault.BadValue, "%v", err)
	}
	w, err := workspacehost.Open(ctx, workspacehost.Config{Spec: *r.spec.(*workspacehost.WorkspaceSpec), Line: r.line, SessionID: b.id})
	if err != nil {
		return fault.Of(fault.CodeSessionInit, "session.open", "the host's workspace %q: %v", name, err)
	}
	b.ws = w
	return nil
}
