package session_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/a3s-lab/liba3s/internal/id"
	"github.com/a3s-lab/liba3s/internal/tape"
	"github.com/a3s-lab/liba3s/runtime/artifact"
	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/model"
	"github.com/a3s-lab/liba3s/runtime/model/script"
	"github.com/a3s-lab/liba3s/runtime/policy"
	"github.com/a3s-lab/liba3s/runtime/prompt"
	"github.com/a3s-lab/liba3s/runtime/record"
	"github.com/a3s-lab/liba3s/runtime/run"
	"github.com/a3s-lab/liba3s/runtime/session"
	"github.com/a3s-lab/liba3s/runtime/store"
	storemem "github.com/a3s-lab/liba3s/runtime/store/mem"
	"github.com/a3s-lab/liba3s/runtime/tool"
	"github.com/a3s-lab/liba3s/runtime/tool/builtin"
	wsmem "github.com/a3s-lab/liba3s/runtime/workspace/mem"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// setup says what a session of a test is made of; the zero value is a session with the
// built-in tools, all allowed, in an empty workspace, without a store.
type setup struct {
	script     string
	model      model.Client // in the place of script
	tools      []tool.Tool
	files      map[string]string
	rules      *policy.Policy
	noRules    bool
	confirm    *policy.ConfirmationPolicy
	kept       store.Session
	noJournal  bool
	autoSave   bool
	secrets    []string
	retention  *session.Retention
	stall      time.Duration
	limits     run.Limits
	compaction prompt.Compaction
	window     int
	slots      prompt.Slots
	fixed      string // prefix of sequential ids
	wrap       func(*session.Config)
}

// rig is an open session with what a test looks at.
type rig struct {
	*session.Session
	t *testing.T

	mu  sync.Mutex
	log []event.LogLine // guarded by mu
}

// open makes a session, which is closed at the end of the test.
func open(t *testing.T, su setup) *rig {
	t.Helper()
	r, err := tryOpen(t, su)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func tryOpen(t *testing.T, su setup) (*rig, error) {
	t.Helper()
	ctx := t.Context()
	ws, err := wsmem.Open(ctx, wsmem.Config{Files: su.files})
	if err != nil {
		t.Fatal(err)
	}
	tools, err := tool.NewRegistry(builtin.For(ws)...)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range su.tools {
		if err := tools.Add(x); err != nil {
			t.Fatal(err)
		}
	}
	client := su.model
	if client == nil {
		if client, err = script.Open(ctx, script.Config{Text: su.script}); err != nil {
			t.Fatal(err)
		}
	}
	r := &rig{t: t}
	redact := policy.NewRedactor(su.secrets)
	source := new(id.Source)
	if su.fixed != "" {
		source = id.Sequence(su.fixed)
	}
	if su.limits.MaxToolRounds == 0 {
		su.limits.MaxToolRounds = 50
	}
	if su.limits.Parallel == 0 {
		su.limits.Parallel = 4
	}
	arts := artifact.Config{Redact: redact.String}
	if su.kept != nil {
		arts.Blobs = su.kept.Blobs()
	}
	artifacts := artifact.New(arts)
	engine := &run.Engine{
		Model: client, Tools: tools, Artifacts: artifacts, Redact: redact.String, Log: r.line, Limits: su.limits,
		Prompt: &prompt.Builder{Workspace: ws, Window: su.window, SessionID: "s", Compaction: su.compaction, Slots: su.slots},
		Env: tool.Env{
			Workspace: ws, Protected: func(string) bool { return false }, MayRead: func(string) bool { return true }, Artifact: artifacts.Get,
			Keep: func(ctx context.Context, name, content string) (string, error) {
				rec, err := artifacts.Put(ctx, name, content)
				return rec.ArtifactURI, err
			},
		},
	}
	cfg := session.Config{
		ID: "s", Engine: engine, Kept: su.kept, Journal: !su.noJournal, AutoSave: su.autoSave, Source: source, Redact: redact,
		Retention: session.DefaultRetention, StallTimeout: time.Minute, Log: r.line, Gate: gate(t, su, tools),
		Data: record.SessionData{ID: "s", State: "Active", Config: record.SessionConfig{Workspace: "mem:", PlanningMode: "auto"}},
	}
	if su.retention != nil {
		cfg.Retention = *su.retention
	}
	if su.stall > 0 {
		cfg.StallTimeout = su.stall
	}
	if su.wrap != nil {
		su.wrap(&cfg)
	}
	if r.Session, err = session.Open(ctx, cfg); err != nil {
		return nil, err
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := r.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return r, nil
}

func gate(t *testing.T, su setup, tools *tool.Registry) func(policy.Asker) *policy.Gate {
	t.Helper()
	cfg := policy.Config{Limits: policy.DefaultLimits()}
	if !su.noRules {
		rules := policy.Policy{DefaultDecision: "allow"}
		if su.rules != nil {
			rules = *su.rules
		}
		compiled, _, err := policy.Compile(rules, policy.Scope{Root: "/", Tools: tools.Names()})
		if err != nil {
			t.Fatal(err)
		}
		cfg.Rules = compiled
	}
	if su.confirm != nil {
		c, err := su.confirm.Compile()
		if err != nil {
			t.Fatal(err)
		}
		cfg.Confirmation = c
	}
	return func(a policy.Asker) *policy.Gate {
		cfg.Asker = a
		return policy.New(cfg)
	}
}

func (r *rig) line(l event.LogLine) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = append(r.log, l)
}

// logged gives the messages of the log so far.
func (r *rig) logged() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for _, l := range r.log {
		all = append(all, fmt.Sprintf("%s %s %v", l.Level, l.Message, l.Fields))
	}
	return strings.Join(all, "\n")
}

// start begins a run.
func (r *rig) start(text string) *session.Run {
	r.t.Helper()
	x, err := r.Start(session.Prompt{Text: text})
	if err != nil {
		r.t.Fatal(err)
	}
	return x
}

// play runs a prompt to its end and gives everything it told, and how it failed.
func (r *rig) play(text string) ([]event.Envelope, error) {
	r.t.Helper()
	x := r.start(text)
	events := told(r.t, x)
	_, err := x.Wait(r.t.Context())
	return events, err
}

// told reads the events of a run to its end and checks what holds of every run: numbers
// from 0 without gap, times that do not fall, exactly one terminal event, the last.
func told(t *testing.T, x *session.Run) []event.Envelope {
	t.Helper()
	c := x.Stream(0)
	defer c.Close()
	events := drain(t, c)
	whole(t, events)
	return events
}

// whole checks the events of a run that has ended.
func whole(t *testing.T, events []event.Envelope) {
	t.Helper()
	at, ends := int64(0), 0
	for i, e := range events {
		if e.Metadata == nil || e.Metadata.Sequence != int64(i) {
			t.Fatalf("event %d is %s %+v", i, e.Type, e.Metadata)
		}
		if e.Metadata.TimestampMS < at {
			t.Fatalf("event %d is told at %d, after one at %d", i, e.Metadata.TimestampMS, at)
		}
		at = e.Metadata.TimestampMS
		if e.Type == "agent_end" || e.Type == "error" {
			ends++
		}
	}
	if n := len(events); ends != 1 || events[n-1].Type != "agent_end" && events[n-1].Type != "error" {
		t.Fatalf("%d terminal events in %v", ends, names(events))
	}
}

// drain reads a cursor to its end.
func drain(t *testing.T, c *tape.Cursor) []event.Envelope {
	t.Helper()
	var all []event.Envelope
	buf := make([]byte, 4<<10)
	for {
		n, needed, err := c.Next(context.Background(), 16, buf)
		switch fault.KindOf(err) {
		case fault.Buffer:
			buf = make([]byte, needed)
			continue
		case fault.End:
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, decode(t, buf[:n])...)
	}
}

func decode(t *testing.T, b []byte) []event.Envelope {
	t.Helper()
	var batch []event.Envelope
	if err := json.Unmarshal(b, &batch); err != nil {
		t.Fatalf("%q: %v", b, err)
	}
	return batch
}

// names gives the types of events.
func names(events []event.Envelope) []string {
	var all []string
	for _, e := range events {
		all = append(all, e.Type)
	}
	return all
}

// brief gives one line an event: its type and what tells it from others of that type.
// Runs of deltas of one type are one line.
func brief(t *testing.T, events []event.Envelope) []string {
	t.Helper()
	var all []string
	for _, e := range events {
		line := e.Type
		p, err := event.Decode(e.Type, e.Payload)
		if err != nil {
			t.Fatal(err)
		}
		switch p := p.(type) {
		case event.TextDelta, event.ReasoningDelta, event.ToolInputDelta, event.ToolOutputDelta:
			if n := len(all); n > 0 && all[n-1] == line {
				continue
			}
		case event.ToolStart:
			line += " " + p.Name
		case event.ToolExecutionStart:
			line += " " + p.Name
		case event.ToolEnd:
			line += " " + p.Name
			if p.ErrorKind != nil {
				line += " " + p.ErrorKind.Type
			}
		case event.ConfirmationRequired:
			line += " " + p.ToolName
		case event.ConfirmationReceived:
			line += fmt.Sprintf(" %v", p.Approved)
			if p.Reason != nil {
				line += " " + *p.Reason
			}
		case event.ConfirmationTimeout:
			line += " " + p.ActionTaken
		case event.PermissionDenied:
			line += " " + p.ToolName
		case event.Error:
			line += " " + string(p.Code)
		}
		all = append(all, line)
	}
	return all
}

// same compares lists and shows both.
func same[T comparable](t *testing.T, what string, got, want []T) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\ngot  %v\nwant %v", what, got, want)
	}
}

// isCode checks the code of an error.
func isCode(t *testing.T, err error, want fault.Code) {
	t.Helper()
	if f := fault.From("", err); f == nil || f.Code != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// act is a tool made of a function.
type act struct {
	name    string
	effects chat.Effects
	do      func(ctx context.Context, env tool.Env, args json.RawMessage) (chat.Result, error)
}

func (a act) Spec() chat.ToolSpec {
	return chat.ToolSpec{Name: a.name, Description: "a tool of a test", Parameters: json.RawMessage(`{"type":"object"}`)}
}

func (a act) Effects(json.RawMessage) chat.Effects { return a.effects }

func (a act) Run(ctx context.Context, env tool.Env, args json.RawMessage) (chat.Result, error) {
	return a.do(ctx, env, args)
}

var (
	reads  = chat.Effects{Read: true, Idempotent: true}
	writes = chat.Effects{Write: true}
)

// answers is a tool that says text.
func answers(name string, e chat.Effects, text string) act {
	return act{name, e, func(context.Context, tool.Env, json.RawMessage) (chat.Result, error) {
		return chat.Result{Output: text}, nil
	}}
}

// waits is a tool that says that it began and then waits for the end of its context.
func waits(name string, e chat.Effects, began chan<- struct{}) act {
	return act{name, e, func(ctx context.Context, env tool.Env, _ json.RawMessage) (chat.Result, error) {
		env.Emit("half of it")
		began <- struct{}{}
		<-ctx.Done()
		return chat.Result{Output: "half of it"}, ctx.Err()
	}}
}

// client is a model made of a function.
type client func(ctx context.Context, req model.Request, yield func(model.Chunk, error) bool)

func (c client) Stream(ctx context.Context, req model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) { c(ctx, req, yield) }
}

// journal is the place of a session in a store that notes what is done to it and can
// be made to fail.
type journal struct {
	store.Session

	jmu   sync.Mutex
	done  []string           // guarded by jmu
	fail  func(string) error // asked before every step; guarded by jmu
	saved []byte             // the last snapshot; guarded by jmu
}

// memory is a store in memory for sessions of tests.
func memory(t *testing.T) store.Store {
	t.Helper()
	s, err := storemem.Open(t.Context(), storemem.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// keep takes the place of session s in st.
func keep(t *testing.T, st store.Store) *journal {
	t.Helper()
	k, err := st.Open(t.Context(), "s", "test")
	if err != nil {
		t.Fatal(err)
	}
	return &journal{Session: k}
}

func (j *journal) step(name string) error {
	j.jmu.Lock()
	j.done = append(j.done, name)
	fail := j.fail
	j.jmu.Unlock()
	if fail != nil {
		return fail(name)
	}
	return nil
}

func (j *journal) failing(f func(string) error) {
	j.jmu.Lock()
	defer j.jmu.Unlock()
	j.fail = f
}

func (j *journal) Append(ctx context.Context, facts [][]byte) (record.Pos, error) {
	var kinds []string
	for _, b := range facts {
		kinds = append(kinds, kindOf(b))
	}
	if err := j.step("append " + strings.Join(kinds, "+")); err != nil {
		return record.Pos{}, err
	}
	return j.Session.Append(ctx, facts)
}

func (j *journal) Flush(ctx context.Context) error {
	if err := j.step("flush"); err != nil {
		return err
	}
	return j.Session.Flush(ctx)
}

func (j *journal) Save(ctx context.Context, snap *record.Snapshot) error {
	if err := j.step("save"); err != nil {
		return err
	}
	doc, err := record.EncodeSnapshot(snap)
	if err != nil {
		return err
	}
	if err := j.Session.Save(ctx, snap); err != nil {
		return err
	}
	j.jmu.Lock()
	defer j.jmu.Unlock()
	j.saved = doc
	return nil
}

// steps gives what was done so far.
func (j *journal) steps() []string {
	j.jmu.Lock()
	defer j.jmu.Unlock()
	return slices.Clone(j.done)
}

// facts gives what the journal holds now.
func (j *journal) facts(t *testing.T) [][]byte {
	t.Helper()
	var all [][]byte
	for b, err := range j.Read(context.Background(), record.Pos{}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b)
	}
	return all
}

// kindOf gives the type of an event or the name of another fact.
func kindOf(b []byte) string {
	l, err := record.Decode(b)
	switch {
	case err != nil:
		return err.Error()
	case l.Event != nil:
		return l.Event.Type
	}
	return l.Fact
}

// fixedTime fixes ids and clock.
func fixedTime(ms int64) func(*session.Config) {
	return func(c *session.Config) {
		prefix := "x"
		source, err := id.NewSource(id.Fixed{Prefix: &prefix, TimeMS: &ms})
		if err != nil {
			panic(err)
		}
		c.Source = source
	}
}
