// Package agent turns configuration into parts and connects them: it is the only
// importer of back-ends. An agent holds a configuration, the desk for the host and the
// sessions that are open; how a session behaves is decided below. Floor 9.
package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/a3s-lab/liba3s/internal/httpx"
	"github.com/a3s-lab/liba3s/internal/safego"
	"github.com/a3s-lab/liba3s/internal/tape"
	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/host"
	"github.com/a3s-lab/liba3s/runtime/model/script"
	"github.com/a3s-lab/liba3s/runtime/policy"
	"github.com/a3s-lab/liba3s/runtime/session"
)

// maxBacklog bounds the log lines that wait for the first control stream.
const maxBacklog = 256

// maxControl bounds the frames that wait on a control stream nobody reads.
const maxControl = 8 << 20

// Setup is what an agent is made of.
type Setup struct {
	// Exactly one of the three is given: Source is the path of an .acl file or a
	// configuration as text (one line that ends in .acl is a path), ACL is always text,
	// ACLPath always a path.
	Source  string
	ACL     string
	ACLPath string
	// Env answers env("NAME") and gives children PATH, HOME and LANG. It is never
	// stored, logged or told.
	Env map[string]string
	// Cwd completes relative paths. It must be absolute.
	Cwd string
	// LogLevel is the least level that reaches the host: debug, info, warn or error;
	// empty is warn.
	LogLevel string
	// StoreHook, for tests of crashes, is called at every step of a file store. Nil in
	// production.
	StoreHook func(point string)
}

// Agent holds a configuration and its open sessions. Methods may be called
// concurrently.
type Agent struct {
	setup  Setup
	cfg    *Config
	redact *policy.Redactor // of the configuration's secrets
	desk   *host.Desk
	level  int

	mu         sync.Mutex
	clients    map[string]*httpx.Client    // by proxy; guarded by mu
	sessions   map[string]*session.Session // guarded by mu
	opening    map[string]bool             // ids being opened; guarded by mu
	closed     bool                        // guarded by mu
	control    map[*tape.Cursor]struct{}   // guarded by mu
	backlog    [][]byte                    // log frames before the first control stream; guarded by mu
	extensions []*registration             // of the host, oldest first; guarded by mu
	scripts    map[string]*script.Client   // position of kept sessions in their scripts; guarded by mu
}

var levels = []string{"debug", "info", "warn", "error"}

// Open reads the configuration and makes an agent. Nothing is contacted.
func Open(_ context.Context, s Setup) (*Agent, error) {
	if s.Cwd == "" || s.Cwd[0] != '/' {
		return nil, fault.Of(fault.CodeInvalidRequest, "agent.open", "cwd must be an absolute path, got %q", s.Cwd).With("field", "cwd").With("reason", fault.BadValue)
	}
	if s.Source != "" && s.ACL == "" && s.ACLPath == "" {
		switch line := strings.TrimSpace(s.Source); {
		case strings.HasSuffix(line, ".acl") && !strings.ContainsAny(line, "\r\n"):
			s.ACLPath = line
		case line != "" && line[0] != '#' && !strings.ContainsAny(line, "\r\n={:"):
			return nil, fault.Of(fault.CodeConfig, "agent.open", "%q is neither the path of a file that ends in .acl nor a configuration", host.Cut(line, 200)).With("field", "source")
		default:
			s.ACL = s.Source
		}
		s.Source = ""
	}
	if s.Source != "" || (s.ACL == "") == (s.ACLPath == "") {
		return nil, fault.Of(fault.CodeConfig, "agent.open", "give one configuration: source (a path or text), acl (text) or acl_path (a file)").With("field", "source")
	}
	level := 2
	if s.LogLevel != "" {
		if level = slices.Index(levels, s.LogLevel); level < 0 {
			return nil, fault.Of(fault.CodeInvalidRequest, "agent.open", "log_level %q is none of debug, info, warn, error", s.LogLevel).With("field", "log_level").With("reason", fault.BadValue)
		}
	}
	cfg, err := ReadConfig(s.ACLPath, s.ACL, s.Cwd, s.Env)
	if err != nil {
		return nil, err
	}
	a := &Agent{
		setup: s, cfg: cfg, redact: policy.NewRedactor(cfg.secrets()), level: level,
		clients: map[string]*httpx.Client{}, sessions: map[string]*session.Session{}, opening: map[string]bool{},
		control: map[*tape.Cursor]struct{}{}, scripts: map[string]*script.Client{},
	}
	a.desk = host.NewDesk(sender{a})
	if cfg.DefaultModel != "" {
		if _, _, err := a.find(cfg.DefaultModel); err != nil {
			return nil, err
		}
	}
	for _, w := range cfg.Warnings {
		a.log(event.LogLine{Level: "warn", Message: "configuration: " + w, ErrorKind: "config"})
	}
	return a, nil
}

// Warnings of the configuration, with line and column.
func (a *Agent) Warnings() []string { return slices.Clone(a.cfg.Warnings) }

// Closed says whether the agent is closed.
func (a *Agent) Closed() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.closed
}

// ListSessions gives the ids of the open sessions, sorted.
func (a *Agent) ListSessions() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	ids := slices.Sorted(maps.Keys(a.sessions))
	if ids == nil {
		ids = []string{}
	}
	return ids
}

// CloseSession closes an open session; false if there is none of that id.
func (a *Agent) CloseSession(ctx context.Context, id string) (bool, error) {
	a.mu.Lock()
	s := a.sessions[id]
	a.mu.Unlock()
	if s == nil {
		return false, nil
	}
	return true, s.Close(ctx)
}

// Close closes every session and then the agent. A second Close does nothing.
func (a *Agent) Close(ctx context.Context) error {
	a.mu.Lock()
	a.closed = true
	open := slices.Collect(maps.Values(a.sessions))
	a.mu.Unlock()
	var wg sync.WaitGroup
	errs := make([]error, len(open))
	for i, s := range open {
		wg.Add(1)
		safego.Go("agent.close", nil, func() {
			defer wg.Done()
			errs[i] = s.Close(ctx)
		})
	}
	wg.Wait()
	a.desk.Close()
	a.mu.Lock()
	for c := range a.control {
		c.Last()
	}
	clear(a.scripts)
	ended := a.extensions
	a.extensions = nil
	clients := slices.Collect(maps.Values(a.clients))
	clear(a.clients)
	a.mu.Unlock()
	for _, r := range ended {
		r.end()
	}
	for _, c := range clients {
		c.Close()
	}
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Stream opens the agent's control stream: host requests and log lines. What was
// logged before the first one is told to it.
func (a *Agent) Stream() (*tape.Cursor, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := tape.NewCursor(func(string, int64, int64) []byte { return nil }) // there is no tape in it
	for _, b := range a.backlog {
		c.AddFrame(b, 0)
	}
	a.backlog = nil
	if a.closed {
		c.Last()
		return c, nil
	}
	a.control[c] = struct{}{}
	return c, nil
}

// Release forgets a control stream that was closed. With the last one goes whoever
// could answer: questions that wait end at once.
func (a *Agent) Release(c *tape.Cursor) {
	a.mu.Lock()
	_, held := a.control[c]
	delete(a.control, c)
	deaf := held && len(a.control) == 0
	a.mu.Unlock()
	if deaf {
		a.desk.Lost()
	}
}

// Tell puts an unnumbered frame on the control streams. It reports whether there was
// one to take it.
func (a *Agent) Tell(p event.Payload) bool {
	b, err := event.AppendFrame(nil, p)
	return err == nil && a.tell(b, false)
}

// tell puts a frame on the control streams. A big one is taken as long as what waits
// there is within its bound.
func (a *Agent) tell(b []byte, big bool) bool {
	limit := maxControl
	if big {
		limit += len(b)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	told := false
	for c := range a.control {
		told = c.AddFrame(b, limit) || told
	}
	return told
}

// log writes a line to the host's log and its receivers, without secrets.
func (a *Agent) log(l event.LogLine) {
	l = a.clean(l)
	a.toSinks(l)
	if slices.Index(levels, l.Level) < a.level || a.Tell(l) {
		return
	}
	b, err := event.AppendFrame(nil, l)
	if err != nil { // clean has encoded it before
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.control) == 0 && len(a.backlog) < maxBacklog {
		a.backlog = append(a.backlog, b)
	}
}

// clean takes the secrets out of a line. Fields that cannot be encoded must not cost it.
func (a *Agent) clean(l event.LogLine) event.LogLine {
	b, err := json.Marshal(l)
	if err != nil {
		l.Fields = nil
		l.Message = a.redact.String(l.Message)
		return l
	}
	if clean := a.redact.Bytes(b); !bytes.Equal(clean, b) {
		l = event.LogLine{}
		if err := json.Unmarshal(clean, &l); err != nil {
			return event.LogLine{Level: "error", Message: "a log line was lost: " + err.Error()}
		}
	}
	return l
}

// sender carries the desk's frames to the control streams.
type sender struct{ a *Agent }

func (s sender) Request(r host.Request) error {
	b, err := event.AppendFrame(nil, event.HostRequest{Request: r.ID, Kind: r.Kind, Name: r.Name, Op: r.Op, Params: r.Params, SessionID: r.SessionID, DeadlineMS: r.Deadline.Milliseconds()})
	if err != nil {
		return fault.New(fault.Internal, "host.ask", "the request to %s %q cannot be encoded: %v", r.Kind, r.Name, err)
	}
	if s.a.tell(b, true) {
		return nil
	}
	return fault.New(fault.Unsupported, "host.ask", "the host has no control stream open, or does not read it: open one with a3s_stream_open(agent)").With("reason", "host_gone")
}

func (s sender) Cancel(id uint64, reason string) {
	s.a.Tell(event.HostCancel{Request: id, Reason: reason})
}

// Reply answers a host request.
func (a *Agent) Reply(id uint64, b []byte) error { return a.desk.Reply(id, b) }

// Chunk hands in progress of a host request.
func (a *Agent) Chunk(id uint64, b []byte) error { return a.desk.Chunk(id, b) }

// raw encodes what cannot fail to encode.
func raw(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return b
}
