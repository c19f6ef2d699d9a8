// Command confirmation is asked before a tool runs, and decides by the arguments of the
// call.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"strings"

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
	session, err := agent.Session(ctx, "workspace", &a3s.SessionOptions{
		PermissionPolicy:   &a3s.PermissionPolicy{DefaultDecision: a3s.Ask},
		ConfirmationPolicy: &a3s.ConfirmationPolicy{Enabled: true},
	})
	if err != nil {
		return err
	}
	for e, err := range session.Stream(ctx, "Write the plan and the settings.") {
		if err != nil {
			return err
		}
		payload, err := a3s.Decode(e)
		if err != nil {
			return err
		}
		switch p := payload.(type) {
		case event.ConfirmationRequired:
			decide(session, p)
		case event.ToolEnd:
			fmt.Printf("%s: exit code %d\n", p.Name, p.ExitCode)
		case event.AgentEnd:
			fmt.Println(p.Text)
		case event.Error:
			return errors.New(p.Message)
		}
	}
	return nil
}

func decide(session *a3s.Session, q event.ConfirmationRequired) {
	var args struct {
		Path string `json:"file_path"`
	}
	_ = json.Unmarshal(q.Args, &args) // no path is a no
	fmt.Println("?", q.ToolName, args.Path)
	if strings.HasPrefix(args.Path, "docs/") {
		fmt.Println("yes")
		session.ConfirmToolUse(q.ToolID, true, "")
		return
	}
	fmt.Println("no: only docs/ may change")
	session.ConfirmToolUse(q.ToolID, false, "only docs/ may change")
}
