package session_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/a3s-lab/liba3s/internal/id"
	"github.com/a3s-lab/liba3s/runtime/artifact"
	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/model"
	"github.com/a3s-lab/liba3s/runtime/model/script"
	"github.com/a3s-lab/liba3s/runtime/policy"
	"github.com/a3s-lab/liba3s/runtime/prompt"
	"github.com/a3s-lab/liba3s/runtime/record"
	"github.com/a3s-lab/liba3s/runtime/run"
	"github.com/a3s-lab/liba3s/runtime/session"
	"github.com/a3s-lab/liba3s/runtime/store"
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
