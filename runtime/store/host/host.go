// Package host is a session store that the host implements with five operations: load,
// append, save, delete and list. It keeps the rules of the port: one writer in this
// process, facts in order, positions; the host keeps texts. Facts and snapshots are JSON
// documents and travel as JSON strings, so that the host hands back the same bytes. Floor 8.
//
// The host is asked while the session writes, so an answer must not wait for the session:
// a handler of a store that calls the session it stores waits for itself.
package host

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/a3s-lab/liba3s/runtime/fault"
	desk "github.com/a3s-lab/liba3s/runtime/host"
	"github.com/a3s-lab/liba3s/runtime/store"
)

const (
	// Deadline of one request.
	Deadline = 30 * time.Second
	// MaxAnswer bounds one answer in bytes, maxIDs the sessions of a list.
	MaxAnswer = 64 << 20
	maxIDs    = 1_000_000
	maxFacts  = 1_000_000_000
	// maxGeneration is the largest number that every language keeps exactly.
	maxGeneration = 1 << 53
	// page is how many facts are asked for at once.
	page = 8192
)

// StoreSpec describes a session store.
type StoreSpec struct {
	desk.Extension
	// Blobs says that the host keeps named blobs too; without it they are kept in memory
	// until the session is closed or saved.
	Blobs bool `json:"blobs,omitempty"`
}

// StoreLoad are the parameters of "load".
type StoreLoad struct {
	ID string `json:"id"`
	// From is the index of the first wanted fact, Limit how many are wanted. The host may
	// give fewer, but one at least if there are any: the rest is asked for again.
	From  int64 `json:"from"`
	Limit int64 `json:"limit"`
	// Blob, if set, asks for this blob instead of snapshot and facts.
	Blob string `json:"blob,omitempty"`
}

// StoreLoaded is the result of "load"; empty for a session that is not kept.
type StoreLoaded struct {
	// Generation is the number that the last save gave; absent without a save.
	Generation uint64 `json:"generation,omitempty"`
	// Snapshot is the text that the last save gave; it may be absent if From is not 0.
	Snapshot *string `json:"snapshot,omitempty"`
	// Count is how many facts were appended to this generation; absent is that Facts are
	// all from From on.
	Count *int64 `json:"count,omitempty"`
	// Facts are the texts that were appended, in order, beginning with number From.
	Facts []string `json:"facts,omitempty"`
	// Data is the blob, in base64; absent if there is none of that name.
	Data *[]byte `json:"data,omitempty"`
}

// StoreAppend are the parameters of "append". When it is answered the facts must survive
// the end of the host's process.
type StoreAppend struct {
	ID string `json:"id"`
	// Generation they belong to and the index of the first one: facts of a generation
	// other than the snapshot's are obsolete.
	Generation uint64   `json:"generation"`
	From       int64    `json:"from"`
	Facts      []string `json:"facts,omitempty"`
	// Blob, if set, is a blob to be kept instead: Data under this name, once and for all.
	Blob string `json:"blob,omitempty"`
	Data []byte `json:"data,omitempty"`
}

// StoreSave are the parameters of "save": the snapshot takes the place of the former one
// and of all facts, at once or not at all. Blobs stay.
type StoreSave struct {
	ID         string `json:"id"`
	Generation uint64 `json:"generation"`
	Snapshot   string `json:"snapshot"`
}

// StoreDelete are the parameters of "delete". What is not there is no failure.
type StoreDelete struct {
	ID string `json:"id"`
	// Blob, if set, is the blob to be removed instead of the whole session.
	Blob string `json:"blob,omitempty"`
}

// StoreList are the parameters of "list".
type StoreList struct{}

// StoreListed is the result of "list".
type StoreListed struct {
	// IDs of the sessions with a snapshot or a fact.
	IDs []string `json:"ids"`
}

// Config is a store and the way to the host.
type Config struct {
	Spec StoreSpec
	Line *desk.Line
}

// Store asks the host. One object serves all sessions of a registration: it knows which
// are held.
type Store struct {
	cfg Config

	mu   sync.Mutex
	held map[string]string // owners by session id; guarded by mu
}

var _ store.Store = (*Store)(nil)

// Open makes a store. It asks nothing.
func Open(_ context.Context, cfg Config) (*Store, error) {
	return &Store{cfg: cfg, held: map[string]string{}}, nil
}

// ask puts a question that the end of a run or session does not withdraw.
func (s *Store) ask(ctx context.Context, op, id string, params, into any) error {
	err := s.cfg.Line.Ask(ctx, desk.Question{Op: op, Params: params, SessionID: id, Lasting: true, Max: MaxAnswer}, into)
	return s.explain(ctx, "store."+op, err)
}

// explain makes a SESSION_ERROR of whatever went wrong, but for the end of ctx.
func (s *Store) explain(ctx context.Context, op string, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fault.From(op, ctx.Err())
	}
	e := fault.Of(fault.CodeSession, op, "the host's session store %q failed: %v", s.cfg.Line.Name(), err)
	if desk.Explain(err) == nil && fault.KindOf(err) == fault.Timeout {
		e.With("reason", "timeout")
	}
	return e
}

// reported says that the host itself told of the failure: what was asked was not done.
func reported(err error) bool { return desk.Explain(err) != nil }

// Open implements store.Store.
func (s *Store) Open(ctx context.Context, id, owner string) (store.Session, error) {
	if err := store.ValidID(id); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fault.From("store.open", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.free("store.open", id); err != nil {
		return nil, err
	}
	s.held[id] = owner
	return &session{st: s, id: id}, nil
}

// free says whether nobody holds a session. s.mu is held.
func (s *Store) free(op, id string) error {
	if owner, ok := s.held[id]; ok {
		return fault.Of(fault.CodeSessionBusy, op, "session %q is in use by %q; close it there first", id, owner).With("owner", owner)
	}
	return nil
}

// List implements store.Store.
func (s *Store) List(ctx context.Context) ([]string, error) {
	var listed StoreListed
	if err := s.ask(ctx, "list", "", StoreList{}, &listed); err != nil {
		return nil, err
	}
	if len(listed.IDs) > maxIDs {
		return nil, s.garbage("store.list", "lists %d sessions, more than %d", len(listed.IDs), maxIDs)
	}
	for _, id := range listed.IDs {
		if err := store.ValidID(id); err != nil {
			return nil, s.garbage("store.list", "lists an id that no session can have: %s", fault.From("", err).Message)
		}
	}
	slices.Sort(listed.IDs)
	return slices.Compact(listed.IDs), nil
}

// Delete implements store.Store.
func (s *Store) Delete(ctx context.Context, id string) error {
	const op = "store.delete"
	if err := store.ValidID(id); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fault.From(op, err)
	}
	s.mu.Lock()
	err := s.free(op, id)
	if err == nil {
		s.held[id] = "a delete"
	}
	s.mu.Unlock()
	if err != nil {
		return err
	}
	defer s.release(id)
	return s.ask(ctx, "delete", id, StoreDelete{ID: id}, &nothing{})
}

func (s *Store) release(id string) {
	s.mu.Lock()
	delete(s.held, id)
	s.mu.Unlock()
}

// nothing is the result of an operation that has none: null or an empty object.
type nothing struct{}

// garbage says that the host answered what cannot be.
func (s *Store) garbage(op, format string, args ...any) error {
	return fault.Of(fault.CodeSession, op, "the host's session store "+format, args...).With("reason", "invalid_reply")
}
