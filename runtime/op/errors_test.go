package op_test

import (
	"bytes"
	"context"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/op"
)

const invalid = fault.Invalid

// The table of errors, one row a line, through the operations.

func TestErrorsConfiguration(t *testing.T) {
	p := scripted(t, "say hi")
	p.write("broken.acl", "default_model = \"a/b\"\nproviders \"x\" {\n  models = = 3\n}\n")
	p.write("unclosed.acl", "providers \"x\" {\n")
	p.write("keyless.acl", "default_model = \"openai/gpt\"\nproviders \"openai\" {\n  apiKey = env(\"NO_SUCH_KEY\")\n  models \"gpt\" {}\n}\n")
	p.write("unknown.acl", "\ndefault_model = \"nobody/gpt\"\n")
	p.write("unknown-model.acl", "default_model = \"openai/other\"\nproviders \"openai\" {\n  apiKey = \"k\"\n  models \"gpt\" {}\n}\n")
	p.write("unbuilt.acl", "default_model = \"anthropic/c\"\nproviders \"anthropic\" { apiKey = \"k\" models \"c\" {} }\n")
	p.write("wrong-type.acl", "default_model = 3\n")
	p.write("nameless.acl", "providers { }\n")
	p.write("strict.acl", "strict = true\n no_such_key = 1\n")
	p.write("call.acl", "default_model = concat(\"a\", \"b\")\n")
	p.write("odd.acl", "default_model = \"justaname\"\n")
	p.write("binary.acl", "a\x00b\xff\xfe")
	if err := os.Mkdir(p.path("folder.acl"), 0o755); err != nil {
		t.Fatal(err)
	}
	file := func(name string, line, column int) object {
		d := object{"file": name}
		if line > 0 {
			d["line"], d["column"] = line, column
		}
		return d
	}
	cases := []struct {
		name, source, message string
		details               object
	}{
		{"missing", "nothing.acl", "nothing.acl", object{"file": p.path("nothing.acl")}},
		{"a folder", "folder.acl", "regular file", object{"file": p.path("folder.acl")}},
		{"malformed", "broken.acl", "line 3", file("broken.acl", 3, 12)},
		{"unclosed", "unclosed.acl", "", file("unclosed.acl", 2, 1)},
		{"bytes that are no text", "binary.acl", "", file("binary.acl", 1, 2)},
		{"no key", "keyless.acl", "needs a key", file("keyless.acl", 2, 1)},
		{"unknown provider", "unknown.acl", `unknown provider "nobody"`, file("unknown.acl", 2, 17)},
		{"unknown model", "unknown-model.acl", `no model "other"`, file("unknown-model.acl", 1, 17)},
		{"provider that is not built", "unbuilt.acl", "not built", file("unbuilt.acl", 2, 1)},
		{"wrong type", "wrong-type.acl", "must be a string", file("wrong-type.acl", 1, 17)},
		{"provider without name", "nameless.acl", "needs a name", file("nameless.acl", 1, 1)},
		{"unknown name under strict", "strict.acl", "no_such_key", file("strict.acl", 2, 2)},
		{"another call than env", "call.acl", "env", file("call.acl", 1, 17)},
		{"a model without provider", "odd.acl", "provider/model", file("odd.acl", 1, 17)},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := op.OpenAgent(t.Context(), request(t, object{"acl_path": c.source, "cwd": p.dir}))
			wanted{fault.CodeConfig, invalid, c.message, c.details}.check(t, err)
		})
	}
	inline := []struct {
		name, source string
		details      object
	}{
		{"inline text", "default_model = \"nobody/x\"", object{"line": 1, "column": 17}},
		{"inline text with a mistake", "a = ]", object{"line": 1, "column": 5}},
	}
	for _, c := range inline {
		t.Run(c.name, func(t *testing.T) {
			_, err := op.OpenAgent(t.Context(), request(t, object{"source": c.source, "cwd": p.dir}))
			wanted{fault.CodeConfig, invalid, "", c.details}.check(t, err)
		})
	}
}

func TestErrorsWorkspaceAndOptions(t *testing.T) {
	p := scripted(t, "say hi")
	p.write("file", "x")
	a := p.agent()
	config := func(field, reason, message string) wanted {
		return wanted{fault.CodeSessionConfig, invalid, message, object{"field": field, "reason": reason}}
	}
	const value, typ = fault.BadValue, fault.BadType
	cases := []struct {
		name    string
		request object
		want    wanted
	}{
		{"no workspace", object{}, config("workspace", value, "missing")},
		{"a workspace that is not there", object{"workspace": "nowhere"}, config("workspace", value, "nowhere")},
		{"a file as workspace", object{"workspace": "file"}, config("workspace", value, "not a directory")},
		{"an unknown option", object{"workspace": "ws", "options": object{"permision_policy": object{}}}, config("permision_policy", value, "no such option")},
		{"an option of wrong type", object{"workspace": "ws", "options": object{"max_tool_rounds": "many"}}, config("max_tool_rounds", typ, "string")},
		{"a fraction for a whole number", object{"workspace": "ws", "options": object{"max_tool_rounds": 1.5}}, config("max_tool_rounds", typ, "number")},
		{"options that are no object", object{"workspace": "ws", "options": []int{1}}, config("options", typ, "object")},
		{"a bad value", object{"workspace": "ws", "options": object{"temperature": 7, "model": "script/main"}}, config("temperature", value, "from 0 to 2")},
		{"a bad word", object{"workspace": "ws", "options": object{"planning_mode": "sometimes"}}, config("planning_mode", value, "sometimes")},
		{"a bad decision", object{"workspace": "ws", "options": object{"permission_policy": object{"default_decision": "perhaps"}}}, config("permission_policy", value, "perhaps")},
		{"an unknown name in a policy", object{"workspace": "ws", "options": object{"permission_policy": object{"denny": []string{"bash"}}}}, config("permission_policy", value, "denny")},
		{"a bad time-out action", object{"workspace": "ws", "options": object{"confirmation_policy": object{"enabled": true, "timeout_action": "shrug"}}}, config("confirmation_policy", value, "shrug")},
		{"a bad lane", object{"workspace": "ws", "options": object{"confirmation_policy": object{"yolo_lanes": []string{"fast"}}}}, config("confirmation_policy", value, "fast")},
		{"a bad session id", object{"workspace": "ws", "options": object{"session_id": "a\nb"}}, config("session_id", value, "control character")},
		{"a long session id", object{"workspace": "ws", "options": object{"session_id": strings.Repeat("x", 129)}}, config("session_id", value, "129")},
		{"a store of no kind", object{"workspace": "ws", "options": object{"session_store": object{"kind": "cloud"}}}, config("session_store", value, "cloud")},
		{"a store without folder", object{"workspace": "ws", "options": object{"session_store": object{"kind": "file"}}}, config("session_store", value, "dir")},
		{"an unknown name in a store", object{"workspace": "ws", "options": object{"session_store": object{"kind": "file", "dir": "s", "path": "x"}}}, config("session_store", value, "path")},
		{"negative time", object{"workspace": "ws", "options": object{"host_env": object{"fixed_time_ms": -1}}}, config("host_env", value, "negative")},
		{"two mistakes are told in the order of names", object{"workspace": "ws", "options": object{"zzz": 1, "aaa": 1}}, config("aaa", value, "no such option")},
		{"resume without store", object{"resume": "s"}, wanted{fault.CodeSession, fault.IO, "resume_session needs a session_store", nil}},
		{"resume of nothing", object{"resume": "s", "options": object{"session_store": object{"kind": "file", "dir": "store"}}}, wanted{fault.CodeSession, fault.IO, "Session not found: s", nil}},
		{"resume under another id", object{"resume": "s", "options": object{"session_id": "t"}}, config("session_id", value, "resumed")},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := op.OpenSession(t.Context(), a, request(t, c.request))
			c.want.check(t, err)
		})
	}
	if open := a.ListSessions(); len(open) != 0 {
		t.Errorf("sessions are left behind: %v", open)
	}
}

func TestErrorsRequests(t *testing.T) {
	p := scripted(t, "say hi")
	a := p.agent()
	s := p.session(a, nil)
	deep := func(n int) []byte {
		return []byte(`{"name":"ls","args":` + strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) + "}")
	}
	big := append(append([]byte(`{"name":"ls","args":{"a":"`), bytes.Repeat([]byte("x"), 64<<20)...), `"}}`...)
	cases := []struct {
		name, method string
		params       []byte
		want         wanted
	}{
		{"invalid UTF-8", "session.tool", []byte("{\"name\":\"l\xff\"}"), wanted{fault.CodeInvalidRequest, invalid, "UTF-8", object{"reason": "bad_value"}}},
		{"NUL", "session.tool", []byte("{\"name\":\"l\x00\"}"), wanted{fault.CodeInvalidRequest, invalid, "NUL", object{"reason": "bad_value"}}},
		{"NUL as an escape", "session.tool", []byte(`{"name":"l\u0000"}`), wanted{fault.CodeInvalidRequest, invalid, "NUL", object{"reason": "bad_value"}}},
		{"65 levels", "session.tool", deep(64), wanted{fault.CodeInvalidRequest, invalid, "nested deeper than 64", object{"reason": "bad_value"}}},
		{"a million levels", "session.tool", deep(1_000_000), wanted{fault.CodeInvalidRequest, invalid, "nested deeper than 64", object{"reason": "bad_value"}}},
		{"more than 64 MiB", "session.tool", big, wanted{fault.CodeInvalidRequest, invalid, "67108", object{"reason": "bad_value"}}},
		{"no JSON", "session.tool", []byte(`{"name":`), wanted{fault.CodeInvalidRequest, invalid, "", object{"reason": "bad_value"}}},
		{"two values", "session.tool", []byte(`{"name":"ls"} {"name":"ls"}`), wanted{fault.CodeInvalidRequest, invalid, "", object{"reason": "bad_value"}}},
		{"an array", "session.tool", []byte(`[]`), wanted{fault.CodeInvalidRequest, invalid, "array", object{"reason": "bad_type"}}},
		{"an unknown name", "session.tool", []byte(`{"name":"ls","arguments":{}}`), wanted{fault.CodeInvalidRequest, invalid, "arguments", object{"field": "arguments"}}},
		{"a missing answer", "session.confirm_tool_use", []byte(`{"tool_id":"x"}`), wanted{fault.CodeInvalidRequest, invalid, "approved is missing", object{"field": "approved", "reason": "bad_value"}}},
		{"a missing name", "session.tool", []byte(`{"args":{}}`), wanted{fault.CodeInvalidRequest, invalid, "name is missing", object{"field": "name", "reason": "bad_value"}}},
		{"a wrong type", "session.tool", []byte(`{"name":3}`), wanted{fault.CodeInvalidRequest, invalid, "number", object{"field": "name", "reason": "bad_type"}}},
		{"an unknown operation", "session.fly", nil, wanted{fault.CodeInvalidRequest, invalid, "session.fly", object{"field": "method"}}},
		{"an operation of another object", "agent.info", nil, wanted{fault.CodeInvalidHandle, fault.Handle, "belongs to a agent", nil}},
		{"an empty prompt", "session.send", []byte(`{"prompt":" \n"}`), wanted{fault.CodeInvalidRequest, invalid, "prompt", object{"field": "prompt", "reason": "bad_value"}}},
		{"no prompt", "session.send", []byte(`{}`), wanted{fault.CodeInvalidRequest, invalid, "prompt", object{"field": "prompt", "reason": "bad_value"}}},
		{"a history of no role", "session.send", []byte(`{"prompt":"x","history":[{"role":"king","content":[]}]}`), wanted{fault.CodeInvalidRequest, invalid, "history[0]", object{"field": "history", "reason": "bad_value"}}},
		{"a limit of 0", "session.run_event_page", []byte(`{"run_id":"r","limit":0}`), wanted{fault.CodeInvalidRequest, invalid, "at least 1", object{"field": "limit", "reason": "bad_value"}}},
		{"a negative cursor", "session.run_event_page", []byte(`{"run_id":"r","after_sequence":-1}`), wanted{fault.CodeInvalidRequest, invalid, "negative", object{"field": "after_sequence"}}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := op.Call(t.Context(), s, c.method, c.params)
			c.want.check(t, err)
		})
	}
	t.Run("64 levels are taken", func(t *testing.T) {
		if _, err := op.Call(t.Context(), s, "session.tool", deep(63)); err != nil {
			t.Error(err)
		}
	})
	t.Run("from_seq of a session", func(t *testing.T) {
		_, err := op.OpenStream(t.Context(), s, []byte(`{"from_seq":0}`))
		wanted{fault.CodeInvalidRequest, invalid, "from_seq", object{"field": "from_seq", "reason": "bad_value"}}.check(t, err)
	})
	t.Run("a wrong cwd", func(t *testing.T) {
		_, err := op.OpenAgent(t.Context(), []byte(`{"source":"a = 1","cwd":"here"}`))
		wanted{fault.CodeInvalidRequest, invalid, "absolute", object{"field": "cwd", "reason": "bad_value"}}.check(t, err)
	})
	t.Run("two sources", func(t *testing.T) {
		_, err := op.OpenAgent(t.Context(), []byte(`{"acl":"a = 1","acl_path":"x.acl","cwd":"/"}`))
		wanted{fault.CodeConfig, invalid, "one configuration", object{"field": "source"}}.check(t, err)
	})
	t.Run("a bad log level", func(t *testing.T) {
		_, err := op.OpenAgent(t.Context(), []byte(`{"acl":"a = 1","cwd":"/","log_level":"loud"}`))
		wanted{fault.CodeInvalidRequest, invalid, "loud", object{"field": "log_level", "reason": "bad_value"}}.check(t, err)
	})
}

func TestErrorsPromptLargerThanTheWindow(t *testing.T) {
	p := scripted(t, "say short answer")
	a := p.agent()
	s := p.session(a, object{"max_context_tokens": 4000})
	tell, err := play(t, s, strings.Repeat("many words ", 4000))
	wanted{fault.CodeContext, fault.Limit, "window", object{"window": 4000}}.check(t, err)
	for _, e := range tell {
		if e.Type == "turn_start" {
			t.Error("the model was asked")
		}
	}
	if _, err := play(t, s, "a short one"); err != nil { // the script's first turn is still there
		t.Errorf("the session is stuck: %v", err)
	}
}

func TestErrorsEndpoint(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refusing := "http://" + l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for name, base := range map[string]string{"refuses the connection": refusing, "name not found": "http://no-such-host.invalid:1"} {
		for _, provider := range []string{"ollama", "openai", "local"} {
			t.Run(provider+" "+name, func(t *testing.T) {
				p := scripted(t, "")
				p.write("agent.acl", "default_model = \""+provider+"/m\"\nproviders \""+provider+"\" {\n apiKey = \"k\"\n baseUrl = \""+base+"\"\n models \"m\" {}\n}\n")
				s := p.session(p.agent(), nil)
				began := time.Now()
				tell, err := play(t, s, "hello")
				if d := time.Since(began); d > 2500*time.Millisecond {
					t.Errorf("it took %v", d)
				}
				wanted{fault.CodeLLM, fault.Provider, "", nil}.check(t, err)
				turns := 0
				for _, e := range tell {
					if e.Type == "turn_start" {
						turns++
					}
				}
				if turns != 1 || tell[len(tell)-1].Type != "error" {
					t.Errorf("%d turns", turns)
				}
			})
		}
	}
}

func TestErrorsArgumentsOfCalls(t *testing.T) {
	cases := []struct {
		name, call, told string
	}{
		{"no JSON", `call read {"file_path": nope`, "Invalid arguments"},
		{"against the schema", `call read {"file_path": 3}`, "Invalid arguments"},
		{"too deep", `call read {"file_path":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`, "Invalid arguments"},
		{"a million levels", `call read {"file_path":` + strings.Repeat("[", 1_000_000) + strings.Repeat("]", 1_000_000) + `}`, "Invalid arguments"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			turn := c.call + "\nend\n"
			p := scripted(t, strings.Repeat(turn, 4)+"say never")
			s := p.session(p.agent(), with(allowAll, "max_parse_retries", 2))
			tell, err := play(t, s, "go")
			wanted{fault.CodeLLM, fault.Provider, "3 times in a row", object{"tool": "read"}}.check(t, err)
			told := 0
			for _, e := range tell {
				if e.Type != "tool_end" {
					continue
				}
				told++
				p, err := event.Decode(e.Type, e.Payload)
				if err != nil {
					t.Fatal(err)
				}
				if end := p.(event.ToolEnd); !strings.Contains(end.Output, c.told) || end.ErrorKind == nil || end.ErrorKind.Type != "invalid_argument" {
					t.Errorf("%+v", end)
				}
			}
			if told != 3 {
				t.Errorf("told %d times", told)
			}
		})
	}
}

func TestS8SendPastItsTimeCancelsAndWaits(t *testing.T) {
	p := scripted(t, "say hm\nwait 60000")
	s := p.session(p.agent(), nil)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := op.Call(ctx, s, "session.send", request(t, object{"prompt": "go"}))
	wanted{fault.CodeCancelled, fault.Cancelled, "", nil}.check(t, err)
	if s.Active() != nil {
		t.Error("the run goes on behind the caller's back")
	}
}
