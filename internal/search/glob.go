package search

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

// Found is a file with its path.
type Found struct {
	Path string
	Info
}

// Glob yields the files below Base whose path matches, in path order.
func Glob(ctx context.Context, tree Tree, q GlobQuery) iter.Seq2[Found, error] {
	return func(yield func(Found, error) bool) {
		err := glob(ctx, tree, q, func(f Found) bool { return yield(f, nil) })
		if err != nil {
			yield(Found{}, err)
		}
	}
}

func glob(ctx context.Context, tree Tree, q GlobQuery, found func(Found) bool) error {
	const op = "workspace.glob"
	if err := ctx.Err(); err != nil {
		return fault.From(op, err)
	}
	pattern, err := checkGlob(op, q.Pattern)
	if err != nil {
		return err
	}
	if err := checkBase(op, q.Base); err != nil {
		return err
	}
	base, err := look(op, tree, q.Base)
	if err != nil {
		return err
	}
	if !base.Dir {
		return fault.New(fault.Invalid, op, "%q is not a directory", q.Base).With("path", q.Base)
	}
	w := walker{ctx: ctx, tree: tree, all: q.Ignored, enter: prune(q.Base, pattern)}
	err = w.walk(q.Base, func(p string) error {
		if ok, err := doublestar.Match(pattern, below(q.Base, p)); !ok || err != nil {
			return err
		}
		if q.Allow != nil && !q.Allow(p) {
			return nil
		}
		i, err := tree.Stat(p)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !i.File {
			return nil // gone or replaced since the folder was read
		}
		if err != nil {
			return fault.New(fault.IO, op, "%q: %v", p, err).With("path", p)
		}
		if !found(Found{p, i}) {
			return errStop
		}
		return nil
	})
	if err == nil || errors.Is(err, errStop) {
		return nil
	}
	return fault.From(op, err)
}

// prune says which folders a pattern can reach: those on the way of its fixed start,
// and, without a "**", only as deep as it has slashes.
func prune(base, pattern string) func(dir string) bool {
	fixed, _ := doublestar.SplitPattern(pattern)
	if fixed == "." || strings.Contains(fixed, `\`) {
		fixed = ""
	}
	depth := strings.Count(pattern, "/")
	if strings.Contains(pattern, "**") {
		depth = 1 << 20
	}
	return func(dir string) bool {
		rel := below(base, dir)
		if strings.Count(rel, "/")+1 > depth {
			return false
		}
		n := min(len(rel), len(fixed))
		return rel[:n] == fixed[:n] && (n == len(rel) && (n == len(fixed) || fixed[n] == '/') || n == len(fixed) && (n == 0 || rel[n] == '/'))
	}
}
