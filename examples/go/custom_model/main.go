// Command custom_model brings its own model: a function that gets the conversation and
// answers in pieces.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"

	a3s "github.com/a3s-lab/liba3s"
	"github.com/a3s-lab/liba3s/runtime/event"
)

// oracle reads the motto, and then says it. What it tells through say needs not be
// repeated in the result.
func oracle(_ context.Context, r a3s.ModelRequest, say *a3s.ModelAnswer) (result a3s.ModelResult, err error) {
	for _, block := range r.Messages[len(r.Messages)-1].Content {
		if block.Type == "tool_result" {
			return result, errors.Join(say.Text("The motto is:\n"), say.Text(block.Content))
		}
	}
	return result, errors.Join(say.Text("Let me "), say.Text("look."),
		say.ToolCall("call-1", "read", map[string]any{"file_path": "motto.txt"}))
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	agent, err := a3s.Create(ctx, "agent.acl") // default_model = "host/oracle"
	if err != nil {
		return err
	}
	defer agent.Close(ctx)
	if _, err := agent.RegisterModel(ctx, "oracle", a3s.ModelFunc(oracle)); err != nil {
		return err
	}
	session, err := agent.Session(ctx, "workspace", nil)
	if err != nil {
		return err
	}
	for e, err := range session.Stream(ctx, "What is the motto?") {
		if err != nil {
			return err
		}
		payload, err := a3s.Decode(e)
		if err != nil {
			return err
		}
		switch p := payload.(type) {
		case event.TextDelta:
			fmt.Print(p.Text)
		case event.ToolStart:
			fmt.Printf("\n→ %s\n", p.Name)
		case event.AgentEnd:
			fmt.Println()
		case event.Error:
			return errors.New(p.Message)
		}
	}
	return nil
}
