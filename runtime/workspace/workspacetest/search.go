package workspacetest

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/workspace"
)

func searcher(t *testing.T, w workspace.Workspace) workspace.Searcher {
	t.Helper()
	s, ok := w.(workspace.Searcher)
	if !ok {
		t.Fatal("this workspace could search when the suite began")
	}
	return s
}

func globbed(t *testing.T, s workspace.Searcher, q workspace.GlobQuery) []string {
	t.Helper()
	out := []string{}
	for i, err := range s.Glob(ctx, q) {
		if err != nil {
			t.Fatalf("glob %+v: %v", q, err)
		}
		out = append(out, i.Path)
	}
	return out
}

// grepped gives "path:number:text" for matches and "path-number-text" for context.
func grepped(t *testing.T, s workspace.Searcher, q workspace.GrepQuery) ([]string, workspace.GrepStats) {
	t.Helper()
	out := []string{}
	if q.Base == "" {
		q.Base = "."
	}
	stats, err := s.Grep(ctx, q, func(l workspace.Line) bool {
		sep := ":"
		if l.Context {
			sep = "-"
		}
		out = append(out, fmt.Sprintf("%s%s%d%s%s", l.Path, sep, l.Number, sep, l.Text))
		return true
	})
	if err != nil {
		t.Fatalf("grep %+v: %v", q, err)
	}
	return out, stats
}

func same(t *testing.T, what string, got, wanted any) {
	t.Helper()
	if !reflect.DeepEqual(got, wanted) {
		t.Errorf("%s:\n got %q\nwant %q", what, got, wanted)
	}
}

func tree(t *testing.T, w workspace.Workspace) {
	t.Helper()
	for p, data := range map[string]string{
		"main.go":             "package main\n",
		"a-b.go":              "package ab\n",
		"a/x.go":              "package a\n\nfunc X() {} // TODO: one\n",
		"a/y.md":              "# todo list\n",
		"a/deep/er/z.go":      "package er // FIXME\n",
		"a/.hidden/h.go":      "package hidden // TODO\n",
		"b/ignored.log":       "TODO in a log\n",
		"b/kept.log":          "TODO kept\n",
		"b/.gitignore":        "*.log\n!kept.log\n",
		".gitignore":          "node_modules/\n/a/y.md\n",
		"node_modules/m/i.js": "TODO\n",
		"b/node_modules/i.js": "TODO\n",
		"größe.txt":           "größer TODO\n",
	} {
		put(t, w, p, data)
	}
}

func glob(t *testing.T, w workspace.Workspace) {
	s := searcher(t, w)
	tree(t, w)
	for _, c := range []struct {
		name string
		q    workspace.GlobQuery
		want []string
	}{
		{"one level", workspace.GlobQuery{Pattern: "*.go"}, []string{"a-b.go", "main.go"}},
		{"all levels", workspace.GlobQuery{Pattern: "**/*.go"}, []string{"a-b.go", "a/.hidden/h.go", "a/deep/er/z.go", "a/x.go", "main.go"}},
		{"a folder", workspace.GlobQuery{Pattern: "a/*.{go,md}"}, []string{"a/x.go"}},
		{"a fixed path", workspace.GlobQuery{Pattern: "a/deep/er/z.go"}, []string{"a/deep/er/z.go"}},
		{"dot slash", workspace.GlobQuery{Pattern: "./a/*.go"}, []string{"a/x.go"}},
		{"below a base", workspace.GlobQuery{Base: "a", Pattern: "**/*.go"}, []string{"a/.hidden/h.go", "a/deep/er/z.go", "a/x.go"}},
		{"base has no star", workspace.GlobQuery{Base: "a", Pattern: "*.go"}, []string{"a/x.go"}},
		{"ignored", workspace.GlobQuery{Pattern: "**/*.{log,js,md}"}, []string{"b/kept.log"}},
		{"ignored, wanted", workspace.GlobQuery{Pattern: "**/*.{log,js,md}", Ignored: true}, []string{"a/y.md", "b/ignored.log", "b/kept.log", "b/node_modules/i.js", "node_modules/m/i.js"}},
		{"a base that is ignored", workspace.GlobQuery{Base: "node_modules", Pattern: "**"}, []string{"node_modules/m/i.js"}},
		{"letters beyond ASCII", workspace.GlobQuery{Pattern: "gr??e.*"}, []string{"größe.txt"}},
		{"nothing", workspace.GlobQuery{Pattern: "*.rs"}, []string{}},
		{"PATH-04 filtered", workspace.GlobQuery{Pattern: "*.go", Allow: func(p string) bool { return p != "main.go" }}, []string{"a-b.go"}},
	} {
		if c.q.Base == "" {
			c.q.Base = "."
		}
		same(t, c.name, globbed(t, s, c.q), c.want)
	}
	for i, err := range s.Glob(ctx, workspace.GlobQuery{Base: ".", Pattern: "main.go"}) {
		if err != nil || i.Type != workspace.File || i.Size != 13 || i.Modified.IsZero() {
			t.Errorf("info %+v, %v", i, err)
		}
	}
	for range s.Glob(ctx, workspace.GlobQuery{Base: ".", Pattern: "**"}) {
		break
	}
}

func grep(t *testing.T, w workspace.Workspace) {
	s := searcher(t, w)
	tree(t, w)
	for _, c := range []struct {
		name string
		q    workspace.GrepQuery
		want []string
	}{
		{"a literal", workspace.GrepQuery{Pattern: "TODO"}, []string{"a/.hidden/h.go:1:package hidden // TODO", "a/x.go:3:func X() {} // TODO: one", "b/kept.log:1:TODO kept", "größe.txt:1:größer TODO"}},
		{"alternatives", workspace.GrepQuery{Pattern: "FIXME|list"}, []string{"a/deep/er/z.go:1:package er // FIXME"}},
		{"any case", workspace.GrepQuery{Pattern: "todo l", IgnoreCase: true, Ignored: true}, []string{"a/y.md:1:# todo list"}},
		{"case in the pattern", workspace.GrepQuery{Pattern: "(?i)FIXMe"}, []string{"a/deep/er/z.go:1:package er // FIXME"}},
		{"anchors", workspace.GrepQuery{Pattern: "^package a$"}, []string{"a/x.go:1:package a"}},
		{"an empty line", workspace.GrepQuery{Pattern: "^$"}, []string{"a/x.go:2:"}},
		{"by name", workspace.GrepQuery{Pattern: "package", Glob: "a*.go"}, []string{"a-b.go:1:package ab"}},
		{"by path", workspace.GrepQuery{Pattern: "package", Glob: "a/**/er/*"}, []string{"a/deep/er/z.go:1:package er // FIXME"}},
		{"by path below a base", workspace.GrepQuery{Base: "a", Pattern: "package", Glob: "deep/**"}, []string{"a/deep/er/z.go:1:package er // FIXME"}},
		{"one file", workspace.GrepQuery{Base: "b/ignored.log", Pattern: "log"}, []string{"b/ignored.log:1:TODO in a log"}},
		{"letters beyond ASCII", workspace.GrepQuery{Pattern: "GRÖßER", IgnoreCase: true}, []string{"größe.txt:1:größer TODO"}},
		{"nothing", workspace.GrepQuery{Pattern: "no such text"}, []string{}},
		{"no line holds a line end", workspace.GrepQuery{Pattern: `a\nb|main\s\s*package`}, []string{}},
	} {
		got, _ := grepped(t, s, c.q)
		same(t, c.name, got, c.want)
	}
}

func grepContext(t *testing.T, w workspace.Workspace) {
	s := searcher(t, w)
	put(t, w, "f", "1\n2 x\n3\n4\n5 x\n6 x\n7\n8\n9\n")
	for n, wanted := range map[int][]string{
		0: {"f:2:2 x", "f:5:5 x", "f:6:6 x"},
		1: {"f-1-1", "f:2:2 x", "f-3-3", "f-4-4", "f:5:5 x", "f:6:6 x", "f-7-7"},
		9: {"f-1-1", "f:2:2 x", "f-3-3", "f-4-4", "f:5:5 x", "f:6:6 x", "f-7-7", "f-8-8", "f-9-9"},
	} {
		got, _ := grepped(t, s, workspace.GrepQuery{Pattern: "x", Context: n})
		same(t, fmt.Sprintf("context %d", n), got, wanted)
	}
	got, _ := grepped(t, s, workspace.GrepQuery{Pattern: "x", FilesOnly: true})
	same(t, "files only", got, []string{"f:2:2 x"})
}

func grepLines(t *testing.T, w workspace.Workspace) {
	s := searcher(t, w)
	put(t, w, "crlf", "one\r\ntwo\r\n")
	put(t, w, "latin", "caf\xe9 two\n")
	put(t, w, "last", "no end two")
	put(t, w, "long", strings.Repeat("ä", 3000)+" two\n")
	got, _ := grepped(t, s, workspace.GrepQuery{Pattern: "two$"})
	same(t, "lines", got, []string{"crlf:2:two", "last:1:no end two", "latin:1:caf\ufffd two", "long:1:" + strings.Repeat("ä", 1000)})
	for _, l := range got {
		if !utf8.ValidString(l) {
			t.Errorf("%q is not valid UTF-8", l)
		}
	}
	put(t, w, "odd", "x"+strings.Repeat("ä", 3000)+" two\n")
	got, _ = grepped(t, s, workspace.GrepQuery{Base: "odd", Pattern: "two"})
	same(t, "cut between letters", got, []string{"odd:1:x" + strings.Repeat("ä", 999)})
}

func grepSkipped(t *testing.T, w workspace.Workspace) {
	s := searcher(t, w)
	tree(t, w)
	put(t, w, "bin", "TODO\x00TODO")
	got, stats := grepped(t, s, workspace.GrepQuery{Pattern: "in a log"})
	same(t, "hits", got, []string{})
	if stats.IgnoredDirs != 2 || stats.IgnoredFiles != 2 || stats.Binary != 1 || stats.Files == 0 || stats.Bytes == 0 {
		t.Errorf("stats %+v, want 2 ignored directories, 2 ignored files, 1 binary", stats)
	}
	got, stats = grepped(t, s, workspace.GrepQuery{Pattern: "in a log", Ignored: true})
	same(t, "hits with ignored files", got, []string{"b/ignored.log:1:TODO in a log"})
	if stats.IgnoredDirs != 0 || stats.IgnoredFiles != 0 {
		t.Errorf("stats %+v, want nothing ignored", stats)
	}
}

func grepAllowed(t *testing.T, w workspace.Workspace) {
	s := searcher(t, w)
	put(t, w, "app/index.php", "password field\n")
	put(t, w, "app/secret.php", "password = hunter2\n")
	allow := func(p string) bool { return !strings.HasSuffix(p, "secret.php") }
	for _, pattern := range []string{"password", "hunter2", "."} {
		got, stats := grepped(t, s, workspace.GrepQuery{Pattern: pattern, Allow: allow})
		for _, l := range got {
			if strings.Contains(l, "secret") {
				t.Errorf("grep %q shows %q", pattern, l)
			}
		}
		// The count must not tell whether the hidden file holds the pattern.
		if stats.Denied != 1 {
			t.Errorf("grep %q: %d files hidden, want 1", pattern, stats.Denied)
		}
	}
}

func grepEnds(t *testing.T, w workspace.Workspace) {
	s := searcher(t, w)
	for i := range 200 {
		put(t, w, fmt.Sprintf("d%d/f%03d", i%7, i), strings.Repeat("line x\n", 50))
	}
	n := 0
	if _, err := s.Grep(ctx, workspace.GrepQuery{Base: ".", Pattern: "x"}, func(workspace.Line) bool { n++; return n < 60 }); err != nil || n != 60 {
		t.Errorf("stopped after %d hits, %v; want 60", n, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	n = 0
	_, err := s.Grep(ctx, workspace.GrepQuery{Base: ".", Pattern: "x"}, func(workspace.Line) bool {
		if n++; n == 60 {
			cancel()
		}
		return true
	})
	want(t, "grep, cancelled on its way", err, fault.Cancelled)
	if n >= 200*50 {
		t.Errorf("all %d hits were told after the cancel", n)
	}
	for _, err := range s.Glob(ctx, workspace.GlobQuery{Base: ".", Pattern: "**"}) {
		want(t, "glob, cancelled", err, fault.Cancelled)
	}
}

func badPatterns(t *testing.T, w workspace.Workspace) {
	s := searcher(t, w)
	put(t, w, "f", "x")
	for _, p := range []string{"(", "a{2,1}", `(?=x)`, strings.Repeat("(", 2000), strings.Repeat("a", 100_000)} {
		_, err := s.Grep(ctx, workspace.GrepQuery{Base: ".", Pattern: p}, func(workspace.Line) bool { return true })
		want(t, fmt.Sprintf("grep %.20q", p), err, fault.Invalid)
	}
	grepErr := func(q workspace.GrepQuery) error {
		_, err := s.Grep(ctx, q, func(workspace.Line) bool { return true })
		return err
	}
	want(t, "grep with a bad glob", grepErr(workspace.GrepQuery{Base: ".", Pattern: "x", Glob: "[a"}), fault.Invalid)
	want(t, "grep with an escaping glob", grepErr(workspace.GrepQuery{Base: ".", Pattern: "x", Glob: "../*"}), fault.Invalid)
	want(t, "grep where nothing is", grepErr(workspace.GrepQuery{Base: "no", Pattern: "x"}), fault.NotFound)
	want(t, "grep outside", grepErr(workspace.GrepQuery{Base: "../x", Pattern: "x"}), fault.Denied)
	want(t, "grep in .git", grepErr(workspace.GrepQuery{Base: "a/.git", Pattern: "x"}), fault.Denied)
	for p, kind := range map[string]fault.Kind{"[a": fault.Invalid, "{a": fault.Invalid, "../*": fault.Invalid, "a/../../*": fault.Invalid, "/etc/*": fault.Invalid, "": fault.Invalid} {
		n := 0
		for _, err := range s.Glob(ctx, workspace.GlobQuery{Base: ".", Pattern: p}) {
			n++
			want(t, fmt.Sprintf("glob %q", p), err, kind)
		}
		if n != 1 {
			t.Errorf("glob %q yielded %d times, want one error", p, n)
		}
	}
	for base, kind := range map[string]fault.Kind{"no": fault.NotFound, "f": fault.Invalid, "..": fault.Denied, ".git": fault.Denied} {
		for _, err := range s.Glob(ctx, workspace.GlobQuery{Base: base, Pattern: "*"}) {
			want(t, "glob in "+base, err, kind)
		}
	}
}
