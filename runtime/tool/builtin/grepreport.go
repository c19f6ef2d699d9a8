package builtin

import (
	"fmt"
	"strings"

	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/workspace"
)

// grepMode is one output_mode: what is asked of the workspace and how it is told.
type grepMode struct {
	context   int // 1 if lines around a match are of use
	filesOnly bool
	take      func(*report, workspace.Line) bool
	answer    func(*report) chat.Result
}

var grepModes = map[string]grepMode{
	"content":            {context: 1, take: (*report).content, answer: (*report).contentAnswer},
	"files_with_matches": {filesOnly: true, take: (*report).count, answer: (*report).pagedAnswer},
	"count":              {take: (*report).count, answer: (*report).pagedAnswer},
	"summary":            {take: (*report).count, answer: (*report).summaryAnswer},
}

// report collects the hits of one search.
type report struct {
	args    grepArgs
	text    strings.Builder
	files   []fileCount
	lines   int // that match
	last    workspace.Line
	stopped string // why the search ended before its end
	stats   workspace.GrepStats
}

type fileCount struct {
	path  string
	lines int
}

// content writes one line, unless the answer is full.
func (r *report) content(l workspace.Line) bool {
	mark := byte('>')
	if l.Context {
		mark = ' '
	}
	path := workspace.Display(l.Path)
	line := fmt.Sprintf("%c%s:%d: %s\n", mark, path, l.Number, strings.ToValidUTF8(cutAt(l.Text, maxLine), "\uFFFD"))
	if r.args.Context.or(0) > 0 && r.last.Path != "" && (r.last.Path != l.Path || r.last.Number+1 != l.Number) {
		line = "--\n" + line
	}
	if r.text.Len()+len(line) > maxSearched-trailerRoom {
		r.stopped = "because the answer is full"
		return false
	}
	r.last = l
	r.text.WriteString(line)
	return l.Context || r.count(l)
}

func (r *report) count(l workspace.Line) bool {
	if n := len(r.files); n == 0 || r.files[n-1].path != l.Path {
		if n == maxFound {
			r.stopped = "after " + itoa(maxFound) + " files"
			return false
		}
		r.files = append(r.files, fileCount{path: l.Path})
	}
	r.files[len(r.files)-1].lines++
	r.lines++
	return true
}

func (r *report) contentAnswer() chat.Result {
	meta := map[string]any{"source_anchors": anchors(r.files), "skipped": r.skipped()}
	if r.lines == 0 {
		return chat.Result{Output: r.nothing(), Metadata: meta}
	}
	fmt.Fprintf(&r.text, "\n%d match(es) in %d file(s)\n", r.lines, len(r.files))
	return chat.Result{Output: r.text.String() + r.notes(), Metadata: meta}
}

func (r *report) pagedAnswer() chat.Result {
	p, err := r.args.page(len(r.files), "files")
	if err != nil {
		return failed("grep", "", err)
	}
	meta := r.metadata()
	meta["sort"], meta["page"], meta["failed_reads"] = "path", p.metadata(), 0
	meta["source_anchors"] = anchors(r.files[p.from:p.to])
	if r.lines == 0 {
		return chat.Result{Output: r.nothing(), Metadata: meta}
	}
	for _, f := range r.files[p.from:p.to] {
		r.text.WriteString(workspace.Display(f.path))
		if r.args.Mode == "count" {
			fmt.Fprintf(&r.text, ": %d matching line(s)", f.lines)
		}
		r.text.WriteByte('\n')
	}
	fmt.Fprintf(&r.text, "\n%d of %d file(s) shown\n", p.to-p.from, len(r.files))
	return chat.Result{Output: r.text.String() + p.trailer() + r.notes(), Metadata: meta}
}

func (r *report) summaryAnswer() chat.Result {
	if r.lines == 0 {
		return chat.Result{Output: r.nothing(), Metadata: r.metadata()}
	}
	return chat.Result{Output: fmt.Sprintf("%d matching line(s) in %d file(s)\n", r.lines, len(r.files)) + r.notes(), Metadata: r.metadata()}
}

func (r *report) metadata() map[string]any {
	search := map[string]any{"matching_lines": r.lines, "matching_files": len(r.files), "truncated": r.stopped != ""}
	if r.args.Mode == "files_with_matches" {
		search["matching_lines"] = nil // one line of each file was looked for
	}
	return map[string]any{"output_mode": r.args.Mode, "search": search, "skipped": r.skipped()}
}

func (r *report) nothing() string {
	return fmt.Sprintf("No line matches %q (%d files searched)\n", r.args.Pattern, r.stats.Files) + r.notes()
}

func (r *report) skipped() map[string]any {
	return map[string]any{
		"ignored_dirs": r.stats.IgnoredDirs, "ignored_files": r.stats.IgnoredFiles,
		"binary": r.stats.Binary, "too_large": r.stats.TooLarge, "denied": r.stats.Denied, "unreadable": r.stats.Unreadable,
	}
}

// notes says what the answer does not show, and how to see it (case GREP-01).
func (r *report) notes() string {
	var b strings.Builder
	if r.stopped != "" {
		fmt.Fprintf(&b, "The search stopped %s: there may be more; narrow the pattern, the path or the glob\n", r.stopped)
	}
	var list []string
	for _, s := range []struct {
		n    int
		what string
	}{
		{r.stats.IgnoredDirs, "ignored folder(s)"}, {r.stats.IgnoredFiles, "ignored file(s)"}, {r.stats.Binary, "binary file(s)"},
		{r.stats.TooLarge, "file(s) too large"}, {r.stats.Denied, "file(s) that the rules hide"},
		{r.stats.Unreadable, "file(s) or folder(s) that cannot be read"},
	} {
		if s.n > 0 {
			list = append(list, itoa(s.n)+" "+s.what)
		}
	}
	if list != nil {
		b.WriteString("Skipped: " + strings.Join(list, ", ") + "\n")
	}
	if r.stats.IgnoredDirs+r.stats.IgnoredFiles > 0 {
		b.WriteString("To search the ignored ones too, set include_ignored\n")
	}
	return b.String()
}

func anchors(files []fileCount) []string {
	list := []string{}
	for _, f := range files[:min(len(files), maxAnchors)] {
		list = append(list, f.path)
	}
	return list
}
