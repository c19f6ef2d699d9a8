package mem

import (
	"context"
	"io/fs"
	"iter"

	"github.com/a3s-lab/liba3s/internal/search"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/workspace"
)

var _ workspace.Searcher = (*Workspace)(nil)

// Glob yields files by name.
func (w *Workspace) Glob(ctx context.Context, q workspace.GlobQuery) iter.Seq2[workspace.Info, error] {
	return func(yield func(workspace.Info, error) bool) {
		base, err := workspace.Clean(w.name, q.Base)
		if err != nil {
			yield(workspace.Info{}, err)
			return
		}
		q.Base = base
		for f, err := range search.Glob(ctx, tree{w}, search.GlobQuery(q)) {
			if !yield(workspace.Info{Path: f.Path, Type: workspace.File, Size: f.Size, Modified: f.Modified}, err) {
				return
			}
		}
	}
}

// Grep finds lines by content.
func (w *Workspace) Grep(ctx context.Context, q workspace.GrepQuery, hit func(workspace.Line) bool) (workspace.GrepStats, error) {
	base, err := workspace.Clean(w.name, q.Base)
	if err != nil {
		return workspace.GrepStats{}, err
	}
	q.Base = base
	stats, err := search.Grep(ctx, tree{w}, search.GrepQuery(q), func(l search.Line) bool { return hit(workspace.Line(l)) })
	return workspace.GrepStats(stats), err
}

// tree is a workspace as a search sees it.
type tree struct{ w *Workspace }

func (t tree) ReadDir(p string) ([]search.Entry, error) {
	infos, err := t.w.entries(p)
	if err != nil {
		return nil, unfound(err)
	}
	out := make([]search.Entry, len(infos))
	for i, info := range infos {
		_, name := split(info.Path)
		out[i] = search.Entry{Name: name, Dir: info.Type == workspace.Dir, File: info.Type == workspace.File}
	}
	return out, nil
}

func (t tree) Stat(p string) (search.Info, error) {
	t.w.mu.RLock()
	defer t.w.mu.RUnlock()
	i, err := t.w.stat(p)
	if err != nil {
		return search.Info{}, unfound(err)
	}
	return search.Info{Entry: search.Entry{Dir: i.Type == workspace.Dir, File: i.Type == workspace.File}, Size: i.Size, Modified: i.Modified}, nil
}

// ReadFile hands out the file itself, which never changes.
func (t tree) ReadFile(p string, _ *[]byte, max int64, keep func(head []byte) bool) ([]byte, error) {
	f, i, err := t.w.find(p)
	if err != nil {
		return nil, unfound(err)
	}
	if i.Size > max {
		return nil, search.ErrTooLarge
	}
	keep(f.data[:min(len(f.data), search.HeadSize)])
	return f.data, nil
}

// unfound says in the words of a tree that something is not there.
func unfound(err error) error {
	if fault.KindOf(err) == fault.NotFound {
		return fs.ErrNotExist
	}
	return err
}
