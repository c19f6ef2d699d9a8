package op_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/a3s-lab/liba3s/runtime/agent"
	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/op"
	"github.com/a3s-lab/liba3s/runtime/session"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// place is a folder with a configuration, a script and a workspace.
type place struct {
	t   *testing.T
	dir string
}

// scripted gives a place whose model plays a script.
func scripted(t *testing.T, script string) place {
	t.Helper()
	p := place{t, t.TempDir()}
	p.write("agent.acl", "default_model = \"script/main\"\nproviders \"script\" { models \"main\" { script = \"turns.txt\" } }\n")
	p.write("turns.txt", script)
	if err := os.MkdirAll(p.path("ws"), 0o755); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p place) path(name string) string { return filepath.Join(p.dir, name) }

func (p place) write(name, text string) {
	p.t.Helper()
	if err := os.MkdirAll(filepath.Dir(p.path(name)), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(p.path(name), []byte(text), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

// request encodes a request.
func request(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

type object = map[string]any

// agent opens an agent on agent.acl of the place; it is closed at the end of the test.
func (p place) agent() *agent.Agent {
	p.t.Helper()
	a, err := op.OpenAgent(p.t.Context(), request(p.t, object{"acl_path": "agent.acl", "cwd": p.dir, "env": object{"PATH": "/usr/bin:/bin"}}))
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { shut(p.t, a) })
	return a
}

func shut(t *testing.T, h op.Handle) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := op.Close(ctx, h); err != nil {
		t.Errorf("close: %v", err)
	}
}

// session opens a session in ws with options.
func (p place) session(a *agent.Agent, options object) *session.Session {
	p.t.Helper()
	s, err := op.OpenSession(p.t.Context(), a, request(p.t, object{"workspace": "ws", "options": options}))
	if err != nil {
		p.t.Fatal(err)
	}
	return s
}

// allowAll lets everything run.
var allowAll = object{"permission_policy": object{"default_decision": "allow"}}

// with adds options.
func with(o object, key string, value any) object {
	all := object{key: value}
	for k, v := range o {
		if k != key {
			all[k] = v
		}
	}
	return all
}

// play runs a prompt and gives its events and its failure.
func play(t *testing.T, s *session.Session, prompt string) ([]event.Envelope, error) {
	t.Helper()
	r, err := op.StartRun(t.Context(), s, request(t, object{"prompt": prompt}))
	if err != nil {
		t.Fatal(err)
	}
	told := read(t, r)
	_, failed := op.Wait(t.Context(), r)
	return told, failed
}

// read gives all events of a run.
func read(t *testing.T, r *session.Run) []event.Envelope {
	t.Helper()
	c, err := op.OpenStream(t.Context(), r, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var told []event.Envelope
	for buf := make([]byte, 64<<10); ; {
		n, needed, err := c.Next(t.Context(), 100, buf)
		switch fault.KindOf(err) {
		case fault.Buffer:
			buf = make([]byte, needed)
			continue
		case fault.End:
			return told
		}
		if err != nil {
			t.Fatal(err)
		}
		var batch []event.Envelope
		if err := json.Unmarshal(buf[:n], &batch); err != nil {
			t.Fatal(err)
		}
		told = append(told, batch...)
	}
}

// call runs an operation and decodes its result.
func call(t *testing.T, h op.Handle, method string, params, result any) {
	t.Helper()
	b, err := op.Call(t.Context(), h, method, request(t, params))
	if err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	if result != nil {
		if err := json.Unmarshal(b, result); err != nil {
			t.Fatalf("%s: %s: %v", method, b, err)
		}
	}
}

// wanted is what an error must look like. Details must be there; others may be beside.
type wanted struct {
	code    fault.Code
	kind    fault.Kind
	message string // a part of it
	details object
}

// check compares a whole error object in its one JSON shape.
func (w wanted) check(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %s", w.code)
	}
	b, merr := json.Marshal(fault.From("test", err))
	if merr != nil {
		t.Fatal(merr)
	}
	var got struct {
		Code      fault.Code
		Status    fault.Status
		Kind      fault.Kind
		Op        string
		Message   string
		Retryable bool
		Details   object
	}
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	if got.Code != w.code || got.Kind != w.kind || got.Status != w.kind.Status() || got.Retryable || got.Op == "" || !strings.Contains(got.Message, w.message) {
		t.Errorf("got %s\nwant %+v with status %d", b, w, w.kind.Status())
	}
	for k, v := range w.details {
		if fmt.Sprint(got.Details[k]) != fmt.Sprint(v) {
			t.Errorf("details.%s is %v, want %v in %s", k, got.Details[k], v, b)
		}
	}
}

// events gives the kept events of a run.
func events(t *testing.T, s *session.Session, run string) []event.Envelope {
	t.Helper()
	var out struct{ Events []event.Envelope }
	call(t, s, "session.run_events", object{"run_id": run}, &out)
	return out.Events
}
