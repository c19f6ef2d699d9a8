package op_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/a3s-lab/liba3s/runtime/agent"
	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/op"
	"github.com/a3s-lab/liba3s/runtime/record"
	"github.com/a3s-lab/liba3s/runtime/session"
)

// service is a model service that answers "hi" and keeps what it was asked.
type service struct {
	*httptest.Server
	mu     sync.Mutex
	bodies []string      // guarded by mu
	status int           // of every answer, if not 0
	delay  chan struct{} // an answer waits for it, if not nil
}

func serve(t *testing.T, s *service) *service {
	t.Helper()
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.bodies = append(s.bodies, string(b))
		s.mu.Unlock()
		if s.delay != nil {
			select {
			case <-s.delay:
			case <-r.Context().Done():
			}
			return
		}
		if s.status != 0 {
			http.Error(w, `{"error":{"message":"no"}}`, s.status)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"},\"finish_reason\":null}]}\n\n"+
			"data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1,\"total_tokens\":4}}\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *service) asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.bodies)
}

// online is a place whose models are those of a service.
func online(t *testing.T, s *service) place {
	t.Helper()
	p := scripted(t, "")
	p.write("agent.acl", fmt.Sprintf("default_model = \"local/main\"\nproviders \"local\" {\n  apiKey = \"key-12345\"\n  baseUrl = %q\n  models \"main\" { reasoning = true }\n  models \"other\" { reasoning = true }\n}\n", s.URL+"/v1"))
	return p
}

// body is a request to a service, decoded.
func body(t *testing.T, s *service) object {
	t.Helper()
	all := s.asked()
	if len(all) == 0 {
		t.Fatal("nothing was asked")
	}
	var o object
	if err := json.Unmarshal([]byte(all[len(all)-1]), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

// ask runs one prompt with options against a service and gives the request.
func ask(t *testing.T, options object) object {
	t.Helper()
	s := serve(t, &service{})
	p := online(t, s)
	if _, err := play(t, p.session(p.agent(), options), "hello"); err != nil {
		t.Fatal(err)
	}
	return body(t, s)
}

func system(o object) string { return fmt.Sprint(o["messages"].([]any)[0].(object)["content"]) }

// proofs show that every option that works changes what a session does.
var proofs = map[string]func(t *testing.T){
	"model": func(t *testing.T) {
		if got := ask(t, object{"model": "local/other"})["model"]; got != "other" {
			t.Error(got)
		}
	},
	"temperature": func(t *testing.T) {
		if got := ask(t, object{"model": "local/main", "temperature": 0.25})["temperature"]; got != 0.25 {
			t.Error(got)
		}
		if got := ask(t, object{"temperature": 0.25})["temperature"]; got != nil {
			t.Errorf("without a model of its own: %v", got)
		}
	},
	"thinking_budget": func(t *testing.T) {
		with, without := ask(t, object{"model": "local/main", "thinking_budget": 9000}), ask(t, object{"model": "local/main"})
		if fmt.Sprint(with) == fmt.Sprint(without) {
			t.Errorf("the same request: %v", with)
		}
	},
	"llm_api_timeout_ms": func(t *testing.T) {
		s := serve(t, &service{delay: make(chan struct{})})
		p := online(t, s)
		_, err := play(t, p.session(p.agent(), object{"llm_api_timeout_ms": 30, "circuit_breaker_threshold": 1}), "hello")
		f := fault.From("", err)
		if f == nil || f.Code != fault.CodeLLM || f.Details["reason"] != "timeout" {
			t.Errorf("%v", err)
		}
	},
	"role": func(t *testing.T) {
		if got := system(ask(t, object{"role": "You are a poet."})); !strings.HasPrefix(got, "You are a poet.") {
			t.Error(got)
		}
	},
	"guidelines": func(t *testing.T) {
		if got := system(ask(t, object{"guidelines": "Use tabs."})); !strings.Contains(got, "Use tabs.") {
			t.Error(got)
		}
	},
	"response_style": func(t *testing.T) {
		plain := system(ask(t, nil))
		_, answers, _ := strings.Cut(plain, "## Answers\n")
		got := system(ask(t, object{"response_style": "Answer in verse."}))
		if !strings.Contains(got, "Answer in verse.") || strings.Contains(got, strings.TrimSpace(answers)) {
			t.Error(got)
		}
	},
	"extra": func(t *testing.T) {
		if got := system(ask(t, object{"guidelines": "g", "extra": "The end."})); !strings.HasSuffix(got, "The end.") {
			t.Error(got)
		}
	},
	"planning_mode": func(t *testing.T) {
		p := scripted(t, "say hi")
		a := p.agent()
		for _, word := range []string{"auto", "disabled", " Off "} {
			shut(t, p.session(a, object{"planning_mode": word}))
		}
		_, err := op.OpenSession(t.Context(), a, request(t, object{"workspace": "ws", "options": object{"planning_mode": "enabled"}}))
		wanted{fault.CodeSessionConfig, invalid, "not built", object{"field": "planning_mode"}}.check(t, err)
	},
	"max_tool_rounds": func(t *testing.T) {
		p := scripted(t, "call ls {}\nend\ncall ls {\"path\":\".\"}\nend\nsay done")
		_, err := play(t, p.session(p.agent(), object{"max_tool_rounds": 1}), "go")
		wanted{fault.CodeLLM, fault.Provider, "after 1 rounds", object{"max_tool_rounds": 1}}.check(t, err)
	},
	"max_parse_retries": func(t *testing.T) {
		p := scripted(t, "call ls nope\nend\nsay never")
		_, err := play(t, p.session(p.agent(), object{"max_parse_retries": 0}), "go")
		wanted{fault.CodeLLM, fault.Provider, "1 times in a row", nil}.check(t, err)
	},
	"tool_timeout_ms": func(t *testing.T) {
		p := scripted(t, "call bash {\"command\":\"sleep 20\"}\nend\nexpect timed out\nsay done")
		began := time.Now()
		if _, err := play(t, p.session(p.agent(), with(allowAll, "tool_timeout_ms", 100)), "go"); err != nil {
			t.Error(err)
		}
		if d := time.Since(began); d > 10*time.Second {
			t.Errorf("it took %v", d)
		}
	},
	"circuit_breaker_threshold": func(t *testing.T) {
		p := scripted(t, "fail retryable no\nfail retryable no\nsay done")
		a := p.agent()
		if _, err := play(t, p.session(a, object{"circuit_breaker_threshold": 2}), "go"); err == nil {
			t.Error("a third attempt was made")
		}
		if _, err := play(t, p.session(a, object{"circuit_breaker_threshold": 3}), "go"); err != nil {
			t.Error(err)
		}
	},
	"duplicate_tool_call_threshold": func(t *testing.T) {
		p := scripted(t, strings.Repeat("call ls {}\nend\n", 3)+"say never")
		_, err := play(t, p.session(p.agent(), object{"duplicate_tool_call_threshold": 1}), "go")
		wanted{fault.CodeLLM, fault.Provider, "repeats the same ls call", object{"guard": "duplicate_call"}}.check(t, err)
	},
	"max_execution_time_ms": func(t *testing.T) {
		p := scripted(t, "wait 60000")
		_, err := play(t, p.session(p.agent(), object{"max_execution_time_ms": 50}), "go")
		wanted{fault.CodeTimeout, fault.Timeout, "max_execution_time_ms", nil}.check(t, err)
	},
	"auto_compact":           func(t *testing.T) { compacts(t, object{"auto_compact": true}, true) },
	"auto_compact_threshold": func(t *testing.T) { compacts(t, object{"auto_compact": true, "auto_compact_threshold": 0.99}, false) },
	"max_context_tokens": func(t *testing.T) {
		compacts(t, object{"auto_compact": true, "max_context_tokens": 400000}, false)
	},
	"artifact_store_limits": func(t *testing.T) {
		p := scripted(t, "call bash {\"command\":\"seq 1 30000\"}\ncall bash {\"command\":\"seq 2 30000\"}\nend\nsay done")
		s := p.session(p.agent(), with(allowAll, "artifact_store_limits", object{"max_artifacts": 1}))
		if _, err := play(t, s, "go"); err != nil {
			t.Fatal(err)
		}
		var traces struct {
			Events []record.TraceEvent `json:"events"`
		}
		call(t, s, "session.trace_events", object{}, &traces)
		there := 0
		for _, tr := range traces.Events {
			for _, uri := range tr.ArtifactURIs {
				var got struct{ Artifact *record.Artifact }
				call(t, s, "session.get_artifact", object{"uri": uri}, &got)
				if got.Artifact != nil {
					there++
				}
			}
		}
		if len(traces.Events) != 2 || there != 1 {
			t.Errorf("%d traces, %d artifacts", len(traces.Events), there)
		}
	},
	"permission_policy": func(t *testing.T) {
		p := scripted(t, "call write {\"file_path\":\"a\",\"content\":\"x\"}\nend\nexpect Permission denied\nsay done")
		if _, err := play(t, p.session(p.agent(), object{"permission_policy": object{"deny": []string{"write"}, "default_decision": "allow"}}), "go"); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(p.path("ws/a")); err == nil {
			t.Error("it was written")
		}
	},
	"confirmation_policy": func(t *testing.T) {
		p := scripted(t, "call write {\"file_path\":\"a\",\"content\":\"x\"}\nend\nsay done")
		told, err := play(t, p.session(p.agent(), object{"confirmation_policy": object{"enabled": true, "default_timeout_ms": 20, "timeout_action": "auto_approve"}}), "go")
		if err != nil || !slices.ContainsFunc(told, func(e event.Envelope) bool { return e.Type == "confirmation_timeout" }) {
			t.Errorf("%v", err)
		}
		if _, err := os.Stat(p.path("ws/a")); err != nil {
			t.Error(err)
		}
	},
	"workspace_backend": func(t *testing.T) {
		p := scripted(t, "call read {\"file_path\":\"here\"}\nend\nexpect found me\nsay done")
		p.write("elsewhere/here", "found me")
		if _, err := play(t, p.session(p.agent(), object{"workspace_backend": object{"kind": "local", "root": "elsewhere"}}), "go"); err != nil {
			t.Error(err)
		}
	},
	"session_store": func(t *testing.T) {
		p := scripted(t, "say one\nend\nsay two")
		a := p.agent()
		o := object{"session_id": "s", "session_store": object{"kind": "file", "dir": "store"}}
		s := p.session(a, o)
		if _, err := play(t, s, "go"); err != nil {
			t.Fatal(err)
		}
		shut(t, s)
		again := resume(t, a, "s", object{"session_store": object{"kind": "file", "dir": "store"}})
		if h := again.History(); len(h) != 2 {
			t.Errorf("%+v", h)
		}
	},
	"auto_save": func(t *testing.T) {
		for _, on := range []bool{true, false} {
			p := scripted(t, "say one")
			if _, err := play(t, p.session(p.agent(), object{"auto_save": on, "session_store": object{"kind": "file", "dir": "store"}}), "go"); err != nil {
				t.Fatal(err)
			}
			found, _ := filepath.Glob(p.path("store/v1/sessions/*.json"))
			if (len(found) == 1) != on {
				t.Errorf("auto_save %v: %v", on, found)
			}
		}
	},
	"journal": func(t *testing.T) {
		p := scripted(t, "say one")
		if _, err := play(t, p.session(p.agent(), object{"journal": false, "session_store": object{"kind": "file", "dir": "store"}}), "go"); err != nil {
			t.Fatal(err)
		}
		if found, _ := filepath.Glob(p.path("store/v1/journal/*/*.log")); len(found) != 0 {
			t.Errorf("%v", found)
		}
	},
	"stall_timeout_ms": func(t *testing.T) {
		p := scripted(t, "say "+strings.Repeat("word ", 200))
		s := p.session(p.agent(), object{"stall_timeout_ms": 50, "retention_limits": object{"max_events_per_run": 4}, "host_env": object{"fixed_time_ms": 1}})
		c, err := op.OpenStream(t.Context(), s, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		began := time.Now()
		r, err := op.StartRun(t.Context(), s, request(t, object{"prompt": "go"}))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := op.Wait(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(began); d < 50*time.Millisecond || d > 10*time.Second {
			t.Errorf("the run took %v", d)
		}
	},
	"session_id": func(t *testing.T) {
		p := scripted(t, "say one")
		if s := p.session(p.agent(), object{"session_id": "my own"}); s.ID() != "my own" {
			t.Error(s.ID())
		}
	},
	"host_env": func(t *testing.T) {
		p := scripted(t, "say one")
		s := p.session(p.agent(), object{"host_env": object{"sequential_id_prefix": "n", "fixed_time_ms": 77}})
		told, err := play(t, s, "go")
		if err != nil || s.ID() != "n-0" || told[0].Metadata.RunID != "n-1" || told[0].Metadata.TimestampMS != 77 {
			t.Errorf("%v, %s, %+v", err, s.ID(), told[0].Metadata)
		}
	},
	"tenant_id":         func(t *testing.T) { labelled(t, "tenant_id") },
	"principal":         func(t *testing.T) { labelled(t, "principal") },
	"agent_template_id": func(t *testing.T) { labelled(t, "agent_template_id") },
	"correlation_id":    func(t *testing.T) { labelled(t, "correlation_id") },
	"retention_limits": func(t *testing.T) {
		p := scripted(t, strings.Repeat("say one two three\nend\n", 3))
		s := p.session(p.agent(), object{"retention_limits": object{"max_runs_retained": 2, "max_events_per_run": 3}})
		for range 3 {
			if _, err := play(t, s, "go"); err != nil {
				t.Fatal(err)
			}
		}
		runs := s.Runs()
		if len(runs) != 2 || len(s.RunEvents(runs[1].ID)) != 3 {
			t.Errorf("%d runs, %d events", len(runs), len(s.RunEvents(runs[1].ID)))
		}
	},
}

// compacts says whether a conversation of about 60 % of the window is compacted.
func compacts(t *testing.T, options object, want bool) {
	t.Helper()
	p := scripted(t, "say "+strings.Repeat("many words ", 1000)+"\nend\nsay the sum of it\nend\nsay done")
	told := []event.Envelope{}
	s := p.session(p.agent(), with(with(options, "max_context_tokens", or(options["max_context_tokens"], 5000)), "auto_compact_threshold", or(options["auto_compact_threshold"], 0.6)))
	for range 2 {
		got, err := play(t, s, "go on")
		if err != nil {
			t.Fatal(err)
		}
		told = append(told, got...)
	}
	if got := slices.ContainsFunc(told, func(e event.Envelope) bool { return e.Type == "context_compacted" }); got != want {
		t.Errorf("compacted: %v", got)
	}
}

func or(v, d any) any {
	if v == nil {
		return d
	}
	return v
}

func labelled(t *testing.T, name string) {
	t.Helper()
	p := scripted(t, "say one")
	s := p.session(p.agent(), object{name: "mine"})
	var info object
	call(t, s, "session.info", object{}, &info)
	if info[name] != "mine" {
		t.Errorf("%v", info)
	}
}

func resume(t *testing.T, a *agent.Agent, id string, options object) *session.Session {
	t.Helper()
	s, err := op.OpenSession(t.Context(), a, request(t, object{"resume": id, "options": options}))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestEveryOptionThatWorks(t *testing.T) {
	for _, o := range agent.OptionTable {
		if o.State != agent.Works {
			continue
		}
		proof := proofs[o.Name]
		if proof == nil {
			t.Errorf("%s: nothing shows that it works", o.Name)
			continue
		}
		t.Run(o.Name, proof)
	}
}
