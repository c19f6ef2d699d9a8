package policy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/fault"
)

// The ports as functions; each notes its turn in steps.
type ports struct {
	steps []string
	ask   func(context.Context, Question) (Answer, error)
	hook  func(context.Context, chat.Call) (HookAnswer, error)
	guard func(context.Context, string) (GuardAnswer, error)
}

type asker struct{ *ports }

func (p asker) Ask(ctx context.Context, q Question) (Answer, error) {
	p.steps = append(p.steps, "ask "+string(q.Call.Args))
	return p.ask(ctx, q)
}

type hook struct{ *ports }

func (p hook) PreToolUse(ctx context.Context, c chat.Call) (HookAnswer, error) {
	p.steps = append(p.steps, "hook "+string(c.Args))
	return p.hook(ctx, c)
}

type guard struct{ *ports }

func (p guard) BeforeTool(ctx context.Context, name string) (GuardAnswer, error) {
	p.steps = append(p.steps, "guard "+name)
	return p.guard(ctx, name)
}

func rules(t *testing.T, p Policy) *Rules {
	r, _, err := Compile(p, Scope{Root: "/ws"})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func confirmation(t *testing.T, p ConfirmationPolicy) *Confirmation {
	c, err := p.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// call makes a call of a tool that wants a text "x", and writes unless it is called read.
func call(name, args string) Call {
	return Call{
		Call:  chat.Call{ID: "c1", Name: name, Args: json.RawMessage(args)},
		Known: true,
		Validate: func(args json.RawMessage) error {
			var v struct{ X *string }
			if json.Unmarshal(args, &v) != nil || v.X == nil {
				return errors.New("/x: a text is needed")
			}
			return nil
		},
		Effects: func(json.RawMessage) chat.Effects {
			return chat.Effects{Read: true, Write: name != "read", Own: name == "artifact_read"}
		},
	}
}

func TestGate(t *testing.T) {
	yes := func(context.Context, Question) (Answer, error) { return Answer{Approved: true}, nil }
	answer := func(a Answer, err error) func(context.Context, Question) (Answer, error) {
		return func(context.Context, Question) (Answer, error) { return a, err }
	}
	hooked := func(a HookAnswer, err error) func(context.Context, chat.Call) (HookAnswer, error) {
		return func(context.Context, chat.Call) (HookAnswer, error) { return a, err }
	}
	guarded := func(a GuardAnswer, err error) func(context.Context, string) (GuardAnswer, error) {
		return func(context.Context, string) (GuardAnswer, error) { return a, err }
	}
	enabled := ConfirmationPolicy{Enabled: true}
	type want struct {
		code   Code
		args   string // "" for those of the call
		denied bool
		text   string // part of the result
		kind   string // of the error
		steps  string
	}
	tests := []struct {
		name    string
		call    Call
		policy  *Policy
		confirm *ConfirmationPolicy
		ports   ports
		want    want
	}{
		{name: "read without policies", call: call("read", `{"x":""}`), want: want{code: PermissionAllow}},
		{name: "write without policies", call: call("write", `{"x":""}`),
			want: want{code: PermissionDeny, denied: true, text: NobodyToAsk, kind: chat.PermissionDenied}},
		{name: "write without rules is asked", call: call("write", `{"x":""}`), confirm: &enabled, ports: ports{ask: yes},
			want: want{code: PermissionAllow, steps: `ask {"x":""}`}},
		{name: "read without rules is not asked", call: call("read", `{"x":""}`), confirm: &enabled, want: want{code: PermissionAllow}},
		{name: "ask with nobody there", call: call("write", `{"x":""}`), policy: &Policy{Ask: []string{"write"}},
			want: want{code: PermissionDeny, denied: true, text: NobodyToAsk, kind: chat.PermissionDenied}},
		{name: "ask with confirmation switched off", call: call("write", `{"x":""}`), policy: &Policy{}, confirm: &ConfirmationPolicy{},
			want: want{code: PermissionDeny, denied: true, text: NobodyToAsk, kind: chat.PermissionDenied}},
		{name: "rules ask for reads too", call: call("read", `{"x":""}`), policy: &Policy{}, confirm: &enabled, ports: ports{ask: yes},
			want: want{code: PermissionAllow, steps: `ask {"x":""}`}},
		{name: "rules allow", call: call("write", `{"x":""}`), policy: &Policy{Allow: []string{"write"}}, want: want{code: PermissionAllow}},
		{name: "rules deny", call: call("write", `{"x":""}`), policy: &Policy{Deny: []string{"write"}}, confirm: &enabled,
			want: want{code: PermissionDeny, denied: true, text: `blocked by the permission rule "write"`, kind: chat.PermissionDenied}},
		{name: "artifact_read whatever the rules say", call: call("artifact_read", `{"x":""}`), policy: &Policy{Deny: []string{"*"}}, want: want{code: PermissionAllow}},
		{name: "a lane without confirmation", call: call("write", `{"x":""}`), policy: &Policy{},
			confirm: &ConfirmationPolicy{Enabled: true, YoloLanes: []string{"Execute"}}, want: want{code: PermissionAllow}},
		{name: "rejected", call: call("write", `{"x":""}`), confirm: &enabled, ports: ports{ask: answer(Answer{Reason: "not now"}, nil)},
			want: want{code: ConfirmationRejected, text: "The user rejected this write call: not now. It was not run. Do not retry it unless you are asked to.",
				kind: chat.PermissionDenied, steps: `ask {"x":""}`}},
		{name: "APRV-02 a time-out is no rejection", call: call("write", `{"x":""}`), confirm: &enabled, ports: ports{ask: answer(Answer{TimedOut: true}, nil)},
			want: want{code: ConfirmationTimeout, text: "timed out after 30s: nobody answered", kind: chat.PermissionDenied, steps: `ask {"x":""}`}},
		{name: "a time-out that approves", call: call("write", `{"x":""}`), confirm: &ConfirmationPolicy{Enabled: true, TimeoutAction: "auto-approve"},
			ports: ports{ask: answer(Answer{TimedOut: true}, nil)}, want: want{code: PermissionAllow, steps: `ask {"x":""}`}},
		{name: "a time-out does not approve by itself", call: call("write", `{"x":""}`), confirm: &enabled,
			ports: ports{ask: answer(Answer{TimedOut: true, Approved: true}, nil)},
			want:  want{code: ConfirmationTimeout, text: "timed out", kind: chat.PermissionDenied, steps: `ask {"x":""}`}},
		{name: "the question cannot be asked", call: call("write", `{"x":""}`), confirm: &enabled, ports: ports{ask: answer(Answer{Approved: true}, errors.New("disk full"))},
			want: want{code: ConfirmationUnavailable, denied: true, text: "disk full", kind: chat.PermissionDenied, steps: `ask {"x":""}`}},
		{name: "hook, question and budget in order", call: call("write", `{"x":""}`), confirm: &enabled,
			ports: ports{ask: yes, hook: hooked(HookAnswer{}, nil), guard: guarded(GuardAnswer{}, nil)},
			want:  want{code: PermissionAllow, steps: `hook {"x":""}; ask {"x":""}; guard write`}},
		{name: "rewritten arguments are asked and run", call: call("write", `{"x":""}`), confirm: &enabled,
			ports: ports{ask: yes, hook: hooked(HookAnswer{Args: json.RawMessage(`{"x":"new"}`)}, nil)},
			want:  want{code: PermissionAllow, args: `{"x":"new"}`, steps: `hook {"x":""}; ask {"x":"new"}`}},
		{name: "rewritten arguments meet the rules", call: call("bash", `{"x":"", "command":"ls"}`), policy: &Policy{Deny: []string{"bash(rm:*)"}, DefaultDecision: "allow"},
			ports: ports{hook: hooked(HookAnswer{Args: json.RawMessage(`{"x":"","command":"rm a"}`)}, nil)},
			want:  want{code: PermissionDeny, args: `{"x":"","command":"rm a"}`, denied: true, text: "bash(rm:*)", kind: chat.PermissionDenied, steps: `hook {"x":"", "command":"ls"}`}},
		{name: "rewritten arguments are validated", call: call("write", `{"x":""}`), policy: &Policy{Allow: []string{"write"}},
			ports: ports{hook: hooked(HookAnswer{Args: json.RawMessage(`{"y":1}`)}, nil)},
			want:  want{code: HookBlock, denied: true, text: "rewrote the arguments to invalid ones: /x: a text is needed", kind: chat.PermissionDenied, steps: `hook {"x":""}`}},
		{name: "a hook blocks", call: call("read", `{"x":""}`), ports: ports{hook: hooked(HookAnswer{Block: true, Reason: "frozen"}, nil)},
			want: want{code: HookBlock, denied: true, text: "denied by the pre-tool hook: frozen", kind: chat.PermissionDenied, steps: `hook {"x":""}`}},
		{name: "a hook that fails blocks", call: call("read", `{"x":""}`), ports: ports{hook: hooked(HookAnswer{}, errors.New("no answer in 30s"))},
			want: want{code: HookBlock, denied: true, text: "no answer in 30s", kind: chat.PermissionDenied, steps: `hook {"x":""}`}},
		{name: "budget denies", call: call("read", `{"x":""}`), ports: ports{guard: guarded(GuardAnswer{Deny: true, Resource: "calls", Reason: "10 of 10"}, nil)},
			want: want{code: Budget, text: "budget exhausted on calls: 10 of 10", steps: "guard read"}},
		{name: "a guard that fails denies", call: call("read", `{"x":""}`), ports: ports{guard: guarded(GuardAnswer{}, errors.New("gone"))},
			want: want{code: Budget, text: "the budget guard failed: gone", steps: "guard read"}},
		{name: "a soft limit lets it pass", call: call("read", `{"x":""}`), ports: ports{guard: guarded(GuardAnswer{Soft: true}, nil)},
			want: want{code: PermissionAllow, steps: "guard read"}},
		{name: "not JSON", call: call("read", `{"x":`), ports: ports{hook: hooked(HookAnswer{}, nil)},
			want: want{code: MalformedArguments, args: "{}", text: `Invalid arguments for tool "read": not valid JSON: it ends too early`, kind: chat.InvalidArgument}},
		{name: "no object", call: call("read", `["x"]`), want: want{code: MalformedArguments, args: "{}", text: "not a JSON object", kind: chat.InvalidArgument}},
		{name: "two values", call: call("read", `{"x":""} {}`), want: want{code: MalformedArguments, args: "{}", text: "text follows", kind: chat.InvalidArgument}},
		{name: "a name twice", call: call("read", `{"x":"a","x":"b"}`), want: want{code: MalformedArguments, args: "{}", text: `the name "x" comes twice`, kind: chat.InvalidArgument}},
		{name: "too deep", call: call("read", `{"x":`+strings.Repeat("[", 70)+strings.Repeat("]", 70)+`}`),
			want: want{code: MalformedArguments, args: "{}", text: "nested deeper than 64", kind: chat.InvalidArgument}},
		{name: "nothing is an empty object", call: call("read", ""), want: want{code: InvalidArguments, args: "{}", text: "/x: a text is needed", kind: chat.InvalidArgument}},
		{name: "against the schema", call: call("read", `{"y":1}`), want: want{code: InvalidArguments, text: "/x: a text is needed", kind: chat.InvalidArgument}},
		{name: "unknown tool", call: Call{Call: chat.Call{Name: "nope", Args: json.RawMessage(`{}`)}}, want: want{code: UnknownTool, text: "Unknown tool: nope"}},
		{name: "recursion", call: func() Call { c := call("batch", `{"x":""}`); c.Stack = []string{"program", "batch"}; return c }(),
			want: want{code: Recursion, text: "recursive batch calls are not allowed"}},
		{name: "the tool's own demand", call: demanding(call("read", `{"x":""}`)), policy: &Policy{Allow: []string{"read"}}, confirm: &enabled, ports: ports{ask: yes},
			want: want{code: PermissionAllow, steps: `ask {"x":""}`}},
		{name: "the tool's own demand in a lane without confirmation", call: demanding(call("read", `{"x":""}`)),
			confirm: &ConfirmationPolicy{Enabled: true, YoloLanes: []string{"query"}}, ports: ports{ask: yes}, want: want{code: PermissionAllow, steps: `ask {"x":""}`}},
		{name: "the tool's own demand with nobody there", call: demanding(call("read", `{"x":""}`)),
			want: want{code: ConfirmationUnavailable, denied: true, text: NobodyToAsk, kind: chat.PermissionDenied}},
		{name: "the tool's own demand cannot lift a denial", call: demanding(call("read", `{"x":""}`)), policy: &Policy{Deny: []string{"read"}}, confirm: &enabled,
			want: want{code: PermissionDeny, denied: true, text: "blocked", kind: chat.PermissionDenied}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := tt.ports
			c := Config{Asker: asker{&p}, Limits: DefaultLimits()}
			if tt.policy != nil {
				c.Rules = rules(t, *tt.policy)
			}
			if tt.confirm != nil {
				c.Confirmation = confirmation(t, *tt.confirm)
			}
			if p.hook != nil {
				c.Hook = hook{&p}
			}
			if p.guard != nil {
				c.Guard = guard{&p}
			}
			v := New(c).Run().Check(t.Context(), tt.call)
			got := want{code: v.Code, args: string(v.Args), denied: v.Denied, text: v.Result.Output, steps: strings.Join(p.steps, "; ")}
			if v.Result.Error != nil {
				got.kind = v.Result.Error.Type
			}
			if tt.want.args == "" {
				tt.want.args = string(tt.call.Args)
			}
			if tt.want.text != "" && strings.Contains(got.text, tt.want.text) {
				got.text = tt.want.text
			}
			if got != tt.want {
				t.Errorf("\n got %+v\nwant %+v", got, tt.want)
			}
			if allowed := tt.want.code == PermissionAllow; v.Allowed != allowed || (v.Result.ExitCode == 0) != allowed || v.Fatal != nil || v.Cancelled {
				t.Errorf("verdict %+v", v)
			}
			if v.Allowed && !reflect.DeepEqual(v.Effects, tt.call.Effects(v.Args)) {
				t.Errorf("effects %+v", v.Effects)
			}
		})
	}
}

func demanding(c Call) Call {
	c.Effects = func(json.RawMessage) chat.Effects { return chat.Effects{Read: true, Confirm: "it leaves the sandbox"} }
	return c
}

func TestGateCancelled(t *testing.T) {
	for _, where := range []string{"before", "hook", "ask", "guard"} {
		t.Run(where, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			stop := func(at string) {
				if at == where {
					cancel()
				}
			}
			stop("before")
			p := ports{
				ask: func(context.Context, Question) (Answer, error) { stop("ask"); return Answer{Approved: true}, nil },
				hook: func(context.Context, chat.Call) (HookAnswer, error) {
					stop("hook")
					return HookAnswer{Block: true}, nil
				},
				guard: func(context.Context, string) (GuardAnswer, error) { stop("guard"); return GuardAnswer{}, nil },
			}
			if where != "hook" {
				p.hook = func(context.Context, chat.Call) (HookAnswer, error) { return HookAnswer{}, nil }
			}
			g := New(Config{Asker: asker{&p}, Hook: hook{&p}, Guard: guard{&p}, Confirmation: confirmation(t, ConfirmationPolicy{Enabled: true}), Limits: DefaultLimits()})
			v := g.Run().Check(ctx, call("write", `{"x":""}`))
			if v.Allowed || !v.Cancelled || v.Denied || v.Code != CallCancelled || v.Result.Error == nil || v.Result.Error.Type != chat.WasCancelled {
				t.Errorf("got %+v after %v", v, p.steps)
			}
		})
	}
}

func TestGuards(t *testing.T) {
	fatal := func(v Verdict) string {
		switch {
		case v.Fatal != nil && v.Fatal.Code == fault.CodeLLM && v.Result.ExitCode == 1:
			return string(v.Code) + "!"
		case v.Fatal != nil:
			return fmt.Sprint(v)
		}
		return string(v.Code)
	}
	nested := func(args string) Call {
		c := call("read", args)
		c.Stack = []string{"program"}
		return c
	}
	a, b := call("read", `{"x":"a", "y":1}`), call("read", `{"x":"b"}`)
	same := call("read", ` {"y":1,"x":"\u0061"}`)
	bad, wrong := call("read", `{"x":`), call("read", `{}`)
	tests := []struct {
		name   string
		limits Limits
		calls  []Call
		want   string
	}{
		{"identical calls", DefaultLimits(), []Call{a, same, a, same, a},
			"permission_allow permission_allow permission_allow duplicate_call duplicate_call!"},
		{"another call ends the row", DefaultLimits(), []Call{a, a, a, b, a, a, a, a},
			"permission_allow permission_allow permission_allow permission_allow permission_allow permission_allow permission_allow duplicate_call"},
		{"the guard switched off", Limits{2, 0}, []Call{a, a, a, a, a, a},
			"permission_allow permission_allow permission_allow permission_allow permission_allow permission_allow"},
		{"calls of tools are not counted", Limits{0, 1}, []Call{nested(`{"x":""}`), nested(`{"x":""}`), nested(`{`), nested(`{}`)},
			"permission_allow permission_allow malformed_arguments invalid_arguments"},
		{"unusable arguments", DefaultLimits(), []Call{bad, wrong, bad}, "malformed_arguments invalid_arguments malformed_arguments!"},
		{"a usable call ends the row", DefaultLimits(), []Call{bad, wrong, a, bad, wrong}, "malformed_arguments invalid_arguments permission_allow malformed_arguments invalid_arguments"},
		{"no retry", Limits{0, 3}, []Call{wrong}, "invalid_arguments!"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			run := New(Config{Limits: tt.limits}).Run()
			var got []string
			for _, c := range tt.calls {
				got = append(got, fatal(run.Check(t.Context(), c)))
			}
			if s := strings.Join(got, " "); s != tt.want {
				t.Errorf("\n got %s\nwant %s", s, tt.want)
			}
		})
	}
}

func TestGateWithoutAsker(t *testing.T) {
	g := New(Config{Confirmation: confirmation(t, ConfirmationPolicy{Enabled: true}), Limits: DefaultLimits()})
	if v := g.Run().Check(t.Context(), call("write", `{"x":""}`)); v.Allowed || !v.Denied || v.Code != ConfirmationUnavailable {
		t.Errorf("got %+v", v)
	}
}

func TestParentGate(t *testing.T) {
	p := ports{ask: func(context.Context, Question) (Answer, error) { return Answer{Approved: true}, nil }}
	enabled := confirmation(t, ConfirmationPolicy{Enabled: true})
	parent := New(Config{Rules: rules(t, Policy{Deny: []string{"bash", "read(secret)"}, Ask: []string{"write"}, DefaultDecision: "allow"}), Confirmation: enabled, Asker: asker{&p}})
	all := rules(t, Policy{DefaultDecision: "allow"})
	free := confirmation(t, ConfirmationPolicy{Enabled: true, YoloLanes: []string{"execute"}})
	tests := []struct {
		name string
		c    Config
		tool string
		want string
	}{
		{"a denial stays", Config{Rules: all}, "bash", "permission_deny asked 0"},
		{"a question is asked by the child", Config{Rules: all, Confirmation: enabled, Asker: asker{&p}}, "write", "permission_allow asked 1"},
		{"a question with nobody there", Config{Rules: all}, "write", "confirmation_unavailable asked 0"},
		{"the child's free lane does not skip the parent's question", Config{Rules: rules(t, Policy{}), Confirmation: free, Asker: asker{&p}}, "write", "permission_allow asked 1"},
		{"the child's own denial", Config{Rules: rules(t, Policy{Deny: []string{"edit"}})}, "edit", "permission_deny asked 0"},
		{"allowed by both", Config{Rules: all}, "edit", "permission_allow asked 0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p.steps = nil
			tt.c.Parent, tt.c.Limits = parent, DefaultLimits()
			child := New(tt.c)
			v := child.Run().Check(t.Context(), call(tt.tool, `{"x":""}`))
			if got := fmt.Sprintf("%s asked %d", v.Code, len(p.steps)); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if child.MayRead("secret") || !child.MayRead("open") {
				t.Error("the parent's read rules do not hold")
			}
		})
	}
}

func TestSelect(t *testing.T) {
	offers := []Offer{{Name: "read", ReadOnly: true}, {Name: "ls", ReadOnly: true}, {Name: "write"}, {Name: "bash"}, {Name: "artifact_read", Own: true}}
	enabled, disabled := &ConfirmationPolicy{Enabled: true}, &ConfirmationPolicy{}
	tests := []struct {
		name    string
		policy  *Policy
		confirm *ConfirmationPolicy
		hidden  string
	}{
		{"nothing given", nil, nil, "write bash"},
		{"confirmation switched off", nil, disabled, "write bash"},
		{"confirmation enabled", nil, enabled, ""},
		{"rules that ask, nobody there", &Policy{Allow: []string{"bash(ls:*)", "read"}}, nil, "ls write"},
		{"rules that ask, somebody there", &Policy{Allow: []string{"bash(ls:*)", "read"}}, enabled, ""},
		{"default allow, one tool asks", &Policy{Ask: []string{"write", "bash(rm:*)"}, DefaultDecision: "allow"}, nil, "write"},
		{"default deny", &Policy{Ask: []string{"write"}, Allow: []string{"ls"}, DefaultDecision: "deny"}, enabled, "read bash"},
		{"default deny, nobody there", &Policy{Ask: []string{"write"}, Allow: []string{"ls"}, DefaultDecision: "deny"}, nil, "read write bash"},
		{"all denied", &Policy{Deny: []string{"*"}}, enabled, "read ls write bash"},
		{"disabled policy", &Policy{Deny: []string{"*"}, Enabled: new(false)}, nil, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := Config{}
			if tt.policy != nil {
				c.Rules = rules(t, *tt.policy)
			}
			if tt.confirm != nil {
				c.Confirmation = confirmation(t, *tt.confirm)
			}
			shown, hidden := New(c).Select(offers)
			if got := strings.Join(hidden, " "); got != tt.hidden || len(shown)+len(hidden) != len(offers) {
				t.Errorf("hidden %q, want %q; shown %q", got, tt.hidden, shown)
			}
		})
	}
}
