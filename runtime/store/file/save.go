package file

import (
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/record"
)

// Save implements store.Session. It also ends the refusal to append after a failure,
// since the snapshot holds all that the session knows.
func (s *session) Save(ctx context.Context, snap *record.Snapshot) error {
	const op = "store.save"
	s.work.Lock()
	defer s.work.Unlock()
	if err := s.ready(op); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fault.From(op, err)
	}
	if err := snap.Validate(s.id); err != nil {
		return err
	}
	doc, err := record.EncodeSnapshot(snap)
	if err != nil {
		return err
	}
	if s.broken == nil {
		if err := s.flush(); err != nil {
			return failed(op, err, "flush the journal of session %q", s.id)
		}
	}
	s.st.at("save.flushed")
	f, log, err := s.successor(sha256.Sum256(doc))
	if err != nil {
		return failed(op, err, "start the next journal of session %q", s.id)
	}
	path := s.st.snapshotPath(s.id)
	made, err := mkdirs(filepath.Dir(path))
	if err == nil {
		err = s.st.replace(path, doc, "save")
	}
	if err != nil {
		err = errors.Join(err, f.Close(), os.Remove(log.path))
		return failed(op, err, "write snapshot %q", path)
	}
	s.follow(f, log, sha256.Sum256(doc))
	if s.saved {
		err = syncDir(filepath.Dir(path))
	} else {
		err = s.st.syncTree(filepath.Dir(path), made)
	}
	if err != nil {
		// The snapshot is in place but may not survive a power loss: the old logs stay.
		return failed(op, err, "flush the folder of snapshot %q", path)
	}
	s.saved = true
	s.st.at("save.synced")
	s.sweep()
	s.st.at("save.old_removed")
	return nil
}

// successor makes and flushes the log that follows the snapshot with digest d.
func (s *session) successor(d digest) (*os.File, piece, error) {
	predecessor := ""
	if n := len(s.pieces); n > 0 {
		predecessor = logName(s.pieces[n-1].gen)
	}
	head, err := newHeader(s.id, d, predecessor)
	if err != nil {
		return nil, piece{}, err
	}
	f, log, err := s.create()
	if err != nil {
		return nil, log, err
	}
	_, err = s.st.disk.write(f, head, 0)
	if err == nil {
		s.st.at("save.log_created")
		err = s.st.disk.sync(f)
	}
	if err == nil && s.rooted {
		err = syncDir(s.dir)
	} else if err == nil {
		err = s.root()
	}
	if err != nil {
		return nil, log, errors.Join(err, f.Close(), os.Remove(log.path))
	}
	s.st.at("save.log_synced")
	log.from, log.end = int64(len(head)), int64(len(head))
	return f, log, nil
}

// follow makes log the journal.
func (s *session) follow(f *os.File, log piece, d digest) {
	if s.f != nil {
		s.f.Close() // all it held is in the snapshot
	}
	for _, p := range s.pieces {
		s.stale = append(s.stale, p.path)
	}
	s.f, s.follows, s.dirty, s.broken = f, d, false, nil
	s.mu.Lock()
	s.pieces, s.next = []piece{log}, log.gen+1
	s.mu.Unlock()
}

// sweep removes the logs before the snapshot, oldest first, so that what a crash
// leaves is still known as its predecessors. One that cannot be removed is tried again
// by the next save, and by the next load.
func (s *session) sweep() {
	for len(s.stale) > 0 {
		if err := os.Remove(s.stale[0]); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return
		}
		s.stale = s.stale[1:]
	}
}
