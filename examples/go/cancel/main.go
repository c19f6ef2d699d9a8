// Command cancel stops a run that takes too long.
package main

import (
	"context"
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
	session, err := agent.Session(ctx, "workspace", nil)
	if err != nil {
		return err
	}
	for e, err := range session.Stream(ctx, "Count to a million.") { // the end of ctx would cancel it too
		if err != nil {
			return err
		}
		payload, err := a3s.Decode(e)
		if err != nil {
			return err
		}
		switch p := payload.(type) {
		case event.TextDelta:
			fmt.Println(p.Text)
			session.Cancel() // returns at once; the run ends with one terminal event
		case event.Error:
			fmt.Println("error:", p.Code)
		}
	}
	for _, r := range session.Runs() {
		fmt.Println("run:", r.Status)
	}
	return nil
}
