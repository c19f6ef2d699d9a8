// Command custom_tool gives the model a tool of the program: a function with typed
// parameters.
package main

import (
	"context"
	"fmt"
	"log"
	"strings"
	"unicode/utf8"

	a3s "github.com/a3s-lab/liba3s"
)

type wordCount struct {
	Text       string `json:"text" jsonschema:"description=the text"`
	MinLetters int    `json:"min_letters,omitempty" jsonschema:"description=count only words with so many letters or more"`
}

func countWords(_ context.Context, p wordCount, _ func(string)) (string, error) {
	n := 0
	for _, word := range strings.Fields(p.Text) {
		if utf8.RuneCountInString(word) >= p.MinLetters {
			n++
		}
	}
	return fmt.Sprintf("%d words", n), nil
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	tool, err := a3s.NewTool("word_count", "Counts the words of a text.", countWords, a3s.ReadOnly())
	if err != nil {
		return err
	}
	agent, err := a3s.Create(ctx, "agent.acl")
	if err != nil {
		return err
	}
	defer agent.Close(ctx)
	session, err := agent.Session(ctx, "workspace", nil)
	if err != nil {
		return err
	}
	if _, err := session.RegisterTool(ctx, tool); err != nil {
		return err
	}
	result, err := session.Send(ctx, "How many long words has the motto?", nil)
	if err != nil {
		return err
	}
	fmt.Println(result.Text)
	fmt.Println("tool calls:", result.ToolCallsCount)
	return nil
}
