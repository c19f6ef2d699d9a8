package file

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/store"
)

// Config says where a Store keeps its sessions.
type Config struct {
	// Dir is the absolute path of the folder; it is made when the first session opens.
	Dir string
	// Hook, for tests of crashes, is called on the goroutine that does the work when a
	// step of Points is done. Nil in production.
	Hook func(point string)
}

// Points lists what Config.Hook is called with, in the order of a session's life.
var Points = []string{
	"append.log_created", "append.written",
	"flush.log_synced", "flush.synced",
	"blob.temp_written", "blob.temp_synced", "blob.renamed",
	"save.flushed", "save.log_created", "save.log_synced",
	"save.temp_written", "save.temp_synced", "save.renamed", "save.synced", "save.old_removed",
	"delete.logs_removed", "delete.blobs_removed", "delete.snapshot_removed",
}

// Store keeps sessions in a folder. Several stores, in one process or in many, may use
// the same folder: every session is locked by itself.
type Store struct {
	dir  string
	hook func(string)
	disk disk
}

var _ store.Store = (*Store)(nil)

// disk is what the tests of full and broken disks replace.
type disk struct {
	write    func(f *os.File, b []byte, off int64) (int, error)
	truncate func(f *os.File, size int64) error
	sync     func(f *os.File) error
}

// Open gives the store in a folder. The folder need not exist; nothing is made yet.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	if err := ctx.Err(); err != nil {
		return nil, fault.From("store.open", err)
	}
	if !filepath.IsAbs(cfg.Dir) || strings.ContainsRune(cfg.Dir, 0) {
		return nil, fault.Option("session_store", fault.BadValue, "the folder must be an absolute path, got %q", cfg.Dir)
	}
	dir := filepath.Clean(cfg.Dir)
	info, err := os.Stat(dir)
	switch {
	case err == nil && !info.IsDir(), errors.Is(err, syscall.ENOTDIR):
		return nil, fault.Option("session_store", fault.BadValue, "%q is not a folder", dir)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, failed("store.open", err, "look at folder %q", dir)
	}
	return &Store{dir: dir, hook: cfg.Hook, disk: disk{(*os.File).WriteAt, (*os.File).Truncate, syncData}}, nil
}

func (s *Store) at(point string) {
	if s.hook != nil {
		s.hook(point)
	}
}

// Open implements store.Store.
func (s *Store) Open(ctx context.Context, id, owner string) (store.Session, error) {
	if err := store.ValidID(id); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fault.From("store.open", err)
	}
	dir := s.journalDir(id)
	l, err := take(dir, id, owner)
	if err != nil {
		return nil, err
	}
	return &session{st: s, id: id, dir: dir, lock: l}, nil
}

// List implements store.Store. Names that are no session's are passed over.
func (s *Store) List(ctx context.Context) ([]string, error) {
	ids := map[string]bool{}
	err := errors.Join(
		each(ctx, s.snapshotDir(), func(e fs.DirEntry) error {
			name, ok := strings.CutSuffix(e.Name(), ".json")
			if id, isID := idOf(name); ok && isID {
				ids[id] = true
			}
			return nil
		}),
		each(ctx, filepath.Dir(s.journalDir("")), func(e fs.DirEntry) error {
			if id, ok := idOf(e.Name()); ok && !ids[id] && hasLog(s.journalDir(id)) {
				ids[id] = true
			}
			return nil
		}),
		each(ctx, s.dir, func(e fs.DirEntry) error {
			if !strings.HasSuffix(e.Name(), ".json") {
				return nil
			}
			if id, ok := s.legacyID(e.Name()); ok {
				ids[id] = true
			}
			return nil
		}),
	)
	if err != nil {
		return nil, fault.From("store.list", err)
	}
	return slices.Sorted(maps.Keys(ids)), nil
}

// hasLog says whether a journal folder has a log that is not empty; one that cannot
// be read has none.
func hasLog(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		_, log, ok := genOf(e.Name())
		if !ok || !log {
			return false
		}
		info, err := e.Info()
		return err == nil && info.Size() > 0
	})
}

// each calls fn for what is in a folder; a missing one is empty.
func each(ctx context.Context, dir string, fn func(fs.DirEntry) error) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return failed("store.list", err, "list %q", dir)
	}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := fn(e); err != nil {
			return err
		}
	}
	return nil
}

// Delete implements store.Store. A crash in its midst leaves an earlier state of the
// session, never a mixed one.
func (s *Store) Delete(ctx context.Context, id string) (err error) {
	const op = "store.delete"
	if err := store.ValidID(id); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fault.From(op, err)
	}
	snapshot, legacy, blobs, dir := s.snapshotPath(id), s.legacyPath(id), s.blobDir(id), s.journalDir(id)
	if inside, ok := s.legacyID(filepath.Base(legacy)); !ok || inside != id {
		legacy = ""
	}
	if legacy == "" && !exists(snapshot) && !exists(blobs) && !exists(dir) {
		return nil
	}
	l, err := take(dir, id, "delete")
	if err != nil {
		return err
	}
	defer func() {
		if e := l.release(err == nil); e != nil && err == nil {
			err = failed(op, e, "unlock session %q", id)
		}
	}()
	entries, err := os.ReadDir(dir)
	if err != nil {
		return failed(op, err, "list %q", dir)
	}
	// Newest log first: what is left of a chain must start where the snapshot ends.
	for _, e := range slices.Backward(entries) {
		if e.Name() == "lock" {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return failed(op, err, "remove the journal of session %q", id)
		}
	}
	s.at("delete.logs_removed")
	if err := os.RemoveAll(blobs); err != nil {
		return failed(op, err, "remove the blobs of session %q", id)
	}
	s.at("delete.blobs_removed")
	for _, path := range []string{snapshot, legacy} {
		if path == "" {
			continue
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return failed(op, err, "remove the snapshot of session %q", id)
		}
	}
	s.at("delete.snapshot_removed")
	return nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
