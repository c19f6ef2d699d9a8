package extensions

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/session"
)

const writes = `call write {"file_path": "x.txt", "content": "x"}
end
say done
end`

func allowAll(asked) (any, error) { return object{"decision": "allow"}, nil }
func showAll(asked) (any, error)  { return object{"visible": true}, nil }

// The word of a checker beside rules and confirmation: the strictest counts; without
// rules it takes the place of the default table.
func TestPermissionTable(t *testing.T) {
	allow := object{"allow": []string{"write"}}
	deny := object{"deny": []string{"write"}}
	silent := object{"name": "gate", "timeout_ms": 30}
	for _, c := range []struct {
		name    string
		rules   object
		confirm bool
		spec    object
		check   handler
		ran     bool
		asks    bool
		reason  string
	}{
		{name: "allow alone", check: allowAll, ran: true},
		{name: "ask alone, nobody to ask", check: says("ask"), reason: "nobody can be asked: set confirmation_policy"},
		{name: "ask alone", check: says("ask"), confirm: true, asks: true, ran: true},
		{name: "deny alone", check: says("deny"), confirm: true, reason: "because"},
		{name: "allow and rules that allow", rules: allow, check: allowAll, ran: true},
		{name: "deny and rules that allow", rules: allow, check: says("deny"), reason: "because"},
		{name: "ask and rules that allow", rules: allow, confirm: true, check: says("ask"), asks: true, ran: true},
		{name: "allow and rules that deny", rules: deny, check: allowAll, reason: `blocked by the permission rule "write"`},
		{name: "allow and rules that ask", rules: object{"ask": []string{"write"}}, confirm: true, check: allowAll, asks: true, ran: true},
		{name: "garbage", rules: allow, check: result(object{"decision": "maybe"}), reason: `the permission checker failed: Invalid request: "maybe" is none of allow, ask, deny`},
		{name: "nothing", rules: allow, check: result(nil), reason: `the permission checker failed: Invalid request: "" is none of allow, ask, deny`},
		{name: "a typo", rules: allow, check: result(object{"decison": "allow"}), reason: `the permission checker failed: InvalidReply: the answer cannot be read: json: unknown field "decison"`},
		{name: "too much", rules: allow, check: result(object{"decision": "allow", "reason": string(make([]byte, 70_000))})},
		{name: "raises", rules: allow, check: func(asked) (any, error) { return nil, errors.New("boom") }, reason: "the permission checker failed: ValueError: boom"},
		{name: "no answer in time", rules: allow, spec: silent, check: func(asked) (any, error) { return nil, errSilent }, reason: `the permission checker failed: the host did not answer permission "gate" within 30ms`},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := scripted(t, writes)
			p.on("permission/check", c.check)
			p.on("permission/expose", showAll)
			if c.spec == nil {
				c.spec = object{"name": "gate"}
			}
			p.register("permission", c.spec)
			options := object{"tool_timeout_ms": 5000}
			if c.rules != nil {
				options["permission_policy"] = c.rules
			}
			if c.confirm {
				options["confirmation_policy"] = object{"enabled": true, "default_timeout_ms": 0}
			}
			s := p.session(options)
			run, err := s.Start(session.Prompt{Text: "write it"})
			if err != nil {
				t.Fatal(err)
			}
			if c.asks {
				for len(s.Pending()) == 0 {
					if s.Active() == nil {
						t.Fatal("nobody was asked")
					}
				}
				s.Confirm(s.Pending()[0].ToolID, true, "")
			}
			r := p.finish(run)
			if r.err != nil {
				t.Fatal(r.err)
			}
			if ran := slices.Contains(r.types(), "tool_execution_start"); ran != c.ran {
				t.Errorf("ran %v, want %v: %s", ran, c.ran, r.payload("permission_denied"))
			}
			if c.reason != "" {
				want(t, "reason", r.payload("permission_denied")["reason"], c.reason)
			}
		})
	}
}

func says(decision string) handler {
	return result(object{"decision": decision, "reason": "because"})
}

func result(v any) handler { return func(asked) (any, error) { return v, nil } }

// What the checker is asked, and that it is not asked for what needs no permission.
func TestPermissionQuestion(t *testing.T) {
	p := scripted(t, writes)
	p.on("permission/check", func(a asked) (any, error) {
		want(t, "tool", a.param("tool"), "write")
		want(t, "args", a.param("args"), object{"file_path": "x.txt", "content": "x"})
		want(t, "effects", a.param("effects").(object)["write"], true)
		want(t, "session", a.param("session_id"), "s1")
		want(t, "frame", a.SessionID, "s1")
		return object{"decision": "allow"}, nil
	})
	p.on("permission/expose", showAll)
	p.register("permission", object{"name": "gate"})
	s := p.session(object{"session_id": "s1"})
	want(t, "warning", s.Info().InitWarning, "")
	p.run(s, "write it")
	want(t, "checks", p.heard("permission", "check"), 1)
}

// Tools are exposed once a run, not once a turn; whoever says nothing hides.
func TestPermissionExpose(t *testing.T) {
	for name, c := range map[string]struct {
		spec   object
		expose handler
		shown  []string
		asked  int
	}{
		"by the checker": {object{"name": "gate"}, func(a asked) (any, error) {
			return object{"visible": a.param("tool") == "write" || a.param("tool") == "bash"}, nil
		}, []string{"artifact_read", "bash", "write"}, 7},
		"no answer":  {object{"name": "gate", "timeout_ms": 30}, func(asked) (any, error) { return nil, errSilent }, []string{"artifact_read"}, 7},
		"garbage":    {object{"name": "gate"}, result(object{}), []string{"artifact_read"}, 7},
		"check only": {object{"name": "gate", "check_only": true}, nil, []string{"artifact_read", "bash", "edit", "glob", "grep", "ls", "read", "write"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, hostModel, nil)
			turn := 0
			p.on("model/stream", func(a asked) (any, error) {
				shown := []string{}
				for _, spec := range a.param("tools").([]any) {
					shown = append(shown, spec.(object)["name"].(string))
				}
				want(t, "shown", shown, c.shown)
				if turn++; turn < 3 {
					return object{"tool_calls": []object{{"name": "write", "arguments": object{"file_path": fmt.Sprint(turn), "content": "x"}}}}, nil
				}
				return object{"text": "done"}, nil
			})
			p.on("permission/check", allowAll)
			p.on("permission/expose", c.expose)
			p.register("model", object{"name": "mine"})
			p.register("permission", c.spec)
			if r := p.run(p.session(nil), "hi"); r.err != nil {
				t.Fatal(r.err)
			}
			want(t, "asked", p.heard("permission", "expose"), c.asked)
		})
	}
}

// A checker may come to an open session and leave it; two both have a say.
func TestPermissionComesAndGoes(t *testing.T) {
	acl, files := script(writes + "\n" + writes + "\n" + writes)
	p := start(t, acl, files)
	p.on("permission/check", func(a asked) (any, error) {
		if a.Name == "strict" {
			return object{"decision": "deny"}, nil
		}
		return object{"decision": "allow"}, nil
	})
	p.on("permission/expose", showAll)
	s := p.session(nil)
	lax := p.register("permission", object{"name": "lax"}, s)
	ran := func() bool { return slices.Contains(p.run(s, "write it").types(), "tool_execution_start") }
	want(t, "with a checker that allows", ran(), true)
	strict := p.register("permission", object{"name": "strict"})
	want(t, "with two", ran(), false)
	for _, r := range []interface{ Close() error }{strict, lax} {
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	want(t, "with none", ran(), false) // the default: nobody can be asked
	want(t, "checks", p.heard("permission", "check"), 3)
}

// Without a control stream everything is denied at once.
func TestPermissionDeaf(t *testing.T) {
	acl, files := script(writes)
	p := deaf(t, acl, files)
	p.register("permission", object{"name": "gate"})
	r := p.run(p.session(object{"permission_policy": object{"allow": []string{"*"}}}), "write it")
	if r.err != nil || r.payload("permission_denied") == nil {
		t.Errorf("%v, %v", r.err, r.types())
	}
}

func TestPermissionCancelled(t *testing.T) {
	p := scripted(t, writes)
	s := p.session(nil)
	p.on("permission/expose", showAll)
	p.on("permission/check", func(a asked) (any, error) {
		s.CancelActive("enough")
		<-a.ctx.Done()
		return object{"decision": "allow"}, nil
	})
	p.register("permission", object{"name": "gate"})
	r := p.run(s, "write it")
	wantError(t, "run", r.err, fault.CodeCancelled)
	if slices.Contains(r.types(), "tool_execution_start") {
		t.Error("it ran")
	}
	p.withdraws("permission", "cancelled")
}
