// Command tools runs tools for the program itself, without a model.
package main

import (
	"context"
	"fmt"
	"log"

	a3s "github.com/a3s-lab/liba3s"
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
	text, err := session.ReadFile(ctx, "motto.txt")
	if err != nil {
		return err
	}
	found, err := session.Grep(ctx, "cut")
	if err != nil {
		return err
	}
	fmt.Print(text, found)
	paths, err := session.Glob(ctx, "**/*.py")
	if err != nil {
		return err
	}
	for _, path := range paths {
		fmt.Println(path)
	}
	listed, err := session.Tool(ctx, "ls", map[string]any{"path": "src"})
	if err != nil {
		return err
	}
	fmt.Print(listed.Output)
	failed, err := session.Tool(ctx, "read", map[string]any{"file_path": "absent.txt"})
	if err != nil { // nothing to do with the file: a tool that fails is a result
		return err
	}
	fmt.Printf("read: exit code %d: %s\n", failed.ExitCode, failed.Output)
	return nil
}
