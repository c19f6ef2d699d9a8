package a3s_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	a3s "github.com/a3s-lab/liba3s"
)

// scripted opens a session whose model plays a script.
func scripted(t *testing.T, script string, o *a3s.SessionOptions) *a3s.Session {
	t.Helper()
	_, s := scriptedAgent(t, script, o)
	return s
}

// scriptedAgent is scripted, with the agent.
func scriptedAgent(t *testing.T, script string, o *a3s.SessionOptions) (*a3s.Agent, *a3s.Session) {
	t.Helper()
	dir := t.TempDir()
	acl := "default_model = \"script/main\"\nproviders \"script\" { models \"main\" { script = \"turns.txt\" } }\n"
	for name, text := range map[string]string{"agent.acl": acl, "turns.txt": script} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	agent, err := a3s.Create(t.Context(), "agent.acl", a3s.WithDir(dir))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = agent.Close(context.Background()) })
	s, err := agent.Session(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return agent, s
}

type greeting struct {
	Name  string `json:"name" jsonschema:"description=whom to greet"`
	Times int    `json:"times,omitempty"`
}

func TestGoTool(t *testing.T) {
	cases := []struct {
		name string
		fn   func(ctx context.Context, p greeting, emit func(string)) (string, error)
		opts []a3s.ExtensionOption
		args string
		want string
		exit int
	}{
		{"answers", func(_ context.Context, p greeting, emit func(string)) (string, error) {
			emit("working")
			return strings.Repeat("hello "+p.Name+" ", p.Times), nil
		}, nil, `{"name":"Ann","times":2}`, "hello Ann hello Ann ", 0},
		{"fails", func(context.Context, greeting, func(string)) (string, error) {
			return "", errors.New("no voice")
		}, nil, `{"name":"Ann"}`, "Tool execution error: Error: no voice", 1},
		{"panics", func(context.Context, greeting, func(string)) (string, error) {
			panic("ouch")
		}, nil, `{"name":"Ann"}`, "Tool execution error: panic: ouch", 1},
		{"takes too long", func(ctx context.Context, _ greeting, _ func(string)) (string, error) {
			<-ctx.Done()
			return "late", nil
		}, []a3s.ExtensionOption{a3s.Timeout(time.Millisecond)}, `{"name":"Ann"}`, "tool greet timed out: the host did not answer within 1ms", 1},
		{"is called with a missing name", func(context.Context, greeting, func(string)) (string, error) {
			panic("it was run")
		}, nil, `{}`, "missing property 'name'", 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := scripted(t, "call greet "+c.args+"\nend\nsay done\nend\n", &a3s.SessionOptions{PermissionPolicy: &a3s.PermissionPolicy{DefaultDecision: "allow"}})
			tool, err := a3s.NewTool("greet", "says hello", c.fn, c.opts...)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.RegisterTool(t.Context(), tool); err != nil {
				t.Fatal(err)
			}
			if r, err := s.Send(t.Context(), "greet", nil); err != nil || r.Text != "done" {
				t.Fatal(r, err)
			}
			h := s.History()
			got := h[2].Content[0]
			if !strings.Contains(got.Content, c.want) || got.IsError != (c.exit != 0) {
				t.Fatalf("the model was told %q (error %v), want %q", got.Content, got.IsError, c.want)
			}
		})
	}
}

// tree contains itself.
type tree struct {
	Kids map[string][]*tree `json:"kids"`
}

func refuses[P any](t *testing.T) {
	t.Helper()
	if _, err := a3s.NewTool("n", "", func(context.Context, P, func(string)) (string, error) { return "", nil }); code(t, err) != "INVALID_REQUEST" {
		t.Errorf("%T: %v", *new(P), err)
	}
}

func TestGoToolIsRefused(t *testing.T) {
	if _, err := a3s.NewTool("n", "", func(context.Context, string, func(string)) (string, error) { return "", nil }); err == nil {
		t.Fatal("parameters that are no struct were taken")
	}
	refuses[any](t)
	refuses[struct{ C chan int }](t)
	refuses[struct{ F func() }](t)
	refuses[tree](t) // the reflector alone would end the process
	s := scripted(t, "say hi\nend\n", nil)
	tool, err := a3s.NewTool("read", "", func(context.Context, greeting, func(string)) (string, error) { return "", nil })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.RegisterTool(t.Context(), tool); code(t, err) != "ALREADY_EXISTS" {
		t.Fatal("a built-in tool was shadowed")
	}
}

func TestStoredSessionsAreListedUnsaved(t *testing.T) {
	store := &a3s.SessionStore{Kind: "file", Dir: "store"}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "t.txt"), []byte("say hi\nend\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	agent, err := a3s.Create(t.Context(), `default_model = "script/m" providers "script" { models "m" { script = "t.txt" } }`, a3s.WithDir(dir))
	if err != nil {
		t.Fatal(err)
	}
	s, err := agent.Session(t.Context(), dir, &a3s.SessionOptions{SessionStore: store, SessionID: a3s.Ptr("mine")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Send(t.Context(), "hello", nil); err != nil {
		t.Fatal(err)
	}
	if err := agent.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	again, err := a3s.Create(t.Context(), `default_model = "offline/search"`, a3s.WithDir(dir))
	if err != nil {
		t.Fatal(err)
	}
	ids, err := again.ListStoredSessions(t.Context(), store)
	if err != nil || !slices.Equal(ids, []string{"mine"}) {
		t.Fatal(ids, err)
	}
}
