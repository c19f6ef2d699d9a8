package builtin

import (
	"fmt"
	"strings"
	"testing"

	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/workspace"
)

var hits = []workspace.Line{
	{Path: "a.go", Number: 1, Text: "before", Context: true},
	{Path: "a.go", Number: 2, Text: "hit one"},
	{Path: "a.go", Number: 3, Text: "between", Context: true},
	{Path: "a.go", Number: 7, Text: "hit two"},
	{Path: "secret.txt", Number: 1, Text: "hit password"},
	{Path: "z/odd\x1b", Number: 8, Text: "hit three"},
}

func nothingSkipped(s workspace.GrepStats) map[string]any {
	return map[string]any{"ignored_dirs": s.IgnoredDirs, "ignored_files": s.IgnoredFiles, "binary": s.Binary, "too_large": s.TooLarge, "denied": s.Denied, "unreadable": s.Unreadable}
}

func TestGrep(t *testing.T) {
	matches := []workspace.Line{hits[1], hits[3], hits[4], hits[5]}
	stats := workspace.GrepStats{Files: 9, Binary: 1, TooLarge: 2, IgnoredDirs: 3, IgnoredFiles: 4, Denied: 5, Unreadable: 6}
	skipped := "Skipped: 3 ignored folder(s), 4 ignored file(s), 1 binary file(s), 2 file(s) too large, 5 file(s) that the rules hide, 6 file(s) or folder(s) that cannot be read\nTo search the ignored ones too, set include_ignored\n"
	anchors := []string{"a.go", "z/odd\x1b"}
	page := func(offset, limit, returned int, next any) map[string]any {
		return map[string]any{"offset": offset, "requested_limit": limit, "applied_limit": limit, "returned_items": returned, "total_items": 2,
			"next_cursor": next, "truncated": next != nil, "limit_clamped": false}
	}
	for _, c := range []struct {
		name, args string
		lines      []workspace.Line
		stats      workspace.GrepStats
		query      workspace.GrepQuery
		want       string
		meta       map[string]any
	}{
		{"PATH-04 content", `{"pattern":"hit"}`, matches, workspace.GrepStats{}, workspace.GrepQuery{Base: ".", Pattern: "hit"},
			">a.go:2: hit one\n>a.go:7: hit two\n>z/odd\\x1b:8: hit three\n\n3 match(es) in 2 file(s)\n",
			map[string]any{"source_anchors": anchors}},
		{"context", `{"pattern":"hit","context":1,"path":"x","glob":"*.go","-i":true,"include_ignored":true}`, hits, workspace.GrepStats{},
			workspace.GrepQuery{Base: "x", Pattern: "hit", Glob: "*.go", IgnoreCase: true, Context: 1, Ignored: true},
			" a.go:1: before\n>a.go:2: hit one\n a.go:3: between\n--\n>a.go:7: hit two\n--\n>z/odd\\x1b:8: hit three\n\n3 match(es) in 2 file(s)\n",
			map[string]any{"source_anchors": anchors}},
		{"GREP-01 nothing", `{"pattern":"a\"b"}`, nil, stats, workspace.GrepQuery{Base: ".", Pattern: `a"b`},
			"No line matches \"a\\\"b\" (9 files searched)\n" + skipped, map[string]any{"source_anchors": []string{}}},
		{"GREP-01 something", `{"pattern":"hit"}`, matches[:1], stats, workspace.GrepQuery{Base: ".", Pattern: "hit"},
			">a.go:2: hit one\n\n1 match(es) in 1 file(s)\n" + skipped, map[string]any{"source_anchors": anchors[:1]}},
		{"files", `{"pattern":"hit","output_mode":"files_with_matches","limit":1}`, []workspace.Line{matches[0], matches[3]}, workspace.GrepStats{},
			workspace.GrepQuery{Base: ".", Pattern: "hit", FilesOnly: true},
			"a.go\n\n1 of 2 file(s) shown\nMore files available; continue with cursor=1\n",
			map[string]any{"output_mode": "files_with_matches", "search": map[string]any{"matching_lines": nil, "matching_files": 2, "truncated": false},
				"sort": "path", "source_anchors": anchors[:1], "page": page(0, 1, 1, "1"), "failed_reads": 0}},
		{"count", `{"pattern":"hit","output_mode":"count"}`, matches, workspace.GrepStats{}, workspace.GrepQuery{Base: ".", Pattern: "hit"},
			"a.go: 2 matching line(s)\nz/odd\\x1b: 1 matching line(s)\n\n2 of 2 file(s) shown\n",
			map[string]any{"output_mode": "count", "search": map[string]any{"matching_lines": 3, "matching_files": 2, "truncated": false},
				"sort": "path", "source_anchors": anchors, "page": page(0, 200, 2, nil), "failed_reads": 0}},
		{"count, second page", `{"pattern":"hit","output_mode":"count","limit":1,"cursor":"1"}`, matches, workspace.GrepStats{}, workspace.GrepQuery{Base: ".", Pattern: "hit"},
			"z/odd\\x1b: 1 matching line(s)\n\n1 of 2 file(s) shown\n",
			map[string]any{"output_mode": "count", "search": map[string]any{"matching_lines": 3, "matching_files": 2, "truncated": false},
				"sort": "path", "source_anchors": anchors[1:], "page": page(1, 1, 1, nil), "failed_reads": 0}},
		{"summary", `{"pattern":"hit","output_mode":"summary","context":3}`, matches, workspace.GrepStats{}, workspace.GrepQuery{Base: ".", Pattern: "hit"},
			"3 matching line(s) in 2 file(s)\n",
			map[string]any{"output_mode": "summary", "search": map[string]any{"matching_lines": 3, "matching_files": 2, "truncated": false}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ws := &searching{files: newFiles(nil), lines: c.lines, stats: c.stats}
			e, _ := env(ws)
			c.meta["skipped"] = nothingSkipped(c.stats)
			equal(t, run(t, newGrep(), e, c.args), chat.Result{Output: c.want, Metadata: c.meta})
			ws.grep.Allow = nil
			if fmt.Sprint(ws.grep) != fmt.Sprint(c.query) {
				t.Errorf("asked %+v, want %+v", ws.grep, c.query)
			}
		})
	}
	for _, c := range []struct{ name, args, kind, part string }{
		{"bad pattern", `{"pattern":"a(b"}`, chat.InvalidArgument, `"a(b"`},
		{"look-around", `{"pattern":"(?=x)"}`, chat.InvalidArgument, "RE2"},
		{"bad mode", `{"pattern":"x","output_mode":"all"}`, chat.InvalidArgument, "/output_mode"},
		{"limit with content", `{"pattern":"x","limit":5}`, chat.InvalidArgument, "belong to files_with_matches"},
		{"bad cursor", `{"pattern":"x","output_mode":"count","cursor":"7"}`, chat.InvalidArgument, "cursor"},
		{"outside", `{"pattern":"x","path":"/etc"}`, chat.InvalidArgument, "outside"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, _ := env(&searching{files: newFiles(nil), lines: matches})
			refused(t, run(t, newGrep(), e, c.args), c.kind, c.part)
		})
	}
	e, _ := env(&searching{files: newFiles(nil), err: fault.New(fault.NotFound, "x", "no folder \"q\"")})
	refused(t, run(t, newGrep(), e, `{"pattern":"x","path":"q"}`), chat.NotFound, "no folder")
	e, _ = env(newFiles(nil))
	refused(t, run(t, newGrep(), e, `{"pattern":"x"}`), chat.Unsupported, "cannot be searched")
}

func TestGREP02(t *testing.T) {
	var many []workspace.Line
	for i := range 3000 {
		many = append(many, workspace.Line{Path: fmt.Sprintf("f%04d", i/5), Number: i%5 + 1, Text: strings.Repeat("é", 100)})
	}
	e, _ := env(&searching{files: newFiles(nil), lines: many})
	got := run(t, newGrep(), e, `{"pattern":"x"}`)
	if len(got.Output) > maxSearched || !strings.Contains(got.Output, "The search stopped because the answer is full") || got.ExitCode != 0 {
		t.Errorf("%d bytes: ...%s", len(got.Output), got.Output[len(got.Output)-200:])
	}
	if n := len(got.Metadata["source_anchors"].([]string)); n != maxAnchors {
		t.Errorf("%d anchors", n)
	}

	e, _ = env(&searching{files: newFiles(nil), lines: hits[:2], block: true})
	e.Timeout = short
	got = run(t, newGrep(), e, `{"pattern":"x"}`)
	if got.ExitCode != 0 || !strings.HasSuffix(got.Output, "1 match(es) in 1 file(s)\nThe search stopped after 20ms: there may be more; narrow the pattern, the path or the glob\n") {
		t.Errorf("%q", got.Output)
	}
	e, _ = env(&searching{files: newFiles(nil), block: true})
	e.Timeout = short
	got = run(t, newGrep(), e, `{"pattern":"x"}`)
	refused(t, got, chat.TimedOut, "nothing found in 20ms")
	if want := (chat.ErrorKind{Type: chat.TimedOut, Op: "grep", DurationMS: 20}); *got.Error != want {
		t.Errorf("%+v", got.Error)
	}
	got = run(t, newGlob(), e, `{"pattern":"x"}`)
	refused(t, got, chat.TimedOut, "nothing found in 20ms")
	e, _ = env(&searching{files: newFiles(nil), found: []string{"a"}, block: true})
	e.Timeout = short
	if got = run(t, newGlob(), e, `{"pattern":"x"}`); !strings.Contains(got.Output, "a\n\n1 of 1 file(s) shown\nThe search stopped after 20ms") {
		t.Errorf("%q", got.Output)
	}
}

func TestGlob(t *testing.T) {
	page := func(offset, limit, returned, total int, next any) map[string]any {
		return map[string]any{"offset": offset, "requested_limit": limit, "applied_limit": limit, "returned_items": returned, "total_items": total,
			"next_cursor": next, "truncated": next != nil, "limit_clamped": false}
	}
	for _, c := range []struct {
		name, args string
		found      []string
		query      workspace.GlobQuery
		want       string
		meta       map[string]any
	}{
		{"found", `{"pattern":"**/*.go"}`, []string{"b.go", "a/b\n.go"}, workspace.GlobQuery{Base: ".", Pattern: "**/*.go"},
			"b.go\na/b\\n.go\n\n2 of 2 file(s) shown\n", map[string]any{"page": page(0, 200, 2, 2, nil), "sort": "backend"}},
		{"sorted page", `{"pattern":"*","path":"x","sort":"path","limit":1,"include_ignored":true}`, []string{"b", "a"}, workspace.GlobQuery{Base: "x", Pattern: "*", Ignored: true},
			"a\n\n1 of 2 file(s) shown\nMore files available; continue with cursor=1\n", map[string]any{"page": page(0, 1, 1, 2, "1"), "sort": "path"}},
		{"PATH-04", `{"pattern":"*"}`, []string{"a", "secret.txt"}, workspace.GlobQuery{Base: ".", Pattern: "*"},
			"a\n\n1 of 1 file(s) shown\n1 file(s) are hidden by the rules\n", map[string]any{"page": page(0, 200, 1, 1, nil), "sort": "backend"}},
		{"GREP-01 none", `{"pattern":"*.rs"}`, nil, workspace.GlobQuery{Base: ".", Pattern: "*.rs"},
			"No file matches \"*.rs\"\nFiles that .gitignore names were left out; to find them too, set include_ignored\n", map[string]any{"page": page(0, 200, 0, 0, nil), "sort": "backend"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ws := &searching{files: newFiles(nil), found: c.found}
			e, _ := env(ws)
			equal(t, run(t, newGlob(), e, c.args), chat.Result{Output: c.want, Metadata: c.meta})
			ws.glob.Allow = nil
			if fmt.Sprint(ws.glob) != fmt.Sprint(c.query) {
				t.Errorf("asked %+v, want %+v", ws.glob, c.query)
			}
		})
	}
	e, _ := env(&searching{files: newFiles(nil), err: fault.New(fault.Invalid, "x", "bad pattern")})
	refused(t, run(t, newGlob(), e, `{"pattern":"[a"}`), chat.InvalidArgument, "bad pattern")
	refused(t, run(t, newGlob(), e, `{"pattern":"a","path":"../x"}`), chat.InvalidArgument, "outside")
}
