package local

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"hash"
	"hash/maphash"
	"io"
	"io/fs"
	"os"
	"sync"
	"syscall"

	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/workspace"
)

// tempPrefix starts the name of a file that is being written.
const tempPrefix = ".a3s-tmp-"

// writers serialises the writes of one file within this process, across all
// workspaces: no system call compares and replaces in one step.
var (
	writers [64]sync.Mutex
	seed    = maphash.MakeSeed()
)

// Write replaces the whole file: a new one is written beside it and renamed over it.
// The file keeps its permissions and, where the system allows, its owner; it does not
// keep its other hard links and extended attributes.
func (w *Workspace) Write(ctx context.Context, path string, data []byte, cond workspace.Condition) (workspace.Info, error) {
	if err := ctx.Err(); err != nil {
		return workspace.Info{}, fault.From("workspace.write", err)
	}
	p, err := w.clean(path)
	if err != nil {
		return workspace.Info{}, err
	}
	if err := w.mayChange(p, p); err != nil {
		return workspace.Info{}, err
	}
	for range maxTries {
		i, err := w.write(ctx, p, data, cond)
		if !errors.Is(err, errSwapped) {
			return i, err
		}
	}
	return workspace.Info{}, fault.New(fault.Denied, "workspace.write", "%q keeps changing while it is being written", p)
}

func (w *Workspace) write(ctx context.Context, p string, data []byte, cond workspace.Condition) (workspace.Info, error) {
	t, err := w.find(p, create)
	if err != nil {
		return workspace.Info{}, err
	}
	defer t.close()
	if err := w.mayChange(p, t.real); err != nil {
		return workspace.Info{}, err
	}
	lock := &writers[maphash.String(seed, w.root+"\x00"+t.real)%uint64(len(writers))]
	lock.Lock()
	defer lock.Unlock()
	// Another writer may have been before us at the lock.
	if err := t.lookAgain(); err != nil {
		return workspace.Info{}, err
	}
	if err := t.holds(ctx, cond); err != nil {
		return workspace.Info{}, err
	}
	temp, i, err := t.writeTemp(ctx, data)
	if err != nil {
		return workspace.Info{}, err
	}
	if err := t.publish(temp, cond.Absent); err != nil {
		t.dir.Remove(temp) // it may be gone; the error of publish is the one to tell
		return workspace.Info{}, err
	}
	return i, nil
}

// lookAgain renews what is known about the entry.
func (t *target) lookAgain() error {
	if t.base == "." {
		return t.regular()
	}
	fi, err := t.dir.Lstat(t.base)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		t.info = nil
		return nil
	case err != nil:
		return translate("workspace.write", t.path, err)
	case fi.Mode()&fs.ModeSymlink != 0:
		return errSwapped
	}
	t.info = fi
	if err := t.regular(); err != nil {
		return err
	}
	// A rename would not ask the file, so a write protection is asked for here.
	if fi.Mode().Perm()&0o222 == 0 {
		return fault.Of(fault.CodeIO, "workspace.write", "%q is read-only; change its mode first", t.path).WithKind(fault.Denied).With("path", t.path)
	}
	return nil
}

// holds checks the condition of a write.
func (t *target) holds(ctx context.Context, cond workspace.Condition) error {
	if cond.Version == "" && !cond.Absent {
		return nil
	}
	if t.info == nil {
		if cond.Version != "" {
			return conflict(t.path, cond, "")
		}
		return nil
	}
	actual, err := t.version(ctx)
	if err != nil {
		return err
	}
	if cond.Absent || actual != cond.Version {
		return conflict(t.path, cond, actual)
	}
	return nil
}

func conflict(p string, cond workspace.Condition, actual string) error {
	expected, what := cond.Version, "has changed since it was read; read it again"
	switch {
	case cond.Absent:
		expected, what = "absent", "exists already"
	case actual == "":
		actual, what = "absent", "has been removed since it was read"
	}
	return fault.New(fault.Conflict, "workspace.write", "%q %s", p, what).
		With("path", p).With("expected", expected).With("actual", actual)
}

// version computes the token of the file as it is.
func (t *target) version(ctx context.Context) (string, error) {
	f, fi, err := t.openFile()
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	for {
		if err := ctx.Err(); err != nil {
			return "", fault.From("workspace.write", err)
		}
		n, err := io.CopyN(h, f, chunk)
		if err == io.EOF || err == nil && n < chunk {
			break
		}
		if err != nil {
			return "", translate("workspace.write", t.path, err)
		}
	}
	return workspace.Version(fi.ModTime(), fi.Size(), sum(h)), nil
}

func sum(h hash.Hash) (out [sha256.Size]byte) {
	h.Sum(out[:0])
	return out
}

// writeTemp writes data to a new file beside the target.
func (t *target) writeTemp(ctx context.Context, data []byte) (name string, i workspace.Info, err error) {
	name = tempPrefix + rand.Text()
	perm := fs.FileMode(0o644)
	if t.info != nil {
		perm = 0o600
	}
	f, err := t.dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if errors.Is(err, fs.ErrNotExist) {
		return "", workspace.Info{}, errSwapped // the directory has been removed
	}
	if err != nil {
		return "", workspace.Info{}, translate("workspace.write", t.path, err)
	}
	defer func() {
		f.Close() // a second close changes nothing
		if err != nil {
			t.dir.Remove(name)
		}
	}()
	for off := 0; off < len(data); off += chunk {
		if err := ctx.Err(); err != nil {
			return "", workspace.Info{}, fault.From("workspace.write", err)
		}
		if _, err := f.Write(data[off:min(off+chunk, len(data))]); err != nil {
			return "", workspace.Info{}, translate("workspace.write", t.path, err)
		}
	}
	if t.info != nil {
		if err := t.keepMode(f); err != nil {
			return "", workspace.Info{}, translate("workspace.write", t.path, err)
		}
	}
	fi, err := f.Stat()
	if err != nil {
		return "", workspace.Info{}, translate("workspace.write", t.path, err)
	}
	if err := f.Close(); err != nil {
		return "", workspace.Info{}, translate("workspace.write", t.path, err)
	}
	i = info(t.path, fi)
	i.Version = workspace.Version(i.Modified, i.Size, sha256.Sum256(data))
	return name, i, nil
}

// keepMode gives the new file the mode and owner of the old one.
func (t *target) keepMode(f *os.File) error {
	if old, ok := t.info.Sys().(*syscall.Stat_t); ok {
		fi, err := f.Stat()
		if err != nil {
			return err
		}
		now, ok := fi.Sys().(*syscall.Stat_t)
		if ok && (now.Uid != old.Uid || now.Gid != old.Gid) {
			// Only root may give files away. Whoever may write to the directory could
			// replace the file anyhow, so the content goes in under the own name.
			_ = f.Chown(int(old.Uid), int(old.Gid))
		}
	}
	return f.Chmod(t.info.Mode().Perm())
}

// publish gives the temporary file its name. A name that must be new is made by a link,
// which fails if somebody was faster.
func (t *target) publish(temp string, absent bool) error {
	if absent {
		err := t.dir.Link(temp, t.base)
		switch {
		case err == nil:
			return t.dir.Remove(temp)
		case errors.Is(err, fs.ErrExist):
			return conflict(t.path, workspace.Condition{Absent: true}, "unknown")
		case !errors.Is(err, syscall.EPERM) && !errors.Is(err, syscall.ENOTSUP) && !errors.Is(err, syscall.ENOSYS):
			return translate("workspace.write", t.path, err)
		}
		// This file system has no hard links; what is left is the look before.
	}
	if err := t.dir.Rename(temp, t.base); err != nil {
		return translate("workspace.write", t.path, err)
	}
	return nil
}

// Remove deletes a file, or a link itself.
func (w *Workspace) Remove(ctx context.Context, path string) error {
	if err := ctx.Err(); err != nil {
		return fault.From("workspace.remove", err)
	}
	p, err := w.clean(path)
	if err != nil {
		return err
	}
	t, err := w.find(p, noFollow)
	if fault.KindOf(err) == fault.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	defer t.close()
	if err := w.mayChange(p, t.real); err != nil {
		return err
	}
	if t.info == nil {
		return nil
	}
	if t.info.IsDir() {
		return fault.New(fault.Invalid, "workspace.remove", "%q is a directory; only files are removed", p).With("path", p)
	}
	if err := t.dir.Remove(t.base); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return translate("workspace.remove", p, err)
	}
	return nil
}
