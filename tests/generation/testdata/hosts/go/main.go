// Command probe uses what the test added, through package a3s.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"

	a3s "github.com/a3s-lab/liba3s"
	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/op"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	agent, err := a3s.Create(ctx, `default_model = "offline/search"`)
	if err != nil {
		return err
	}
	defer agent.Close(ctx)
	handlers := map[string]a3s.Handler{"look": func(ctx context.Context, params json.RawMessage, chunk func(any) error) (any, error) {
		var q struct{ Word string }
		if err := json.Unmarshal(params, &q); err != nil {
			return nil, err
		}
		return map[string]string{"seen": "go saw " + q.Word}, nil
	}}
	if _, err := agent.RegisterExtension(ctx, "probe", map[string]any{"name": "p", "depth": 2}, handlers); err != nil {
		return err
	}
	depth := 3
	session, err := agent.Session(ctx, ".", &a3s.SessionOptions{ProbeDepth: &depth})
	if err != nil {
		return err
	}
	defer session.Close(ctx)
	var seen op.Probed
	if err := agent.Call(ctx, "agent.probe", op.ProbeCall{Name: "p", Word: "hello"}, &seen); err != nil {
		return err
	}
	if !slices.Contains(event.Types(), event.ProbeSeen{}.Type()) {
		return fmt.Errorf("the event is not in the catalogue")
	}
	fmt.Println(seen.Seen)
	return nil
}
