package a3s_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	a3s "github.com/a3s-lab/liba3s"
)

// refused is a use that makes no sense and the code it must get.
type refused struct {
	what string
	code a3s.Code
	err  error
}

func check(t *testing.T, all []refused) {
	t.Helper()
	for _, c := range all {
		if c.err == nil {
			t.Errorf("%s: it was taken, want %s", c.what, c.code)
		} else if got := code(t, c.err); got != c.code {
			t.Errorf("%s: %s (%.200v), want %s", c.what, got, c.err, c.code)
		} else if len(c.err.Error()) > 20_000 {
			t.Errorf("%s: the message has %d bytes", c.what, len(c.err.Error()))
		}
	}
}

// ended is a context that has ended.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

const (
	noUTF8  = "\xff"
	withNUL = "a\x00b"
)

var deep = json.RawMessage(strings.Repeat("[", 100) + strings.Repeat("]", 100))

func TestBadSources(t *testing.T) {
	dir := t.TempDir()
	for source, want := range map[string]a3s.Code{
		"": "CONFIG_ERROR", "x": "CONFIG_ERROR", withNUL + ".acl": "CONFIG_ERROR", noUTF8 + ".acl": "CONFIG_ERROR",
		"default_model = \"" + noUTF8 + "\"": "CONFIG_ERROR", "default_model = \"" + withNUL + "\"": "CONFIG_ERROR",
		strings.Repeat("[", 100_000): "CONFIG_ERROR", "x = " + strings.Repeat("[", 100_000): "CONFIG_ERROR",
	} {
		_, err := a3s.Create(t.Context(), source, a3s.WithDir(dir), nil)
		_, alias := a3s.NewAgent(t.Context(), source, a3s.WithDir(dir))
		check(t, []refused{{source[:min(len(source), 20)], want, err}, {"NewAgent", want, alias}})
	}
	create := func(ctx context.Context, o ...a3s.Option) error {
		_, err := a3s.Create(ctx, "default_model = \"offline/search\"", o...)
		return err
	}
	check(t, []refused{
		{"an ended context", "CANCELLED", create(ended())},
		{"a relative folder", "INVALID_REQUEST", create(t.Context(), a3s.WithDir("here"))},
		{"a level", "INVALID_REQUEST", create(t.Context(), a3s.WithLogLevel("loud"))},
	})
}

func TestBadSessions(t *testing.T) {
	agent, _ := scriptedAgent(t, "say hi", nil)
	ctx, dir := t.Context(), t.TempDir()
	var all []refused
	session := func(what string, want a3s.Code, ctx context.Context, workspace string, o *a3s.SessionOptions) {
		_, err := agent.Session(ctx, workspace, o)
		all = append(all, refused{"a session: " + what, want, err})
	}
	session("an ended context", "CANCELLED", ended(), dir, nil)
	for _, workspace := range []string{"", "absent", "agent.acl", withNUL, noUTF8, strings.Repeat("x", 10_000)} {
		session("in "+workspace[:min(len(workspace), 20)], "SESSION_CONFIGURATION_ERROR", ctx, workspace, nil)
	}
	for what, o := range map[string]*a3s.SessionOptions{
		"an empty id":           {SessionID: a3s.Ptr("")},
		"a long id":             {SessionID: a3s.Ptr(strings.Repeat("x", 1000))},
		"rounds":                {MaxToolRounds: a3s.Ptr(-1)},
		"a store of no kind":    {SessionStore: &a3s.SessionStore{}},
		"a store without dir":   {SessionStore: a3s.FileStore("")},
		"a store in memory":     {SessionStore: a3s.MemoryStore("")},
		"an absent workspace":   {WorkspaceBackend: &a3s.WorkspaceBackend{Kind: "host", Name: "none"}},
		"a default of a policy": {PermissionPolicy: &a3s.PermissionPolicy{DefaultDecision: "maybe"}},
		"an action":             {ConfirmationPolicy: &a3s.ConfirmationPolicy{Enabled: true, TimeoutAction: "wait"}},
	} {
		session(what, "SESSION_CONFIGURATION_ERROR", ctx, dir, o)
	}
	session("an id with NUL", "INVALID_REQUEST", ctx, dir, &a3s.SessionOptions{SessionID: a3s.Ptr(withNUL)})
	session("a store at NUL", "INVALID_REQUEST", ctx, dir, &a3s.SessionOptions{SessionStore: a3s.FileStore(withNUL)})
	session("an id that is no UTF-8", "INVALID_REQUEST", ctx, dir, &a3s.SessionOptions{SessionID: a3s.Ptr(noUTF8)})
	session("a rule that is no UTF-8", "INVALID_REQUEST", ctx, dir, &a3s.SessionOptions{PermissionPolicy: &a3s.PermissionPolicy{Allow: []string{noUTF8}}})
	session("a huge role", "INVALID_REQUEST", ctx, dir, &a3s.SessionOptions{Role: a3s.Ptr(strings.Repeat("x", 65<<20))})

	files := &a3s.SessionOptions{SessionStore: a3s.FileStore("kept")}
	for id, want := range map[string]a3s.Code{"": "INVALID_REQUEST", "none": "SESSION_ERROR", withNUL: "SESSION_CONFIGURATION_ERROR", noUTF8: "SESSION_CONFIGURATION_ERROR"} {
		_, err := agent.ResumeSession(ctx, id, files)
		all = append(all, refused{"resume " + id, want, err})
		if ok, err := agent.CloseSession(ctx, id); ok || err != nil {
			t.Errorf("close %q: %v %v", id, ok, err)
		}
	}
	_, err := agent.ResumeSession(ctx, "x", nil)
	all = append(all, refused{"resume without a store", "SESSION_ERROR", err})
	for _, store := range []*a3s.SessionStore{nil, {}, {Kind: "s3"}, {Kind: "host", Name: "none"}, {Kind: "file"}, a3s.FileStore(withNUL)} {
		_, err := agent.ListStoredSessions(ctx, store)
		all = append(all, refused{"stored sessions", "SESSION_CONFIGURATION_ERROR", err})
	}
	check(t, all)
	a3s.DropMemoryStore("never there")
}

func TestBadPrompts(t *testing.T) {
	s := scripted(t, "say hi", nil)
	var all []refused
	for what, r := range map[string]a3s.Request{
		"nothing": {}, "blanks": {Prompt: " \n"}, "NUL": {Prompt: withNUL}, "no UTF-8": {Prompt: noUTF8},
		"nobody":  {Prompt: "hi", History: []a3s.Message{{Role: "nobody"}}},
		"a block": {Prompt: "hi", History: []a3s.Message{{Role: "user", Content: []a3s.Block{{Type: "x"}}}}},
		"a text":  {Prompt: "hi", History: []a3s.Message{{Role: "user", Content: []a3s.Block{{Type: "text", Text: noUTF8}}}}},
		"a call":  {Prompt: "hi", History: []a3s.Message{{Role: "assistant", Content: []a3s.Block{{Type: "tool_use", ID: "1", Name: "ls", Input: json.RawMessage("{")}}}}},
		"deep":    {Prompt: "hi", History: []a3s.Message{{Role: "assistant", Content: []a3s.Block{{Type: "tool_use", ID: "1", Name: "ls", Input: deep}}}}},
	} {
		_, err := s.Start(r.Prompt, r.History)
		all = append(all, refused{"start: " + what, "INVALID_REQUEST", err})
		_, err = s.SendRequest(t.Context(), r)
		all = append(all, refused{"send: " + what, "INVALID_REQUEST", err})
		for _, err := range s.StreamRequest(t.Context(), r) {
			all = append(all, refused{"stream: " + what, "INVALID_REQUEST", err})
		}
	}
	_, err := s.Start("hi", []a3s.Message{{Role: "user", Content: []a3s.Block{{Type: "text", Text: strings.Repeat("x", 65<<20)}}}})
	all = append(all, refused{"a huge history", "INVALID_REQUEST", err})
	_, err = s.Run(t.Context(), strings.Repeat("x", 2<<20))
	all = append(all, refused{"more than the window", "CONTEXT_ERROR", err})
	_, err = s.Send(ended(), "hi", nil)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v is not that of its context", err)
	}
	all = append(all, refused{"send: an ended context", "CANCELLED", err})
	for _, err := range s.Stream(ended(), "hi") {
		all = append(all, refused{"stream: an ended context", "CANCELLED", err})
	}
	check(t, all)
	if n := len(s.Runs()); n != 1 { // the one that was more than the window
		t.Errorf("%d runs were begun", n)
	}
}

func TestBadCalls(t *testing.T) {
	s := scripted(t, "say hi", nil)
	ctx := t.Context()
	tool := func(name string, args any) error {
		_, err := s.Tool(ctx, name, args)
		return err
	}
	_, read := s.ReadFile(ctx, "absent")
	_, lines := s.ReadLines(ctx, "turns.txt", -1, 0)
	_, grep := s.Grep(ctx, "(")
	_, glob := s.Glob(ctx, "[")
	_, bash := s.Bash(ctx, "")
	_, decode := a3s.Decode(a3s.Event{Type: "text_delta", Payload: json.RawMessage("5")})
	_, empty := a3s.Decode(a3s.Event{Type: "text_delta"})
	check(t, []refused{
		{"args that are no JSON", "INVALID_REQUEST", tool("ls", json.RawMessage("{"))},
		{"args that are no UTF-8", "INVALID_REQUEST", tool("ls", map[string]string{"path": noUTF8})},
		{"raw args that are no UTF-8", "INVALID_REQUEST", tool("ls", json.RawMessage(`{"path":"`+noUTF8+`"}`))},
		{"NUL", "INVALID_REQUEST", tool("read", map[string]string{"file_path": withNUL})},
		{"a key that is no UTF-8", "INVALID_REQUEST", tool("ls", map[string]any{noUTF8: 1})},
		{"args that cannot be encoded", "INVALID_REQUEST", tool("ls", func() {})},
		{"deep args", "INVALID_REQUEST", tool("ls", deep)},
		{"too many args", "INVALID_REQUEST", tool("ls", []string{strings.Repeat("x", 65<<20)})},
		{"an absent file", "TOOL_ERROR", read},
		{"lines before the first", "TOOL_ERROR", lines},
		{"a pattern of grep", "TOOL_ERROR", grep},
		{"a pattern of glob", "TOOL_ERROR", glob},
		{"an empty command", "TOOL_ERROR", bash},
		{"a payload of another type", "INVALID_REQUEST", decode},
		{"no payload", "INVALID_REQUEST", empty},
	})
	for name, args := range map[string]any{"": nil, "none": nil, withNUL: nil, noUTF8: nil, "ls": 5} {
		if r, err := s.Tool(ctx, name, args); err != nil || r.ExitCode == 0 {
			t.Errorf("tool %q: %+v %v", name, r, err)
		}
	}
	run(t, s, "hi")
	for _, id := range []string{"", "none", withNUL, noUTF8} {
		_, known := s.RunSnapshot(id)
		_, paged := s.RunEventPage(id, nil, 0)
		events, err := s.RunEvents(id)
		_, kept, aerr := s.Artifact(ctx, id)
		if known || paged || len(events) > 0 || kept || err != nil || aerr != nil || s.CancelRun(id) || s.ConfirmToolUse(id, true, noUTF8) {
			t.Errorf("%q is known: %v %v", id, err, aerr)
		}
	}
	for _, limit := range []int{-1, 0, 1 << 40} {
		if page, ok := s.RunEventPage(s.Runs()[0].ID, a3s.Ptr(int64(-5)), limit); !ok || len(page.Events) != 5 {
			t.Errorf("limit %d: %d events", limit, len(page.Events))
		}
	}
	if p, err := a3s.Decode(a3s.Event{Type: "of_tomorrow", Payload: json.RawMessage(`{"a":1}`)}); err != nil || p.Type() != "of_tomorrow" {
		t.Errorf("an unknown event: %v %v", p, err)
	}
}

func TestAfterTheEnd(t *testing.T) {
	agent, s := scriptedAgent(t, "say hi\nend\nsay hi", &a3s.SessionOptions{SessionStore: a3s.FileStore("kept")})
	ctx := t.Context()
	run(t, s, "hi")
	r, err := s.Start("hi", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	for from, want := range map[int64]int{-5: 5, 1 << 40: 0} {
		n := 0
		for _, err := range r.Events(from) {
			if err != nil {
				t.Error(err)
			}
			n++
		}
		if n != want {
			t.Errorf("from %d: %d events", from, n)
		}
	}
	if r.Cancel(noUTF8) || s.Cancel() || s.CancelConfirmations() != 0 {
		t.Error("something was cancelled")
	}
	for range 2 {
		if err := s.Close(ctx); err != nil {
			t.Error(err)
		}
	}
	_, start := s.Start("hi", nil)
	_, send := s.Send(ctx, "hi", nil)
	_, tool := s.Tool(ctx, "ls", nil)
	_, register := s.RegisterExtension(ctx, "tool", object{"name": "x"}, nil)
	all := []refused{{"start", "SESSION_CLOSED", start}, {"send", "SESSION_CLOSED", send}, {"tool", "SESSION_CLOSED", tool}, {"register", "SESSION_CLOSED", register}, {"save", "SESSION_CLOSED", s.Save(ctx)}}
	for _, err := range s.Stream(ctx, "hi") {
		all = append(all, refused{"stream", "SESSION_CLOSED", err})
	}
	n := 0
	for range s.Events(ctx) { // the session's stream has ended
		n++
	}
	if n != 0 || len(s.History()) != 4 || len(s.Runs()) != 2 || !s.IsClosed() {
		t.Errorf("%d events, %d messages, %d runs", n, len(s.History()), len(s.Runs()))
	}
	for range 2 {
		if err := agent.Close(ctx); err != nil {
			t.Error(err)
		}
	}
	_, session := agent.Session(ctx, t.TempDir(), nil)
	_, resume := agent.ResumeSession(ctx, s.ID(), &a3s.SessionOptions{SessionStore: a3s.FileStore("kept")})
	_, model := agent.RegisterModel(ctx, "x", a3s.ModelFunc(func(context.Context, a3s.ModelRequest, *a3s.ModelAnswer) (r a3s.ModelResult, err error) { return }))
	check(t, append(all, refused{"session", "SESSION_CLOSED", session}, refused{"resume", "SESSION_CLOSED", resume}, refused{"model", "SESSION_CLOSED", model}))
	if len(agent.ListSessions()) != 0 || !agent.IsClosed() {
		t.Error("the agent is open")
	}
}
