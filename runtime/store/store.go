// Package store is the port to what outlives the process: for every session one
// snapshot, one journal of facts since that snapshot, and blobs. Floor 4.
package store

import (
	"context"
	"iter"

	"github.com/a3s-lab/liba3s/runtime/record"
)

// Store holds sessions. Methods may be called concurrently.
type Store interface {
	// Open takes a session for writing and reads what is kept of it. There is one
	// writer: a second one gets SESSION_BUSY (fault.Busy) naming the holder's owner.
	// Nothing is created for a new session before its first Append or Save.
	Open(ctx context.Context, id, owner string) (Session, error)
	// List gives the ids of all sessions with a snapshot or a journal, sorted.
	List(ctx context.Context) ([]string, error)
	// Delete removes everything of a session; what is not there is no error. A session
	// that is open somewhere is fault.Busy.
	Delete(ctx context.Context, id string) error
}

// Session is the kept part of one session, held for writing. Append, Flush and Save
// are called one at a time, and after Load; Read and the blobs may run beside them.
// After Close everything but Close is fault.Closed.
type Session interface {
	// Load gives the snapshot (nil if there is none) and then every fact that follows
	// it, in order, once, before the first Append. A torn tail is cut; what was set
	// aside is said in Kept.Warning.
	Load(ctx context.Context) (Kept, error)
	// Append hands facts to the store in order: when it returns they survive the death
	// of this process. The position of the first is returned. The bytes are the
	// caller's again: a store copies what it keeps.
	Append(ctx context.Context, facts [][]byte) (record.Pos, error)
	// Flush makes all that was appended survive a power loss.
	Flush(ctx context.Context) error
	// Read yields the facts from position from on, as they are in the journal, up to
	// what was appended when the call was made. fault.NotFound if they are gone. The
	// zero Pos is the oldest fact that is kept; offset 0 is the first of a generation.
	// A yielded fact is the caller's own.
	Read(ctx context.Context, from record.Pos) iter.Seq2[[]byte, error]
	// Save replaces the snapshot atomically and starts a new journal that follows it;
	// flushed when it returns. After a crash at any instant either the old snapshot
	// with all its facts is loaded, or the new one.
	Save(ctx context.Context, snap *record.Snapshot) error
	// Blobs gives access to the session's blobs.
	Blobs() Blobs
	// Close gives the session up. It never saves.
	Close() error
}

// Kept is what Load found.
type Kept struct {
	Snapshot *record.Snapshot
	// Facts yields the journal after the snapshot; it is read while it is ranged over,
	// which may be done before the first Save only. A yielded fact is the caller's own.
	Facts iter.Seq2[[]byte, error]
	// Warning says what was cut or set aside, for init_warning. Empty if nothing was.
	Warning string
}

// Blobs holds big texts outside the journal, by name.
type Blobs interface {
	// Put writes a blob; the same name again is no work.
	Put(ctx context.Context, name string, data []byte) error
	// Get reads a blob; fault.NotFound if there is none.
	Get(ctx context.Context, name string) ([]byte, error)
	// Delete removes a blob; what is not there is no error.
	Delete(ctx context.Context, name string) error
}
