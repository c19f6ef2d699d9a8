package session

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/record"
)

// Command is a slash command as a host lists it.
type Command struct {
	Name        string  `json:"name"`
	Description string  `json:"description"`
	Usage       *string `json:"usage"`
}

// commands are those of this version, sorted by name. Each is answered without a model.
var commands = []struct {
	Command
	run func(r *Run, args string) (string, error)
}{
	{Command{Name: "clear", Description: "forget the conversation so far; files and records stay"}, (*Run).clear},
	{Command{Name: "compact", Description: "replace the older part of the conversation by a summary"}, (*Run).compact},
	{Command{Name: "help", Description: "list the commands"}, nil},
}

// Commands lists the slash commands, sorted by name.
func (s *Session) Commands() []Command {
	out := make([]Command, len(commands))
	for i, c := range commands {
		out[i] = c.Command
	}
	return out
}

// A path such as /etc/hosts is a prompt, not a command.
var commandForm = regexp.MustCompile(`^/([a-z][a-z0-9_-]*)(?:\s+((?s:.*)))?$`)

// command splits a prompt that is a slash command.
func command(prompt string) (name, args string, ok bool) {
	m := commandForm.FindStringSubmatch(strings.TrimSpace(prompt))
	if m == nil {
		return "", "", false
	}
	return m[1], m[2], true
}

// command answers a slash command as a whole run without message facts (S21).
func (r *Run) command(name, args string) (string, error) {
	if err := r.Commit(r.ctx, record.Fact{Event: event.AgentStart{Prompt: r.log.snap.Prompt}}); err != nil {
		return "", err
	}
	text, err := r.answer(name, args)
	if err != nil {
		return "", err
	}
	return text, r.Write(r.ctx, record.Fact{Event: event.TextDelta{Text: text}})
}

func (r *Run) answer(name, args string) (string, error) {
	i := slices.IndexFunc(commands, func(c struct {
		Command
		run func(r *Run, args string) (string, error)
	}) bool {
		return c.Name == name
	})
	switch {
	case i < 0:
		return fmt.Sprintf("There is no command /%s. Type /help for the list.", name), nil
	case commands[i].run == nil:
		return help(), nil
	}
	return commands[i].run(r, args)
}

func help() string {
	var b strings.Builder
	b.WriteString("Commands:\n")
	for _, c := range commands {
		fmt.Fprintf(&b, "  /%-8s %s\n", c.Name, c.Description)
	}
	return b.String()
}

func (r *Run) clear(string) (string, error) {
	n := len(r.s.History())
	if n == 0 {
		return "The conversation is empty.", nil
	}
	err := r.Commit(r.ctx, record.Fact{Mark: &record.Mark{Replace: &record.Replace{Count: n}}})
	return fmt.Sprintf("Cleared %d messages.", n), err
}

func (r *Run) compact(string) (string, error) {
	c, err := r.s.cfg.Engine.Compact(r.ctx, r.s.History(), r)
	switch {
	case err != nil:
		return "", err
	case c == nil:
		return "The conversation is too short to compact.", nil
	}
	return fmt.Sprintf("Compacted %d messages into a summary.", c.Count), nil
}
