package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/workspace"
	"github.com/a3s-lab/liba3s/runtime/workspace/workspacetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ctx = context.Background()

// open gives an empty workspace and checks at the end that no file stayed open.
func open(t *testing.T) *Workspace {
	t.Helper()
	before := descriptors(t)
	w, err := Open(ctx, Config{Root: filepath.Join(t.TempDir()), Env: map[string]string{"PATH": "/usr/local/bin:/usr/bin:/bin"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.Close()
		if after := descriptors(t); after > before {
			t.Errorf("%d file descriptors at the end, %d at the start", after, before)
		}
	})
	return w
}

func descriptors(t *testing.T) int {
	t.Helper()
	d, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(d)
}

func TestSuite(t *testing.T) {
	workspacetest.Run(t, func(t *testing.T) workspace.Workspace { return open(t) })
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	must(t, os.WriteFile(file, nil, 0o644))
	must(t, os.Symlink(dir, filepath.Join(dir, "link")))
	for root, ok := range map[string]bool{dir: true, filepath.Join(dir, "link"): true, file: false, filepath.Join(dir, "no"): false, ".": false, "": false} {
		w, err := Open(ctx, Config{Root: root})
		if ok {
			if err != nil || w.Root() != dir {
				t.Errorf("open %q: %v", root, err)
				continue
			}
			w.Close()
			continue
		}
		var e *fault.Error
		if !errors.As(err, &e) || e.Code != fault.CodeSessionConfig || e.Details["field"] != "workspace" || e.Details["reason"] != fault.BadValue {
			t.Errorf("open %q: %v, want an option error on workspace", root, err)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func kind(t *testing.T, what string, err error, want fault.Kind) {
	t.Helper()
	if fault.KindOf(err) != want {
		t.Errorf("%s: %v (%s), want kind %s", what, err, fault.KindOf(err), want)
	}
}

func TestPATH01and02(t *testing.T) {
	w := open(t)
	out := t.TempDir()
	at := func(p string) string { return filepath.Join(w.Root(), p) }
	must(t, os.WriteFile(filepath.Join(out, "v.txt"), []byte("secret"), 0o644))
	must(t, os.Mkdir(filepath.Join(out, "d"), 0o755))
	must(t, os.Symlink(out, at("outbox")))
	must(t, os.Symlink(filepath.Join(out, "v.txt"), at("notes.md")))
	must(t, os.Symlink(filepath.Join(out, "new.txt"), at("draft.txt")))
	must(t, os.Symlink("../"+filepath.Base(out)+"/v.txt", at("relative.md")))
	must(t, os.Symlink("outbox/d", at("twice")))
	must(t, os.Symlink("/", at("slash")))
	must(t, os.Symlink("loop", at("loop")))
	for _, p := range []string{"outbox/f.txt", "outbox/v.txt", "notes.md", "draft.txt", "relative.md", "twice/x", "slash/etc/passwd", "slash"} {
		_, err := w.Write(ctx, p, []byte("x"), workspace.Condition{})
		kind(t, "write "+p, err, fault.Denied)
		_, _, err = w.Read(ctx, p, 100)
		kind(t, "read "+p, err, fault.Denied)
		_, _, err = w.Open(ctx, p)
		kind(t, "open "+p, err, fault.Denied)
		_, err = w.Stat(ctx, p)
		kind(t, "stat "+p, err, fault.Denied)
		_, err = w.Resolve(p)
		kind(t, "resolve "+p, err, fault.Denied)
	}
	for _, err := range w.List(ctx, "outbox") {
		kind(t, "list outbox", err, fault.Denied)
	}
	kind(t, "remove below a link", w.Remove(ctx, "outbox/v.txt"), fault.Denied)
	_, err := w.Write(ctx, "loop", nil, workspace.Condition{})
	kind(t, "write a loop", err, fault.Invalid)
	must(t, w.Remove(ctx, "notes.md"))
	if data, err := os.ReadFile(filepath.Join(out, "v.txt")); string(data) != "secret" || err != nil {
		t.Errorf("outside: %q, %v", data, err)
	}
	if l, _ := os.ReadDir(out); len(l) != 2 {
		t.Errorf("outside: %v", l)
	}
}

func TestLinksInside(t *testing.T) {
	w := open(t)
	at := func(p string) string { return filepath.Join(w.Root(), p) }
	must(t, os.MkdirAll(at("real/sub"), 0o755))
	must(t, os.WriteFile(at("real/f"), []byte("one"), 0o600))
	for link, to := range map[string]string{
		"rel":        "real/f",
		"abs":        at("real/f"),
		"dir":        "real",
		"absdir":     at("real"),
		"real/up":    "../real/sub/../f",
		"real/top":   "../real/../real/f",
		"new":        "real/new.txt",
		"chain":      "dir/up",
		"git":        ".git/config",
		"gitdir":     ".git",
		"dangledots": "nowhere/../x",
	} {
		must(t, os.Symlink(to, at(link)))
	}
	must(t, os.Mkdir(at(".git"), 0o755))
	for _, p := range []string{"rel", "abs", "dir/f", "absdir/f", "real/up", "real/top", "chain"} {
		data, i, err := w.Read(ctx, p, 100)
		if string(data) != "one" || err != nil || i.Path != p {
			t.Errorf("read %q: %q, %+v, %v", p, data, i, err)
		}
		if real, err := w.Resolve(p); real != "real/f" || err != nil {
			t.Errorf("resolve %q: %q, %v", p, real, err)
		}
	}
	// A write goes to the file, and the link stays one.
	i, err := w.Write(ctx, "chain", []byte("two"), workspace.Condition{})
	must(t, err)
	if data, _ := os.ReadFile(at("real/f")); string(data) != "two" || i.Path != "chain" {
		t.Errorf("the file behind the link: %q; %+v", data, i)
	}
	if fi, _ := os.Lstat(at("chain")); fi.Mode()&fs.ModeSymlink == 0 {
		t.Error("the link has been replaced")
	}
	_, err = w.Write(ctx, "new", []byte("n"), workspace.Condition{})
	must(t, err)
	if data, _ := os.ReadFile(at("real/new.txt")); string(data) != "n" {
		t.Errorf("the file behind a dangling link: %q", data)
	}
	for _, p := range []string{"git", "gitdir/config", "gitdir/hooks/pre-commit"} {
		_, err = w.Write(ctx, p, []byte("x"), workspace.Condition{})
		kind(t, "write "+p, err, fault.Denied)
	}
	kind(t, "remove through a link", w.Remove(ctx, "gitdir/config"), fault.Denied)
	_, err = w.Write(ctx, "dangledots", []byte("x"), workspace.Condition{})
	kind(t, "write through a missing folder", err, fault.NotFound)
	must(t, w.Remove(ctx, "abs"))
	if _, err := os.Stat(at("real/f")); err != nil {
		t.Errorf("removing a link took its file: %v", err)
	}
	types := map[string]workspace.Type{}
	for i, err := range w.List(ctx, ".") {
		must(t, err)
		types[i.Path] = i.Type
	}
	if types["dir"] != workspace.Link || types["real"] != workspace.Dir || types["rel"] != workspace.Link {
		t.Errorf("types %v", types)
	}
}

// TestSwappedParent writes and reads below a folder that another goroutine keeps
// exchanging for a link to the outside and to .git.
func TestSwappedParent(t *testing.T) {
	w := open(t)
	at := func(p string) string { return filepath.Join(w.Root(), p) }
	out := t.TempDir()
	must(t, os.WriteFile(filepath.Join(out, "f"), []byte("secret"), 0o644))
	must(t, os.Mkdir(at(".git"), 0o755))
	must(t, os.Mkdir(at("a"), 0o755))
	must(t, os.WriteFile(at("a/f"), []byte("mine"), 0o644))
	must(t, os.Symlink(out, at("l1")))
	must(t, os.Symlink(".git", at("l2")))
	var stop atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; !stop.Load(); i++ {
			link := at([]string{"l1", "l2"}[i%2])
			os.Rename(at("a"), at("real"))
			os.Rename(link, at("a"))
			os.Rename(at("a"), link)
			os.Rename(at("real"), at("a"))
		}
	})
	done := 0
	for range 3000 {
		if data, _, err := w.Read(ctx, "a/f", 100); err == nil {
			done++
			if strings.Contains(string(data), "secret") {
				t.Fatal("read from outside")
			}
		}
		if _, err := w.Write(ctx, "a/f", []byte("mine"), workspace.Condition{}); err == nil {
			done++
		}
		w.Write(ctx, "a/new/g", []byte("mine"), workspace.Condition{})
		w.Remove(ctx, "a/f2")
	}
	stop.Store(true)
	wg.Wait()
	if data, _ := os.ReadFile(filepath.Join(out, "f")); string(data) != "secret" {
		t.Errorf("outside: %q", data)
	}
	for _, dir := range []string{out, at(".git")} {
		l, _ := os.ReadDir(dir)
		for _, e := range l {
			if dir != out || e.Name() != "f" {
				t.Errorf("%s has %s", dir, e.Name())
			}
		}
	}
	if done == 0 {
		t.Error("nothing was read or written at all")
	}
}

// TestBIG covers what is not a plain small file: each is refused at once.
func TestBIG(t *testing.T) {
	w := open(t)
	at := func(p string) string { return filepath.Join(w.Root(), p) }
	must(t, syscall.Mkfifo(at("fifo"), 0o644))
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	must(t, err)
	defer syscall.Close(fd)
	must(t, syscall.Bind(fd, &syscall.SockaddrUnix{Name: at("sock")}))
	names := []string{"fifo", "sock"}
	if err := syscall.Mknod(at("zero"), syscall.S_IFCHR|0o644, 1<<8|5); err == nil {
		names = append(names, "zero")
	}
	start := time.Now()
	for _, p := range names {
		_, _, err := w.Open(ctx, p)
		kind(t, "open "+p, err, fault.Invalid)
		_, _, err = w.Read(ctx, p, 100)
		kind(t, "read "+p, err, fault.Invalid)
		_, err = w.Write(ctx, p, nil, workspace.Condition{})
		kind(t, "write "+p, err, fault.Invalid)
		i, err := w.Stat(ctx, p)
		if i.Type != workspace.Other || err != nil {
			t.Errorf("stat %s: %+v, %v", p, i, err)
		}
	}
	must(t, os.Symlink("/dev/zero", at("device")))
	_, _, err = w.Read(ctx, "device", 100)
	kind(t, "a link to a device", err, fault.Denied)
	f, err := os.Create(at("sparse"))
	must(t, err)
	must(t, f.Truncate(10<<30))
	must(t, f.Close())
	_, _, err = w.Read(ctx, "sparse", 10<<20)
	kind(t, "a sparse file of 10 GB", err, fault.Limit)
	if d := time.Since(start); d > 2*time.Second {
		t.Errorf("took %v", d)
	}
}

func TestWriteKeeps(t *testing.T) {
	w := open(t)
	at := func(p string) string { return filepath.Join(w.Root(), p) }
	for _, m := range []fs.FileMode{0o600, 0o755, 0o664} {
		name := fmt.Sprintf("f%o", m)
		must(t, os.WriteFile(at(name), []byte("old"), 0o644))
		must(t, os.Chmod(at(name), m))
		_, err := w.Write(ctx, name, []byte("new"), workspace.Condition{})
		must(t, err)
		if fi, _ := os.Stat(at(name)); fi.Mode() != m {
			t.Errorf("mode %v, want %v", fi.Mode(), m)
		}
	}
	must(t, os.WriteFile(at("ro"), []byte("old"), 0o444))
	_, err := w.Write(ctx, "ro", []byte("new"), workspace.Condition{})
	kind(t, "write a read-only file", err, fault.Denied)
	if os.Getuid() == 0 {
		must(t, os.WriteFile(at("owned"), []byte("old"), 0o644))
		must(t, os.Chown(at("owned"), 1234, 1235))
		_, err := w.Write(ctx, "owned", []byte("new"), workspace.Condition{})
		must(t, err)
		fi, _ := os.Stat(at("owned"))
		if st := fi.Sys().(*syscall.Stat_t); st.Uid != 1234 || st.Gid != 1235 {
			t.Errorf("owner %d:%d", st.Uid, st.Gid)
		}
	}
	l, _ := os.ReadDir(w.Root())
	for _, e := range l {
		if strings.HasPrefix(e.Name(), tempPrefix) {
			t.Errorf("left behind: %s", e.Name())
		}
	}
}

func TestProtect(t *testing.T) {
	root := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(root, "data/real"), 0o755))
	must(t, os.Symlink("data/real", filepath.Join(root, "store")))
	w, err := Open(ctx, Config{Root: root, Protect: []string{filepath.Join(root, "store"), "keys.txt", "/elsewhere"}})
	must(t, err)
	defer w.Close()
	for p, want := range map[string]fault.Kind{"store/x": fault.Denied, "data/real/x": fault.Denied, "keys.txt": fault.Denied, "keys.txt2": "", "data/x": ""} {
		_, err := w.Write(ctx, p, nil, workspace.Condition{})
		kind(t, "write "+p, err, want)
	}
}

func TestAbsolutePaths(t *testing.T) {
	root := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(root, link))
	must(t, os.WriteFile(filepath.Join(root, "f"), []byte("x"), 0o644))
	w, err := Open(ctx, Config{Root: link})
	must(t, err)
	defer w.Close()
	for _, p := range []string{"f", filepath.Join(root, "f"), filepath.Join(link, "f")} {
		if i, err := w.Stat(ctx, p); err != nil || i.Path != "f" {
			t.Errorf("stat %q: %+v, %v", p, i, err)
		}
	}
	_, err = w.Stat(ctx, root+"-other/f")
	kind(t, "PATH-03", err, fault.Denied)
}

func TestClosed(t *testing.T) {
	w, err := Open(ctx, Config{Root: t.TempDir()})
	must(t, err)
	must(t, w.Close())
	must(t, w.Close())
	_, err = w.Stat(ctx, "f")
	kind(t, "stat", err, fault.Closed)
	_, err = w.Write(ctx, "a/f", nil, workspace.Condition{})
	kind(t, "write", err, fault.Closed)
}

// TestRootGone is about a root that somebody removes while it is in use.
func TestRootGone(t *testing.T) {
	root := filepath.Join(t.TempDir(), "root")
	must(t, os.Mkdir(root, 0o755))
	w, err := Open(ctx, Config{Root: root})
	must(t, err)
	defer w.Close()
	must(t, os.Remove(root))
	_, err = w.Write(ctx, "f", nil, workspace.Condition{})
	if err == nil {
		t.Error("a write into a removed root succeeded")
	}
	_, _, err = w.Read(ctx, "f", 1)
	kind(t, "read", err, fault.NotFound)
}
