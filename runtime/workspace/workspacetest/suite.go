// Package workspacetest is the suite that every back-end of package workspace passes:
// files here, search in search.go. A back-end's test opens an empty workspace and calls
// Run. Floor: the port's.
package workspacetest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/workspace"
)

// Run runs the whole suite. open gives an empty workspace that is the test's own and
// ends with it.
func Run(t *testing.T, open func(t *testing.T) workspace.Workspace) {
	for _, c := range []struct {
		name string
		test func(*testing.T, workspace.Workspace)
	}{
		{"write and read", writeRead},
		{"stat", stat},
		{"open", openFile},
		{"list", list},
		{"remove", remove},
		{"conditions", conditions},
		{"WS-01 one normal form", normalForm},
		{"outside", outside},
		{"S24 protected", protected},
		{"hostile names", hostileNames},
		{"limits", limits},
		{"BIG binary", binary},
		{"not a file", notAFile},
		{"cancelled", cancelled},
		{"concurrent writers", concurrent},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
	}
	if _, ok := open(t).(workspace.Searcher); ok {
		runSearch(t, open)
	}
}

// runSearch runs what holds for a workspace that can search.
func runSearch(t *testing.T, open func(t *testing.T) workspace.Workspace) {
	for _, c := range []struct {
		name string
		test func(*testing.T, workspace.Workspace)
	}{
		{"glob", glob},
		{"grep", grep},
		{"grep context", grepContext},
		{"grep lines", grepLines},
		{"GREP-01 skipped", grepSkipped},
		{"PATH-04 allowed", grepAllowed},
		{"grep ends", grepEnds},
		{"bad patterns", badPatterns},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
	}
}

var ctx = context.Background()

func put(t *testing.T, w workspace.Workspace, path, data string) workspace.Info {
	t.Helper()
	i, err := w.Write(ctx, path, []byte(data), workspace.Condition{})
	if err != nil {
		t.Fatalf("write %q: %v", path, err)
	}
	return i
}

func get(t *testing.T, w workspace.Workspace, path string) (string, workspace.Info) {
	t.Helper()
	data, i, err := w.Read(ctx, path, 1<<20)
	if err != nil {
		t.Fatalf("read %q: %v", path, err)
	}
	return string(data), i
}

// want checks the kind of an error.
func want(t *testing.T, what string, err error, kind fault.Kind) {
	t.Helper()
	if fault.KindOf(err) != kind {
		t.Errorf("%s: got %v (%s), want kind %s", what, err, fault.KindOf(err), kind)
	}
}

func writeRead(t *testing.T, w workspace.Workspace) {
	a := put(t, w, "a/b/c.txt", "one")
	if a.Path != "a/b/c.txt" || a.Type != workspace.File || a.Size != 3 || a.Version == "" || a.Modified.IsZero() {
		t.Errorf("info of write: %+v", a)
	}
	data, r := get(t, w, "a/b/c.txt")
	if data != "one" || r.Version != a.Version || r.Size != 3 || !r.Modified.Equal(a.Modified) {
		t.Errorf("read %q, %+v after %+v", data, r, a)
	}
	b := put(t, w, "a/b/c.txt", "two")
	if data, _ := get(t, w, "a/b/c.txt"); data != "two" || b.Version == a.Version {
		t.Errorf("read %q, versions %q and %q", data, a.Version, b.Version)
	}
	put(t, w, "empty", "")
	if data, i := get(t, w, "empty"); data != "" || i.Size != 0 {
		t.Errorf("empty: %q, %+v", data, i)
	}
	_, _, err := w.Read(ctx, "no/such", 10)
	want(t, "read what is not there", err, fault.NotFound)
}

func stat(t *testing.T, w workspace.Workspace) {
	put(t, w, "d/f", "12345")
	for path, wanted := range map[string]workspace.Info{
		".":   {Path: ".", Type: workspace.Dir},
		"d":   {Path: "d", Type: workspace.Dir},
		"d/f": {Path: "d/f", Type: workspace.File, Size: 5},
	} {
		i, err := w.Stat(ctx, path)
		if err != nil {
			t.Errorf("stat %q: %v", path, err)
		}
		if i.Type == workspace.Dir {
			i.Size = 0
		}
		i.Modified = wanted.Modified
		if i != wanted {
			t.Errorf("stat %q: %+v, want %+v", path, i, wanted)
		}
	}
	_, err := w.Stat(ctx, "x")
	want(t, "stat what is not there", err, fault.NotFound)
	_, err = w.Stat(ctx, "d/f/x")
	want(t, "stat below a file", err, fault.NotFound)
}

func openFile(t *testing.T, w workspace.Workspace) {
	put(t, w, "f", "hello")
	r, i, err := w.Open(ctx, "f")
	if err != nil {
		t.Fatal(err)
	}
	// A write while a reader is open does not disturb the reader.
	put(t, w, "f", "other text")
	data, err := io.ReadAll(r)
	if string(data) != "hello" || err != nil || i.Size != 5 {
		t.Errorf("read %q, %v, %+v", data, err, i)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	_, _, err = w.Open(ctx, "g")
	want(t, "open what is not there", err, fault.NotFound)
}

func names(t *testing.T, w workspace.Workspace, dir string) []string {
	t.Helper()
	out := []string{}
	for i, err := range w.List(ctx, dir) {
		if err != nil {
			t.Fatalf("list %q: %v", dir, err)
		}
		out = append(out, fmt.Sprintf("%s %s", i.Type, i.Path))
	}
	return out
}

func list(t *testing.T, w workspace.Workspace) {
	for _, p := range []string{"b", "a/x", "a/y/z", "a-1", "B", ".hidden"} {
		put(t, w, p, "x")
	}
	for dir, wanted := range map[string][]string{
		".":   {"file .hidden", "file B", "dir a", "file a-1", "file b"},
		"a":   {"file a/x", "dir a/y"},
		"a/y": {"file a/y/z"},
	} {
		if got := names(t, w, dir); !reflect.DeepEqual(got, wanted) {
			t.Errorf("list %q: %q, want %q", dir, got, wanted)
		}
	}
	for range w.List(ctx, ".") {
		break // breaking off is fine
	}
	for dir, kind := range map[string]fault.Kind{"no": fault.NotFound, "b": fault.Invalid, "../x": fault.Denied} {
		n := 0
		for _, err := range w.List(ctx, dir) {
			n++
			want(t, "list "+dir, err, kind)
		}
		if n != 1 {
			t.Errorf("list %q yielded %d times, want one error", dir, n)
		}
	}
}

func remove(t *testing.T, w workspace.Workspace) {
	put(t, w, "d/f", "x")
	for _, p := range []string{"d/f", "d/f", "no/such", "d/f/g"} {
		if err := w.Remove(ctx, p); err != nil {
			t.Errorf("remove %q: %v", p, err)
		}
	}
	_, err := w.Stat(ctx, "d/f")
	want(t, "stat after remove", err, fault.NotFound)
	put(t, w, "e/f", "x")
	want(t, "remove a directory", w.Remove(ctx, "e"), fault.Invalid)
	want(t, "remove the root", w.Remove(ctx, "."), fault.Invalid)
	want(t, "remove outside", w.Remove(ctx, "../x"), fault.Denied)
}

func conditions(t *testing.T, w workspace.Workspace) {
	write := func(path, data string, c workspace.Condition) error {
		_, err := w.Write(ctx, path, []byte(data), c)
		return err
	}
	if err := write("f", "1", workspace.Condition{Absent: true}); err != nil {
		t.Fatal(err)
	}
	err := write("f", "2", workspace.Condition{Absent: true})
	want(t, "absent, but there", err, fault.Conflict)
	_, i := get(t, w, "f")
	if err := write("f", "3", workspace.Condition{Version: i.Version}); err != nil {
		t.Fatal(err)
	}
	err = write("f", "4", workspace.Condition{Version: i.Version})
	want(t, "old version", err, fault.Conflict)
	data, now := get(t, w, "f")
	if e := fault.From("", err); e.Details["expected"] != i.Version || e.Details["actual"] != now.Version {
		t.Errorf("details %v, want expected %q and actual %q", e.Details, i.Version, now.Version)
	}
	if data != "3" {
		t.Errorf("a failed write left %q", data)
	}
	// The same length and content class, changed within the resolution of the clock.
	put(t, w, "f", "5")
	want(t, "changed at once", write("f", "6", workspace.Condition{Version: now.Version}), fault.Conflict)
	err = write("gone", "1", workspace.Condition{Version: now.Version})
	want(t, "version of what is not there", err, fault.Conflict)
	if got := names(t, w, "."); len(got) != 1 {
		t.Errorf("left behind: %q", got)
	}
}

func normalForm(t *testing.T, w workspace.Workspace) {
	put(t, w, "./keep/x", "data")
	for _, p := range []string{"keep/x", "keep//x", "./keep/./x", "keep/../keep/x", `keep\x`} {
		data, i := get(t, w, p)
		if data != "data" || i.Path != "keep/x" {
			t.Errorf("read %q: %q as %q", p, data, i.Path)
		}
	}
	for _, p := range []string{`C:\x`, "c:/x", `\\h\s`, "a\x00b", strings.Repeat("a/", 3000)} {
		_, _, err := w.Read(ctx, p, 10)
		want(t, fmt.Sprintf("read %.20q", p), err, fault.Invalid)
		_, err = w.Write(ctx, p, nil, workspace.Condition{})
		want(t, fmt.Sprintf("write %.20q", p), err, fault.Invalid)
	}
}

func outside(t *testing.T, w workspace.Workspace) {
	for _, p := range []string{"..", "../x", "a/../../x", `..\x`, "/etc/passwd", w.Root() + "-other/x", w.Root() + "/../x"} {
		if !strings.HasPrefix(p, "/") && strings.HasPrefix(p, w.Root()) {
			continue // a virtual root makes no absolute path
		}
		_, err := w.Stat(ctx, p)
		want(t, "stat "+p, err, fault.Denied)
		_, _, err = w.Open(ctx, p)
		want(t, "open "+p, err, fault.Denied)
		_, _, err = w.Read(ctx, p, 10)
		want(t, "read "+p, err, fault.Denied)
		_, err = w.Write(ctx, p, nil, workspace.Condition{})
		want(t, "write "+p, err, fault.Denied)
		want(t, "remove "+p, w.Remove(ctx, p), fault.Denied)
	}
}

func protected(t *testing.T, w workspace.Workspace) {
	for _, p := range []string{".git", ".git/config", "sub/.git/hooks/pre-commit", ".GIT/x", ".a3s/x", "a/../.git/x"} {
		_, err := w.Write(ctx, p, []byte("x"), workspace.Condition{})
		want(t, "write "+p, err, fault.Denied)
		want(t, "remove "+p, w.Remove(ctx, p), fault.Denied)
	}
	if got := names(t, w, "."); len(got) != 0 {
		t.Errorf("left behind: %q", got)
	}
	put(t, w, ".gitignore", "x")
	put(t, w, ".github/x", "x")
}

func hostileNames(t *testing.T, w workspace.Workspace) {
	for _, p := range []string{"a\nb", "\x1b[31mred", "cod\u202efdp.exe", "-rf", "--help", " ", "a b", "*", "?", "[x]", "{a,b}", "$(id)", "`id`", "日本", "..a", "...", "a:b:c/x:y"} {
		if p == "a:b:c/x:y" {
			p = "ab:c/x:y"
		}
		put(t, w, p, p)
		if data, i := get(t, w, p); data != p || i.Path != p {
			t.Errorf("%q: read %q as %q", p, data, i.Path)
		}
		found := false
		for i, err := range w.List(ctx, ".") {
			if err != nil {
				t.Fatal(err)
			}
			found = found || i.Path == p || strings.HasPrefix(p, i.Path+"/")
		}
		if !found {
			t.Errorf("%q is not listed", p)
		}
		if err := w.Remove(ctx, p); err != nil {
			t.Errorf("remove %q: %v", p, err)
		}
	}
}

func limits(t *testing.T, w workspace.Workspace) {
	put(t, w, "f", "12345")
	if _, _, err := w.Read(ctx, "f", 5); err != nil {
		t.Errorf("exactly the limit: %v", err)
	}
	_, _, err := w.Read(ctx, "f", 4)
	want(t, "over the limit", err, fault.Limit)
	_, _, err = w.Read(ctx, "f", 0)
	want(t, "limit 0", err, fault.Limit)
	long := strings.Repeat("n", 300)
	_, err = w.Write(ctx, long, nil, workspace.Condition{})
	if err != nil && fault.KindOf(err) != fault.Invalid {
		t.Errorf("a name of 300 bytes: %v, want success or kind invalid", err)
	}
}

func binary(t *testing.T, w workspace.Workspace) {
	var all []byte
	for i := range 3 << 20 {
		all = append(all, byte(i*7))
	}
	if _, err := w.Write(ctx, "bin", all, workspace.Condition{}); err != nil {
		t.Fatal(err)
	}
	all[0]++ // what was written is the workspace's own
	got, _, err := w.Read(ctx, "bin", 4<<20)
	all[0]--
	if err != nil || !bytes.Equal(got, all) {
		t.Errorf("read %d bytes, %v", len(got), err)
	}
	got[0]++ // and what was read is ours
	if again, _, _ := w.Read(ctx, "bin", 4<<20); !bytes.Equal(again, all) {
		t.Error("a reader changed the file")
	}
}

func notAFile(t *testing.T, w workspace.Workspace) {
	put(t, w, "d/f", "x")
	_, _, err := w.Open(ctx, "d")
	want(t, "open a directory", err, fault.Invalid)
	_, _, err = w.Read(ctx, ".", 10)
	want(t, "read the root", err, fault.Invalid)
	_, err = w.Write(ctx, "d", nil, workspace.Condition{})
	want(t, "write a directory", err, fault.Invalid)
	_, err = w.Write(ctx, ".", nil, workspace.Condition{})
	want(t, "write the root", err, fault.Invalid)
	_, err = w.Write(ctx, "d/f/x", nil, workspace.Condition{})
	want(t, "write below a file", err, fault.Invalid)
}

func cancelled(t *testing.T, w workspace.Workspace) {
	put(t, w, "f", "x")
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	_, err := w.Stat(ctx, "f")
	want(t, "stat", err, fault.Cancelled)
	_, _, err = w.Open(ctx, "f")
	want(t, "open", err, fault.Cancelled)
	_, _, err = w.Read(ctx, "f", 10)
	want(t, "read", err, fault.Cancelled)
	_, err = w.Write(ctx, "f", []byte("y"), workspace.Condition{})
	want(t, "write", err, fault.Cancelled)
	want(t, "remove", w.Remove(ctx, "f"), fault.Cancelled)
	for _, err := range w.List(ctx, ".") {
		want(t, "list", err, fault.Cancelled)
	}
	if data, _ := get(t, w, "f"); data != "x" {
		t.Errorf("a cancelled call left %q", data)
	}
}

// concurrent lets many writers add to a file, each on the condition that nobody else
// has: no addition may be lost, and no reader may see half a file.
func concurrent(t *testing.T, w workspace.Workspace) {
	put(t, w, "f", "")
	const writers, each = 4, 8
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for n := 0; n < each; {
				data, i, err := w.Read(ctx, "f", 1<<20)
				if err != nil {
					t.Error(err)
					return
				}
				if len(bytes.Trim(data, "x")) != 0 {
					t.Errorf("read %q", data)
					return
				}
				_, err = w.Write(ctx, "f", append(data, 'x'), workspace.Condition{Version: i.Version})
				switch fault.KindOf(err) {
				case "":
					n++
				case fault.Conflict:
				default:
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if data, _ := get(t, w, "f"); len(data) != writers*each {
		t.Errorf("%d additions are there, want %d", len(data), writers*each)
	}
}
