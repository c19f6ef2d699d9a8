package local

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"syscall"
	"testing"

	"github.com/a3s-lab/liba3s/internal/search"
	"github.com/a3s-lab/liba3s/runtime/workspace"
)

// hostile makes a tree with all that a search must not follow or wait for.
func hostile(t *testing.T, w *Workspace) {
	t.Helper()
	at := func(p string) string { return filepath.Join(w.Root(), p) }
	out := t.TempDir()
	must(t, os.WriteFile(filepath.Join(out, "secret"), []byte("needle outside"), 0o644))
	must(t, os.MkdirAll(at("d/e"), 0o755))
	must(t, os.MkdirAll(at(".git/info"), 0o755))
	must(t, os.MkdirAll(at(".a3s"), 0o755))
	for p, data := range map[string]string{
		"a": "needle a\n", "d/b": "needle b\n", "d/e/c.log": "needle c\n", ".git/config": "needle git\n", ".a3s/x": "needle store\n", ".hidden": "needle hidden\n",
		".git/info/exclude": "*.log\n", tempPrefix + "x": "needle half written\n",
		"caf\xe9": "needle latin\n", "line\nbreak": "needle break\n",
	} {
		must(t, os.WriteFile(at(p), []byte(data), 0o644))
	}
	must(t, os.Symlink(out, at("outside")))
	must(t, os.Symlink(filepath.Join(out, "secret"), at("secret")))
	must(t, os.Symlink("a", at("again")))
	must(t, os.Symlink("..", at("d/loop")))
	must(t, syscall.Mkfifo(at("fifo"), 0o644))
	must(t, os.Symlink("/etc/passwd", at("d/.gitignore")))
}

var searched = []string{".hidden", "a", "caf\xe9", "d/b", "line\nbreak"}

func TestSearchHostile(t *testing.T) {
	w := open(t)
	hostile(t, w)
	var got []string
	stats, err := w.Grep(ctx, workspace.GrepQuery{Base: ".", Pattern: "needle"}, func(l workspace.Line) bool { got = append(got, l.Path); return true })
	must(t, err)
	if !slices.Equal(got, searched) || stats.IgnoredFiles != 1 {
		t.Errorf("found in %q, want %q; %+v", got, searched, stats)
	}
	got = nil
	for i, err := range w.Glob(ctx, workspace.GlobQuery{Base: ".", Pattern: "**"}) {
		must(t, err)
		got = append(got, i.Path)
	}
	if !slices.Equal(got, searched) {
		t.Errorf("files %q, want %q", got, searched)
	}
	_, err = w.Grep(ctx, workspace.GrepQuery{Base: "outside", Pattern: "needle"}, func(workspace.Line) bool { t.Error("a hit outside"); return true })
	kind(t, "grep outside", err, "denied")
	n := 0
	_, err = w.Grep(ctx, workspace.GrepQuery{Base: "d/loop/d", Pattern: "needle"}, func(l workspace.Line) bool { n++; return l.Path == "d/b" })
	if n != 1 || err != nil {
		t.Errorf("below a link inside: %d hits, %v", n, err)
	}
	_, err = w.Grep(ctx, workspace.GrepQuery{Base: "fifo", Pattern: "x"}, func(workspace.Line) bool { return true })
	kind(t, "grep in a pipe", err, "invalid")
}

// TestTrees compares the two ways of opening.
func TestTrees(t *testing.T) {
	w := open(t)
	hostile(t, w)
	for _, slow := range []bool{false, true} {
		tr, err := w.tree()
		must(t, err)
		defer tr.close()
		tr.slow = slow
		var got []string
		_, err = search.Grep(ctx, tr, search.GrepQuery{Base: ".", Pattern: "needle"}, func(l search.Line) bool { got = append(got, l.Path); return true })
		if !slices.Equal(got, searched) || err != nil {
			t.Errorf("slow %v: found in %q, %v; want %q", slow, got, err, searched)
		}
		i, err := tr.Stat("d/b")
		i.Modified = i.Modified.UTC()
		if err != nil || !i.File || i.Size != 9 || i.Modified.IsZero() {
			t.Errorf("slow %v: %+v, %v", slow, i, err)
		}
		for _, p := range []string{"outside/secret", "secret", "again", "d/loop/a", "fifo", "d", "no", "../x"} {
			var buf []byte
			if data, err := tr.ReadFile(p, &buf, 100, func([]byte) bool { return true }); err == nil {
				t.Errorf("slow %v: read %q: %q", slow, p, data)
			}
		}
		var buf []byte
		if _, err := tr.ReadFile("a", &buf, 3, nil); !errors.Is(err, search.ErrTooLarge) {
			t.Errorf("slow %v: %v", slow, err)
		}
		if _, err := tr.ReadDir("no"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("slow %v: %v", slow, err)
		}
		entries, err := tr.ReadDir("d")
		slices.SortFunc(entries, func(a, b search.Entry) int { return len(a.Name) - len(b.Name) })
		want := []search.Entry{{Name: "e", Dir: true}, {Name: "b", File: true}, {Name: "loop"}, {Name: ".gitignore"}}
		slices.SortFunc(want, func(a, b search.Entry) int { return len(a.Name) - len(b.Name) })
		byName := func(l []search.Entry) map[string]search.Entry {
			m := map[string]search.Entry{}
			for _, e := range l {
				m[e.Name] = e
			}
			return m
		}
		if err != nil || !reflect.DeepEqual(byName(entries), byName(want)) {
			t.Errorf("slow %v: entries %+v, %v", slow, entries, err)
		}
	}
}

// TestReadFileGrows covers files whose size is no help.
func TestReadFileGrows(t *testing.T) {
	w, err := Open(ctx, Config{Root: "/proc/self"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if data, _, err := w.Read(ctx, "status", 1<<20); len(data) == 0 || err != nil {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	hits := 0
	if _, err := w.Grep(ctx, workspace.GrepQuery{Base: "status", Pattern: "SigIgn"}, func(workspace.Line) bool { hits++; return true }); hits != 1 || err != nil {
		t.Errorf("%d hits, %v", hits, err)
	}
}
