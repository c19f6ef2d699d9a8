package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"

	"github.com/a3s-lab/liba3s/runtime/fault"
	desk "github.com/a3s-lab/liba3s/runtime/host"
	"github.com/a3s-lab/liba3s/runtime/host/hosttest"
	"github.com/a3s-lab/liba3s/runtime/workspace"
	"github.com/a3s-lab/liba3s/runtime/workspace/host"
	"github.com/a3s-lab/liba3s/runtime/workspace/mem"
	"github.com/a3s-lab/liba3s/runtime/workspace/workspacetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var bg = context.Background()

// disk is a host whose files lie in a workspace of ours.
type disk struct{ under *mem.Workspace }

func newDisk(t *testing.T) disk {
	under, err := mem.Open(bg, mem.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return disk{under}
}

func (d disk) answer(_ context.Context, r desk.Request, _ func(any)) (any, error) {
	v, err := d.serve(r)
	var f *fault.Error
	if errors.As(err, &f) {
		return nil, &desk.Failure{Type: "WorkspaceError", Message: f.Message, Kind: string(f.Kind), Details: f.Details}
	}
	return v, err
}

func (d disk) serve(r desk.Request) (any, error) {
	switch r.Op {
	case "stat":
		i, err := d.under.Stat(bg, params[host.WorkspacePath](r).Path)
		return entry("", i), err
	case "list":
		l := host.WorkspaceList{Entries: []host.WorkspaceEntry{}}
		for i, err := range d.under.List(bg, params[host.WorkspacePath](r).Path) {
			if err != nil {
				return nil, err
			}
			l.Entries = append(l.Entries, entry(i.Path[strings.LastIndexByte(i.Path, '/')+1:], i))
		}
		return l, nil
	case "remove":
		return nil, d.under.Remove(bg, params[host.WorkspacePath](r).Path)
	case "read":
		p := params[host.WorkspaceRead](r)
		data, i, err := d.under.Read(bg, p.Path, p.Max)
		return host.WorkspaceFile{Data: &data, Version: i.Version, ModifiedMS: i.Modified.UnixMilli()}, err
	case "write":
		p := params[host.WorkspaceWrite](r)
		i, err := d.under.Write(bg, p.Path, p.Data, workspace.Condition{Version: p.IfVersion, Absent: p.IfAbsent})
		return host.WorkspaceWritten{Version: i.Version, ModifiedMS: i.Modified.UnixMilli()}, err
	case "search":
		p := params[host.WorkspaceSearch](r)
		if p.Glob != nil {
			files, err := d.glob(*p.Glob)
			return host.WorkspaceFound{Files: files}, err
		}
		return d.grep(*p.Grep)
	}
	return nil, errors.New("no such operation")
}

func params[P any](r desk.Request) (p P) {
	if err := json.Unmarshal(r.Params, &p); err != nil {
		panic(err)
	}
	return p
}

func entry(name string, i workspace.Info) host.WorkspaceEntry {
	return host.WorkspaceEntry{Name: name, Type: i.Type, Size: i.Size, ModifiedMS: i.Modified.UnixMilli()}
}

func (d disk) glob(g host.WorkspaceGlob) ([]host.WorkspaceMatch, error) {
	var out []host.WorkspaceMatch
	for i, err := range d.under.Glob(bg, workspace.GlobQuery{Base: g.Base, Pattern: g.Pattern, Ignored: g.Ignored}) {
		if err != nil {
			return nil, err
		}
		out = append(out, host.WorkspaceMatch{Path: i.Path, Size: i.Size, ModifiedMS: i.Modified.UnixMilli()})
	}
	return out, nil
}

func (d disk) grep(g host.WorkspaceGrep) (any, error) {
	var f host.WorkspaceFound
	q := workspace.GrepQuery{Base: g.Base, Pattern: g.Pattern, Glob: g.Glob, IgnoreCase: g.IgnoreCase, Context: g.Context, FilesOnly: g.FilesOnly, Ignored: g.Ignored}
	var mu sync.Mutex
	q.Allow = func(p string) bool {
		mu.Lock()
		defer mu.Unlock()
		f.Searched = append(f.Searched, p)
		return true
	}
	stats, err := d.under.Grep(bg, q, func(l workspace.Line) bool {
		f.Lines = append(f.Lines, host.WorkspaceLine{Path: l.Path, Line: l.Number, Text: l.Text, Context: l.Context})
		return true
	})
	f.Stats = host.WorkspaceStats{
		Files: stats.Files, Bytes: stats.Bytes, Binary: stats.Binary, TooLarge: stats.TooLarge,
		IgnoredDirs: stats.IgnoredDirs, IgnoredFiles: stats.IgnoredFiles, Unreadable: stats.Unreadable,
	}
	return f, err
}

func open(t testing.TB, h *hosttest.Host, spec host.WorkspaceSpec) workspace.Workspace {
	t.Helper()
	w, err := host.Open(bg, host.Config{Spec: spec, Line: desk.NewLine(h.Desk, "workspace", "far", spec.Deadline(host.Deadline)), SessionID: "s1"})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestSuite(t *testing.T) {
	for name, spec := range map[string]host.WorkspaceSpec{
		"with a search":    {Search: true},
		"with all":         {Search: true, Run: true},
		"files alone":      {},
		"an absolute root": {Root: "/srv/app"},
	} {
		t.Run(name, func(t *testing.T) {
			workspacetest.Run(t, func(t *testing.T) workspace.Workspace {
				return open(t, hosttest.New(t, newDisk(t).answer), spec)
			})
		})
	}
}

func TestCapabilities(t *testing.T) {
	for _, spec := range []host.WorkspaceSpec{{}, {Run: true}, {Search: true}, {Run: true, Search: true}} {
		w := open(t, hosttest.New(t, newDisk(t).answer), spec)
		_, run := w.(workspace.Runner)
		_, search := w.(workspace.Searcher)
		if run != spec.Run || search != spec.Search {
			t.Errorf("%+v: run %v, search %v", spec, run, search)
		}
	}
}

// No path that leads outside or into a protected folder reaches the host.
func TestPathsAreOurs(t *testing.T) {
	h := hosttest.New(t, newDisk(t).answer)
	w := open(t, h, host.WorkspaceSpec{Search: true})
	before := len(h.Requests())
	s := w.(workspace.Searcher)
	for _, p := range []string{"../x", "/etc/passwd", `..\x`, "C:/x", "a\x00", ".git/config", "a/.a3s/x"} {
		if _, err := w.Write(bg, p, nil, workspace.Condition{}); err == nil {
			t.Errorf("write %q", p)
		}
		if err := w.Remove(bg, p); err == nil {
			t.Errorf("remove %q", p)
		}
		for _, err := range s.Glob(bg, workspace.GlobQuery{Base: p, Pattern: "*"}) {
			if err == nil {
				t.Errorf("glob in %q", p)
			}
		}
	}
	for _, p := range []string{"../*", "/etc/*", "a/../../*", "{..,a}/*", `..\*`} {
		for _, err := range s.Glob(bg, workspace.GlobQuery{Base: ".", Pattern: p}) {
			if fault.KindOf(err) != fault.Invalid {
				t.Errorf("glob %q: %v", p, err)
			}
		}
	}
	if n := len(h.Requests()); n != before {
		t.Errorf("the host was asked %d times", n-before)
	}
}

func TestHostile(t *testing.T) {
	read := func(w workspace.Workspace) error { _, _, err := w.Read(bg, "f", 10); return err }
	write := func(w workspace.Workspace) error {
		_, err := w.Write(bg, "f", []byte("x"), workspace.Condition{})
		return err
	}
	stat := func(w workspace.Workspace) error { _, err := w.Stat(bg, "f"); return err }
	list := func(w workspace.Workspace) error {
		for _, err := range w.List(bg, "d") {
			return err
		}
		return nil
	}
	glob := func(w workspace.Workspace) error {
		for _, err := range w.(workspace.Searcher).Glob(bg, workspace.GlobQuery{Base: "d", Pattern: "*"}) {
			return err
		}
		return nil
	}
	grep := func(w workspace.Workspace) error {
		_, err := w.(workspace.Searcher).Grep(bg, workspace.GrepQuery{Base: "d", Pattern: "x"}, func(workspace.Line) bool { return true })
		return err
	}
	run := func(w workspace.Workspace) error {
		_, err := w.(workspace.Runner).Run(bg, workspace.Command{Line: "x"}, func([]byte) {})
		return err
	}
	for _, c := range []struct {
		name   string
		do     func(workspace.Workspace) error
		result any
		kind   fault.Kind
	}{
		{"no data", read, `{"version":"1"}`, fault.IO},
		{"no version", read, `{"data":""}`, fault.IO},
		{"no base64", read, `{"data":"*","version":"1"}`, fault.IO},
		{"more than wanted", read, `{"data":"MDEyMzQ1Njc4OTAxMjM=","version":"1"}`, fault.Limit},
		{"a long version", read, `{"data":"","version":"` + strings.Repeat("v", 300) + `"}`, fault.IO},
		{"nothing written", write, `{}`, fault.IO},
		{"null written", write, `null`, fault.IO},
		{"a strange type", stat, `{"type":"socket"}`, fault.IO},
		{"a negative size", stat, `{"type":"file","size":-1}`, fault.IO},
		{"a list", stat, `[]`, fault.IO},
		{"an entry outside", list, `{"entries":[{"name":"../x","type":"file"}]}`, fault.IO},
		{"the folder above", list, `{"entries":[{"name":"..","type":"dir"}]}`, fault.IO},
		{"an entry without a name", list, `{"entries":[{"type":"file"}]}`, fault.IO},
		{"a NUL in a name", list, `{"entries":[{"name":"a\u0000","type":"file"}]}`, fault.IO},
		{"a file outside", glob, `{"files":[{"path":"../x"}]}`, fault.IO},
		{"a file elsewhere", glob, `{"files":[{"path":"e/x"}]}`, fault.IO},
		{"an absolute file", glob, `{"files":[{"path":"/d/x"}]}`, fault.IO},
		{"line 0", grep, `{"lines":[{"path":"d/x","line":0,"text":"x"}]}`, fault.IO},
		{"two lines in one", grep, `{"lines":[{"path":"d/x","line":1,"text":"x\ny"}]}`, fault.IO},
		{"no exit code", run, `{}`, fault.IO},
		{"text and data", run, `{"exit_code":0,"text":"a","data":""}`, fault.IO},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := hosttest.New(t, func(_ context.Context, r desk.Request, _ func(any)) (any, error) {
				if string(r.Params) == `{"path":"."}` {
					return hosttest.Raw(`{"type":"dir"}`), nil
				}
				return hosttest.Raw(c.result.(string)), nil
			})
			if err := c.do(open(t, h, host.WorkspaceSpec{Run: true, Search: true})); fault.KindOf(err) != c.kind {
				t.Errorf("got %v (%s), want kind %s", err, fault.KindOf(err), c.kind)
			}
		})
	}
}

// What a search finds where none looks, or in files that the rules hide, is left out.
func TestSearchFiltered(t *testing.T) {
	h := hosttest.New(t, func(_ context.Context, r desk.Request, _ func(any)) (any, error) {
		if r.Op == "stat" {
			return hosttest.Raw(`{"type":"dir"}`), nil
		}
		return hosttest.Raw(`{"files":[{"path":"b"},{"path":".git/config"},{"path":"a"},{"path":"secret"},{"path":"b"}],` +
			`"lines":[{"path":"b","line":2,"text":"x"},{"path":".git/config","line":1,"text":"x"},{"path":"secret","line":1,"text":"x"},{"path":"a","line":1,"text":"` + strings.Repeat("ä", 3000) + `"}],` +
			`"stats":{"files":4,"bytes":-1}}`), nil
	})
	s := open(t, h, host.WorkspaceSpec{Search: true}).(workspace.Searcher)
	allow := func(p string) bool { return p != "secret" }
	var got []string
	for i, err := range s.Glob(bg, workspace.GlobQuery{Base: ".", Pattern: "**", Allow: allow}) {
		got = append(got, fmt.Sprint(i.Path, err))
	}
	if want := []string{"a<nil>", "b<nil>"}; !reflect.DeepEqual(got, want) {
		t.Errorf("glob %q", got)
	}
	got = nil
	stats, err := s.Grep(bg, workspace.GrepQuery{Base: ".", Pattern: "x", Allow: allow}, func(l workspace.Line) bool {
		got = append(got, fmt.Sprint(l.Path, l.Number, len(l.Text)))
		return true
	})
	if want := []string{"a1 2000", "b2 1"}; err != nil || !reflect.DeepEqual(got, want) || stats != (workspace.GrepStats{Files: 4}) {
		t.Errorf("grep %q, %+v, %v", got, stats, err)
	}
}

func TestNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk(t)
		h := hosttest.New(t, func(ctx context.Context, r desk.Request, chunk func(any)) (any, error) {
			if string(r.Params) == `{"path":"."}` {
				return d.answer(ctx, r, chunk)
			}
			return nil, hosttest.ErrSilent
		})
		w := open(t, h, host.WorkspaceSpec{Run: true})
		began := time.Now()
		_, _, err := w.Read(bg, "f", 10)
		if fault.KindOf(err) != fault.Timeout || time.Since(began) != time.Minute {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		exit, err := w.(workspace.Runner).Run(bg, workspace.Command{Line: "x", Timeout: time.Hour}, func([]byte) {})
		if err != nil || exit != (workspace.Exit{Code: -1, TimedOut: true}) {
			t.Errorf("%+v %v", exit, err)
		}
		ctx, cancel := context.WithCancel(bg)
		time.AfterFunc(time.Second, cancel)
		exit, err = w.(workspace.Runner).Run(ctx, workspace.Command{Line: "x"}, func([]byte) {})
		if err != nil || exit != (workspace.Exit{Code: -1, Cancelled: true}) {
			t.Errorf("%+v %v", exit, err)
		}
		last := h.Requests()[len(h.Requests())-1]
		if why := h.Withdrawn(last.ID); why != "cancelled" || last.SessionID != "s1" {
			t.Errorf("withdrawn %q, %+v", why, last)
		}
	})
}

func TestRun(t *testing.T) {
	d := newDisk(t)
	h := hosttest.New(t, func(ctx context.Context, r desk.Request, chunk func(any)) (any, error) {
		if r.Op != "run" {
			return d.answer(ctx, r, chunk)
		}
		c := params[host.WorkspaceCommand](r)
		if c.Line != "make" || c.TimeoutMS != 2000 || c.Env["A"] != "1" || r.Deadline != 7*time.Second {
			t.Errorf("%+v within %v", c, r.Deadline)
		}
		chunk(hosttest.Raw(`{"text":"one "}`))
		chunk(hosttest.Raw(`{"data":"/w=="}`))
		return hosttest.Raw(`{"exit_code":3,"text":" end"}`), nil
	})
	var out []byte
	exit, err := open(t, h, host.WorkspaceSpec{Run: true}).(workspace.Runner).Run(bg, workspace.Command{Line: "make", Timeout: 2 * time.Second, Env: map[string]string{"A": "1"}}, func(b []byte) { out = append(out, b...) })
	if err != nil || exit != (workspace.Exit{Code: 3}) || string(out) != "one \xff end" {
		t.Errorf("%+v %v %q", exit, err, out)
	}
}

// Whatever a host answers, no path that leads outside comes out, and an error has a kind.
func FuzzAnswers(f *testing.F) {
	for _, s := range []string{`null`, `{"type":"file"}`, `{"data":"","version":"1"}`, `{"entries":[{"name":"a","type":"dir"}]}`, `{"files":[{"path":"a"}],"lines":[{"path":"a","line":1,"text":"x"}]}`, `{"exit_code":0,"text":"x"}`, `{"version":"1"}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, answer string) {
		if !json.Valid([]byte(answer)) || !utf8.ValidString(answer) {
			return // it is refused where it is given
		}
		first := true
		h := hosttest.New(t, func(context.Context, desk.Request, func(any)) (any, error) {
			if first {
				first = false
				return hosttest.Raw(`{"type":"dir"}`), nil
			}
			return hosttest.Raw(answer), nil
		})
		w := open(t, h, host.WorkspaceSpec{Run: true, Search: true})
		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		check := func(i workspace.Info, err error) {
			var e *fault.Error
			if err != nil && (!errors.As(err, &e) || e.Kind == fault.Internal) {
				t.Errorf("%q gave %v", answer, err)
			}
			for e := range strings.SplitSeq(i.Path, "/") {
				if e == ".." || strings.HasPrefix(i.Path, "/") {
					t.Errorf("%q gave the path %q", answer, i.Path)
				}
			}
		}
		check(w.Stat(ctx, "f"))
		_, i, err := w.Read(ctx, "f", 100)
		check(i, err)
		check(w.Write(ctx, "f", nil, workspace.Condition{}))
		check(workspace.Info{}, w.Remove(ctx, "f"))
		for i, err := range w.List(ctx, ".") {
			check(i, err)
		}
		for i, err := range w.(workspace.Searcher).Glob(ctx, workspace.GlobQuery{Base: ".", Pattern: "**"}) {
			check(i, err)
		}
		_, err = w.(workspace.Searcher).Grep(ctx, workspace.GrepQuery{Base: ".", Pattern: "x"}, func(l workspace.Line) bool {
			check(workspace.Info{Path: l.Path}, nil)
			return true
		})
		check(workspace.Info{}, err)
		_, err = w.(workspace.Runner).Run(ctx, workspace.Command{Line: "x"}, func([]byte) {})
		check(workspace.Info{}, err)
	})
}
