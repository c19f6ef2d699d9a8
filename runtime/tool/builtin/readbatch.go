package builtin

import (
	"context"
	"encoding/json"
	"fmt"
	"sort"
	"strings"

	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/tool"
	"github.com/a3s-lab/liba3s/runtime/workspace"
)

// batch is an answer to files that grows until its budget is used up.
type batch struct {
	max       int
	files     []readFile
	shown     []string // whole segments
	completed int      // files shown whole
	failed    int
	lines     int
	paths     []string
	firstErr  error
}

// rest is an entry of the continuation.
type rest struct {
	Path   string `json:"path"`
	Offset int    `json:"offset,omitempty"`
	Limit  int    `json:"limit,omitempty"`
}

func readBatch(ctx context.Context, env tool.Env, a readArgs) chat.Result {
	seen := map[string]bool{}
	for _, f := range a.Files {
		key, err := clean(env, f.Path)
		if err != nil {
			continue // it becomes a segment of its own
		}
		if seen[key] {
			return failed("read", key, invalid("%q is named twice in files", workspace.Display(key)))
		}
		seen[key] = true
	}
	b := batch{max: a.MaxBytes.or(65536), files: a.Files, paths: []string{}}
	next := len(a.Files)
	var continuation []rest
	for i, f := range a.Files {
		left, fits := b.add(ctx, env, f, i)
		if err := ctx.Err(); err != nil {
			return failed("read", "", err)
		}
		if fits {
			continue
		}
		next = i
		if left.Path != "" {
			continuation = append(continuation, left)
			next = i + 1
		}
		break
	}
	continuation = append(continuation, b.after(next)...)
	if len(b.shown) == 0 {
		return failed("read", "", invalid("max_output_bytes=%d is too small for one line and the continuation", b.max))
	}
	return b.result(continuation)
}

// add appends the segment of one file. If not all of it fits, it appends the largest
// part that does, if any, and gives what is left of the file.
func (b *batch) add(ctx context.Context, env tool.Env, f readFile, i int) (left rest, fits bool) {
	p, err := readPage(ctx, env, f.Path, f.Offset.or(0), min(max(f.Limit.or(maxLines), 1), maxLines), b.max)
	head := "=== " + workspace.Display(p.path) + " ===\n"
	if err != nil {
		segment := head + "error: " + fault.From("read", err).Message + "\n"
		if !b.fit(segment, b.after(i+1)) {
			return rest{}, false
		}
		b.shown = append(b.shown, segment)
		b.failed++
		if b.firstErr == nil {
			b.firstErr = err
		}
		return rest{}, true
	}
	whole := head + strings.Join(p.lines, "") + p.trailer()
	if !p.short && b.fit(whole, b.after(i+1)) {
		b.shown = append(b.shown, whole)
		b.completed++
		b.take(p, len(p.lines))
		return rest{}, true
	}
	part := func(n int) (string, rest) {
		r := rest{Path: f.Path, Offset: p.offset + n}
		if f.Limit != nil {
			r.Limit = f.Limit.or(0) - n
		}
		return head + strings.Join(p.lines[:n], ""), r
	}
	// The last line alone would leave nothing to continue with, hence len-1 at most,
	// unless the page was cut short by the budget itself.
	most := len(p.lines) - 1
	n := sort.Search(most, func(n int) bool {
		segment, r := part(n + 1)
		return !b.fit(segment, append([]rest{r}, b.after(i+1)...))
	})
	if n == 0 {
		return rest{}, false
	}
	segment, r := part(n)
	b.shown = append(b.shown, segment)
	b.take(p, n)
	return r, false
}

func (b *batch) take(p page, lines int) {
	b.lines += lines
	b.paths = append(b.paths, p.path)
}

// after is the continuation of all files from i on.
func (b *batch) after(i int) []rest {
	var list []rest
	for _, f := range b.files[min(i, len(b.files)):] {
		list = append(list, rest{f.Path, f.Offset.or(0), f.Limit.or(0)})
	}
	return list
}

// fit says whether the answer with one more segment stays within the budget.
func (b *batch) fit(segment string, continuation []rest) bool {
	const digit = 1 // the count in the footer may grow by one when the segment is taken
	size := len(segment) + len(b.footer(continuation)) + digit
	for _, s := range b.shown {
		size += len(s) + len("\n")
	}
	return size+len("\n") <= b.max
}

func (b *batch) footer(continuation []rest) string {
	if len(continuation) == 0 {
		return fmt.Sprintf("(Complete: all %d files shown)", len(b.files))
	}
	list, err := json.Marshal(continuation)
	if err != nil {
		panic(err) // strings and numbers always have a JSON form
	}
	return fmt.Sprintf("(Partial: %d of %d files shown in full. Continue with files=%s)", b.completed, len(b.files), list)
}

func (b *batch) result(continuation []rest) chat.Result {
	out := strings.Join(b.shown, "\n") + "\n" + b.footer(continuation)
	status := "complete"
	switch {
	case b.failed > 0:
		status = "partial_failure"
	case len(continuation) > 0:
		status = "partial"
	}
	if continuation == nil {
		continuation = []rest{}
	}
	meta := map[string]any{"source_anchors": b.paths, "batch": map[string]any{
		"status": status, "requested_files": len(b.files), "successful_files": len(b.paths), "failed_files": b.failed,
		"completed_files": b.completed, "returned_lines": b.lines, "max_output_bytes": b.max, "output_bytes": len(out),
		"truncated": len(continuation) > 0, "continuation": continuation,
	}}
	if len(b.paths) > 0 || len(continuation) > 0 {
		return chat.Result{Output: out, Metadata: meta}
	}
	r := chat.Fail(chat.ErrorKind{Type: chat.PartialFailure, Failed: b.failed, Total: len(b.files)}, out)
	if len(b.files) == 1 {
		r = failed("read", b.files[0].Path, b.firstErr)
		r.Output = out
	}
	r.Metadata = meta
	return r
}
