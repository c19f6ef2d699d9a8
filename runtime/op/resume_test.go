package op_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/a3s-lab/liba3s/runtime/agent"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/op"
	"github.com/a3s-lab/liba3s/runtime/session"
)

var fileStore = object{"session_store": object{"kind": "file", "dir": "store"}}

const oldSnapshot = "store/v1/sessions/id_d29yaw.json" // of session "work"

// old gives a place whose store holds a session that another program saved.
func old(t *testing.T, script string) place {
	t.Helper()
	p := scripted(t, script)
	b, err := os.ReadFile("testdata/session-6x.json")
	if err != nil {
		t.Fatal(err)
	}
	p.write(oldSnapshot, strings.ReplaceAll(string(b), "WORKSPACE", p.path("ws")))
	p.write("ws/a.txt", "one\n")
	return p
}

// document reads a snapshot as plain data.
func document(t *testing.T, path string) object {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var o object
	if err := json.Unmarshal(b, &o); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestResumeOfAnOlderSnapshot(t *testing.T) {
	p := old(t, "expect (?s)what is in a.txt.*Let me see.*One\\.\nsay and more")
	a := p.agent()
	s := resume(t, a, "work", fileStore)
	var info session.Info
	call(t, s, "session.info", object{}, &info)
	if info.SessionID != "work" || info.Workspace != p.path("ws") || info.Model != "script/main" || info.TenantID != "acme" || info.Principal != "ann" || info.AgentTemplateID != "tpl" || info.CorrelationID != "corr" || info.InitWarning != "" {
		t.Errorf("info %+v", info)
	}
	if h := s.History(); len(h) != 4 || h[1].ReasoningContent != "hm" || h[3].Text() != "One." {
		t.Errorf("history %+v", h)
	}
	runs := s.Runs()
	if len(runs) != 1 || runs[0].ResultText != "One." || runs[0].EventCount != 9 {
		t.Errorf("runs %+v", runs)
	}
	got := events(t, s, "run-old")
	if len(got) != 4 || got[0].Metadata.Sequence != 5 || got[2].Type != "model_usage_bound" || string(got[2].Payload) != `{"snapshot":{"type":"x","n":1.50}}` {
		t.Errorf("events %+v", got)
	}
	page, ok := s.RunEventPage("run-old", nil, 2)
	if !ok || !page.RetentionGap || *page.FirstAvailableSequence != 5 || page.LatestSequenceExclusive != 9 || !page.HasMore {
		t.Errorf("page %+v", page)
	}
	var art struct{ Artifact *struct{ Content string } }
	call(t, s, "session.get_artifact", object{"uri": "a3s://tool-output/read/a1"}, &art)
	if art.Artifact == nil || art.Artifact.Content != "the whole text" {
		t.Errorf("artifact %+v", art)
	}

	// The rules came back: bash is denied, read allowed, the rest asked.
	if _, err := play(t, s, "go on"); err != nil {
		t.Fatal(err)
	}
	before := document(t, p.path(oldSnapshot))
	call(t, s, "session.save", object{}, nil)
	saved := document(t, p.path(oldSnapshot))
	handedOn(t, before, saved)
	shut(t, s)

	// What was saved is loaded again and saved the same.
	s = resume(t, a, "work", fileStore)
	call(t, s, "session.save", object{}, nil)
	again := document(t, p.path(oldSnapshot))
	delete(saved["session"].(object), "updated_at")
	delete(again["session"].(object), "updated_at")
	if !reflect.DeepEqual(saved, again) {
		t.Errorf("saved %v\nagain %v", saved, again)
	}
}

// handedOn checks what a save keeps of what this version has no use for, and what the
// contract says comes back and does not.
func handedOn(t *testing.T, before, saved object) {
	t.Helper()
	was, is := before["session"].(object), saved["session"].(object)
	for _, key := range []string{"total_cost", "cost_records", "tasks", "created_at", "thinking_enabled", "thinking_budget", "parent_id", "tenant_id", "principal", "agent_template_id", "correlation_id", "cognitive_binding"} {
		if !reflect.DeepEqual(was[key], is[key]) {
			t.Errorf("%s was %v, is %v", key, was[key], is[key])
		}
	}
	wasConfig, isConfig := was["config"].(object), is["config"].(object)
	for _, key := range []string{"name", "system_prompt", "max_context_length", "queue_config", "confirmation_policy", "permission_policy", "enforce_active_skill_tool_restrictions", "max_parallel_tasks", "auto_delegation", "parent_id", "security_config", "a_key_of_later"} {
		if !reflect.DeepEqual(wasConfig[key], isConfig[key]) {
			t.Errorf("config.%s was %v, is %v", key, wasConfig[key], isConfig[key])
		}
	}
	notBack := object{"planning_mode": "auto", "auto_compact": false, "auto_compact_threshold": 0.8, "goal_tracking": false}
	for key, want := range notBack {
		if !reflect.DeepEqual(isConfig[key], want) {
			t.Errorf("config.%s came back: %v", key, isConfig[key])
		}
	}
	for _, key := range []string{"trace_events", "verification_reports", "subagent_tasks", "retained_artifact_uris"} {
		if !reflect.DeepEqual(before[key], saved[key]) {
			t.Errorf("%s was %v, is %v", key, before[key], saved[key])
		}
	}
	if n := is["total_usage"].(object)["total_tokens"].(float64); n <= 321 {
		t.Errorf("usage does not go on: %v", n)
	}
	if len(saved["run_records"].([]any)) != 2 || len(is["messages"].([]any)) != 6 {
		t.Errorf("%d runs, %d messages", len(saved["run_records"].([]any)), len(is["messages"].([]any)))
	}
}

func TestResumeCallersWordsWin(t *testing.T) {
	p := old(t, "call bash {\"command\":\"echo hi\"}\nend\nsay done")
	p.write("agent.acl", "default_model = \"script/other\"\nproviders \"script\" {\n models \"main\" { script = \"nothing.txt\" }\n models \"other\" { script = \"turns.txt\" }\n}\n")
	a := p.agent()
	s := resume(t, a, "work", with(with(with(with(fileStore, "model", "script/other"), "tenant_id", "other"), "permission_policy", object{"default_decision": "allow"}), "max_context_tokens", 5000))
	var info session.Info
	call(t, s, "session.info", object{}, &info)
	if info.Model != "script/other" || info.TenantID != "other" || info.Principal != "ann" {
		t.Errorf("%+v", info)
	}
	told, err := play(t, s, "go")
	if err != nil {
		t.Fatal(err)
	}
	if r := outcomes(t, told); len(r) != 1 || r[0].ExitCode != 0 {
		t.Errorf("%+v", r)
	}
}

func TestResumeRefusesWhatDoesNotBelong(t *testing.T) {
	damage := map[string]struct {
		find, put string
		code      fault.Code
	}{
		"another version":       {`"schema_version": 1`, `"schema_version": 2`, fault.CodeSerialization},
		"another session":       {`"id": "work"`, `"id": "play"`, fault.CodeSession},
		"a run of another":      {`"session_id": "work"`, `"session_id": "play"`, fault.CodeSession},
		"numbers that fall":     {`"sequence": 7`, `"sequence": 6`, fault.CodeSession},
		"too few events":        {`"event_count": 9`, `"event_count": 8`, fault.CodeSession},
		"no JSON":               {`"schema_version": 1,`, `"schema_version": 1`, fault.CodeSerialization},
		"a task of another":     {`"parent_session_id": "work"`, `"parent_session_id": "x"`, fault.CodeSession},
		"a policy that is none": {`"default_decision": "ask"`, `"default_decision": "perhaps"`, fault.CodeSessionConfig},
	}
	for name, d := range damage {
		t.Run(name, func(t *testing.T) {
			p := old(t, "say hi")
			b, err := os.ReadFile(p.path(oldSnapshot))
			if err != nil {
				t.Fatal(err)
			}
			broken := strings.Replace(string(b), d.find, d.put, 1)
			if broken == string(b) {
				t.Fatal("nothing was damaged")
			}
			p.write(oldSnapshot, broken)
			a := p.agent()
			_, err = op.OpenSession(t.Context(), a, request(t, object{"resume": "work", "options": fileStore}))
			if f := fault.From("", err); f == nil || f.Code != d.code {
				t.Errorf("%v", err)
			}
			if left, _ := os.ReadFile(p.path(oldSnapshot)); string(left) != broken {
				t.Error("the file was changed")
			}
			p.write(oldSnapshot, string(b)) // repaired, it opens: nothing holds it
			resume(t, a, "work", fileStore)
		})
	}
}

// A 6.x program saved the session after our last fact: its word stands, ours is set
// aside and that is said.
func TestResumeOfASessionThatWasSavedOver(t *testing.T) {
	p := old(t, "say ours\nend\nsay after")
	a := p.agent()
	s := resume(t, a, "work", fileStore)
	if _, err := play(t, s, "ours"); err != nil {
		t.Fatal(err)
	}
	shut(t, s)
	b, err := os.ReadFile(p.path(oldSnapshot))
	if err != nil {
		t.Fatal(err)
	}
	p.write(oldSnapshot, strings.Replace(string(b), `"text": "One."`, `"text": "Theirs."`, 1))
	s = resume(t, a, "work", fileStore)
	h := s.History()
	if len(h) != 4 || h[3].Text() != "Theirs." {
		t.Errorf("%+v", h)
	}
	var info session.Info
	call(t, s, "session.info", object{}, &info)
	if info.InitWarning == "" {
		t.Error("nothing was said")
	}
	found, _ := filepath.Glob(p.path("store/v1/journal/*/*"))
	if len(found) == 0 {
		t.Error("our facts are gone")
	}
}

func TestTwoAgentsOneStore(t *testing.T) {
	p := scripted(t, "say one\nend\nsay two")
	a, b := p.agent(), p.agent()
	o := with(fileStore, "session_id", "s")
	s := p.session(a, o)
	if _, err := play(t, s, "go"); err != nil {
		t.Fatal(err)
	}
	_, err := op.OpenSession(t.Context(), b, request(t, object{"resume": "s", "options": fileStore}))
	f := fault.From("", err)
	wanted{fault.CodeSessionBusy, fault.Busy, "s", nil}.check(t, err)
	if owner, _ := f.Details["owner"].(string); owner == "" {
		t.Errorf("the holder is not named: %v", f.Details)
	}
	_, err = op.OpenSession(t.Context(), a, request(t, object{"resume": "s", "options": fileStore}))
	wanted{fault.CodeSessionBusy, fault.Busy, "open in this agent", nil}.check(t, err)
	shut(t, s)
	again := resume(t, b, "s", fileStore)
	if len(again.History()) != 2 {
		t.Errorf("%+v", again.History())
	}
	_, err = op.OpenSession(t.Context(), a, request(t, object{"workspace": "ws", "options": o}))
	if f := fault.From("", err); f == nil || f.Code != fault.CodeSessionBusy {
		t.Errorf("a new session under a name in use: %v", err)
	}
	shut(t, again)
	_, err = op.OpenSession(t.Context(), a, request(t, object{"workspace": "ws", "options": o}))
	wanted{fault.CodeSessionConfig, invalid, "kept in this store already", object{"field": "session_id"}}.check(t, err)
}

func TestMemoryStoreAcrossAgents(t *testing.T) {
	p := scripted(t, "say one\nend\nsay two")
	store := object{"session_store": object{"kind": "memory", "instance_id": t.Name()}}
	a, b := p.agent(), p.agent()
	t.Cleanup(func() { agent.DropMemory(t.Name()) })
	s := p.session(a, with(store, "session_id", "s"))
	if _, err := play(t, s, "go"); err != nil {
		t.Fatal(err)
	}
	_, err := op.OpenSession(t.Context(), b, request(t, object{"resume": "s", "options": store}))
	wanted{fault.CodeSessionBusy, fault.Busy, "s", nil}.check(t, err)
	shut(t, s)
	_, err = op.OpenSession(t.Context(), b, request(t, object{"resume": "s", "options": object{"session_store": object{"kind": "memory", "instance_id": "another"}}}))
	wanted{fault.CodeSession, fault.IO, "Session not found: s", nil}.check(t, err)
	agent.DropMemory("another")
	again := resume(t, b, "s", store)
	if len(again.History()) != 2 {
		t.Errorf("%+v", again.History())
	}
	if _, err := play(t, again, "more"); err != nil {
		t.Fatal(err)
	}
	var ids struct {
		SessionIDs []string `json:"session_ids"`
	}
	call(t, b, "agent.list_stored_sessions", store, &ids)
	if !reflect.DeepEqual(ids.SessionIDs, []string{"s"}) {
		t.Errorf("%v", ids)
	}
	shut(t, again)
	call(t, b, "agent.drop_memory_store", object{"instance_id": t.Name()}, nil)
	_, err = op.OpenSession(t.Context(), b, request(t, object{"resume": "s", "options": store}))
	wanted{fault.CodeSession, fault.IO, "Session not found: s", nil}.check(t, err)
}
