package search

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/a3s-lab/liba3s/internal/ignore"
	"github.com/a3s-lab/liba3s/runtime/fault"
)

// walker goes through a tree in the order of the bytes of the whole paths.
type walker struct {
	ctx   context.Context
	tree  Tree
	all   bool // ignored files too
	enter func(dir string) bool
	stats Stats
	buf   []byte
}

// errStop ends a walk early.
var errStop = errors.New("stop")

// walk calls file for every file below base that is not ignored.
func (w *walker) walk(base string, file func(p string) error) error {
	stack, err := w.above(base)
	if err != nil {
		return err
	}
	return w.dir(base, stack, file)
}

// above collects the rules of the folders above base, which count below it too. That
// base itself may be ignored does not count: it has been asked for by name.
func (w *walker) above(base string) (*ignore.Stack, error) {
	var stack *ignore.Stack
	if w.all {
		return stack, nil
	}
	stack = stack.Push(".", w.rules(".git/info/exclude"))
	for i := range len(base) {
		if i == 0 && base != "." {
			stack = stack.Push(".", w.rules(".gitignore"))
		}
		if base[i] == '/' {
			stack = stack.Push(base[:i], w.rules(base[:i]+"/.gitignore"))
		}
	}
	return stack, w.ctx.Err()
}

// rules reads a file of patterns. One that cannot be read has none: to show too much
// is the smaller harm.
func (w *walker) rules(p string) *ignore.Rules {
	text, err := w.tree.ReadFile(p, &w.buf, ignore.MaxSize, func([]byte) bool { return true })
	if err != nil {
		return nil
	}
	return ignore.Parse(text)
}

func (w *walker) dir(dir string, stack *ignore.Stack, file func(p string) error) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	entries, err := w.tree.ReadDir(dir)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			w.stats.Unreadable++
		}
		return nil
	}
	if !w.all && slices.ContainsFunc(entries, func(e Entry) bool { return e.File && e.Name == ".gitignore" }) {
		stack = stack.Push(dir, w.rules(path.Join(dir, ".gitignore")))
	}
	slices.SortFunc(entries, byPath)
	for _, e := range entries {
		if !e.Dir && !e.File || skipped(e.Name) {
			continue
		}
		p := e.Name
		if dir != "." {
			p = dir + "/" + e.Name
		}
		if e.Dir && w.enter != nil && !w.enter(p) {
			continue
		}
		switch ignored := stack.Ignored(p, e.Dir); {
		case ignored && e.Dir:
			w.stats.IgnoredDirs++
		case ignored:
			w.stats.IgnoredFiles++
		case e.Dir:
			err = w.dir(p, stack, file)
		default:
			err = file(p)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// byPath sorts entries as their paths will be: a folder by its name with a slash.
func byPath(a, b Entry) int {
	n := min(len(a.Name), len(b.Name))
	if c := strings.Compare(a.Name[:n], b.Name[:n]); c != 0 {
		return c
	}
	return next(a, n) - next(b, n)
}

func next(e Entry, n int) int {
	switch {
	case n < len(e.Name):
		return int(e.Name[n])
	case e.Dir:
		return '/'
	}
	return -1
}

// look finds what base is.
func look(op string, tree Tree, base string) (Info, error) {
	i, err := tree.Stat(base)
	if errors.Is(err, fs.ErrNotExist) {
		return i, fault.New(fault.NotFound, op, "%q does not exist", base).With("path", base)
	}
	if err != nil {
		return i, fault.New(fault.IO, op, "%q: %v", base, err).With("path", base)
	}
	return i, nil
}
