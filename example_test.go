package a3s_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"strings"

	a3s "github.com/a3s-lab/liba3s"
	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/fault"
)

// parrot is a model that repeats the last words, so that the examples need no service.
func parrot(_ context.Context, r a3s.ModelRequest, say *a3s.ModelAnswer) (a3s.ModelResult, error) {
	last := r.Messages[len(r.Messages)-1]
	words, isCall := strings.CutPrefix(last.Text(), "call ")
	if isCall {
		name, args, _ := strings.Cut(words, " ")
		return a3s.ModelResult{}, say.ToolCall("", name, json.RawMessage(args))
	}
	if words == "" {
		words = last.Content[0].Content // of a tool
	}
	return a3s.ModelResult{}, say.Text(words)
}

// open makes an agent with that model, and a session in an empty folder.
func open(ctx context.Context, o *a3s.SessionOptions) (*a3s.Agent, *a3s.Session) {
	agent, err := a3s.Create(ctx, `default_model = "host/parrot"`)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := agent.RegisterModel(ctx, "parrot", a3s.ModelFunc(parrot)); err != nil {
		log.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "a3s-example-")
	if err != nil {
		log.Fatal(err)
	}
	session, err := agent.Session(ctx, dir, o)
	if err != nil {
		log.Fatal(err)
	}
	return agent, session
}

// done closes an agent and removes the folder of its session.
func done(ctx context.Context, agent *a3s.Agent, session *a3s.Session) {
	_ = agent.Close(ctx)
	_ = os.RemoveAll(session.Workspace())
}

// A model of the program answers; its words come as events.
func ExampleSession_Stream() {
	ctx := context.Background()
	agent, session := open(ctx, nil)
	defer done(ctx, agent, session)
	for e, err := range session.Stream(ctx, "hello") {
		if err != nil {
			log.Fatal(err)
		}
		payload, err := a3s.Decode(e)
		if err != nil {
			log.Fatal(err)
		}
		switch p := payload.(type) {
		case event.TextDelta:
			fmt.Print(p.Text)
		case event.AgentEnd:
			fmt.Println()
		}
	}
	// Output: hello
}

// A tool is a function with a struct of parameters.
func ExampleNewTool() {
	ctx := context.Background()
	agent, session := open(ctx, nil)
	defer done(ctx, agent, session)
	type sum struct {
		A int `json:"a"`
		B int `json:"b,omitempty" jsonschema:"description=0 without it"`
	}
	add := func(_ context.Context, p sum, _ func(string)) (int, error) { return p.A + p.B, nil }
	tool, err := a3s.NewTool("add", "Adds two numbers.", add, a3s.ReadOnly())
	if err != nil {
		log.Fatal(err)
	}
	if _, err := session.RegisterTool(ctx, tool); err != nil {
		log.Fatal(err)
	}
	result, err := session.Send(ctx, `call add {"a": 19, "b": 23}`, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Text)
	// Output: 42
}

// Errors are compared by their code.
func ExampleError() {
	ctx := context.Background()
	agent, session := open(ctx, nil)
	defer done(ctx, agent, session)
	if err := session.Close(ctx); err != nil {
		log.Fatal(err)
	}
	_, err := session.Send(ctx, "hello", nil)
	fmt.Println(errors.Is(err, &a3s.Error{Code: fault.CodeSessionClosed}))
	// Output: true
}

// A checker judges the calls that rules cannot.
func ExampleSession_RegisterPermissionChecker() {
	ctx := context.Background()
	agent, session := open(ctx, nil)
	defer done(ctx, agent, session)
	checker := func(_ context.Context, c a3s.PermissionCheck) (a3s.PermissionDecision, error) {
		if strings.Contains(string(c.Args), "secret") {
			return a3s.PermissionDecision{Decision: a3s.Deny, Reason: "that is secret"}, nil
		}
		return a3s.PermissionDecision{Decision: a3s.Allow}, nil
	}
	if _, err := session.RegisterPermissionChecker(ctx, "secrets", a3s.PermissionCheckerFunc(checker)); err != nil {
		log.Fatal(err)
	}
	result, err := session.Send(ctx, `call read {"file_path": "secret.txt"}`, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(strings.Contains(result.Text, "that is secret"))
	// Output: true
}

// An extension of any kind speaks the JSON of docs/extensions.md.
func ExampleAgent_RegisterExtension() {
	ctx := context.Background()
	agent, session := open(ctx, nil)
	defer done(ctx, agent, session)
	greet := func(_ context.Context, params json.RawMessage, _ func(any) error) (any, error) {
		var p struct{ Args string }
		if err := json.Unmarshal(params, &p); err != nil {
			return nil, err
		}
		return map[string]string{"text": "hello, " + p.Args}, nil
	}
	r, err := agent.RegisterExtension(ctx, "command", map[string]string{"name": "greet", "description": "says hello"}, map[string]a3s.Handler{"run": greet})
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	result, err := session.Send(ctx, "/greet world", nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Text)
	// Output: hello, world
}
