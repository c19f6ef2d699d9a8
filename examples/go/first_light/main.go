// Command first_light asks a question about a folder and prints the answer as it comes.
//
//	go run ./examples/go/first_light build/demo.acl . "where is the configuration parsed?"
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"time"

	a3s "github.com/a3s-lab/liba3s"
	"github.com/a3s-lab/liba3s/runtime/event"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: first_light CONFIG.acl WORKSPACE PROMPT")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := ask(ctx, os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func ask(ctx context.Context, config, workspace, prompt string) error {
	agent, err := a3s.Create(ctx, config)
	if err != nil {
		return err
	}
	defer agent.Close(context.Background())
	session, err := agent.Session(ctx, workspace, nil)
	if err != nil {
		return err
	}
	clock, err := a3s.NewTool("clock", "tells the time of day", func(_ context.Context, p struct {
		Zone string `json:"zone,omitempty" jsonschema:"description=time zone such as Europe/Berlin"`
	}, _ func(string)) (string, error) {
		zone, err := time.LoadLocation(p.Zone)
		if err != nil {
			return "", err
		}
		return time.Now().In(zone).Format(time.Kitchen), nil
	}, a3s.ReadOnly())
	if err != nil {
		return err
	}
	if _, err := session.RegisterTool(ctx, clock); err != nil {
		return err
	}
	for e, err := range session.Stream(ctx, prompt) {
		if err != nil {
			return err
		}
		if err := show(e); err != nil {
			return err
		}
	}
	return nil
}

func show(e a3s.Event) error {
	p, err := a3s.Decode(e)
	if err != nil {
		return err
	}
	switch p := p.(type) {
	case event.TextDelta:
		fmt.Print(p.Text)
	case event.ToolExecutionStart:
		args, _ := json.Marshal(p.Args)
		fmt.Printf("\n→ %s %s\n", p.Name, args)
	case event.Error:
		return fmt.Errorf("%s", p.Message)
	case event.AgentEnd:
		fmt.Println()
	}
	return nil
}
