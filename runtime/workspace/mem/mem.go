// Package mem is the workspace in memory: a tree for tests, trials and hosts without a
// disk. It keeps the rules of every other back-end; it has no links, no modes and runs
// no commands. Path rules are workspace's, matching internal/search's. Floor 8.
package mem

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/workspace"
)

// Bounds of a workspace.
const (
	maxName      = 255 // bytes of one element, as on a disk
	defaultQuota = 256 << 20
)

// Config says how to make one.
type Config struct {
	// Name is what Root says behind "mem:".
	Name string
	// Files are there from the start; the paths must be clean.
	Files map[string]string
	// Quota bounds the bytes of all files; 0 for 256 MiB.
	Quota int64
	// Now gives the time of changes; nil for the clock.
	Now func() time.Time
}

// Workspace is a tree in memory.
type Workspace struct {
	name  string
	quota int64
	now   func() time.Time

	mu    sync.RWMutex
	files map[string]file // by clean path; guarded by mu
	// dirs counts the entries of each directory, since a directory is there as long as
	// something is in it, or was made by a write; guarded by mu.
	dirs map[string]map[string]bool
	used int64 // guarded by mu
}

// file is never changed in place: readers keep what they got.
type file struct {
	data     []byte
	modified time.Time
	sum      [sha256.Size]byte
}

var _ workspace.Workspace = (*Workspace)(nil)

// Open makes a workspace with the given files.
func Open(ctx context.Context, cfg Config) (*Workspace, error) {
	w := &Workspace{name: "mem:" + cfg.Name, quota: cfg.Quota, now: cfg.Now, files: map[string]file{}, dirs: map[string]map[string]bool{".": {}}}
	if w.quota <= 0 {
		w.quota = defaultQuota
	}
	if w.now == nil {
		w.now = time.Now
	}
	for p, data := range cfg.Files {
		if err := ctx.Err(); err != nil {
			return nil, fault.From("workspace.open", err)
		}
		clean, err := workspace.Clean(w.name, p)
		if err == nil && clean != p {
			err = fault.New(fault.Invalid, "workspace.open", "the path %q is not clean", p)
		}
		if err == nil {
			_, err = w.put(p, []byte(data), workspace.Condition{})
		}
		if err != nil {
			return nil, err
		}
	}
	return w, nil
}

// Root gives "mem:" and the name.
func (w *Workspace) Root() string { return w.name }

// enter starts every call.
func (w *Workspace) enter(ctx context.Context, op, p string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", fault.From(op, err)
	}
	return workspace.Clean(w.name, p)
}

// Stat describes what is at path.
func (w *Workspace) Stat(ctx context.Context, path string) (workspace.Info, error) {
	p, err := w.enter(ctx, "workspace.stat", path)
	if err != nil {
		return workspace.Info{}, err
	}
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.stat(p)
}

// stat is called with mu held.
func (w *Workspace) stat(p string) (workspace.Info, error) {
	if f, ok := w.files[p]; ok {
		return workspace.Info{Path: p, Type: workspace.File, Size: int64(len(f.data)), Modified: f.modified}, nil
	}
	if _, ok := w.dirs[p]; ok {
		return workspace.Info{Path: p, Type: workspace.Dir}, nil
	}
	return workspace.Info{}, fault.New(fault.NotFound, "workspace.stat", "%q does not exist", p).With("path", p)
}

// find gives a regular file.
func (w *Workspace) find(p string) (file, workspace.Info, error) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	i, err := w.stat(p)
	if err == nil && i.Type != workspace.File {
		err = fault.New(fault.Invalid, "workspace.open", "%q is a directory, not a regular file", p).With("path", p)
	}
	return w.files[p], i, err
}

// Open streams a file.
func (w *Workspace) Open(ctx context.Context, path string) (io.ReadCloser, workspace.Info, error) {
	p, err := w.enter(ctx, "workspace.open", path)
	if err != nil {
		return nil, workspace.Info{}, err
	}
	f, i, err := w.find(p)
	if err != nil {
		return nil, workspace.Info{}, err
	}
	return io.NopCloser(bytes.NewReader(f.data)), i, nil
}

// Read returns a whole file of at most max bytes.
func (w *Workspace) Read(ctx context.Context, path string, max int64) ([]byte, workspace.Info, error) {
	p, err := w.enter(ctx, "workspace.read", path)
	if err != nil {
		return nil, workspace.Info{}, err
	}
	f, i, err := w.find(p)
	if err != nil {
		return nil, workspace.Info{}, err
	}
	if i.Size > max {
		return nil, workspace.Info{}, fault.New(fault.Limit, "workspace.read", "%q has %d bytes; at most %d are read at once", p, i.Size, max).
			With("path", p).With("size", i.Size).With("max", max)
	}
	i.Version = f.version()
	return bytes.Clone(f.data), i, nil
}

func (f file) version() string {
	return workspace.Version(f.modified, int64(len(f.data)), f.sum)
}

// Write replaces a file.
func (w *Workspace) Write(ctx context.Context, path string, data []byte, cond workspace.Condition) (workspace.Info, error) {
	p, err := w.enter(ctx, "workspace.write", path)
	if err != nil {
		return workspace.Info{}, err
	}
	return w.put(p, bytes.Clone(data), cond)
}

func (w *Workspace) put(p string, data []byte, cond workspace.Condition) (workspace.Info, error) {
	if err := mayChange(p); err != nil {
		return workspace.Info{}, err
	}
	for e := range strings.SplitSeq(p, "/") {
		if len(e) > maxName {
			return workspace.Info{}, fault.New(fault.Invalid, "workspace.write", "%q: a name in it is too long", p).With("path", p)
		}
	}
	f := file{data: data, sum: sha256.Sum256(data)}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.room(p); err != nil {
		return workspace.Info{}, err
	}
	old, there := w.files[p]
	if err := holds(p, old, there, cond); err != nil {
		return workspace.Info{}, err
	}
	used := w.used - int64(len(old.data)) + int64(len(data))
	if used > w.quota {
		return workspace.Info{}, fault.New(fault.IO, "workspace.write", "%q: no room is left in this workspace of %d bytes", p, w.quota).With("path", p)
	}
	f.modified = w.now()
	w.files[p], w.used = f, used
	w.link(p)
	return workspace.Info{Path: p, Type: workspace.File, Size: int64(len(data)), Modified: f.modified, Version: f.version()}, nil
}

// room says whether a file can be at p. mu is held.
func (w *Workspace) room(p string) error {
	if _, ok := w.dirs[p]; ok {
		return fault.New(fault.Invalid, "workspace.write", "%q is a directory, not a regular file", p).With("path", p)
	}
	for i := range len(p) {
		if p[i] != '/' {
			continue
		}
		if _, ok := w.files[p[:i]]; ok {
			return fault.New(fault.Invalid, "workspace.write", "%q: %q is not a directory", p, p[:i]).With("path", p)
		}
	}
	return nil
}

// link enters p and its parents in the directories. mu is held.
func (w *Workspace) link(p string) {
	for {
		dir, name := split(p)
		entries, ok := w.dirs[dir]
		if !ok {
			entries = map[string]bool{}
			w.dirs[dir] = entries
		}
		if entries[name] {
			return
		}
		entries[name] = true
		if dir == "." {
			return
		}
		p = dir
	}
}

func split(p string) (dir, name string) {
	if i := strings.LastIndexByte(p, '/'); i >= 0 {
		return p[:i], p[i+1:]
	}
	return ".", p
}

func mayChange(p string) error {
	if !workspace.Protected(p) {
		return nil
	}
	return fault.New(fault.Denied, "workspace.write", "%q belongs to version control or to the session store and is not changed by tools", p).With("path", p)
}

// holds checks the condition of a write.
func holds(p string, old file, there bool, cond workspace.Condition) error {
	expected, actual := cond.Version, "absent"
	if there {
		actual = old.version()
	}
	what := "has changed since it was read; read it again"
	switch {
	case cond.Absent && there:
		expected, what = "absent", "exists already"
	case cond.Version == "" || there && actual == cond.Version:
		return nil
	case !there:
		what = "has been removed since it was read"
	}
	return fault.New(fault.Conflict, "workspace.write", "%q %s", p, what).With("path", p).With("expected", expected).With("actual", actual)
}

// Remove deletes a file. Its directory stays, as on a disk.
func (w *Workspace) Remove(ctx context.Context, path string) error {
	p, err := w.enter(ctx, "workspace.remove", path)
	if err != nil {
		return err
	}
	if err := mayChange(p); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.dirs[p]; ok {
		return fault.New(fault.Invalid, "workspace.remove", "%q is a directory; only files are removed", p).With("path", p)
	}
	f, ok := w.files[p]
	if !ok {
		return nil
	}
	delete(w.files, p)
	w.used -= int64(len(f.data))
	dir, name := split(p)
	delete(w.dirs[dir], name)
	return nil
}

// List yields the entries of a directory in name order, as they were at the start.
func (w *Workspace) List(ctx context.Context, dir string) iter.Seq2[workspace.Info, error] {
	return func(yield func(workspace.Info, error) bool) {
		p, err := w.enter(ctx, "workspace.list", dir)
		if err != nil {
			yield(workspace.Info{}, err)
			return
		}
		entries, err := w.entries(p)
		if err != nil {
			yield(workspace.Info{}, err)
			return
		}
		for _, i := range entries {
			if err := ctx.Err(); err != nil {
				yield(workspace.Info{}, fault.From("workspace.list", err))
				return
			}
			if !yield(i, nil) {
				return
			}
		}
	}
}

func (w *Workspace) entries(p string) ([]workspace.Info, error) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if i, err := w.stat(p); err != nil {
		return nil, err
	} else if i.Type != workspace.Dir {
		return nil, fault.New(fault.Invalid, "workspace.list", "%q is not a directory", p).With("path", p)
	}
	out := make([]workspace.Info, 0, len(w.dirs[p]))
	for name := range w.dirs[p] {
		i, err := w.stat(join(p, name))
		if err != nil {
			return nil, err
		}
		out = append(out, i)
	}
	slices.SortFunc(out, func(a, b workspace.Info) int { return cmp.Compare(a.Path, b.Path) })
	return out, nil
}

func join(dir, name string) string {
	if dir == "." {
		return name
	}
	return dir + "/" + name
}
