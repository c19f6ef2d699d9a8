//go:build unix

package faults_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/a3s-lab/liba3s/runtime/agent"
	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/policy"
	"github.com/a3s-lab/liba3s/runtime/record"
	sess "github.com/a3s-lab/liba3s/runtime/session"
	"github.com/a3s-lab/liba3s/runtime/tool"
	"github.com/a3s-lab/liba3s/tests/faults"
)

// The script makes reads, effects, a long output that becomes an artifact, a save in
// the middle and two runs.
const turns = `say Looking.
call read {"file_path":"a.txt"}
call ls {}
end
think Now do it.
call effect {"name":"one"}
call read {"file_path":"a.txt"}
call effect {"name":"two"}
end
call read {"file_path":"big.txt"}
end
call effect {"name":"three"}
end
say All done.
end
say Second run.
call effect {"name":"four"}
end
say Bye.
end
say After the crash.
end
`

// effect appends its name to a file: what happened outside is known there.
type effect struct{ file string }

func (effect) Spec() chat.ToolSpec {
	return chat.ToolSpec{Name: "effect", Description: "leaves a trace", Parameters: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}},"required":["name"],"additionalProperties":false}`)}
}

func (effect) Effects(json.RawMessage) chat.Effects { return chat.Effects{Write: true} }

func (e effect) Run(_ context.Context, _ tool.Env, args json.RawMessage) (chat.Result, error) {
	var a struct{ Name string }
	if err := json.Unmarshal(args, &a); err != nil {
		return chat.Result{}, err
	}
	faults.Point("effect.before")
	f, err := os.OpenFile(e.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return chat.Result{}, err
	}
	defer f.Close()
	if _, err := fmt.Fprintln(f, a.Name); err != nil {
		return chat.Result{}, err
	}
	faults.Point("effect.after")
	return chat.Result{Output: "did " + a.Name}, nil
}

// open opens or resumes the one session of dir.
func open(dir string, resume bool, hook func(string)) (*agent.Agent, *sess.Session, error) {
	a, err := agent.Open(background, agent.Setup{ACLPath: "agent.acl", Cwd: dir, StoreHook: hook})
	if err != nil {
		return nil, nil, err
	}
	name := session
	o := &agent.Options{
		PermissionPolicy: &policy.Policy{DefaultDecision: "allow"},
		SessionStore:     &agent.SessionStore{Kind: "file", Dir: "store"},
	}
	spec := agent.SessionSpec{Workspace: "ws", Options: o}
	if resume {
		spec.Resume = name
	} else {
		o.SessionID = &name
	}
	s, err := a.OpenSession(background, spec)
	if err != nil {
		return a, nil, err
	}
	return a, s, s.AddTool(effect{filepath.Join(dir, "effects")})
}

func init() {
	faults.Script("session", func(args []string) error {
		a, s, err := open(args[0], false, faults.Point)
		if err != nil {
			return err
		}
		for i, prompt := range []string{"first", "second"} {
			if err := told(s, prompt); err != nil {
				return err
			}
			if i == 0 {
				if err := s.Save(background); err != nil {
					return err
				}
				faults.Tell("saved")
			}
		}
		return a.Close(background)
	})
}

// told runs a prompt and reports every event as it is told.
func told(s *sess.Session, prompt string) error {
	r, err := s.Start(sess.Prompt{Text: prompt})
	if err != nil {
		return err
	}
	c := r.Stream(0)
	defer c.Close()
	buf := make([]byte, 1<<20)
	for {
		n, _, err := c.Next(background, 1, buf)
		if err != nil {
			_, err = r.Wait(background)
			return err
		}
		var batch []event.Envelope
		if err := json.Unmarshal(buf[:n], &batch); err != nil {
			return err
		}
		for _, e := range batch {
			faults.Tell(fmt.Sprintf("%s %d %s", e.Metadata.RunID, e.Metadata.Sequence, e.Type))
		}
	}
}

func stage(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"agent.acl":  "default_model = \"script/main\"\nproviders \"script\" { models \"main\" { script = \"turns.txt\" } }\n",
		"turns.txt":  turns,
		"ws/a.txt":   "hello\n",
		"ws/big.txt": strings.Repeat(strings.Repeat("x", 99)+"\n", 1900),
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// survive resumes what a killed child left and holds it against what it told.
func survive(t *testing.T, dir string, out faults.Outcome) {
	t.Helper()
	if len(out.Told) == 0 {
		if _, _, err := open(dir, true, nil); err == nil {
			return // something was written before anything was told
		}
		return
	}
	a, s, err := open(dir, true, nil)
	if err != nil {
		t.Fatalf("resume: %v\n%s", err, out)
	}
	kept := map[string]string{}
	for _, r := range s.Runs() {
		checkRun(t, s, r, kept)
	}
	for _, line := range out.Told {
		if line == "saved" {
			continue
		}
		f := strings.Fields(line)
		if got := kept[f[0]+" "+f[1]]; got != f[2] {
			t.Errorf("told %q, kept %q", line, got)
		}
	}
	checkEffects(t, dir, s)
	checkTranscript(t, s.History())
	runs, history := s.Runs(), len(s.History())
	if err := a.Close(background); err != nil {
		t.Fatal(err)
	}
	again(t, dir, runs, history)
}

// checkRun wants numbers without a gap, one terminal event, and a terminal status.
func checkRun(t *testing.T, s *sess.Session, r record.RunSnapshot, kept map[string]string) {
	t.Helper()
	if !r.Status.Terminal() {
		t.Errorf("run %s is %s after resume", r.ID, r.Status)
	}
	ends := 0
	for i, raw := range s.RunEvents(r.ID) {
		var e event.Envelope
		if err := json.Unmarshal(raw, &e); err != nil {
			t.Fatal(err)
		}
		if e.Metadata.Sequence != int64(i) {
			t.Fatalf("run %s: event %d has number %d", r.ID, i, e.Metadata.Sequence)
		}
		kept[fmt.Sprintf("%s %d", r.ID, i)] = e.Type
		if e.Type == "agent_end" || e.Type == "error" {
			ends++
		}
	}
	if ends != 1 {
		t.Errorf("run %s has %d terminal events", r.ID, ends)
	}
}

// checkEffects wants every effect at most once, each with a trace, and an outcome that
// is true: success only if it happened, unknown where nobody can know.
func checkEffects(t *testing.T, dir string, s *sess.Session) {
	t.Helper()
	happened := map[string]int{}
	b, err := os.ReadFile(filepath.Join(dir, "effects"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, name := range strings.Fields(string(b)) {
		happened[name]++
	}
	seen := map[string]bool{}
	for _, r := range s.Runs() {
		for _, raw := range s.RunEvents(r.ID) {
			var e struct {
				Type    string
				Payload event.ToolEnd
			}
			if json.Unmarshal(raw, &e) != nil || e.Payload.Name != "effect" {
				continue
			}
			var args struct{ Name string }
			_ = json.Unmarshal(e.Payload.Args, &args)
			switch {
			case e.Type == "tool_execution_start":
				seen[args.Name] = true
			case e.Type == "tool_end" && e.Payload.ExitCode == 0 && happened[args.Name] != 1:
				t.Errorf("effect %s is told as done and happened %d times", args.Name, happened[args.Name])
			case e.Type == "tool_end" && e.Payload.ExitCode != 0 && happened[args.Name] == 1 && e.Payload.ErrorKind.Type != chat.OutcomeUnknown:
				t.Errorf("effect %s happened and is told as %v", args.Name, e.Payload.ErrorKind)
			}
		}
	}
	for name, n := range happened {
		if n != 1 || !seen[name] {
			t.Errorf("effect %s happened %d times, its intent is kept: %v", name, n, seen[name])
		}
	}
}

// checkTranscript wants exactly one result behind every call.
func checkTranscript(t *testing.T, messages []chat.Message) {
	t.Helper()
	open := map[string]int{}
	for _, m := range messages {
		for _, c := range m.Calls() {
			open[c.ID]++
		}
		for _, b := range m.Content {
			if b.Type == chat.ToolResult {
				open[b.ToolUseID]--
			}
		}
	}
	for id, n := range open {
		if n != 0 {
			t.Errorf("call %s has %d results missing", id, n)
		}
	}
}

// again resumes a second time: nothing has changed, and the session works.
func again(t *testing.T, dir string, runs []record.RunSnapshot, history int) {
	t.Helper()
	a, s, err := open(dir, true, nil)
	if err != nil {
		t.Fatalf("second resume: %v", err)
	}
	if got := s.Runs(); fmt.Sprint(got) != fmt.Sprint(runs) || len(s.History()) != history {
		t.Errorf("a second resume changed the session:\n%v\n%v", runs, got)
	}
	r, err := s.Start(sess.Prompt{Text: "go on"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Wait(background); err != nil {
		t.Errorf("a run after the resume: %v", err)
	}
	if err := s.Save(background); err != nil {
		t.Errorf("a save after the resume: %v", err)
	}
	if err := a.Close(background); err != nil {
		t.Fatal(err)
	}
}

// The instants a session must survive, each named by what was just done.
var killPoints = []struct {
	name, point string
	nth         int
}{
	{"journal made", "append.log_created", 1},
	{"run start written", "append.written", 1},
	{"run start flushed", "flush.synced", 1},
	{"reads begun", "append.written", 8},
	{"first intent flushed", "flush.synced", 2},
	{"before the first effect", "effect.before", 1},
	{"after the first effect", "effect.after", 1},
	{"first outcome flushed", "flush.synced", 3},
	{"before the second effect", "effect.before", 2},
	{"artifact kept", "blob.renamed", 1},
	{"after the third effect", "effect.after", 3},
	{"snapshot written", "save.temp_synced", 1},
	{"snapshot in place", "save.renamed", 1},
	{"old journal removed", "save.old_removed", 1},
	{"effect of the second run", "effect.after", 4},
}

func TestSessionSurvivesKillAtNamedPoints(t *testing.T) {
	for _, k := range killPoints {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			dir := stage(t)
			survive(t, dir, faults.Child(t, "session", dir).KillAt(k.point, k.nth))
		})
	}
}

func TestSessionSurvivesKillAtAnyInstant(t *testing.T) {
	dir := stage(t)
	began := time.Now()
	if out := faults.Child(t, "session", dir).Wait(); out.Status != 0 {
		t.Fatal(out)
	}
	whole := time.Since(began)
	survive(t, dir, faults.Outcome{})
	for i := range 50 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			dir := stage(t)
			survive(t, dir, faults.Child(t, "session", dir).KillAfter(time.Duration(rand.Int64N(int64(whole)))))
		})
	}
}
