package policy

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/a3s-lab/liba3s/runtime/chat"
)

// Config is what a Gate decides by.
type Config struct {
	// Rules of the permission policy; nil if none was given.
	Rules *Rules
	// Confirmation policy; nil if none was given.
	Confirmation *Confirmation
	// Asker reaches the host; without one every question is a denial.
	Asker Asker
	// Checkers gives those that count now: a host may register one while a session is
	// open. Nil for none ever.
	Checkers func() []Checker
	Hook     Hook  // optional
	Guard    Guard // optional
	// Limits of the guards; DefaultLimits gives those of the contract.
	Limits Limits
	// Parent is the Gate of the session that started this one. What it denies stays
	// denied, what it asks is asked, and its Hook and Guard hold where there is none.
	Parent *Gate
}

// Limits bound what a model may get wrong in a row.
type Limits struct {
	// MaxParseRetries is how many calls in a row may have unusable arguments; one more
	// fails the run.
	MaxParseRetries int
	// DuplicateThreshold is how many identical calls in a row may run. The next one is
	// blocked, and one more fails the run. 0 switches the guard off.
	DuplicateThreshold int
}

// DefaultLimits are the limits of the contract.
func DefaultLimits() Limits { return Limits{MaxParseRetries: 2, DuplicateThreshold: 3} }

// Gate decides about the calls of a session. It does not change and may be used by
// several runs, each with its own RunGate.
type Gate struct {
	rules        *Rules
	confirmation *Confirmation
	asker        Asker
	checkers     func() []Checker
	hook         Hook
	guard        Guard
	limits       Limits
	parent       *Gate
}

// New makes a Gate.
func New(c Config) *Gate {
	if p := c.Parent; p != nil {
		if c.Hook == nil {
			c.Hook = p.hook
		}
		if c.Guard == nil {
			c.Guard = p.guard
		}
	}
	if c.Checkers == nil {
		c.Checkers = func() []Checker { return nil }
	}
	return &Gate{c.Rules, c.Confirmation, c.Asker, c.Checkers, c.Hook, c.Guard, c.Limits, c.Parent}
}

// Run gives the Gate of one run, with fresh guards.
func (g *Gate) Run() *RunGate { return &RunGate{gate: g} }

// MayRead says whether a file may show up in the results of a search, here and in all
// parents. It may be called concurrently.
func (g *Gate) MayRead(path string) bool {
	return g.rules.MayRead(path) && (g.parent == nil || g.parent.MayRead(path))
}

func (g *Gate) canAsk() bool { return g.confirmation != nil && g.confirmation.Enabled }

// Call is a call with what the Gate must know of its tool.
type Call struct {
	chat.Call
	// Known says that there is such a tool. Validate and Effects are set if it is.
	Known bool
	// Validate checks the arguments against the tool's schema; its error is shown to
	// the model.
	Validate func(args json.RawMessage) error
	// Effects says what the call may do. It is called with valid arguments only.
	Effects func(args json.RawMessage) chat.Effects
	// Stack names the tools inside which this call is made, outermost first; empty for
	// a call of the model.
	Stack []string
}

// RunGate decides about the calls of one run and remembers what its guards need.
// Check may be called concurrently, but is meant to be called in call order.
type RunGate struct {
	gate   *Gate
	guards guards
}

// Check decides about one call. It returns when the host answered, if it has to be
// asked, and at once when ctx is cancelled. In doubt, and when a hook, the budget
// guard or the asker fails, the answer is no.
func (r *RunGate) Check(ctx context.Context, call Call) Verdict {
	g, written := r.gate, call.Args
	args, malformed := object(call.Args)
	call.Args = slices.Clone(args)
	if malformed != nil {
		call.Args = json.RawMessage("{}")
	}
	v := Verdict{Args: call.Args}
	switch fromModel := len(call.Stack) == 0; {
	case ctx.Err() != nil:
		return v.cancelled(call)
	case slices.ContainsFunc(call.Stack, func(name string) bool { return strings.EqualFold(name, call.Name) }):
		return v.recursion(call)
	case fromModel && r.guards.repeats(call.Name, written, g.limits.DuplicateThreshold):
		return v.duplicate(call, &r.guards)
	case malformed != nil:
		return v.badArguments(call, MalformedArguments, malformed, r.guards.unusable(fromModel), g.limits)
	case !call.Known:
		return v.unknown(call)
	}
	if err := call.Validate(call.Args); err != nil {
		return v.badArguments(call, InvalidArguments, err, r.guards.unusable(len(call.Stack) == 0), g.limits)
	}
	if len(call.Stack) == 0 {
		r.guards.usable()
	}
	steps := []func(context.Context, *Call, *Verdict) (done bool){g.askHook, g.permit, g.askBudget}
	for _, step := range steps {
		if step(ctx, &call, &v) {
			return v
		}
	}
	v.Allowed = true
	if v.Code == "" {
		v.Code = PermissionAllow
	}
	return v
}

// askHook lets the pre-tool hook block the call or rewrite its arguments, which are
// then checked like the model's own.
func (g *Gate) askHook(ctx context.Context, call *Call, v *Verdict) bool {
	if g.hook != nil {
		answer, err := g.hook.PreToolUse(ctx, call.Call)
		switch {
		case ctx.Err() != nil:
			*v = v.cancelled(*call)
			return true
		case err != nil:
			*v = v.blocked(*call, "the hook failed: "+err.Error())
			return true
		case answer.Block:
			*v = v.blocked(*call, answer.Reason)
			return true
		}
		if err := call.rewrite(answer.Args); err != nil {
			*v = v.blocked(*call, "the hook rewrote the arguments to invalid ones: "+err.Error())
			return true
		}
	}
	v.Args = call.Args
	v.Effects = call.Effects(call.Args)
	return false
}

func (c *Call) rewrite(args json.RawMessage) error {
	if args == nil {
		return nil
	}
	args, err := object(args)
	if err != nil {
		return err
	}
	if err := c.Validate(args); err != nil {
		return err
	}
	c.Args = slices.Clone(args)
	return nil
}

// permit applies rules, the tool's own demand and the confirmation.
func (g *Gate) permit(ctx context.Context, call *Call, v *Verdict) bool {
	if v.Effects.Own {
		v.Reason = "it touches nothing but the session's own records"
		return false
	}
	ruling := g.rule(ctx, Checked{call.Call, v.Effects})
	if ctx.Err() != nil {
		*v = v.cancelled(*call)
		return true
	}
	v.Rule, v.Reason = ruling.Rule, ruling.Reason
	ask := ruling.Decision == Ask
	if demand := v.Effects.Confirm; demand != "" && ruling.Decision != Deny {
		v.Reason = demand
		ask = true
	}
	switch {
	case ruling.Decision == Deny:
		*v = v.denied(*call, PermissionDeny)
		return true
	case !ask:
		return false
	case !g.canAsk():
		v.Reason = NobodyToAsk
		*v = v.denied(*call, ConfirmationUnavailable)
		return true
	}
	return g.confirm(ctx, call, v)
}

// rule gives the strictest word of this Gate and its parents.
func (g *Gate) rule(ctx context.Context, q Checked) Ruling {
	own := g.own(ctx, q)
	if g.parent == nil || own.Decision == Deny {
		return own
	}
	return stricter(own, g.parent.rule(ctx, q))
}

func (g *Gate) confirm(ctx context.Context, call *Call, v *Verdict) bool {
	c := g.confirmation
	if g.asker == nil {
		v.Reason = "nobody can be asked: the host is not reachable"
		*v = v.denied(*call, ConfirmationUnavailable)
		return true
	}
	answer, err := g.asker.Ask(ctx, Question{Call: call.Call, Effects: v.Effects, Timeout: c.Timeout, Action: c.Action})
	switch {
	case ctx.Err() != nil:
		*v = v.cancelled(*call)
		return true
	case err != nil:
		v.Reason = "the question could not be asked: " + err.Error()
		*v = v.denied(*call, ConfirmationUnavailable)
		return true
	}
	if answer.TimedOut {
		answer.Approved = c.Action == AutoApprove
	}
	v.Confirmation = &answer
	switch {
	case answer.Approved:
		return false
	case answer.TimedOut:
		*v = v.timedOut(*call, c.Timeout)
	default:
		*v = v.rejected(*call, answer.Reason)
	}
	return true
}

// askBudget asks the budget guard, last of all.
func (g *Gate) askBudget(ctx context.Context, call *Call, v *Verdict) bool {
	if g.guard == nil {
		return false
	}
	answer, err := g.guard.BeforeTool(ctx, call.Name)
	if err != nil {
		answer = GuardAnswer{Deny: true, Resource: "tools", Reason: "the budget guard failed: " + err.Error()}
	}
	switch {
	case ctx.Err() != nil:
		*v = v.cancelled(*call)
		return true
	case answer.Deny:
		*v = v.overBudget(*call, answer)
		return true
	case answer.Soft:
		v.Budget = &answer
	}
	return false
}
