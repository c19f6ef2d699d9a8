package a3s_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	a3s "github.com/a3s-lab/liba3s"
)

// shelf is a store in memory, with blobs.
type shelf struct {
	mu    sync.Mutex
	kept  map[string]*a3s.StoreLoaded
	blobs map[string][]byte
	err   error // of every request
}

func newShelf() *shelf {
	return &shelf{kept: map[string]*a3s.StoreLoaded{}, blobs: map[string][]byte{}}
}

// with runs fn under the lock.
func (s *shelf) with(fn func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		fn()
	}
	return s.err
}

func (s *shelf) Load(_ context.Context, id string, from, limit int64) (out *a3s.StoreLoaded, err error) {
	err = s.with(func() {
		if k := s.kept[id]; k != nil {
			count := int64(len(k.Facts))
			out = &a3s.StoreLoaded{Generation: k.Generation, Snapshot: k.Snapshot, Count: &count, Facts: k.Facts[min(from, count):min(from+limit, count)]}
		}
	})
	return out, err
}

func (s *shelf) Append(_ context.Context, id string, generation uint64, from int64, facts []string) error {
	return s.with(func() {
		if s.kept[id] == nil {
			s.kept[id] = &a3s.StoreLoaded{Generation: generation}
		}
		k := s.kept[id]
		k.Facts = append(k.Facts[:from:from], facts...)
	})
}

func (s *shelf) Save(_ context.Context, id string, generation uint64, snapshot string) error {
	return s.with(func() { s.kept[id] = &a3s.StoreLoaded{Generation: generation, Snapshot: &snapshot} })
}

func (s *shelf) Delete(_ context.Context, id string) error {
	return s.with(func() { delete(s.kept, id) })
}

func (s *shelf) List(context.Context) (ids []string, err error) {
	err = s.with(func() {
		for id := range s.kept {
			ids = append(ids, id)
		}
	})
	return ids, err
}

func (s *shelf) LoadBlob(_ context.Context, id, blob string) (b []byte, ok bool, err error) {
	err = s.with(func() { b, ok = s.blobs[id+"/"+blob] })
	return b, ok, err
}

func (s *shelf) SaveBlob(_ context.Context, id, blob string, data []byte) error {
	return s.with(func() { s.blobs[id+"/"+blob] = data })
}

func (s *shelf) DeleteBlob(_ context.Context, id, blob string) error {
	return s.with(func() { delete(s.blobs, id+"/"+blob) })
}

// onlySessions hides the blobs.
type onlySessions struct{ a3s.Store }

func TestSessionStore(t *testing.T) {
	for name, hide := range map[string]bool{"with blobs": false, "without": true} {
		t.Run(name, func(t *testing.T) {
			agent, _ := scriptedAgent(t, "call bash {\"command\":\"seq 1 40000\"}\nend\nsay I counted.\nend\nsay Yes.", nil)
			kept := newShelf()
			var store a3s.Store = kept
			if hide {
				store = onlySessions{kept}
			}
			reg, err := agent.RegisterSessionStore(t.Context(), "shelf", store)
			if err != nil {
				t.Fatal(err)
			}
			o := allowAll()
			o.SessionStore, o.SessionID = reg.Option(), a3s.Ptr("mine")
			s, err := agent.Session(t.Context(), t.TempDir(), o)
			if err != nil {
				t.Fatal(err)
			}
			run(t, s, "count")
			if err := s.Close(t.Context()); err != nil { // nothing was saved: the journal is there
				t.Fatal(err)
			}
			if n := len(kept.blobs); n == 0 != hide {
				t.Errorf("%d blobs", n)
			}
			if ids, err := agent.ListStoredSessions(t.Context(), reg.Option()); err != nil || !slices.Equal(ids, []string{"mine"}) {
				t.Error(ids, err)
			}
			again, err := agent.ResumeSession(t.Context(), "mine", o)
			if err != nil {
				t.Fatal(err)
			}
			if h := again.History(); len(h) != 4 || h[3].Text() != "I counted." {
				t.Errorf("%+v", h)
			}
			if err := again.Save(t.Context()); err != nil {
				t.Fatal(err)
			}
			if k := kept.kept["mine"]; k.Snapshot == nil || len(k.Facts) != 0 {
				t.Errorf("%+v", k)
			}
			_ = kept.with(func() { kept.err = errors.New("the shelf fell down") })
			if _, err := again.Send(t.Context(), "more", nil); err == nil || !strings.Contains(err.Error(), "the shelf fell down") {
				t.Errorf("a store that fails: %v", err)
			}
		})
	}
}

// folder is a workspace in memory, with a shell and a search.
type folder struct {
	mu    sync.Mutex
	files map[string]string
}

func (f *folder) Stat(_ context.Context, p string) (a3s.WorkspaceEntry, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if text, ok := f.files[p]; ok {
		return a3s.WorkspaceEntry{Type: a3s.File, Size: int64(len(text))}, nil
	}
	for name := range f.files {
		if p == "." || strings.HasPrefix(name, p+"/") {
			return a3s.WorkspaceEntry{Type: a3s.Dir}, nil
		}
	}
	return a3s.WorkspaceEntry{}, &fs.PathError{Op: "stat", Path: p, Err: fs.ErrNotExist}
}

func (f *folder) List(_ context.Context, p string) (entries []a3s.WorkspaceEntry, _ error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, text := range f.files {
		if path.Dir(name) == p {
			entries = append(entries, a3s.WorkspaceEntry{Name: path.Base(name), Type: a3s.File, Size: int64(len(text))})
		}
	}
	return entries, nil
}

func (f *folder) Read(_ context.Context, p string, _ int64) ([]byte, string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	text, ok := f.files[p]
	switch {
	case !ok:
		return nil, "", fs.ErrNotExist
	case text == "":
		return nil, "0", nil
	}
	return []byte(text), fmt.Sprint(len(text)), nil
}

func (f *folder) Write(_ context.Context, w a3s.WorkspaceWrite) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if old, ok := f.files[w.Path]; w.IfVersion == "" && ok || w.Path == "contested.txt" {
		return "", a3s.Conflict(w.IfVersion, fmt.Sprint(len(old)))
	}
	f.files[w.Path] = string(w.Data)
	return fmt.Sprint(len(w.Data)), nil
}

func (f *folder) Remove(_ context.Context, p string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.files, p)
	return nil
}

func (f *folder) Run(_ context.Context, c a3s.WorkspaceCommand, out io.Writer) (int, bool, error) {
	if c.Line == "slow" {
		return -1, true, nil
	}
	for range 3 {
		if _, err := io.WriteString(out, c.Line+strings.Repeat(".", 700_000)); err != nil {
			return 0, false, err
		}
	}
	return 7, false, nil
}

func (f *folder) Search(_ context.Context, s a3s.WorkspaceSearch) (found a3s.WorkspaceFound, _ error) {
	if s.Glob != nil {
		found.Files = []a3s.WorkspaceMatch{{Path: "a.txt"}}
		return found, nil
	}
	found.Lines = []a3s.WorkspaceLine{{Path: "a.txt", Line: 1, Text: "one " + s.Grep.Pattern}}
	return found, nil
}

// onlyFiles hides shell and search.
type onlyFiles struct{ a3s.Workspace }

func TestWorkspace(t *testing.T) {
	agent, _ := scriptedAgent(t, "say hi", nil)
	ctx, f := t.Context(), &folder{files: map[string]string{"a.txt": "one\n", "empty.txt": ""}}
	reg, err := agent.RegisterWorkspace(ctx, "notebook", f, a3s.Root("/srv/notes"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := agent.Session(ctx, "", &a3s.SessionOptions{WorkspaceBackend: reg.Option()})
	if err != nil {
		t.Fatal(err)
	}
	if s.Workspace() != "/srv/notes" {
		t.Error(s.Workspace())
	}
	call := func(name string, args object) string {
		r, err := s.Tool(ctx, name, args)
		if err != nil {
			t.Error(err)
		}
		return fmt.Sprint(r.ExitCode, r.Metadata["exit_code"], " ", r.Output)
	}
	for _, c := range []struct{ got, want string }{
		{call("read", object{"file_path": "a.txt"}), "one"},
		{call("read", object{"file_path": "/srv/notes/empty.txt"}), "has 0 lines"},
		{call("read", object{"file_path": "b.txt"}), "does not exist"},
		{call("ls", object{"path": "."}), "empty.txt"},
		{call("write", object{"file_path": "new/b.txt", "content": "two\n"}), "Wrote 4 bytes"},
		{call("write", object{"file_path": "contested.txt", "content": "two\n"}), "changed while"},
		{call("edit", object{"file_path": "a.txt", "old_string": "one", "new_string": "eins"}), "Replaced 1"},
		{call("bash", object{"command": "count"}), "1 7 count..."},
		{call("bash", object{"command": "slow"}), "timed out"},
		{call("glob", object{"pattern": "*.txt"}), "a.txt\n"},
		{call("grep", object{"pattern": "moon"}), "one moon"},
	} {
		if !strings.Contains(c.got, c.want) {
			t.Errorf("%.300q does not say %q", c.got, c.want)
		}
	}
	f.mu.Lock()
	if f.files["a.txt"] != "eins\n" || f.files["new/b.txt"] != "two\n" {
		t.Errorf("%q", f.files)
	}
	f.mu.Unlock()

	bare, err := agent.RegisterWorkspace(ctx, "bare", onlyFiles{f})
	if err != nil {
		t.Fatal(err)
	}
	without, err := agent.Session(ctx, "", &a3s.SessionOptions{WorkspaceBackend: bare.Option()})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"bash", "grep", "glob"} {
		if slices.Contains(without.ToolNames(), name) || !slices.Contains(s.ToolNames(), name) {
			t.Errorf("%s: %q, %q", name, without.ToolNames(), s.ToolNames())
		}
	}
}

// wire counts what passes through another transport.
type wire struct {
	under http.RoundTripper
	keys  chan string
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	w.keys <- r.Header.Get("Authorization")
	return w.under.RoundTrip(r)
}

type broken struct{ err error }

func (b broken) RoundTrip(*http.Request) (*http.Response, error) { return nil, b.err }

func TestTransport(t *testing.T) {
	begun := make(chan struct{})
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.URL.Path != "/v1/chat/completions" || !strings.Contains(string(body), "hello") {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, `data: {"id":"c1","choices":[{"index":0,"delta":{"content":"hi"}}]}`+"\n\n")
		w.(http.Flusher).Flush()
		if strings.Contains(string(body), "hello for ever") {
			close(begun)
			<-r.Context().Done()
			return
		}
		_, _ = io.WriteString(w, `data: {"id":"c1","choices":[{"index":0,"delta":{"content":" there"},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
	}))
	defer service.Close()
	acl := `default_model = "openai/gpt"
providers "openai" { apiKey = "sk-a-key-of-tests" transport = "host/tunnel" baseUrl = "` + service.URL + `" models "gpt" { } }`
	open := func(rt http.RoundTripper) *a3s.Session {
		agent, err := a3s.Create(t.Context(), acl, a3s.WithDir(t.TempDir()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = agent.Close(context.Background()) })
		if _, err := agent.RegisterTransport(t.Context(), "tunnel", rt); err != nil {
			t.Fatal(err)
		}
		s, err := agent.Session(t.Context(), t.TempDir(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	under := service.Client().Transport
	w := &wire{under, make(chan string, 8)}
	s := open(w)
	if got := run(t, s, "hello"); got != "hi there" || <-w.keys != "Bearer sk-a-key-of-tests" {
		t.Errorf("%q", got)
	}
	r, err := s.Start("hello for ever", nil)
	if err != nil {
		t.Fatal(err)
	}
	<-begun
	r.Cancel("enough") // the service sees its request end
	if _, err := r.Wait(t.Context()); code(t, err) != "CANCELLED" {
		t.Error(err)
	}
	for want, b := range map[string]broken{"cable cut": {errors.New("cable cut")}, "neither a response nor an error": {}} {
		if _, err := open(b).Send(t.Context(), "hello", nil); code(t, err) != "LLM_ERROR" || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}
