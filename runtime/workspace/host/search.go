package host

import (
	"context"
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/a3s-lab/liba3s/runtime/fault"
	desk "github.com/a3s-lab/liba3s/runtime/host"
	"github.com/a3s-lab/liba3s/runtime/workspace"
)

// WorkspaceSearch are the parameters of "search". Exactly one field is set. A pattern
// that cannot be read is a failure of kind invalid.
type WorkspaceSearch struct {
	Glob *WorkspaceGlob `json:"glob,omitempty"`
	Grep *WorkspaceGrep `json:"grep,omitempty"`
}

// WorkspaceGlob selects files by name.
type WorkspaceGlob struct {
	// Base is the folder that Pattern is relative to.
	Base string `json:"base"`
	// Pattern has *, ?, [...], {a,b} and ** for any number of folders.
	Pattern string `json:"pattern"`
	// Ignored says that files which .gitignore names are wanted too.
	Ignored bool `json:"ignored,omitempty"`
}

// WorkspaceGrep selects lines by content.
type WorkspaceGrep struct {
	// Base is a folder or a file.
	Base string `json:"base"`
	// Pattern is a regular expression in RE2 syntax, for one line.
	Pattern string `json:"pattern"`
	// Glob filters files by path or name; absent is all.
	Glob       string `json:"glob,omitempty"`
	IgnoreCase bool   `json:"ignore_case,omitempty"`
	// Context is how many lines before and after a match are wanted.
	Context int `json:"context,omitempty"`
	// FilesOnly says that one line of a file suffices.
	FilesOnly bool `json:"files_only,omitempty"`
	Ignored   bool `json:"ignored,omitempty"`
}

// WorkspaceFound is the result of "search": Files of a glob, Lines and the rest of a grep.
type WorkspaceFound struct {
	Files []WorkspaceMatch `json:"files,omitempty"`
	Lines []WorkspaceLine  `json:"lines,omitempty"`
	// Searched are the paths of the files that were looked at, if the host can say: how
	// many of them the read rules hide is told to the model.
	Searched []string `json:"searched,omitempty"`
	// Stats say what was looked at and what was left out.
	Stats WorkspaceStats `json:"stats,omitzero"`
}

// WorkspaceMatch is a file.
type WorkspaceMatch struct {
	Path       string `json:"path"`
	Size       int64  `json:"size,omitempty"`
	ModifiedMS int64  `json:"modified_ms,omitempty"`
}

// WorkspaceLine is a line of a file, without its end.
type WorkspaceLine struct {
	Path string `json:"path"`
	// Line counts from 1.
	Line int    `json:"line"`
	Text string `json:"text"`
	// Context says that it only surrounds a match.
	Context bool `json:"context,omitempty"`
}

// WorkspaceStats count what a grep looked at and left out.
type WorkspaceStats struct {
	Files        int64 `json:"files,omitempty"`
	Bytes        int64 `json:"bytes,omitempty"`
	Binary       int   `json:"binary,omitempty"`
	TooLarge     int   `json:"too_large,omitempty"`
	IgnoredDirs  int   `json:"ignored_dirs,omitempty"`
	IgnoredFiles int   `json:"ignored_files,omitempty"`
	Unreadable   int   `json:"unreadable,omitempty"`
}

// maxFound bounds the files and lines of one answer.
const maxFound = 1_000_000

// searcher is the capability of a host that searches.
type searcher struct{ w *Workspace }

var _ workspace.Searcher = searcher{}

// Glob implements workspace.Searcher.
func (s searcher) Glob(ctx context.Context, q workspace.GlobQuery) iter.Seq2[workspace.Info, error] {
	return func(yield func(workspace.Info, error) bool) {
		found, err := s.glob(ctx, q)
		if err != nil {
			yield(workspace.Info{}, err)
			return
		}
		for _, i := range found {
			if !yield(i, nil) {
				return
			}
		}
	}
}

func (s searcher) glob(ctx context.Context, q workspace.GlobQuery) ([]workspace.Info, error) {
	const op = "workspace.glob"
	base, err := s.base(ctx, op, q.Base)
	if err != nil {
		return nil, err
	}
	if err := checkPattern(op, q.Pattern); err != nil {
		return nil, err
	}
	var f WorkspaceFound
	if err := s.w.ask(ctx, op, base, desk.Question{Op: "search", Params: WorkspaceSearch{Glob: &WorkspaceGlob{base, q.Pattern, q.Ignored}}}, &f); err != nil {
		return nil, err
	}
	if len(f.Files) > maxFound {
		return nil, s.w.garbage(op, base, "names %d files, more than %d", len(f.Files), maxFound)
	}
	var out []workspace.Info
	for _, m := range f.Files {
		if err := s.within(op, base, m.Path); err != nil {
			return nil, err
		}
		if hidden(m.Path, q.Allow) {
			continue
		}
		i, err := s.w.info(op, m.Path, WorkspaceEntry{Type: workspace.File, Size: m.Size, ModifiedMS: m.ModifiedMS})
		if err != nil {
			return nil, err
		}
		out = append(out, i)
	}
	slices.SortFunc(out, func(a, b workspace.Info) int { return strings.Compare(a.Path, b.Path) })
	return slices.CompactFunc(out, func(a, b workspace.Info) bool { return a.Path == b.Path }), nil
}

// Grep implements workspace.Searcher.
func (s searcher) Grep(ctx context.Context, q workspace.GrepQuery, hit func(workspace.Line) bool) (workspace.GrepStats, error) {
	const op = "workspace.grep"
	base, err := s.base(ctx, op, q.Base)
	if err != nil {
		return workspace.GrepStats{}, err
	}
	if q.Glob != "" {
		if err := checkPattern(op, q.Glob); err != nil {
			return workspace.GrepStats{}, err
		}
	}
	g := WorkspaceGrep{base, q.Pattern, q.Glob, q.IgnoreCase, q.Context, q.FilesOnly, q.Ignored}
	var f WorkspaceFound
	if err := s.w.ask(ctx, op, base, desk.Question{Op: "search", Params: WorkspaceSearch{Grep: &g}}, &f); err != nil {
		return workspace.GrepStats{}, err
	}
	if len(f.Lines) > maxFound {
		return workspace.GrepStats{}, s.w.garbage(op, base, "gives %d lines, more than %d", len(f.Lines), maxFound)
	}
	for i := range f.Lines {
		l := &f.Lines[i]
		if err := s.within(op, base, l.Path); err != nil {
			return workspace.GrepStats{}, err
		}
		if text, ended := strings.CutSuffix(l.Text, "\n"); ended { // an easy mistake, and a harmless one
			l.Text = strings.TrimSuffix(text, "\r")
		}
		if l.Line < 1 || strings.Contains(l.Text, "\n") {
			return workspace.GrepStats{}, s.w.garbage(op, base, "gives a line %d of %q that is none", l.Line, desk.Cut(l.Path, 200))
		}
	}
	stats := f.Stats.stats()
	for _, p := range f.Searched {
		if !workspace.Protected(p) && q.Allow != nil && !q.Allow(p) {
			stats.Denied++
		}
	}
	slices.SortStableFunc(f.Lines, func(a, b WorkspaceLine) int { return strings.Compare(a.Path, b.Path) })
	for _, l := range f.Lines {
		if err := ctx.Err(); err != nil {
			return stats, fault.From(op, err)
		}
		if hidden(l.Path, q.Allow) {
			continue
		}
		if !hit(workspace.Line{Path: l.Path, Number: l.Line, Text: desk.Cut(l.Text, workspace.MaxLine), Context: l.Context}) {
			break
		}
	}
	return stats, nil
}

func (c WorkspaceStats) stats() workspace.GrepStats {
	return workspace.GrepStats{
		Files: max(c.Files, 0), Bytes: max(c.Bytes, 0), Binary: max(c.Binary, 0), TooLarge: max(c.TooLarge, 0),
		IgnoredDirs: max(c.IgnoredDirs, 0), IgnoredFiles: max(c.IgnoredFiles, 0), Unreadable: max(c.Unreadable, 0),
	}
}

// base gives the clean base of a search; the folders that no search enters are none.
func (s searcher) base(ctx context.Context, op, input string) (string, error) {
	p, err := s.w.clean(ctx, op, input)
	if err == nil && workspace.Protected(p) {
		err = fault.New(fault.Denied, op, "%q is not searched", p).With("path", p)
	}
	return p, err
}

// within refuses a path that the search could not have found.
func (s searcher) within(op, base, p string) error {
	if !lies(p) || !workspace.Within(base, p) {
		return s.w.garbage(op, base, "names %q, which is no path below %q", desk.Cut(p, 200), base)
	}
	return nil
}

// hidden says whether a file is left out: the read rules hide it, or it lies where no
// search looks (S24).
func hidden(p string, allow func(string) bool) bool {
	return workspace.Protected(p) || allow != nil && !allow(p)
}

// checkPattern refuses a pattern that leads outside its base, whatever the host makes of
// it, or that cannot be read.
func checkPattern(op, pattern string) error {
	slashed := strings.ReplaceAll(pattern, `\`, "/")
	switch {
	case pattern == "" || len(pattern) > workspace.MaxPath || !doublestar.ValidatePattern(pattern):
		return fault.New(fault.Invalid, op, "the pattern %q cannot be read", desk.Cut(pattern, 200))
	case path.IsAbs(slashed), slices.Contains(strings.FieldsFunc(slashed, func(r rune) bool { return strings.ContainsRune("/{},", r) }), ".."):
		return fault.New(fault.Invalid, op, "the pattern %q leads outside; give one relative to the folder searched", desk.Cut(pattern, 200))
	}
	return nil
}
