package builtin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/tool"
	"github.com/a3s-lab/liba3s/runtime/workspace"
)

// files is the least that is a workspace.
type files struct {
	mu   sync.Mutex
	data map[string]string
}

func newFiles(data map[string]string) *files { return &files{data: maps.Clone(data)} }

func (f *files) Root() string { return "mem:" }

func (f *files) info(p string) workspace.Info {
	return workspace.Info{Path: p, Type: workspace.File, Size: int64(len(f.data[p]))}
}

func (f *files) Stat(_ context.Context, p string) (workspace.Info, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.data[p]; !ok {
		return workspace.Info{}, fault.New(fault.NotFound, "mem", "no file %q", p)
	}
	return f.info(p), nil
}

func (f *files) Open(ctx context.Context, p string) (io.ReadCloser, workspace.Info, error) {
	data, info, err := f.Read(ctx, p, 1<<40)
	return io.NopCloser(bytes.NewReader(data)), info, err
}

func (f *files) Read(ctx context.Context, p string, max int64) ([]byte, workspace.Info, error) {
	info, err := f.Stat(ctx, p)
	if err != nil {
		return nil, info, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if info.Size > max {
		return nil, info, fault.New(fault.Limit, "mem", "%q has %d bytes, the limit is %d", p, info.Size, max)
	}
	info.Version = version(f.data[p])
	return []byte(f.data[p]), info, nil
}

func version(s string) string { return fmt.Sprintf("v%x", len(s)) + s[:min(len(s), 8)] }

func (f *files) Write(_ context.Context, p string, data []byte, cond workspace.Condition) (workspace.Info, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	old, ok := f.data[p]
	actual := ""
	if ok {
		actual = version(old)
	}
	if cond.Absent && ok || cond.Version != "" && cond.Version != actual {
		return workspace.Info{}, fault.New(fault.Conflict, "mem", "%q has changed", p).With("expected", cond.Version).With("actual", actual)
	}
	f.data[p] = string(data)
	return f.info(p), nil
}

func (f *files) Remove(_ context.Context, p string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.data, p)
	return nil
}

func (f *files) List(_ context.Context, dir string) iter.Seq2[workspace.Info, error] {
	return func(yield func(workspace.Info, error) bool) {
		f.mu.Lock()
		entries := map[string]workspace.Info{}
		for p := range f.data {
			below := p
			if dir != "." {
				if !strings.HasPrefix(p, dir+"/") {
					continue
				}
				below = p[len(dir)+1:]
			}
			name, _, deep := strings.Cut(below, "/")
			entry := path.Join(dir, name)
			if deep {
				entries[entry] = workspace.Info{Path: entry, Type: workspace.Dir}
			} else {
				entries[entry] = f.info(entry)
			}
		}
		f.mu.Unlock()
		if len(entries) == 0 && dir != "." {
			yield(workspace.Info{}, fault.New(fault.NotFound, "mem", "no folder %q", dir))
			return
		}
		for _, p := range slices.Sorted(maps.Keys(entries)) {
			if !yield(entries[p], nil) {
				return
			}
		}
	}
}

// changing is a workspace where somebody else is at work: what happens after each Read.
type changing struct {
	workspace.Workspace
	after func()
}

func (c changing) Read(ctx context.Context, p string, max int64) ([]byte, workspace.Info, error) {
	data, info, err := c.Workspace.Read(ctx, p, max)
	c.after()
	return data, info, err
}

// env gives an Env on ws, and what was told while a tool ran.
func env(ws workspace.Workspace) (tool.Env, *[]string) {
	told := new([]string)
	return tool.Env{
		Workspace: ws,
		Emit:      func(s string) { *told = append(*told, s) },
		MayRead:   func(p string) bool { return p != "secret.txt" },
		Protected: workspace.Protected,
		Artifact: func(_ context.Context, uri string) (string, error) {
			return "", fault.New(fault.NotFound, "test", "no artifact %q", uri)
		},
	}, told
}

// run validates the arguments as the Gate does and runs the tool.
func run(t *testing.T, tl tool.Tool, e tool.Env, args string) chat.Result {
	t.Helper()
	if err := tool.Validate(tl, json.RawMessage(args)); err != nil {
		return failed(tl.Spec().Name, "", err)
	}
	return raw(t, tl, e, args)
}

// raw runs the tool without validation.
func raw(t *testing.T, tl tool.Tool, e tool.Env, args string) chat.Result {
	t.Helper()
	r, err := tl.Run(context.Background(), e, json.RawMessage(args))
	if err != nil {
		t.Fatalf("%s %s: %v", tl.Spec().Name, args, err)
	}
	return r
}

// equal compares results by their JSON form, in which they are kept.
func equal(t *testing.T, got, want chat.Result) {
	t.Helper()
	if got.Output != want.Output {
		t.Errorf("output:\n%s\nwant:\n%s", got.Output, want.Output)
	}
	if g, w := toJSON(t, got.Metadata), toJSON(t, want.Metadata); !reflect.DeepEqual(g, w) {
		t.Errorf("metadata:\n%v\nwant:\n%v", g, w)
	}
	if got.ExitCode != want.ExitCode || !reflect.DeepEqual(got.Error, want.Error) {
		t.Errorf("exit code %d, error %+v\nwant %d, %+v", got.ExitCode, got.Error, want.ExitCode, want.Error)
	}
}

func toJSON(t *testing.T, v any) any {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var back any
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	return back
}

// refused checks a failed result by its type and a part of its text.
func refused(t *testing.T, got chat.Result, kind, part string) {
	t.Helper()
	actual := ""
	if got.Error != nil {
		actual = got.Error.Type
	}
	if got.ExitCode != 1 || actual != kind || !strings.Contains(got.Output, part) {
		t.Errorf("exit code %d, type %q, output %q; want type %q with %q", got.ExitCode, actual, got.Output, kind, part)
	}
}

// searching is a workspace with answers to searches.
type searching struct {
	*files
	lines []workspace.Line
	stats workspace.GrepStats
	err   error
	found []string
	grep  workspace.GrepQuery
	glob  workspace.GlobQuery
	block bool // wait for the end of ctx after the last line
}

func (s *searching) Grep(ctx context.Context, q workspace.GrepQuery, hit func(workspace.Line) bool) (workspace.GrepStats, error) {
	s.grep = q
	for _, l := range s.lines {
		if q.Allow(l.Path) && !hit(l) {
			return s.stats, nil
		}
	}
	if s.block {
		<-ctx.Done()
		return s.stats, fault.From("workspace.grep", ctx.Err())
	}
	return s.stats, s.err
}

func (s *searching) Glob(ctx context.Context, q workspace.GlobQuery) iter.Seq2[workspace.Info, error] {
	s.glob = q
	return func(yield func(workspace.Info, error) bool) {
		for _, p := range s.found {
			if q.Allow(p) && !yield(workspace.Info{Path: p, Type: workspace.File}, nil) {
				return
			}
		}
		if s.block {
			<-ctx.Done()
			yield(workspace.Info{}, fault.From("workspace.glob", ctx.Err()))
		} else if s.err != nil {
			yield(workspace.Info{}, s.err)
		}
	}
}

// running is a workspace whose commands are written down.
type running struct {
	*files
	run func(ctx context.Context, cmd workspace.Command, output func([]byte)) (workspace.Exit, error)
}

func (r running) Run(ctx context.Context, cmd workspace.Command, output func([]byte)) (workspace.Exit, error) {
	return r.run(ctx, cmd, output)
}

const short = 20 * time.Millisecond
