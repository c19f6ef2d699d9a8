package local

import (
	"context"
	"iter"

	"github.com/a3s-lab/liba3s/internal/search"
	"github.com/a3s-lab/liba3s/runtime/workspace"
)

var _ workspace.Searcher = (*Workspace)(nil)

// Glob yields files by name. If the base is reached through a link, the paths are those
// of the place behind it.
func (w *Workspace) Glob(ctx context.Context, q workspace.GlobQuery) iter.Seq2[workspace.Info, error] {
	return func(yield func(workspace.Info, error) bool) {
		t, base, err := w.searchable(q.Base)
		if err != nil {
			yield(workspace.Info{}, err)
			return
		}
		defer t.close()
		q.Base = base
		for f, err := range search.Glob(ctx, t, search.GlobQuery(q)) {
			if !yield(workspace.Info{Path: f.Path, Type: workspace.File, Size: f.Size, Modified: f.Modified}, err) {
				return
			}
		}
	}
}

// Grep finds lines by content. About the base see Glob.
func (w *Workspace) Grep(ctx context.Context, q workspace.GrepQuery, hit func(workspace.Line) bool) (workspace.GrepStats, error) {
	t, base, err := w.searchable(q.Base)
	if err != nil {
		return workspace.GrepStats{}, err
	}
	defer t.close()
	q.Base = base
	stats, err := search.Grep(ctx, t, search.GrepQuery(q), func(l search.Line) bool { return hit(workspace.Line(l)) })
	return workspace.GrepStats(stats), err
}

// searchable opens the tree and finds where the base really is.
func (w *Workspace) searchable(base string) (*tree, string, error) {
	real, err := w.Resolve(base)
	if err != nil {
		return nil, "", err
	}
	t, err := w.tree()
	return t, real, err
}
