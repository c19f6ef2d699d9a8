package a3s

import (
	"context"

	"github.com/a3s-lab/liba3s/runtime/agent"
)

// Store keeps sessions: of each a snapshot and the facts that follow it, texts that it
// gives back as they were. It is asked while a session writes, so it must not wait for
// that session. What it answers with a nil error is kept: facts that were appended
// survive the end of the process. An error, and no answer within 30 seconds, is a
// SESSION_ERROR. Methods may be called concurrently for different sessions.
type Store interface {
	// Load gives the snapshot of a session with its generation, and its facts from number
	// from on, at most limit. With fewer facts than there are, Count says how many there
	// are. Nil is a session that is not kept.
	Load(ctx context.Context, id string, from, limit int64) (*StoreLoaded, error)
	// Append keeps more facts, the first with number from. Those of a generation other than
	// the snapshot's are obsolete; before the first save it is 1.
	Append(ctx context.Context, id string, generation uint64, from int64, facts []string) error
	// Save puts a snapshot in the place of the former one and of all facts, at once or not
	// at all.
	Save(ctx context.Context, id string, generation uint64, snapshot string) error
	// Delete removes a session. What is not there is no failure.
	Delete(ctx context.Context, id string) error
	// List gives the ids of the sessions with a snapshot or a fact.
	List(ctx context.Context) ([]string, error)
}

// BlobStore is a Store that keeps named blobs of sessions too: long outputs of tools.
// Another store's are kept in memory until the session is closed or saved.
type BlobStore interface {
	Store
	// LoadBlob gives a blob; false if there is none of that name.
	LoadBlob(ctx context.Context, id, blob string) ([]byte, bool, error)
	// SaveBlob keeps a blob, once and for all.
	SaveBlob(ctx context.Context, id, blob string, data []byte) error
	// DeleteBlob removes a blob. What is not there is no failure.
	DeleteBlob(ctx context.Context, id, blob string) error
}

// StoreRegistration is a session store of your program.
type StoreRegistration struct {
	Registration
	name string
}

// Option is the value for SessionOptions.SessionStore and ListStoredSessions.
func (r *StoreRegistration) Option() *SessionStore { return &SessionStore{Kind: "host", Name: r.name} }

// RegisterSessionStore supplies a session store to sessions that open afterwards with its
// Option.
func (a *Agent) RegisterSessionStore(ctx context.Context, name string, s Store, options ...ExtensionOption) (*StoreRegistration, error) {
	if none(s) {
		return nil, missing("store", "store")
	}
	spec := map[string]any{"name": name}
	blobs, ok := s.(BlobStore)
	if ok {
		spec["blobs"] = true
	}
	r, err := a.supply(ctx, "store", spec, options, storeHandlers(s, blobs))
	if err != nil {
		return nil, err
	}
	return &StoreRegistration{*r, name}, nil
}

// storeHandlers ask blobs for what is a blob's; a store without blobs is never asked for
// one.
func storeHandlers(s Store, blobs BlobStore) map[string]Handler {
	return map[string]Handler{
		"load": typed(func(ctx context.Context, p agent.HostStoreLoad) (any, error) {
			if p.Blob == "" {
				kept, err := s.Load(ctx, p.ID, p.From, p.Limit)
				if kept == nil {
					kept = &StoreLoaded{}
				}
				return kept, err
			}
			data, ok, err := blobs.LoadBlob(ctx, p.ID, p.Blob)
			if !ok {
				return StoreLoaded{}, err
			}
			if data == nil {
				data = []byte{} // null is no blob
			}
			return StoreLoaded{Data: &data}, err
		}),
		"append": typed(func(ctx context.Context, p agent.HostStoreAppend) (any, error) {
			if p.Blob == "" {
				return nil, s.Append(ctx, p.ID, p.Generation, p.From, p.Facts)
			}
			return nil, blobs.SaveBlob(ctx, p.ID, p.Blob, p.Data)
		}),
		"save": typed(func(ctx context.Context, p agent.HostStoreSave) (any, error) {
			return nil, s.Save(ctx, p.ID, p.Generation, p.Snapshot)
		}),
		"delete": typed(func(ctx context.Context, p agent.HostStoreDelete) (any, error) {
			if p.Blob == "" {
				return nil, s.Delete(ctx, p.ID)
			}
			return nil, blobs.DeleteBlob(ctx, p.ID, p.Blob)
		}),
		"list": typed(func(ctx context.Context, _ struct{}) (any, error) {
			ids, err := s.List(ctx)
			if ids == nil {
				ids = []string{}
			}
			return agent.HostStoreListed{IDs: ids}, err
		}),
	}
}
