package local

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

// Bounds of one look-up.
const (
	maxLinks = 40 // as the kernel
	maxTries = 4  // when directories are swapped under our hands
	maxSteps = 16 << 10
)

// mode says what find does at the end of a path.
type mode int

const (
	follow   mode = iota // follow a link in the last element
	noFollow             // stop at a link in the last element
	create               // follow, and make missing parents
)

// target is the place a path leads to: the handle of its directory and the name in it.
// Whoever gets one closes it.
type target struct {
	path string // as asked
	real string // without links
	dir  *os.Root
	base string
	info fs.FileInfo // of the entry itself; nil if there is none
	own  bool        // dir is ours to close
	mode mode
}

func (t *target) close() {
	if t.own {
		t.dir.Close()
	}
}

// errSwapped says that an entry changed between looking at it and opening it.
var errSwapped = errors.New("the path changed while it was being opened")

// find walks the clean path p from the handle of the root. It never lets the system
// follow a link: links are read and their elements walked like any other, so it is
// known at every step which directory was reached.
func (w *Workspace) find(p string, m mode) (*target, error) {
	for range maxTries {
		t, err := w.walk(p, m)
		if !errors.Is(err, errSwapped) {
			return t, err
		}
	}
	return nil, fault.New(fault.Denied, op, "%q keeps changing while it is being opened; try again when nothing else works on it", p)
}

const op = "workspace.find"

func (w *Workspace) walk(p string, m mode) (*target, error) {
	t := &target{path: p, real: ".", dir: w.dir, base: ".", info: w.self, mode: m}
	rest := elements(p)
	links := 0
	for steps := 0; len(rest) > 0; steps++ {
		if steps > maxSteps {
			t.close()
			return nil, tooManyLinks(p)
		}
		name := rest[0]
		rest = rest[1:]
		if name == ".." {
			// Only links bring these. The parent of an open directory is reached from
			// the root again, since the directory itself may have been moved away.
			if t.real == "." {
				t.close()
				return nil, w.leaves(p)
			}
			rest = append(elements(path.Dir(t.real)), rest...)
			t.reset(w)
			continue
		}
		if err := t.enter(); err != nil {
			t.close()
			return nil, err
		}
		fi, err := t.dir.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return w.missing(t, name, rest)
		case err != nil:
			t.close()
			return nil, translate(op, p, err)
		}
		if fi.Mode()&fs.ModeSymlink == 0 || m == noFollow && len(rest) == 0 {
			t.base, t.info, t.real = name, fi, path.Join(t.real, name)
			continue
		}
		if links++; links > maxLinks {
			t.close()
			return nil, tooManyLinks(p)
		}
		to, err := t.dir.Readlink(name)
		if err != nil {
			t.close()
			return nil, swapped(p, err)
		}
		if path.IsAbs(to) {
			if to, err = w.clean(to); err != nil {
				t.close()
				return nil, w.leaves(p)
			}
			t.reset(w)
		}
		rest = append(elements(to), rest...)
	}
	return t, nil
}

// enter makes the entry t stands at the directory to go on from.
func (t *target) enter() error {
	if t.base == "." {
		return nil
	}
	if !t.info.IsDir() {
		kind := fault.NotFound
		if t.mode == create {
			kind = fault.Invalid
		}
		return fault.New(kind, op, "%q: %q is not a directory", t.path, t.real).With("path", t.path)
	}
	d, err := t.dir.OpenRoot(t.base)
	if err != nil {
		return swapped(t.path, err)
	}
	fi, err := d.Stat(".")
	if err != nil || !os.SameFile(fi, t.info) {
		d.Close()
		return errSwapped
	}
	t.close()
	t.dir, t.own, t.base, t.info = d, true, ".", fi
	return nil
}

// reset puts t back to the root.
func (t *target) reset(w *Workspace) {
	t.close()
	t.real, t.dir, t.own, t.base, t.info = ".", w.dir, false, ".", w.self
}

// missing ends a walk at an entry that is not there: name in the directory of t, with
// rest below it.
func (w *Workspace) missing(t *target, name string, rest []string) (*target, error) {
	for _, r := range rest {
		if r == ".." {
			t.close()
			return nil, notFound(t.path)
		}
	}
	real := path.Join(append([]string{t.real, name}, rest...)...)
	if t.mode != create {
		t.base, t.info, t.real = name, nil, real
		return t, nil
	}
	if err := w.mayChange(t.path, real); err != nil {
		t.close()
		return nil, err
	}
	for len(rest) > 0 {
		if err := t.dir.Mkdir(name, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			t.close()
			return nil, translate("workspace.write", t.path, err)
		}
		fi, err := t.dir.Lstat(name)
		if err != nil || !fi.IsDir() {
			t.close()
			return nil, errSwapped
		}
		t.base, t.info = name, fi
		if err := t.enter(); err != nil {
			t.close()
			return nil, err
		}
		name, rest = rest[0], rest[1:]
	}
	t.base, t.info, t.real = name, nil, real
	return t, nil
}

// existing finds what must be there.
func (w *Workspace) existing(ctx context.Context, op, p string) (*target, error) {
	if err := ctx.Err(); err != nil {
		return nil, fault.From(op, err)
	}
	clean, err := w.clean(p)
	if err != nil {
		return nil, err
	}
	t, err := w.find(clean, follow)
	if err != nil {
		return nil, err
	}
	if t.info == nil {
		t.close()
		return nil, notFound(clean)
	}
	return t, nil
}

// mayChange refuses what no tool may change, by the name asked for and by the place it
// leads to.
func (w *Workspace) mayChange(p, real string) error {
	if !w.Protected(p) && !w.Protected(real) {
		return nil
	}
	return fault.New(fault.Denied, "workspace.write", "%q belongs to version control or to the session store and is not changed by tools", real).With("path", p)
}

func (w *Workspace) leaves(p string) error {
	return fault.New(fault.Denied, op, "%q leads outside the workspace through a link", p).With("path", p)
}

func tooManyLinks(p string) error {
	return fault.New(fault.Invalid, op, "%q leads through too many links", p).With("path", p)
}

func notFound(p string) error {
	return fault.New(fault.NotFound, op, "%q does not exist", p).With("path", p)
}

// swapped tells a change under our hands from other failures of opening a directory
// that has just been seen.
func swapped(p string, err error) error {
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		return translate(op, p, err)
	}
	return errSwapped
}

// translate gives a system error its kind.
func translate(op, p string, err error) error {
	c := cause(err)
	var known *fault.Error
	switch {
	case errors.As(err, &known), errors.Is(err, errSwapped):
		return err
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return notFound(p)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fault.Of(fault.CodeIO, op, "%q: the operating system refuses access: %v", p, c).WithKind(fault.Denied).With("path", p)
	case errors.Is(err, syscall.ENAMETOOLONG):
		return fault.New(fault.Invalid, op, "%q: a name in it is too long", p).With("path", p)
	case errors.Is(err, syscall.ELOOP):
		return tooManyLinks(p)
	case errors.Is(err, os.ErrClosed):
		return fault.New(fault.Closed, op, "the workspace is closed")
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return fault.New(fault.IO, op, "%q: too many open files: %v", p, c).With("path", p).Retry()
	}
	return fault.New(fault.IO, op, "%q: %v", p, c).With("path", p)
}

// cause takes off the path that the system put around an error: ours says it already.
func cause(err error) error {
	var pe *fs.PathError
	var le *os.LinkError
	switch {
	case errors.As(err, &pe):
		return pe.Err
	case errors.As(err, &le):
		return le.Err
	}
	return err
}

func elements(p string) []string {
	var out []string
	for e := range strings.SplitSeq(p, "/") {
		if e != "" && e != "." {
			out = append(out, e)
		}
	}
	return out
}
