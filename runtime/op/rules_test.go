package op_test

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/op"
	"github.com/a3s-lab/liba3s/runtime/session"
)

// Frames without a number are on the control stream, or on a session's where they are
// its own, and never among the events of a run.
func TestS7FramesAreNeverFacts(t *testing.T) {
	p := scripted(t, "fail retryable soon\nsay hi")
	a := p.agent()
	control, err := op.OpenStream(t.Context(), a, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer control.Close()
	s := p.session(a, object{"session_store": object{"kind": "file", "dir": "store"}})
	told, err := play(t, s, "go")
	if err != nil {
		t.Fatal(err)
	}
	same := func(where string, list []event.Envelope) {
		t.Helper()
		for _, e := range list {
			if e.Metadata == nil || slices.ContainsFunc(event.Frames, func(r event.Row) bool { return r.Name == e.Type }) {
				t.Errorf("%s: %s %+v", where, e.Type, e.Metadata)
			}
		}
	}
	same("the stream", told)
	same("run_events", events(t, s, told[0].Metadata.RunID))
	buf := make([]byte, 1<<20)
	n, _, err := control.TryNext(100, buf)
	if err != nil || n == 0 {
		t.Fatalf("nothing on the control stream: %v", err)
	}
	var frames []event.Envelope
	if err := json.Unmarshal(buf[:n], &frames); err != nil {
		t.Fatal(err)
	}
	for _, f := range frames {
		if f.Metadata != nil || f.Type != "log" {
			t.Errorf("%s %+v", f.Type, f.Metadata)
		}
	}
}

// The table of S17 from end to end: what runs, what is asked, what is denied and what
// the model is told of.
func TestS17DefaultPolicy(t *testing.T) {
	enabled, disabled := object{"enabled": true, "default_timeout_ms": 20}, object{"enabled": false}
	askAll := object{"default_decision": "ask"}
	cases := []struct {
		name         string
		options      object
		read, write  string // "runs", "asked" or "denied"
		offersWrite  bool
		warnsOfWrite bool
	}{
		{"no policies", object{}, "runs", "denied", false, true},
		{"confirmation disabled", object{"confirmation_policy": disabled}, "runs", "denied", false, true},
		{"confirmation enabled", object{"confirmation_policy": enabled}, "runs", "asked", true, false},
		{"rules, nobody to ask", object{"permission_policy": askAll}, "denied", "denied", false, false},
		{"rules, confirmation disabled", object{"permission_policy": askAll, "confirmation_policy": disabled}, "denied", "denied", false, false},
		{"rules and confirmation", object{"permission_policy": askAll, "confirmation_policy": enabled}, "asked", "asked", true, false},
		{"rules that allow", object{"permission_policy": object{"allow": []string{"write"}}}, "denied", "runs", true, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := scripted(t, calls(`ls {}`, `write {"file_path":"a","content":"x"}`))
			s := p.session(p.agent(), c.options)
			told, err := play(t, s, "go")
			if err != nil {
				t.Fatal(err)
			}
			for i, want := range []string{c.read, c.write} {
				name := []string{"ls", "write"}[i]
				if got := became(t, told, name); got != want {
					t.Errorf("%s was %s, want %s", name, got, want)
				}
			}
			shown := serve(t, &service{})
			online := online(t, shown)
			if _, err := play(t, online.session(online.agent(), c.options), "go"); err != nil {
				t.Fatal(err)
			}
			if tools, _ := json.Marshal(body(t, shown)["tools"]); strings.Contains(string(tools), `"write"`) != c.offersWrite {
				t.Errorf("the model is told of %s", tools)
			}
			var info session.Info
			call(t, s, "session.info", object{}, &info)
			if warns := strings.Contains(info.InitWarning, "write"); warns != c.warnsOfWrite {
				t.Errorf("init_warning %q", info.InitWarning)
			}
		})
	}
}

// became says what became of the call of a tool.
func became(t *testing.T, told []event.Envelope, name string) string {
	t.Helper()
	for _, e := range told {
		p, err := event.Decode(e.Type, e.Payload)
		if err != nil {
			t.Fatal(err)
		}
		switch p := p.(type) {
		case event.ConfirmationRequired:
			if p.ToolName == name {
				return "asked"
			}
		case event.PermissionDenied:
			if p.ToolName == name {
				if !strings.Contains(p.Reason, "nobody can be asked: set confirmation_policy") {
					t.Errorf("denied for %q", p.Reason)
				}
				return "denied"
			}
		case event.ToolExecutionStart:
			if p.Name == name {
				return "runs"
			}
		}
	}
	return "lost"
}

// artifact_read is always shown and always allowed, for what the own session keeps.
func TestS18ArtifactReadIsAlwaysAllowed(t *testing.T) {
	s := serve(t, &service{})
	p := online(t, s)
	a := p.agent()
	for _, o := range []object{{}, {"permission_policy": object{"default_decision": "deny"}}, {"permission_policy": object{"deny": []string{"artifact_read", "*"}}}} {
		if _, err := play(t, p.session(a, o), "go"); err != nil {
			t.Fatal(err)
		}
		if tools, _ := json.Marshal(body(t, s)["tools"]); !strings.Contains(string(tools), `"artifact_read"`) {
			t.Errorf("%v: not shown: %s", o, tools)
		}
	}
	p = scripted(t, calls(`artifact_read {"uri":"a3s://tool-output/bash/`+strings.Repeat("0", 64)+`"}`))
	told, err := play(t, p.session(p.agent(), object{"permission_policy": object{"default_decision": "deny", "deny": []string{"artifact_read"}}}), "go")
	if err != nil {
		t.Fatal(err)
	}
	if got := became(t, told, "artifact_read"); got != "runs" {
		t.Errorf("it was %s", got)
	}
	if r := outcomes(t, told); r[0].ErrorKind == nil || r[0].ErrorKind.Type != "not_found" {
		t.Errorf("%+v", r[0])
	}
}

// .git and the store's folder are refused to writing tools whatever the rules say, and
// searches pass .git and .a3s by.
func TestS24ProtectedFolders(t *testing.T) {
	p := scripted(t, calls(
		`write {"file_path":"store/v1/sessions/x.json","content":"x"}`,
		`write {"file_path":"sub/.git/config","content":"x"}`,
		`edit {"file_path":".git/HEAD","old_string":"ref","new_string":"x"}`,
		`grep {"pattern":"needle"}`,
		`glob {"pattern":"**/*"}`,
	))
	p.write("ws/.git/HEAD", "ref: needle\n")
	p.write("ws/.a3s/notes", "needle\n")
	p.write("ws/plain", "needle\n")
	told, err := play(t, p.session(p.agent(), with(allowAll, "session_store", object{"kind": "file", "dir": "ws/store"})), "go")
	if err != nil {
		t.Fatal(err)
	}
	r := outcomes(t, told)
	for _, end := range r[:3] {
		if end.ExitCode == 0 {
			t.Errorf("%s %s: %s", end.Name, end.Args, end.Output)
		}
	}
	for _, end := range r[3:] {
		if strings.Contains(end.Output, ".git") || strings.Contains(end.Output, ".a3s") || !strings.Contains(end.Output, "plain") {
			t.Errorf("%s: %s", end.Name, end.Output)
		}
	}
	if b, _ := os.ReadFile(p.path("ws/.git/HEAD")); string(b) != "ref: needle\n" {
		t.Errorf("%q", b)
	}
}

// env() is answered by what the caller hands over and by nothing else, and the map is
// gone from everything that is told.
func TestS19EnvComesFromTheCaller(t *testing.T) {
	t.Setenv("A3S_TEST_VARIABLE", "of the process")
	p := scripted(t, calls(`bash {"command":"echo [$A3S_TEST_VARIABLE] [$GIVEN] [$LANG]"}`))
	p.write("agent.acl", "default_model = env(\"WHICH\")\nproviders \"script\" { models \"main\" { script = \"turns.txt\" } }\n")
	_, err := op.OpenAgent(t.Context(), request(t, object{"acl_path": "agent.acl", "cwd": p.dir}))
	if err != nil {
		t.Fatal(err) // without it there is no default model, which an agent may lack
	}
	a, err := op.OpenAgent(t.Context(), request(t, object{"acl_path": "agent.acl", "cwd": p.dir, "env": object{"WHICH": "script/main", "PATH": "/usr/bin:/bin", "LANG": "C", "GIVEN": "given"}}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shut(t, a) })
	told, err := play(t, p.session(a, allowAll), "go")
	if err != nil {
		t.Fatal(err)
	}
	if out := outcomes(t, told)[0].Output; !strings.Contains(out, "[] [] [C]") {
		t.Errorf("a child sees %s", out)
	}
}

func TestCloseOfAnAgentClosesItsSessions(t *testing.T) {
	p := scripted(t, "say hm\nwait 60000")
	a := p.agent()
	s := p.session(a, nil)
	r, err := op.StartRun(t.Context(), s, request(t, object{"prompt": "go"}))
	if err != nil {
		t.Fatal(err)
	}
	control, err := op.OpenStream(t.Context(), a, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer control.Close()
	shut(t, a)
	if _, err := op.Wait(t.Context(), r); fault.From("", err).Code != fault.CodeCancelled {
		t.Errorf("%v", err)
	}
	if _, _, err := control.Next(context.Background(), 1, make([]byte, 1<<16)); fault.KindOf(err) != fault.End {
		t.Errorf("the control stream: %v", err)
	}
	for name, err := range map[string]error{
		"session": func() error {
			_, err := op.OpenSession(t.Context(), a, request(t, object{"workspace": "ws"}))
			return err
		}(),
		"run": func() error { _, err := op.StartRun(t.Context(), s, request(t, object{"prompt": "x"})); return err }(),
	} {
		if f := fault.From("", err); f == nil || f.Code != fault.CodeSessionClosed {
			t.Errorf("%s: %v", name, err)
		}
	}
	shut(t, a)
	if len(a.ListSessions()) != 0 {
		t.Error("sessions are left")
	}
}
