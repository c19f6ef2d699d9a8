//go:build unix

package file

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

// lock is the right to write one session. It is a flock, so it dies with its holder
// and holds within one process too.
type lock struct {
	f    *os.File
	path string
	made []string // folders made for it, outermost first
}

// holder is what the lock file says, for the one who finds it taken.
type holder struct {
	Owner string `json:"owner"`
	PID   int    `json:"pid"`
}

const (
	// maxHolder bounds what is read of a lock file.
	maxHolder = 4 << 10
	// maxTries bounds how often an opener meets a closing holder before it believes
	// that the cause is another one, such as a link to nowhere.
	maxTries = 1000
)

// take locks the folder dir of session id.
func take(dir, id, owner string) (*lock, error) {
	const op = "store.open"
	l := &lock{path: filepath.Join(dir, "lock")}
	for try := 0; ; try++ {
		made, err := mkdirs(dir)
		l.made = append(l.made, made...)
		if errors.Is(err, os.ErrNotExist) && try < maxTries {
			continue // a closing holder removed a parent just now
		}
		if err != nil {
			rmdirs(l.made)
			return nil, failed(op, err, "make folder %q", dir)
		}
		l.f, err = os.OpenFile(l.path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, fileMode)
		if errors.Is(err, os.ErrNotExist) && try < maxTries {
			continue // the same
		}
		if err != nil {
			rmdirs(l.made)
			return nil, failed(op, err, "open lock %q", l.path)
		}
		err = flock(l.f)
		if errors.Is(err, unix.EWOULDBLOCK) {
			defer l.f.Close() // never locked
			return nil, busy(op, l.f, id)
		}
		if err != nil {
			l.f.Close() // never locked; the first error says it all
			return nil, failed(op, err, "lock %q", l.path)
		}
		// The holder before us may have removed the file between our open and our
		// lock; then the next opener would make and lock another one.
		if l.current() {
			break
		}
		l.f.Close()
	}
	b, err := json.Marshal(holder{owner, os.Getpid()})
	if err == nil {
		_, err = l.f.WriteAt(append(b, '\n'), 0)
	}
	if err == nil {
		err = l.f.Truncate(int64(len(b)) + 1)
	}
	if err != nil {
		return nil, errors.Join(failed(op, err, "write lock %q", l.path), l.release(true))
	}
	return l, nil
}

func flock(f *os.File) error {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// current says that the locked file is the one that others find under its name.
func (l *lock) current() bool {
	ours, err := l.f.Stat()
	if err != nil {
		return false
	}
	theirs, err := os.Lstat(l.path)
	return err == nil && os.SameFile(ours, theirs)
}

// release gives the lock up; remove takes the file and its folder along, and of the
// folders above those that were made for it and are empty.
func (l *lock) release(remove bool) error {
	if remove {
		if err := os.Remove(l.path); err == nil {
			rmdirs(append(l.made, filepath.Dir(l.path)))
		}
	}
	// Closing alone would leave it locked by a child that was forked without exec.
	err := unix.Flock(int(l.f.Fd()), unix.LOCK_UN)
	return errors.Join(err, l.f.Close())
}

// busy names the holder of the lock file f.
func busy(op string, f *os.File, id string) error {
	var h holder
	b, err := io.ReadAll(io.NewSectionReader(f, 0, maxHolder))
	if err == nil {
		err = json.Unmarshal(b, &h)
	}
	if err != nil || h.PID == 0 {
		// The holder is about to write its name.
		return fault.Of(fault.CodeSessionBusy, op, "session %q is in use by another program; close it there first", id)
	}
	return fault.Of(fault.CodeSessionBusy, op, "session %q is in use by %q (process %d); close it there first", id, h.Owner, h.PID).
		With("owner", h.Owner).With("pid", h.PID)
}
