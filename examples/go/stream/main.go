// Command stream shows the answer and the tool calls of a run as they come.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"

	a3s "github.com/a3s-lab/liba3s"
	"github.com/a3s-lab/liba3s/runtime/event"
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	agent, err := a3s.Create(ctx, "agent.acl")
	if err != nil {
		return err
	}
	defer agent.Close(ctx)
	session, err := agent.Session(ctx, "workspace", nil) // without a policy a model may read and nothing else
	if err != nil {
		return err
	}
	for e, err := range session.Stream(ctx, "What does hello.py print?") {
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
		case event.Error: // a run that fails is an event
			return errors.New(p.Message)
		}
	}
	return nil
}
