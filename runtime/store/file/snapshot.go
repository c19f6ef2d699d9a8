package file

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/record"
)

// readBounded reads a whole file of at most limit bytes.
func readBounded(op, path string, limit int64) ([]byte, error) {
	f, size, err := open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // only read from
	if size > limit {
		return nil, fault.Of(fault.CodeSerialization, op, "%q has %d bytes, the limit is %d", path, size, limit).WithKind(fault.Limit)
	}
	b := make([]byte, size)
	if _, err := io.ReadFull(f, b); err != nil {
		return nil, shrunk(err)
	}
	return b, nil
}

// snapshot reads the snapshot of a session and its digest; nil and zeros if there is
// none. warning tells of a file that was passed over.
func (s *Store) snapshot(id string) (snap *record.Snapshot, d digest, warning string, err error) {
	path := s.snapshotPath(id)
	b, err := readBounded("store.load", path, record.MaxSnapshot)
	if errors.Is(err, fs.ErrNotExist) {
		return s.legacy(id)
	}
	if err == nil {
		snap, err = record.ParseSnapshot(b)
	}
	if err == nil {
		err = snap.Validate(id)
	}
	if err != nil {
		return nil, d, "", inFile(err, path)
	}
	return snap, sha256.Sum256(b), "", nil
}

// legacy reads the snapshot that a program before the v1 layout wrote.
func (s *Store) legacy(id string) (snap *record.Snapshot, d digest, warning string, err error) {
	path := s.legacyPath(id)
	b, err := readBounded("store.load", path, record.MaxSnapshot)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, d, "", nil
	}
	if err == nil {
		snap, err = record.ParseSnapshot(b)
	}
	if err != nil {
		// It may be no session at all: the folder is shared with the host's files.
		return nil, d, fmt.Sprintf("%q was passed over: it cannot be read as a session (%v)", path, err), nil
	}
	if snap.Session.ID != id {
		return nil, d, "", nil
	}
	if err := snap.Validate(id); err != nil {
		return nil, d, "", inFile(err, path)
	}
	return snap, sha256.Sum256(b), "", nil
}

// legacyID reads the session id inside a file of the old layout. It is one only if its
// name is the one that this id gets.
func (s *Store) legacyID(name string) (string, bool) {
	path := filepath.Join(s.dir, name)
	b, err := readBounded("store.list", path, record.MaxSnapshot)
	if err != nil {
		return "", false
	}
	var doc struct {
		ID      string `json:"id"`
		Session *struct {
			ID string `json:"id"`
		} `json:"session"`
	}
	if json.Unmarshal(b, &doc) != nil {
		return "", false
	}
	if doc.Session != nil {
		doc.ID = doc.Session.ID
	}
	return doc.ID, doc.ID != "" && s.legacyPath(doc.ID) == path
}

// inFile says which file an error is about.
func inFile(err error, path string) error {
	var e *fault.Error
	if !errors.As(err, &e) {
		return failed("store.load", err, "read snapshot %q", path)
	}
	c := *e
	c.Op = "store.load"
	c.Message = fmt.Sprintf("%s (file %q)", e.Message, path)
	return &c
}
