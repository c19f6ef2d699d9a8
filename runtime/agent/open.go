package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/a3s-lab/liba3s/internal/id"
	"github.com/a3s-lab/liba3s/runtime/artifact"
	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/policy"
	"github.com/a3s-lab/liba3s/runtime/prompt"
	"github.com/a3s-lab/liba3s/runtime/record"
	"github.com/a3s-lab/liba3s/runtime/run"
	"github.com/a3s-lab/liba3s/runtime/session"
	"github.com/a3s-lab/liba3s/runtime/store"
	"github.com/a3s-lab/liba3s/runtime/tool"
	"github.com/a3s-lab/liba3s/runtime/tool/builtin"
	"github.com/a3s-lab/liba3s/runtime/workspace"
	"github.com/a3s-lab/liba3s/runtime/workspace/local"
)

// The defaults of the contract, section 2.1.
const (
	defaultToolRounds   = 50
	defaultParseRetries = 2
	defaultDuplicates   = 3
	defaultBreaker      = 3
	defaultThreshold    = 0.8
	defaultStall        = time.Minute
	parallelReads       = 8
)

// SessionSpec asks for a session: a new one in a workspace, or a kept one by id.
type SessionSpec struct {
	Workspace string
	Resume    string
	// Cwd completes relative paths of this request; empty is the agent's.
	Cwd     string
	Options *Options
}

// OpenSession opens a new session, or resumes a kept one. No model is contacted and
// nothing is executed.
func (a *Agent) OpenSession(ctx context.Context, spec SessionSpec) (*session.Session, error) {
	b := &builder{a: a, spec: spec, o: spec.Options, cwd: cmp.Or(spec.Cwd, a.setup.Cwd)}
	if b.o == nil {
		b.o = new(Options)
	}
	if err := b.name(); err != nil {
		return nil, err
	}
	if err := a.claim(b.id); err != nil {
		return nil, err
	}
	s, err := b.build(ctx)
	a.mu.Lock()
	delete(a.opening, b.id)
	closed := a.closed
	if err == nil && !closed {
		a.sessions[b.id] = s
	}
	a.mu.Unlock()
	if err == nil && !closed {
		b.settle(s)
		if err := a.catchUp(ctx, s); err != nil {
			_ = s.Close(context.WithoutCancel(ctx))
			return nil, fault.From("session.open", err)
		}
	}
	if err != nil {
		b.undo()
		return nil, fault.From("session.open", err)
	}
	if closed { // the agent was closed meanwhile
		_ = s.Close(context.WithoutCancel(ctx))
		return nil, a.isClosed()
	}
	return s, nil
}

func (a *Agent) isClosed() error {
	return fault.Of(fault.CodeSessionClosed, "session.open", "the agent is closed")
}

// claim reserves an id: one live session of a name in an agent.
func (a *Agent) claim(name string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.closed:
		return a.isClosed()
	case a.sessions[name] != nil || a.opening[name]:
		return fault.Of(fault.CodeSessionBusy, "session.open", "Session '%s' is open in this agent; close it first", name)
	}
	a.opening[name] = true
	return nil
}

// builder connects the parts of one session.
type builder struct {
	a       *Agent
	spec    SessionSpec
	o       *Options
	cwd     string
	id      string
	source  *id.Source
	kept    store.Session
	ws      workspace.Workspace
	warning []string
	closers []func()
	early   []*registration // extensions that the session is built with
}

func (b *builder) undo() {
	for _, fn := range b.closers {
		fn()
	}
	if b.kept != nil {
		_ = b.kept.Close()
	}
}

// name decides the id and the source of ids and time.
func (b *builder) name() error {
	var f id.Fixed
	if h := b.o.HostEnv; h != nil {
		f = id.Fixed{Prefix: h.SequentialIDPrefix, TimeMS: h.FixedTimeMS}
	}
	var err error
	if b.source, err = id.NewSource(f); err != nil {
		return err
	}
	switch {
	case b.spec.Resume != "" && b.o.SessionID != nil && *b.o.SessionID != b.spec.Resume:
		return fault.Option("session_id", fault.BadValue, "is %q, but session %q is to be resumed", *b.o.SessionID, b.spec.Resume)
	case b.spec.Resume != "":
		b.id = b.spec.Resume
	case b.o.SessionID != nil:
		b.id = *b.o.SessionID
	case f.Prefix != nil:
		b.id = b.source.New("session")
	default:
		b.id = id.New("")
	}
	return store.ValidID(b.id)
}

func (b *builder) build(ctx context.Context) (*session.Session, error) {
	old, err := b.openStore(ctx)
	if err != nil {
		return nil, err
	}
	root, err := b.root(old)
	if err != nil {
		return nil, err
	}
	if err := b.openWorkspace(ctx, root); err != nil {
		return nil, err
	}
	data := b.data(old)
	engine, err := b.engine(ctx, &data)
	if err != nil {
		return nil, err
	}
	gate, err := b.gate(engine, &data)
	if err != nil {
		return nil, err
	}
	return session.Open(ctx, session.Config{
		ID: b.id, Engine: engine, Gate: gate, Data: data, Kept: b.kept, Journal: or(b.o.Journal, true), AutoSave: or(b.o.AutoSave, false),
		Source: b.source, Redact: b.a.redact, Retention: b.retention(), StallTimeout: ms(b.o.StallTimeoutMS, defaultStall),
		Warning: strings.Join(b.warning, "; "), Log: b.a.log, Closed: b.closed, Owner: b.a,
		Withdraw: func(reason string) { b.a.desk.CancelSession(b.id, reason) },
	})
}

// closed forgets the session and gives its parts up.
func (b *builder) closed() {
	b.a.mu.Lock()
	delete(b.a.sessions, b.id)
	b.a.mu.Unlock()
	b.a.leave(b.id)
	for _, fn := range b.closers {
		fn()
	}
}

// root is the folder of the workspace.
func (b *builder) root(old *record.SessionData) (string, error) {
	path := b.spec.Workspace
	if w := b.o.WorkspaceBackend; w != nil && w.Root != "" {
		path = w.Root
	}
	if w := b.o.WorkspaceBackend; w != nil && w.Kind == "host" {
		return "", nil // it has a root of its own
	}
	if path == "" && old != nil {
		path = old.Config.Workspace
		if path != "" && !strings.HasPrefix(path, "/") {
			return "", fault.Option("workspace_backend", fault.BadValue, "is missing: the session worked in %q, which is no folder of this machine", path)
		}
	}
	if path == "" {
		return "", fault.Option("workspace", fault.BadValue, "is missing: name the folder the session works in")
	}
	return absolute(b.cwd, path), nil
}

func (b *builder) openWorkspace(ctx context.Context, root string) error {
	if w := b.o.WorkspaceBackend; w != nil && w.Kind == "host" {
		return b.openHostWorkspace(ctx, w.Name)
	}
	var protect []string
	if dir := b.storeDir(); dir != "" {
		protect = append(protect, dir)
	}
	w, err := local.Open(ctx, local.Config{Root: root, Env: b.a.setup.Env, Protect: protect})
	if err != nil {
		return err
	}
	b.closers = append(b.closers, func() { _ = w.Close() })
	b.ws = w
	return nil
}

// data is the session's part of a snapshot as options and store say it; what the caller
// left unset comes back from the store (reference: contract 5.6).
func (b *builder) data(old *record.SessionData) record.SessionData {
	o := b.o
	labels := record.Labels{TenantID: or(o.TenantID, ""), Principal: or(o.Principal, ""), AgentTemplateID: or(o.AgentTemplateID, ""), CorrelationID: or(o.CorrelationID, "")}
	d := record.SessionData{ID: b.id, State: "Active", ModelName: or(o.Model, b.a.cfg.DefaultModel), ThinkingBudget: o.ThinkingBudget, Labels: labels}
	d.Config = record.SessionConfig{
		Workspace: b.ws.Root(), MaxContextLength: or(o.MaxContextTokens, 0), AutoCompact: or(o.AutoCompact, false),
		AutoCompactThreshold: or(o.AutoCompactThreshold, defaultThreshold), StorageType: b.storageType(),
		PlanningMode: or(o.PlanningMode, "auto"),
	}
	if o.PermissionPolicy != nil {
		d.Config.PermissionPolicy = raw(o.PermissionPolicy)
	}
	if o.ConfirmationPolicy != nil {
		d.Config.ConfirmationPolicy = raw(o.ConfirmationPolicy)
	}
	if old != nil {
		inherit(&d, *old, o)
	}
	return d
}

// inherit takes over from a kept session what the caller left unset, and what this
// version only hands on.
func inherit(d *record.SessionData, old record.SessionData, o *Options) {
	d.TenantID = cmp.Or(d.TenantID, old.TenantID)
	d.Principal = cmp.Or(d.Principal, old.Principal)
	d.AgentTemplateID = cmp.Or(d.AgentTemplateID, old.AgentTemplateID)
	d.CorrelationID = cmp.Or(d.CorrelationID, old.CorrelationID)
	d.ThinkingEnabled, d.ParentID = old.ThinkingEnabled, old.ParentID
	if d.ThinkingBudget == nil {
		d.ThinkingBudget = old.ThinkingBudget
	}
	if o.Model == nil {
		d.ModelName = cmp.Or(modelOf(old), d.ModelName)
		if o.MaxContextTokens == nil {
			d.Config.MaxContextLength = old.Config.MaxContextLength
		}
	}
	c, was := &d.Config, old.Config
	if o.PermissionPolicy == nil {
		c.PermissionPolicy = was.PermissionPolicy
	}
	if o.ConfirmationPolicy == nil {
		c.ConfirmationPolicy = was.ConfirmationPolicy
	}
	c.Name, c.ParentID, c.SystemPrompt, c.SecurityConfig, c.QueueConfig = was.Name, was.ParentID, was.SystemPrompt, was.SecurityConfig, was.QueueConfig
	c.AutoDelegation, c.MaxParallelTasks = was.AutoDelegation, was.MaxParallelTasks
	c.EnforceActiveSkillToolRestrictions, c.Extra = was.EnforceActiveSkillToolRestrictions, was.Extra
}

// modelOf names the model of a kept session as provider/model.
func modelOf(d record.SessionData) string {
	if c := d.LLMConfig; c != nil && c.Provider != "" && c.Model != "" {
		return c.Provider + "/" + c.Model
	}
	if strings.Contains(d.ModelName, "/") {
		return d.ModelName
	}
	return ""
}

// engine makes the parts a run needs.
func (b *builder) engine(ctx context.Context, d *record.SessionData) (*run.Engine, error) {
	if d.ModelName == "" {
		return nil, fault.Option("model", fault.BadValue, "is missing: set default_model in the configuration or the option model")
	}
	p, m, err := b.a.find(d.ModelName)
	if err != nil {
		return nil, err
	}
	if err := b.a.describeHost(p, &m); err != nil {
		return nil, err
	}
	d.LLMConfig = &record.LLMConfig{Provider: p.Name, Model: m.ID, BaseURL: shown(m.BaseURL)}
	timeout := ms(b.o.LLMAPITimeoutMS, time.Duration(or(b.a.cfg.Limits.LLMAPITimeoutMS, 0))*time.Millisecond)
	client, err := b.a.open(ctx, want{p: p, m: m, session: b.id, kept: b.kept != nil, timeout: timeout, attempts: or(b.o.CircuitBreakerThreshold, defaultBreaker)})
	if err != nil {
		return nil, err
	}
	if d.Config.MaxContextLength == 0 {
		d.Config.MaxContextLength = cmp.Or(m.Window, defaultWindow)
	}
	tools, err := b.tools(ctx, m)
	if err != nil {
		return nil, err
	}
	artifacts := b.artifacts()
	return &run.Engine{
		Model: client, Tools: tools, Artifacts: artifacts, Redact: b.a.redact.String, Log: b.log,
		Prompt: b.prompt(m, d),
		Env: tool.Env{
			Workspace: b.ws, Protected: workspaceProtects(b.ws),
			Artifact: artifacts.Get,
			Keep: func(ctx context.Context, name, content string) (string, error) {
				rec, err := artifacts.Put(ctx, name, content)
				return rec.ArtifactURI, err
			},
		},
		Limits: run.Limits{
			MaxToolRounds: or(b.o.MaxToolRounds, or(b.a.cfg.Limits.MaxToolRounds, defaultToolRounds)),
			ToolTimeout:   ms(b.o.ToolTimeoutMS, 0), MaxTime: ms(b.o.MaxExecutionTimeMS, 0), Parallel: parallelReads,
		},
	}, nil
}

// log writes a line of this session.
func (b *builder) log(l event.LogLine) {
	l.SessionID = b.id
	b.a.log(l)
}

// workspaceProtects says what is never written, whatever the rules say (S24).
func workspaceProtects(w workspace.Workspace) func(string) bool {
	if p, ok := w.(interface{ Protected(string) bool }); ok {
		return p.Protected
	}
	return workspace.Protected
}

// resolver gives what follows the links of a workspace, nil if it has none.
func resolver(w workspace.Workspace) func(string) (string, error) {
	if r, ok := w.(workspace.Resolver); ok {
		return r.Resolve
	}
	return nil
}

// tools gives the built-in tools the workspace supports and those of the host; none for
// a model that cannot call tools.
func (b *builder) tools(ctx context.Context, m Model) (*tool.Registry, error) {
	hosted, err := b.hostTools(ctx)
	if err != nil {
		return nil, err
	}
	if !m.ToolCall {
		b.warning = append(b.warning, fmt.Sprintf("model %q cannot call tools (tool_call = false): none is offered", m.ID))
		return tool.NewRegistry()
	}
	r, err := tool.NewRegistry(builtin.For(b.ws)...)
	if err != nil {
		return nil, err
	}
	for _, t := range hosted {
		if err := r.Add(t); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (b *builder) artifacts() *artifact.Store {
	c := artifact.Config{Redact: b.a.redact.String}
	if l := b.o.ArtifactStoreLimits; l != nil {
		c.MaxCount, c.MaxBytes = or(l.MaxArtifacts, 0), or(l.MaxBytes, 0)
	}
	if b.kept != nil {
		c.Blobs = b.kept.Blobs()
	}
	return artifact.New(c)
}

func (b *builder) prompt(m Model, d *record.SessionData) *prompt.Builder {
	o := b.o
	p := &prompt.Builder{
		Slots:     prompt.Slots{Role: or(o.Role, ""), Guidelines: or(o.Guidelines, ""), ResponseStyle: or(o.ResponseStyle, ""), Extra: or(o.Extra, "")},
		Workspace: b.ws, Window: d.Config.MaxContextLength, MaxTokens: m.MaxOutput, SessionID: b.id,
		Providers:  func() []prompt.Provider { return b.a.providers(b.id) },
		Compaction: prompt.Compaction{On: or(o.AutoCompact, false), Threshold: or(o.AutoCompactThreshold, defaultThreshold)},
	}
	if o.Model != nil { // both apply only beside a model of their own (reference: contract 2.1)
		p.Temperature, p.ThinkingBudget = o.Temperature, or(o.ThinkingBudget, 0)
	}
	if p.ThinkingBudget == 0 {
		p.ThinkingBudget = or(b.a.cfg.Limits.ThinkingBudget, 0)
	}
	if !m.Reasoning {
		p.ThinkingBudget = 0
	}
	return p
}

// gate compiles the policies and gives the maker of the Gate.
func (b *builder) gate(e *run.Engine, d *record.SessionData) (func(policy.Asker) *policy.Gate, error) {
	cfg := policy.Config{Checkers: func() []policy.Checker { return b.a.checkers(b.id) }, Limits: policy.Limits{
		MaxParseRetries:    or(b.o.MaxParseRetries, defaultParseRetries),
		DuplicateThreshold: or(b.o.DuplicateToolCallThreshold, defaultDuplicates),
	}}
	if p := d.Config.PermissionPolicy; p != nil {
		var rules policy.Policy
		if err := json.Unmarshal(p, &rules); err != nil {
			return nil, fault.Option("permission_policy", fault.BadValue, "%v", err)
		}
		compiled, warnings, err := policy.Compile(rules, policy.Scope{Root: b.ws.Root(), Tools: e.Tools.Names(), Resolve: resolver(b.ws)})
		if err != nil {
			return nil, err
		}
		for _, w := range warnings {
			b.warning = append(b.warning, w.String())
		}
		cfg.Rules = compiled
		e.Env.MayRead = compiled.MayRead
	} else {
		e.Env.MayRead = func(string) bool { return true }
	}
	if p := d.Config.ConfirmationPolicy; p != nil {
		var c policy.ConfirmationPolicy
		if err := json.Unmarshal(p, &c); err != nil {
			return nil, fault.Option("confirmation_policy", fault.BadValue, "%v", err)
		}
		compiled, err := c.Compile()
		if err != nil {
			return nil, err
		}
		cfg.Confirmation = compiled
	}
	if _, hidden := policy.New(cfg).Select(e.Offers()); len(hidden) > 0 && cfg.Rules == nil && len(cfg.Checkers()) == 0 {
		b.warning = append(b.warning, "hidden from the model, since nobody can be asked: "+strings.Join(hidden, ", ")+" (set permission_policy or confirmation_policy)")
	}
	return func(asker policy.Asker) *policy.Gate {
		cfg.Asker = asker
		return policy.New(cfg)
	}, nil
}

// retention fills the caller's caps into the defaults; unbounded clears them first.
func (b *builder) retention() session.Retention {
	r := session.DefaultRetention
	o := b.o.RetentionLimits
	if o == nil {
		return r
	}
	if o.Unbounded {
		const most = 1 << 40
		r = session.Retention{MaxRunsRetained: most, MaxEventsPerRun: most, MaxEventBytesPerRun: most, MaxTraceEvents: most, MaxTerminalSubagentTasks: most}
		r.Unbounded = o.MaxRunsRetained == 0 && o.MaxEventsPerRun == 0 && o.MaxEventBytesPerRun == 0
	}
	r.MaxRunsRetained = cmp.Or(o.MaxRunsRetained, r.MaxRunsRetained)
	r.MaxEventsPerRun = cmp.Or(o.MaxEventsPerRun, r.MaxEventsPerRun)
	r.MaxEventBytesPerRun = cmp.Or(o.MaxEventBytesPerRun, r.MaxEventBytesPerRun)
	r.MaxTraceEvents = cmp.Or(o.MaxTraceEvents, r.MaxTraceEvents)
	r.MaxTerminalSubagentTasks = cmp.Or(o.MaxTerminalSubagentTasks, r.MaxTerminalSubagentTasks)
	return r
}

// ms gives milliseconds as a duration; more than one can say is the longest.
func ms(p *int, d time.Duration) time.Duration {
	if p == nil {
		return d
	}
	return time.Duration(min(int64(*p), math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
}
