// Package local is the workspace on a disk of this machine: files, commands, search.
//
// Every file is reached from an open handle of the root, one element at a time, so that
// neither a link nor a directory swapped in between leads outside. That confines what
// goes through this package; a shell command runs with the rights of the process and is
// confined by policy and sandbox, not here. Path rules are workspace's, processes
// internal/proc's, matching internal/search's. Floor 8.
package local

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/workspace"
)

// Config says what to open.
type Config struct {
	// Root is the absolute path of an existing directory.
	Root string
	// Env is the environment the host handed over. Commands get the few variables of
	// an allow-list out of it and nothing from the process.
	Env map[string]string
	// Protect names files and folders that are never written or removed, besides those
	// of workspace.Protected: absolute or relative to Root. What lies outside Root
	// cannot be reached anyhow and is ignored.
	Protect []string
	// Grace is how long a command has between the request to end and the kill; 0 means
	// 200 ms.
	Grace time.Duration
}

// Workspace is a directory of this machine.
type Workspace struct {
	root    string // absolute, without links
	given   string // as the host named it
	dir     *os.Root
	self    fs.FileInfo // of dir
	protect []string
	env     map[string]string
	grace   time.Duration
}

var (
	_ workspace.Workspace = (*Workspace)(nil)
	_ workspace.Resolver  = (*Workspace)(nil)
)

// Open opens the directory. It fails with an option error on "workspace" if Root is
// not an absolute path of an existing directory.
func Open(ctx context.Context, cfg Config) (*Workspace, error) {
	if err := ctx.Err(); err != nil {
		return nil, fault.From("workspace.open", err)
	}
	if !filepath.IsAbs(cfg.Root) {
		return nil, fault.Option("workspace", fault.BadValue, "%q is not an absolute path", cfg.Root)
	}
	root, err := filepath.EvalSymlinks(cfg.Root)
	if err != nil {
		return nil, fault.Option("workspace", fault.BadValue, "cannot open %q: %v", cfg.Root, cause(err))
	}
	fi, err := os.Stat(root)
	if err != nil {
		return nil, fault.Option("workspace", fault.BadValue, "cannot open %q: %v", cfg.Root, cause(err))
	}
	if !fi.IsDir() {
		return nil, fault.Option("workspace", fault.BadValue, "%q is not a directory", cfg.Root)
	}
	dir, err := os.OpenRoot(root)
	if err != nil {
		return nil, fault.Option("workspace", fault.BadValue, "cannot open %q: %v", cfg.Root, cause(err))
	}
	self, err := dir.Stat(".")
	if err != nil {
		dir.Close()
		return nil, fault.Option("workspace", fault.BadValue, "cannot open %q: %v", cfg.Root, cause(err))
	}
	w := &Workspace{root: root, given: filepath.Clean(cfg.Root), dir: dir, self: self, env: cfg.Env, grace: cfg.Grace}
	for _, p := range cfg.Protect {
		if clean, err := w.clean(p); err == nil {
			w.protect = append(w.protect, clean)
		}
		if real, err := w.Resolve(p); err == nil {
			w.protect = append(w.protect, real)
		}
	}
	return w, nil
}

// Close frees the handle of the root. Later calls fail; it may be called twice.
func (w *Workspace) Close() error { return w.dir.Close() }

// Root is the absolute path of the root, without links.
func (w *Workspace) Root() string { return w.root }

// Protected says whether Write and Remove refuse a clean path.
func (w *Workspace) Protected(path string) bool {
	if workspace.Protected(path) {
		return true
	}
	for _, p := range w.protect {
		if workspace.Within(p, path) {
			return true
		}
	}
	return false
}

// clean accepts absolute paths below the root under either of its names.
func (w *Workspace) clean(path string) (string, error) {
	p, err := workspace.Clean(w.root, path)
	if err != nil && w.given != w.root {
		if q, err := workspace.Clean(w.given, path); err == nil {
			return q, nil
		}
	}
	return p, err
}

// Resolve gives the path that is really reached.
func (w *Workspace) Resolve(path string) (string, error) {
	p, err := w.clean(path)
	if err != nil {
		return "", err
	}
	t, err := w.find(p, follow)
	if err != nil {
		return "", err
	}
	t.close()
	return t.real, nil
}

// Stat describes what is at path.
func (w *Workspace) Stat(ctx context.Context, path string) (workspace.Info, error) {
	t, err := w.existing(ctx, "workspace.stat", path)
	if err != nil {
		return workspace.Info{}, err
	}
	defer t.close()
	return info(t.path, t.info), nil
}

// info makes the port's description from the system's.
func info(path string, fi fs.FileInfo) workspace.Info {
	return workspace.Info{Path: path, Type: typeOf(fi.Mode()), Size: fi.Size(), Modified: fi.ModTime()}
}

func typeOf(m fs.FileMode) workspace.Type {
	switch {
	case m.IsRegular():
		return workspace.File
	case m.IsDir():
		return workspace.Dir
	case m&fs.ModeSymlink != 0:
		return workspace.Link
	}
	return workspace.Other
}
