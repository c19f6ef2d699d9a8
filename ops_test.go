package a3s_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	a3s "github.com/a3s-lab/liba3s"
	"github.com/a3s-lab/liba3s/runtime/op"
)

// reached says which method, or function, of this package does what an operation does.
var reached = map[string]any{
	"agent.list_sessions":        "ListSessions",
	"agent.list_stored_sessions": "ListStoredSessions",
	"agent.close_session":        "CloseSession",
	"agent.close":                "Close",
	"agent.info":                 "IsClosed Warnings",
	"agent.event_types":          a3s.EventTypes,
	"agent.drop_memory_store":    a3s.DropMemoryStore,

	"session.info":                  "Info",
	"session.send":                  "Send",
	"session.cancel":                "Cancel",
	"session.cancel_run":            "CancelRun",
	"session.save":                  "Save",
	"session.close":                 "Close",
	"session.runs":                  "Runs",
	"session.run_snapshot":          "RunSnapshot",
	"session.run_events":            "RunEvents",
	"session.run_event_page":        "RunEventPage",
	"session.current_run":           "CurrentRun",
	"session.active_tools":          "ActiveTools",
	"session.history":               "History",
	"session.get_artifact":          "Artifact",
	"session.pending_confirmations": "PendingConfirmations",
	"session.confirm_tool_use":      "ConfirmToolUse",
	"session.cancel_confirmations":  "CancelConfirmations",
	"session.tool":                  "Tool",
	"session.tool_names":            "ToolNames",
	"session.tool_definitions":      "ToolDefinitions",
	"session.list_commands":         "Commands",
	"session.trace_events":          "TraceEvents",

	"run.info": "Snapshot",
}

// Every operation of the table is reached from this package, and by a method that is there.
func TestEveryOperationIsReached(t *testing.T) {
	types := map[string]reflect.Type{
		op.OnAgent: reflect.TypeFor[*a3s.Agent](), op.OnSession: reflect.TypeFor[*a3s.Session](), op.OnRun: reflect.TypeFor[*a3s.Run](),
	}
	known := map[string]bool{}
	for _, o := range op.Table() {
		known[o.Name] = true
		switch by := reached[o.Name].(type) {
		case nil:
			t.Errorf("%s is reached by nothing: give it a method of %s and a row here", o.Name, types[o.On])
		case string:
			for _, name := range strings.Fields(by) {
				if _, ok := types[o.On].MethodByName(name); !ok {
					t.Errorf("%s: %s has no method %s", o.Name, types[o.On], name)
				}
			}
		}
	}
	for name := range reached {
		if !known[name] {
			t.Errorf("%s is no operation any more", name)
		}
	}
}

// An operation whose name comes from elsewhere is called by it.
func TestOperationsByName(t *testing.T) {
	agent, s := scriptedAgent(t, "say hi", nil)
	r, err := s.Start("hello", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	var ids struct {
		SessionIDs []string `json:"session_ids"`
	}
	if err := agent.Call(t.Context(), "agent.list_sessions", nil, &ids); err != nil || !slices.Equal(ids.SessionIDs, []string{s.ID()}) {
		t.Error(ids, err)
	}
	var of, run struct {
		Run struct{ ID, Status string }
	}
	if err := s.Call(t.Context(), "session.run_snapshot", map[string]string{"run_id": r.ID()}, &of); err != nil || of.Run.Status != "completed" {
		t.Error(of, err)
	}
	if err := r.Call(t.Context(), "run.info", nil, &run); err != nil || run != of {
		t.Error(run, err)
	}
	for name, c := range map[string]struct {
		err  error
		code a3s.Code
	}{
		"an unknown one":             {s.Call(t.Context(), "session.nothing", nil, nil), "INVALID_REQUEST"},
		"another object's":           {s.Call(t.Context(), "agent.close", nil, nil), "INVALID_HANDLE"},
		"an unknown parameter":       {s.Call(t.Context(), "session.save", map[string]int{"x": 1}, nil), "INVALID_REQUEST"},
		"what cannot be encoded":     {s.Call(t.Context(), "session.save", func() {}, nil), "INVALID_REQUEST"},
		"a result that does not fit": {s.Call(t.Context(), "session.history", nil, new(int)), "INVALID_REQUEST"},
	} {
		if code(t, c.err) != c.code {
			t.Errorf("%s: %v, want %s", name, c.err, c.code)
		}
	}
}

// Kinds of extensions with a typed registration have it where the table lets them be
// registered; any other is reached by RegisterExtension.
func TestEveryKindIsReached(t *testing.T) {
	typed := map[string]string{
		"tool": "RegisterTool", "model": "RegisterModel", "permission": "RegisterPermissionChecker", "context": "RegisterContextProvider",
		"command": "RegisterCommand", "store": "RegisterSessionStore", "workspace": "RegisterWorkspace", "log": "RegisterLog", "transport": "RegisterTransport",
	}
	for _, k := range op.HostKinds() {
		if typed[k.Name] == "" {
			continue
		}
		for _, owner := range []struct {
			takes bool
			t     reflect.Type
		}{{k.Agent, reflect.TypeFor[*a3s.Agent]()}, {k.Session, reflect.TypeFor[*a3s.Session]()}} {
			if _, ok := owner.t.MethodByName(typed[k.Name]); ok != owner.takes {
				t.Errorf("%s: %s has a typed registration: %v, want %v", k.Name, owner.t, ok, owner.takes)
			}
		}
	}
}
