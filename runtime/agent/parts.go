package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/a3s-lab/liba3s/runtime/artifact"
	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/policy"
	"github.com/a3s-lab/liba3s/runtime/prompt"
	"github.com/a3s-lab/liba3s/runtime/record"
	"github.com/a3s-lab/liba3s/runtime/run"
	"github.com/a3s-lab/liba3s/runtime/session"
	"github.com/a3s-lab/liba3s/runtime/tool"
	"github.com/a3s-lab/liba3s/runtime/tool/builtin"
	"github.com/a3s-lab/liba3s/runtime/workspace"
)

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
