package extensions

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/a3s-lab/liba3s/runtime/agent"
	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/host"
	"github.com/a3s-lab/liba3s/runtime/op"
	"github.com/a3s-lab/liba3s/runtime/session"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var bg = context.Background()

// object is JSON in the words of a test.
type object = map[string]any

// raw is sent as it is.
type raw string

// errSilent leaves a request without an answer.
var errSilent = errors.New("silent")

// asked is a request as a program sees it.
type asked struct {
	event.HostRequest
	ctx   context.Context // ends when the request is withdrawn
	chunk func(v any) error
}

// param gives a parameter of the request.
func (a asked) param(name string) any {
	var p object
	_ = json.Unmarshal(a.Params, &p)
	return p[name]
}

type handler func(a asked) (any, error)

// program is a host: it reads the control stream and answers.
type program struct {
	t        *testing.T
	agent    *agent.Agent
	dir      string
	stream   *op.Stream
	work     sync.WaitGroup
	handlers map[string]handler // by "kind/op"; set before they are needed

	mu        sync.Mutex
	requests  []event.HostRequest
	open      map[uint64]context.CancelFunc
	withdrawn map[uint64]string
	logs      []event.LogLine
	moved     chan struct{} // closed and replaced when something is heard
}

// start makes an agent of a configuration, in a folder of its own, and listens. files are
// written there first.
func start(t *testing.T, acl string, files map[string]string) *program {
	t.Helper()
	p := deaf(t, acl, files)
	p.listen()
	return p
}

// deaf is start without a control stream.
func deaf(t *testing.T, acl string, files map[string]string) *program {
	t.Helper()
	p := &program{
		t: t, dir: t.TempDir(), handlers: map[string]handler{}, open: map[uint64]context.CancelFunc{}, withdrawn: map[uint64]string{},
		moved: make(chan struct{}),
	}
	for name, text := range files {
		path := filepath.Join(p.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	a, err := op.OpenAgent(bg, encode(t, object{"acl": acl, "cwd": p.dir}))
	if err != nil {
		t.Fatal(err)
	}
	p.agent = a
	t.Cleanup(func() {
		p.mu.Lock()
		for _, cancel := range p.open {
			cancel()
		}
		p.mu.Unlock()
		ctx, cancel := context.WithTimeout(bg, 10*time.Second)
		defer cancel()
		if err := a.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
		p.work.Wait()
	})
	return p
}

func (p *program) listen() {
	st, err := op.OpenStream(bg, p.agent, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	p.stream = st
	p.work.Go(func() {
		defer st.Close()
		for e := range events(p.t, st) {
			p.hear(e)
		}
	})
}

// openSecond opens another control stream that nobody reads, and gives its close.
func openSecond(p *program) (func(), error) {
	st, err := op.OpenStream(bg, p.agent, nil)
	if err != nil {
		return nil, err
	}
	return st.Close, nil
}

// events reads a stream to its end.
func events(t *testing.T, st *op.Stream) func(func(event.Envelope) bool) {
	return func(yield func(event.Envelope) bool) {
		buf := make([]byte, 64<<10)
		for {
			n, needed, err := st.Next(bg, 64, buf)
			switch fault.KindOf(err) {
			case fault.Buffer:
				buf = make([]byte, needed)
				continue
			case fault.End, fault.Closed, fault.Woken:
				return
			}
			var batch []event.Envelope
			if err == nil {
				err = json.Unmarshal(buf[:n], &batch)
			}
			if err != nil {
				t.Error(err)
				return
			}
			for _, e := range batch {
				if !yield(e) {
					return
				}
			}
		}
	}
}

func (p *program) hear(e event.Envelope) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.bump()
	switch e.Type {
	case "host_request":
		var r event.HostRequest
		if err := json.Unmarshal(e.Payload, &r); err != nil {
			p.t.Error(err)
			return
		}
		ctx, cancel := context.WithCancel(bg)
		p.requests = append(p.requests, r)
		p.open[r.Request] = cancel
		p.work.Go(func() { p.serve(asked{HostRequest: r, ctx: ctx}) })
	case "host_cancel":
		var c event.HostCancel
		if err := json.Unmarshal(e.Payload, &c); err != nil {
			p.t.Error(err)
			return
		}
		p.withdrawn[c.Request] = c.Reason
		if cancel := p.open[c.Request]; cancel != nil {
			cancel()
		}
	case "log":
		var l event.LogLine
		if err := json.Unmarshal(e.Payload, &l); err != nil {
			p.t.Error(err)
			return
		}
		p.logs = append(p.logs, l)
	}
}

// bump wakes who waits in until. p.mu is held.
func (p *program) bump() {
	close(p.moved)
	p.moved = make(chan struct{})
}

func (p *program) serve(a asked) {
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.bump()
	}()
	h := p.handlers[a.Kind+"/"+a.Op]
	if h == nil {
		p.t.Errorf("nobody answers %s/%s", a.Kind, a.Op)
		return
	}
	a.chunk = func(v any) error { return op.HostChunk(bg, p.agent, a.Request, encode(p.t, v)) }
	result, err := h(a)
	if errors.Is(err, errSilent) {
		return
	}
	_ = op.HostReply(bg, p.agent, a.Request, p.reply(result, err)) // it may be withdrawn by now
}

func (p *program) reply(result any, err error) []byte {
	if err == nil {
		return []byte(`{"result":` + string(encode(p.t, result)) + `}`)
	}
	var f *host.Failure
	if !errors.As(err, &f) {
		f = &host.Failure{Type: "ValueError", Message: err.Error()}
	}
	return encode(p.t, host.Reply{Error: f})
}

func encode(t *testing.T, v any) []byte {
	if r, ok := v.(raw); ok {
		return []byte(r)
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Error(err)
	}
	return b
}

// on sets who answers an operation of a kind.
func (p *program) on(kindOp string, h handler) { p.handlers[kindOp] = h }

// register registers an extension with the agent or, if s is given, a session.
func (p *program) register(kind string, spec object, s ...*session.Session) *agent.Registration {
	p.t.Helper()
	r, err := p.tryRegister(kind, spec, s...)
	if err != nil {
		p.t.Fatalf("register %s %v: %v", kind, spec, err)
	}
	return r
}

func (p *program) tryRegister(kind string, spec object, s ...*session.Session) (*agent.Registration, error) {
	if len(s) > 0 {
		return op.HostRegister(bg, s[0], kind, encode(p.t, spec))
	}
	return op.HostRegister(bg, p.agent, kind, encode(p.t, spec))
}

// session opens a session in the program's folder.
func (p *program) session(options object) *session.Session {
	p.t.Helper()
	s, err := p.trySession(options)
	if err != nil {
		p.t.Fatal(err)
	}
	return s
}

func (p *program) trySession(options object) (*session.Session, error) {
	request := object{"options": options}
	if _, ok := options["workspace_backend"]; !ok {
		request["workspace"] = p.dir
	}
	return op.OpenSession(bg, p.agent, encode(p.t, request))
}

// resume opens a kept session.
func (p *program) resume(id string, options object) (*session.Session, error) {
	return op.OpenSession(bg, p.agent, encode(p.t, object{"resume": id, "options": options}))
}

// ran is what became of a run.
type ran struct {
	text   string
	err    error
	events []event.Envelope
}

// run runs a prompt to its end.
func (p *program) run(s *session.Session, prompt string) ran {
	p.t.Helper()
	r, err := s.Start(session.Prompt{Text: prompt})
	if err != nil {
		p.t.Fatal(err)
	}
	return p.finish(r)
}

func (p *program) finish(r *session.Run) ran {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(bg, 20*time.Second)
	defer cancel()
	result, err := r.Wait(ctx)
	if ctx.Err() != nil {
		p.t.Fatal("the run does not end")
	}
	out := ran{text: result.Text, err: err}
	st, oerr := op.OpenStream(bg, r, nil)
	if oerr != nil {
		p.t.Fatal(oerr)
	}
	defer st.Close()
	for e := range events(p.t, st) {
		out.events = append(out.events, e)
	}
	return out
}

// types gives the types of a run's events, doubles beside each other once.
func (r ran) types() []string {
	var out []string
	for _, e := range r.events {
		out = append(out, e.Type)
	}
	return slices.Compact(out)
}

// payload gives the first event of a type.
func (r ran) payload(kind string) object {
	for _, e := range r.events {
		if e.Type == kind {
			var p object
			_ = json.Unmarshal(e.Payload, &p)
			return p
		}
	}
	return nil
}

// until waits for something that the program hears or answers.
func (p *program) until(what string, ok func() bool) {
	p.t.Helper()
	late := time.NewTimer(10 * time.Second)
	defer late.Stop()
	for {
		p.mu.Lock()
		moved := p.moved
		done := ok()
		p.mu.Unlock()
		if done {
			return
		}
		select {
		case <-moved:
		case <-late.C:
			p.t.Fatalf("%s: not heard within 10 s", what)
		}
	}
}

// heard counts the requests of a kind and operation.
func (p *program) heard(kind, operation string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, r := range p.requests {
		if r.Kind == kind && r.Op == operation {
			n++
		}
	}
	return n
}

// withdraws waits until the last request of a kind is withdrawn, and checks the reason.
func (p *program) withdraws(kind, reason string) {
	p.t.Helper()
	got := ""
	p.until("the withdrawal of "+kind, func() bool {
		for _, r := range slices.Backward(p.requests) {
			if r.Kind == kind {
				got = p.withdrawn[r.Request]
				return got != ""
			}
		}
		return false
	})
	want(p.t, "withdrawn", got, reason)
}

// script is a configuration whose model plays a text.
func script(text string) (string, map[string]string) {
	return `default_model = "script/main"
providers "script" { models "main" { script = "turns.txt" } }`, map[string]string{"turns.txt": text}
}

// scripted starts a program whose model plays a text.
func scripted(t *testing.T, text string) *program {
	t.Helper()
	acl, files := script(text)
	return start(t, acl, files)
}

// want compares values by their JSON.
func want(t *testing.T, what string, got, wanted any) {
	t.Helper()
	g, w := plain(t, got), plain(t, wanted)
	if !reflect.DeepEqual(g, w) {
		t.Errorf("%s:\n got %.2000s\nwant %.2000s", what, encode(t, g), encode(t, w))
	}
}

func plain(t *testing.T, v any) (out any) {
	t.Helper()
	if err := json.Unmarshal(encode(t, v), &out); err != nil {
		t.Error(err)
	}
	return out
}

func wantError(t *testing.T, what string, err error, code fault.Code, words ...string) *fault.Error {
	t.Helper()
	var f *fault.Error
	if !errors.As(err, &f) || f.Code != code {
		t.Fatalf("%s: got %v, want code %s", what, err, code)
	}
	for _, w := range words {
		if !strings.Contains(f.Error(), w) {
			t.Errorf("%s: %q does not say %q", what, f.Error(), w)
		}
	}
	return f
}
