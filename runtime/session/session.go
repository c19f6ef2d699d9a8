// Package session owns the identity of a conversation: the sequencer that numbers,
// keeps and tells its facts, one run at a time, the questions to the host, resume and
// snapshot. Thinking and doing is run's. Floor 7.
package session

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/a3s-lab/liba3s/internal/id"
	"github.com/a3s-lab/liba3s/internal/tape"
	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/policy"
	"github.com/a3s-lab/liba3s/runtime/record"
	"github.com/a3s-lab/liba3s/runtime/run"
	"github.com/a3s-lab/liba3s/runtime/store"
)

// Retention bounds what a session keeps in memory and in its snapshot. The figures in
// DefaultRetention are those of the contract, section 2.3.
type Retention struct {
	Unbounded                bool  `json:"unbounded,omitempty"`
	MaxRunsRetained          int   `json:"max_runs_retained,omitempty"`
	MaxEventsPerRun          int   `json:"max_events_per_run,omitempty"`
	MaxEventBytesPerRun      int64 `json:"max_event_bytes_per_run,omitempty"`
	MaxTraceEvents           int   `json:"max_trace_events,omitempty"`
	MaxTerminalSubagentTasks int   `json:"max_terminal_subagent_tasks,omitempty"`
}

// DefaultRetention is what holds when the host sets nothing.
var DefaultRetention = Retention{MaxRunsRetained: 64, MaxEventsPerRun: 2048, MaxEventBytesPerRun: 8 << 20, MaxTraceEvents: 8192, MaxTerminalSubagentTasks: 512}

// maxSessionBytes bounds the events of all runs in memory; the oldest ended run goes
// first (S16).
const maxSessionBytes = 64 << 20

// Config is everything a session is made of.
type Config struct {
	ID string
	// Engine runs the runs; its Gate is made by Gate, with the session as asker.
	Engine *run.Engine
	Gate   func(policy.Asker) *policy.Gate
	// Data is the session's part of a snapshot as the options say it; the rest is
	// filled in from the facts.
	Data record.SessionData
	// Kept is the session's place in a store; nil keeps everything in memory.
	Kept store.Session
	// Journal false keeps snapshots only, as 6.x did.
	Journal   bool
	AutoSave  bool
	Source    *id.Source
	Redact    *policy.Redactor
	Retention Retention
	// StallTimeout is how long a run without a store waits for a slow reader (S5).
	StallTimeout time.Duration
	// Warning is the beginning of init_warning.
	Warning string
	// Log takes lines for the host's log. Never nil.
	Log func(event.LogLine)
	// Withdraw, if not nil, takes the session's open questions to the host back; it is
	// called while the session closes.
	Withdraw func(reason string)
	// Closed is called once, when the session is closed.
	Closed func()
	// Owner is what opened the session; the session hands it back and looks at nothing.
	Owner any
}

// Session is one conversation. Methods may be called concurrently.
type Session struct {
	cfg  Config
	seq  *sequencer
	life context.Context // ends with the session
	stop context.CancelCauseFunc

	mu        sync.Mutex
	active    *Run                   // guarded by mu
	closed    bool                   // guarded by mu
	done      chan struct{}          // closed when the session is closed for good
	asked     map[string]*question   // open questions by call id; guarded by mu
	settled   []string               // ids of the latest answered questions; guarded by mu
	commands  map[string]hostCommand // of the host, by name; guarded by mu
	direct    sync.WaitGroup         // direct calls under way; Add under mu
	warning   string
	createdAt int64

	// What a loaded snapshot holds and this version only hands on; set by load.
	extra     map[string]json.RawMessage
	reports   []json.RawMessage
	subagents []record.SubagentTask
}

// Open makes a session of what cfg says and what its place in the store holds. Runs
// that a dead process left open are settled, and that is kept, before it returns (S13);
// nothing is executed.
func Open(ctx context.Context, cfg Config) (*Session, error) {
	s := &Session{
		cfg: cfg, done: make(chan struct{}), asked: map[string]*question{}, warning: cfg.Warning,
		seq: &sequencer{
			sid: cfg.ID, redact: cfg.Redact, now: cfg.Source.NowMS, merge: !cfg.Source.Deterministic(),
			retention: cfg.Retention, stall: cfg.StallTimeout, fold: newFold(), streams: map[*tape.Cursor]struct{}{},
		},
	}
	s.life, s.stop = context.WithCancelCause(context.Background())
	s.createdAt = cfg.Source.NowMS() / 1000
	cfg.Engine.Gate = cfg.Gate(s)
	if err := s.load(ctx); err != nil {
		s.stop(err)
		return nil, err
	}
	return s, nil
}

// ID is the session's id.
func (s *Session) ID() string { return s.cfg.ID }

// Owner is what opened the session.
func (s *Session) Owner() any { return s.cfg.Owner }

// Info says what a session is.
type Info struct {
	SessionID   string `json:"session_id"`
	Workspace   string `json:"workspace"`
	InitWarning string `json:"init_warning,omitempty"`
	Model       string `json:"model,omitempty"`
	Closed      bool   `json:"closed"`
	record.Labels
}

// Info gives the identity of the session.
func (s *Session) Info() Info {
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	return Info{SessionID: s.cfg.ID, Workspace: s.cfg.Data.Config.Workspace, InitWarning: s.warning, Model: s.cfg.Data.ModelName, Closed: closed, Labels: s.cfg.Data.Labels}
}

// admit says whether the session is open. s.mu is held.
func (s *Session) admit() error {
	if s.closed {
		return fault.Of(fault.CodeSessionClosed, "session", "Session '%s' is closed", s.cfg.ID)
	}
	return nil
}

// isOpen is admit for those who need no lock afterwards.
func (s *Session) isOpen() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.admit()
}

// Stream opens a stream of the session: the events of every run from now on.
func (s *Session) Stream() (*tape.Cursor, error) {
	s.seq.view.Lock()
	defer s.seq.view.Unlock()
	c := tape.NewCursor(gapFrame)
	if s.seq.ended {
		c.Last()
		return c, nil
	}
	for _, r := range s.seq.fold.runs {
		if !r.tape.Ended() {
			_, next, _ := r.tape.Bounds()
			c.AddTape(r.tape, next, s.seq.backfill(r))
		}
	}
	s.seq.streams[c] = struct{}{}
	return c, nil
}

// Release forgets a stream that was closed.
func (s *Session) Release(c *tape.Cursor) {
	s.seq.view.Lock()
	delete(s.seq.streams, c)
	s.seq.view.Unlock()
}

// frame puts an unnumbered frame on the session's streams.
func (s *Session) frame(p event.Payload) {
	b := frame(p)
	s.seq.view.RLock()
	defer s.seq.view.RUnlock()
	for c := range s.seq.streams {
		c.AddFrame(b, 1<<20)
	}
}

// log writes a line to the host's log with the session's name.
func (s *Session) log(l event.LogLine) {
	l.SessionID = s.cfg.ID
	s.cfg.Log(l)
}

// warn adds to init_warning.
func (s *Session) warn(text string) {
	if text == "" {
		return
	}
	if s.warning != "" {
		s.warning += "; "
	}
	s.warning += text
}

// History gives the transcript.
func (s *Session) History() []chat.Message {
	s.seq.view.RLock()
	defer s.seq.view.RUnlock()
	return append([]chat.Message{}, s.seq.fold.messages...)
}
