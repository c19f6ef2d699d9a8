package extensions

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/op"
)

// The table says what the rules say: operations, chunks, deadlines in milliseconds, and
// where a kind is registered.
func TestTable(t *testing.T) {
	type row struct {
		Ops, Chunks string
		Deadline    int64
		On          string
	}
	got := map[string]row{}
	for _, k := range op.HostKinds() {
		r := row{Deadline: k.Deadline.Milliseconds()}
		var ops, chunks, on []string
		for _, o := range k.Ops {
			ops = append(ops, o.Name)
			if o.Chunk != nil {
				chunks = append(chunks, o.Name)
			}
		}
		for _, p := range []struct {
			name string
			yes  bool
		}{{"agent", k.Agent}, {"session", k.Session}, {"early", k.Early}} {
			if p.yes {
				on = append(on, p.name)
			}
		}
		r.Ops, r.Chunks, r.On = strings.Join(ops, " "), strings.Join(chunks, " "), strings.Join(on, " ")
		got[k.Name] = r
	}
	want(t, "table", got, map[string]row{
		"tool":       {"call", "call", 600_000, "agent session"},
		"model":      {"stream complete", "stream", 600_000, "agent early"},
		"permission": {"check expose", "", 5000, "agent session"},
		"context":    {"query", "", 5000, "agent session"},
		"command":    {"run", "", 5000, "agent session"},
		"store":      {"load append save delete list", "", 30_000, "agent early"},
		"workspace":  {"stat list read write remove run search", "run", 60_000, "agent early"},
		"log":        {"write", "", 1000, "agent session"},
		"transport":  {"round_trip", "round_trip", 600_000, "agent early"},
	})
}

// Every type of the table is a struct whose JSON names are set, and whose zero value is
// JSON: schema and bindings are made of it.
func TestTableTypes(t *testing.T) {
	for _, k := range op.HostKinds() {
		if k.Doc == "" || k.NoAnswer == "" {
			t.Errorf("%s: no words", k.Name)
		}
		types := []any{k.Spec}
		for _, o := range k.Ops {
			if o.Doc == "" || o.Params == nil {
				t.Errorf("%s/%s: no words or no parameters", k.Name, o.Name)
			}
			types = append(types, o.Params, o.Result, o.Chunk)
		}
		for _, v := range types {
			if v == nil {
				continue
			}
			if _, err := json.Marshal(v); err != nil {
				t.Errorf("%s: %T: %v", k.Name, v, err)
			}
			for _, f := range reflect.VisibleFields(reflect.TypeOf(v)) {
				if f.IsExported() && !f.Anonymous && f.Tag.Get("json") == "" {
					t.Errorf("%s: %T.%s has no JSON name", k.Name, v, f.Name)
				}
			}
		}
	}
}

func TestRegisterRefusals(t *testing.T) {
	p := scripted(t, "say x\nend")
	for _, c := range []struct {
		kind  string
		spec  string
		code  fault.Code
		words string
	}{
		{"tol", `{}`, fault.CodeUnsupported, "there is no host extension of kind \"tol\"; use one of tool, model"},
		{"hook", `{}`, fault.CodeUnsupported, "not built in this version"},
		{"model", `{"nme":"x"}`, fault.CodeInvalidRequest, "unknown field"},
		{"model", `{"name":5}`, fault.CodeInvalidRequest, "description of a model"},
		{"model", `[]`, fault.CodeInvalidRequest, "description of a model"},
		{"model", `{"name":""}`, fault.CodeInvalidRequest, "name"},
		{"model", `{"name":"a/b"}`, fault.CodeInvalidRequest, "name"},
		{"model", `{"name":"m","timeout_ms":-1}`, fault.CodeInvalidRequest, "timeout_ms"},
		{"model", `{"name":"m"} x`, fault.CodeInvalidRequest, ""},
		{"tool", `{"name":"t","parameters":{"type":5}}`, fault.CodeInvalidRequest, "parameters"},
		{"workspace", `{"name":"w","root":"a\nb"}`, fault.CodeInvalidRequest, "root"},
	} {
		_, err := op.HostRegister(bg, p.agent, c.kind, []byte(c.spec))
		wantError(t, c.kind+" "+c.spec, err, c.code, c.words)
	}
}

// What a request is told without a word of description or session: the deadlines of the
// table.
func TestDeadlines(t *testing.T) {
	p := start(t, `default_model = "host/mine"
providers "openai" { apiKey = "sk-a-key-of-tests" transport = "host/tunnel" baseUrl = "https://models.example" models "gpt" { } }`, nil)
	f := &folder{files: map[string]string{}}
	f.serve(p)
	s := &shelf{sessions: map[string]*kept{}}
	s.serve(p)
	p.on("model/stream", func(asked) (any, error) {
		if p.heard("model", "stream") == 1 {
			return object{"tool_calls": []object{{"name": "mytool", "arguments": object{}}}}, nil
		}
		return object{"text": "done"}, nil
	})
	p.on("tool/call", result(object{"output": "x"}))
	p.on("permission/check", allowAll)
	p.on("permission/expose", showAll)
	p.on("context/query", func(asked) (any, error) { return nil, errors.New("boom") })
	p.on("command/run", result(object{"text": "x"}))
	p.on("log/write", result(nil))
	p.on("transport/round_trip", result(object{"status": 200, "headers": object{"content-type": "text/event-stream"}, "text": sse}))
	for kind, name := range map[string]string{"tool": "mytool", "model": "mine", "permission": "gate", "context": "x", "command": "x", "log": "file", "store": "shelf", "workspace": "notebook", "transport": "tunnel"} {
		p.register(kind, object{"name": name})
	}
	places := object{"session_store": atShelf, "workspace_backend": inFolder}
	se := p.session(places)
	for _, prompt := range []string{"hi", "/x"} {
		if r := p.run(se, prompt); r.err != nil {
			t.Fatal(r.err)
		}
	}
	places["model"] = "openai/gpt"
	if r := p.run(p.session(places), "hi"); r.err != nil {
		t.Fatal(r.err)
	}
	got := map[string]int64{}
	p.until("all kinds", func() bool {
		for _, r := range p.requests {
			got[r.Kind] = r.DeadlineMS
		}
		return len(got) == 9
	})
	for _, k := range op.HostKinds() {
		want(t, k.Name, got[k.Name], k.Deadline.Milliseconds())
	}
}
