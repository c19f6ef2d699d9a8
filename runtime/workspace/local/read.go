package local

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/workspace"
)

// Bounds of reading.
const (
	chunk      = 1 << 20 // between two looks at the context
	maxEntries = 1 << 20 // in one directory
)

// Open streams a regular file.
func (w *Workspace) Open(ctx context.Context, path string) (io.ReadCloser, workspace.Info, error) {
	for range maxTries {
		f, i, err := w.open(ctx, path)
		if !errors.Is(err, errSwapped) {
			if err != nil {
				return nil, workspace.Info{}, err
			}
			return f, i, nil
		}
	}
	return nil, workspace.Info{}, fault.New(fault.Denied, op, "%q keeps changing while it is being opened", path)
}

func (w *Workspace) open(ctx context.Context, path string) (*os.File, workspace.Info, error) {
	t, err := w.existing(ctx, "workspace.open", path)
	if err != nil {
		return nil, workspace.Info{}, err
	}
	defer t.close()
	f, fi, err := t.openFile()
	if err != nil {
		return nil, workspace.Info{}, err
	}
	return f, info(t.path, fi), nil
}

// openFile opens what t stands at, if it is a regular file. Opening a device can have
// effects and opening a pipe can wait, so the type is looked at before; non-blocking
// and the second look are for what was swapped in meanwhile.
func (t *target) openFile() (*os.File, fs.FileInfo, error) {
	if err := t.regular(); err != nil {
		return nil, nil, err
	}
	f, err := t.dir.OpenFile(t.base, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, errSwapped
	}
	if err != nil {
		return nil, nil, translate("workspace.open", t.path, err)
	}
	fi, err := f.Stat()
	if err != nil || !os.SameFile(fi, t.info) {
		f.Close()
		return nil, nil, errSwapped
	}
	return f, fi, nil
}

// regular refuses all that is not a file of bytes.
func (t *target) regular() error {
	if t.info.Mode().IsRegular() {
		return nil
	}
	return fault.New(fault.Invalid, "workspace.open", "%q is %s, not a regular file", t.path, kindName(t.info.Mode())).With("path", t.path)
}

func kindName(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a directory"
	case m&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	case m&fs.ModeSymlink != 0:
		return "a link"
	}
	return "of an unknown kind"
}

// Read returns a whole regular file of at most max bytes.
func (w *Workspace) Read(ctx context.Context, path string, max int64) ([]byte, workspace.Info, error) {
	rc, i, err := w.Open(ctx, path)
	if err != nil {
		return nil, workspace.Info{}, err
	}
	defer rc.Close()
	if i.Size > max {
		return nil, workspace.Info{}, tooLarge(i, max)
	}
	data, err := readAll(ctx, rc, i.Size, max)
	if errors.Is(err, errTooLarge) {
		return nil, workspace.Info{}, tooLarge(i, max)
	}
	if err != nil {
		return nil, workspace.Info{}, translate("workspace.read", i.Path, err)
	}
	// The time is the one from before reading: a change meanwhile gives a token that no
	// state of the file has, which is the safe answer.
	i.Size = int64(len(data))
	i.Version = workspace.Version(i.Modified, i.Size, sha256.Sum256(data))
	return data, i, nil
}

var errTooLarge = errors.New("too large")

// readAll reads to the end, but no more than max bytes: a file may grow while it is
// being read, and files of /proc say 0 for their size.
func readAll(ctx context.Context, r io.Reader, size, max int64) ([]byte, error) {
	data := make([]byte, 0, size+1)
	for {
		if err := ctx.Err(); err != nil {
			return nil, fault.From("workspace.read", err)
		}
		if len(data) == cap(data) {
			data = slices.Grow(data, 4096)
		}
		n, err := r.Read(data[len(data):min(cap(data), len(data)+chunk)])
		data = data[:len(data)+n]
		if int64(len(data)) > max {
			return nil, errTooLarge
		}
		if err == io.EOF {
			return data, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

func tooLarge(i workspace.Info, max int64) error {
	return fault.New(fault.Limit, "workspace.read", "%q has %d bytes; at most %d are read at once", i.Path, i.Size, max).
		With("path", i.Path).With("size", i.Size).With("max", max)
}

// List yields the entries of a directory in name order.
func (w *Workspace) List(ctx context.Context, dir string) iter.Seq2[workspace.Info, error] {
	return func(yield func(workspace.Info, error) bool) {
		t, err := w.directory(ctx, dir)
		if err != nil {
			yield(workspace.Info{}, err)
			return
		}
		defer t.close()
		names, err := t.names(ctx)
		if err != nil {
			yield(workspace.Info{}, err)
			return
		}
		for _, name := range names {
			if err := ctx.Err(); err != nil {
				yield(workspace.Info{}, fault.From("workspace.list", err))
				return
			}
			fi, err := t.dir.Lstat(name)
			if errors.Is(err, fs.ErrNotExist) {
				continue // gone since the directory was read
			}
			if err != nil {
				yield(workspace.Info{}, translate("workspace.list", path.Join(t.path, name), err))
				return
			}
			if !yield(info(path.Join(t.path, name), fi), nil) {
				return
			}
		}
	}
}

// directory finds a directory and enters it.
func (w *Workspace) directory(ctx context.Context, dir string) (*target, error) {
	for range maxTries {
		t, err := w.existing(ctx, "workspace.list", dir)
		if err != nil {
			return nil, err
		}
		if !t.info.IsDir() {
			t.close()
			return nil, fault.New(fault.Invalid, "workspace.list", "%q is not a directory", t.path).With("path", t.path)
		}
		err = t.enter()
		if err == nil {
			return t, nil
		}
		t.close()
		if !errors.Is(err, errSwapped) {
			return nil, err
		}
	}
	return nil, fault.New(fault.Denied, "workspace.list", "%q keeps changing while it is being opened", dir)
}

// names reads the directory t stands in.
func (t *target) names(ctx context.Context) ([]string, error) {
	f, err := t.dir.Open(".")
	if err != nil {
		return nil, translate("workspace.list", t.path, err)
	}
	defer f.Close()
	var names []string
	for {
		if err := ctx.Err(); err != nil {
			return nil, fault.From("workspace.list", err)
		}
		part, err := f.Readdirnames(1024)
		for _, name := range part {
			if !strings.HasPrefix(name, tempPrefix) {
				names = append(names, name)
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, translate("workspace.list", t.path, err)
		}
		if len(names) > maxEntries {
			return nil, fault.New(fault.Limit, "workspace.list", "%q has more than %d entries", t.path, maxEntries).With("path", t.path)
		}
	}
	slices.Sort(names)
	return names, nil
}
