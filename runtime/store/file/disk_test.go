package file

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/record"
	"github.com/a3s-lab/liba3s/runtime/store/storetest"
)

// faulty is a store whose disk fails when it is told to.
type faulty struct {
	*Store
	writeErr, truncateErr, syncErr error
	room                           int // bytes that a failing write still takes
}

func openFaulty(t *testing.T) *faulty {
	s, err := Open(context.Background(), Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	f := &faulty{Store: s}
	write, truncate, sync := s.disk.write, s.disk.truncate, s.disk.sync
	s.disk = disk{
		write: func(file *os.File, b []byte, off int64) (int, error) {
			if f.writeErr == nil {
				return write(file, b, off)
			}
			n, err := write(file, b[:min(f.room, len(b))], off)
			return n, errors.Join(err, f.writeErr)
		},
		truncate: func(file *os.File, size int64) error {
			if f.truncateErr != nil {
				return f.truncateErr
			}
			return truncate(file, size)
		},
		sync: func(file *os.File) error {
			if f.syncErr != nil {
				return f.syncErr
			}
			return sync(file)
		},
	}
	return f
}

var (
	background = context.Background()
	full       = &os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}
)

func appendErr(se *session, facts ...string) error {
	var group [][]byte
	for _, f := range facts {
		group = append(group, []byte(f))
	}
	_, err := se.Append(background, group)
	return err
}

// A write that fails, at whatever byte, leaves the log as it was; there is no third
// state, and the session goes on when there is room again.
func TestDiskFull(t *testing.T) {
	for _, first := range []bool{true, false} {
		for room := range 60 {
			f := openFaulty(t)
			opened, _ := storetest.Open(t, f.Store, "s")
			se := opened.(*session)
			want := []string{}
			if !first {
				storetest.Append(t, se, "before")
				want = append(want, "before")
			}
			f.writeErr, f.room = full, room
			err := appendErr(se, "lost", strings.Repeat("x", 40))
			storetest.WantKind(t, err, fault.IO)
			var e *fault.Error
			if errors.As(err, &e); e.Details["reason"] != "disk_full" || !strings.Contains(e.Message, "full") {
				t.Fatalf("error %v, details %v", err, e.Details)
			}
			storetest.Want(t, se.Read(background, record.Pos{}), want...)
			f.writeErr = nil
			storetest.Append(t, se, "after")
			want = append(want, "after")
			storetest.Want(t, se.Read(background, record.Pos{}), want...)
			storetest.Close(t, se)
			_, kept := storetest.Open(t, f.Store, "s")
			storetest.Want(t, kept.Facts, want...)
			if kept.Warning != "" {
				t.Fatalf("warning %q", kept.Warning)
			}
		}
	}
}

// A file without a name takes everything and keeps nothing.
func TestRemovedFolder(t *testing.T) {
	f := openFaulty(t)
	opened, _ := storetest.Open(t, f.Store, "s")
	se := opened.(*session)
	storetest.Append(t, se, "kept")
	if err := se.Flush(background); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(f.dir); err != nil {
		t.Fatal(err)
	}
	storetest.Append(t, se, "lost")
	err := se.Flush(background)
	storetest.WantKind(t, err, fault.IO)
	if !strings.Contains(err.Error(), "was removed or replaced while the session was open") {
		t.Error(err)
	}
	if err := appendErr(se, "more"); err == nil {
		t.Error("it goes on")
	}
	_ = se.Close()
}

// When the log cannot be put right after a failure nothing is appended behind it, until
// a save starts a new one.
func TestBrokenLog(t *testing.T) {
	tests := []struct {
		name string
		hurt func(*faulty, *session) error
	}{
		{"truncate fails", func(f *faulty, se *session) error {
			f.writeErr, f.room, f.truncateErr = full, 10, syscall.EIO
			return appendErr(se, "lost")
		}},
		{"flush fails", func(f *faulty, se *session) error {
			f.syncErr = syscall.EIO
			return se.Flush(background)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := openFaulty(t)
			opened, _ := storetest.Open(t, f.Store, "s")
			se := opened.(*session)
			storetest.Append(t, se, "before")
			storetest.WantKind(t, tt.hurt(f, se), fault.IO)
			f.writeErr, f.truncateErr, f.syncErr = nil, nil, nil
			storetest.WantKind(t, appendErr(se, "refused"), fault.IO)
			storetest.WantKind(t, se.Flush(background), fault.IO)
			storetest.Want(t, se.Read(background, record.Pos{}), "before")
			storetest.Save(t, se, storetest.Snapshot("s", "healed"))
			storetest.Append(t, se, "after")
			if err := se.Flush(background); err != nil {
				t.Fatal(err)
			}
			storetest.Close(t, se)
			_, kept := storetest.Open(t, f.Store, "s")
			storetest.WantSnapshot(t, kept.Snapshot, storetest.Snapshot("s", "healed"))
			storetest.Want(t, kept.Facts, "after")
		})
	}
}

// A save that fails changes nothing, and leaves nothing behind.
func TestSaveFails(t *testing.T) {
	tests := []struct {
		name string
		hurt func(*faulty)
	}{
		{"no room for the log", func(f *faulty) { f.writeErr, f.room = full, 5 }},
		{"no room for the snapshot", func(f *faulty) {
			write := f.disk.write
			n := 0
			f.disk.write = func(file *os.File, b []byte, off int64) (int, error) {
				if n++; n == 2 {
					return 0, full
				}
				return write(file, b, off)
			}
		}},
		{"the log cannot be flushed", func(f *faulty) { f.syncErr = syscall.EIO }},
		{"the snapshot cannot be flushed", func(f *faulty) {
			sync := f.disk.sync
			n := 0
			f.disk.sync = func(file *os.File) error {
				if n++; n == 2 {
					return syscall.EIO
				}
				return sync(file)
			}
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := openFaulty(t)
			opened, _ := storetest.Open(t, f.Store, "s")
			se := opened.(*session)
			storetest.Append(t, se, "a")
			storetest.Save(t, se, storetest.Snapshot("s", "first"))
			storetest.Append(t, se, "b")
			if err := se.Flush(background); err != nil {
				t.Fatal(err)
			}
			good := f.disk
			tt.hurt(f)
			storetest.WantKind(t, se.Save(background, storetest.Snapshot("s", "lost")), fault.IO)
			f.disk, f.writeErr, f.syncErr = good, nil, nil
			storetest.Append(t, se, "c")
			storetest.Want(t, se.Read(background, record.Pos{}), "b", "c")
			storetest.Close(t, se)
			for _, dir := range []string{f.snapshotDir(), f.journalDir("s")} {
				entries, err := os.ReadDir(dir)
				if err != nil || len(entries) > 2 {
					t.Errorf("%s holds %v, %v", dir, entries, err)
				}
			}
			opened, kept := storetest.Open(t, f.Store, "s")
			storetest.WantSnapshot(t, kept.Snapshot, storetest.Snapshot("s", "first"))
			storetest.Want(t, kept.Facts, "b", "c")
			storetest.Save(t, opened, storetest.Snapshot("s", "second"))
		})
	}
}

// A full folder of the system itself, where there is one.
func TestFileSizeLimit(t *testing.T) {
	e := failed("op", &os.PathError{Op: "write", Path: "x", Err: syscall.EFBIG}, "append")
	if e.Details["reason"] != "file_too_large" || e.Kind != fault.IO {
		t.Errorf("got %#v", e)
	}
}
