package session

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/fault"
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

// Answerer answers a command of the host. It is called on the run's goroutine, with no
// lock held; a failure becomes the answer's text.
type Answerer func(ctx context.Context, args string, c CommandContext) (string, error)

// CommandContext is what a command of the host may want to know.
type CommandContext struct {
	SessionID   string   `json:"session_id"`
	Workspace   string   `json:"workspace"`
	Model       string   `json:"model"`
	HistoryLen  int      `json:"history_len"`
	TotalTokens int      `json:"total_tokens"`
	TotalCost   float64  `json:"total_cost"`
	ToolNames   []string `json:"tool_names"`
}

// hostCommand is a command that the host answers.
type hostCommand struct {
	Command
	answer Answerer
}

// AddCommand registers a command of the host. A name that is taken is fault.Exists; one
// that no prompt can call is fault.Invalid.
func (s *Session) AddCommand(c Command, answer Answerer) error {
	if name, args, ok := command("/" + c.Name); !ok || name != c.Name || args != "" {
		return fault.New(fault.Invalid, "session.command", "%q cannot be the name of a command: use a-z 0-9 _ -, beginning with a letter", c.Name).With("field", "name").With("reason", fault.BadValue)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.admit(); err != nil {
		return err
	}
	if builtIn(c.Name) >= 0 {
		return fault.New(fault.Exists, "session.command", "/%s is a built-in command; register yours under another name", c.Name)
	}
	if _, ok := s.commands[c.Name]; ok {
		return fault.New(fault.Exists, "session.command", "/%s is registered already", c.Name)
	}
	if s.commands == nil {
		s.commands = map[string]hostCommand{}
	}
	s.commands[c.Name] = hostCommand{c, answer}
	return nil
}

// RemoveCommand takes a command of the host back; fault.NotFound if there is none.
func (s *Session) RemoveCommand(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.commands[name]; !ok {
		return fault.New(fault.NotFound, "session.command", "no command /%s", name)
	}
	delete(s.commands, name)
	return nil
}

// Commands lists the slash commands, sorted by name.
func (s *Session) Commands() []Command {
	var out []Command
	for _, c := range commands {
		out = append(out, c.Command)
	}
	s.mu.Lock()
	for _, c := range s.commands {
		out = append(out, c.Command)
	}
	s.mu.Unlock()
	slices.SortFunc(out, func(a, b Command) int { return cmpString(a.Name, b.Name) })
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
	i := builtIn(name)
	if i < 0 {
		return r.answerByHost(name, args)
	}
	if commands[i].run == nil {
		return help(r.s.Commands()), nil
	}
	return commands[i].run(r, args)
}

// builtIn gives the index of a built-in command, -1 if there is none of that name.
func builtIn(name string) int {
	for i := range commands {
		if commands[i].Name == name {
			return i
		}
	}
	return -1
}

// answerByHost asks the host. Its failure is an answer too; only the end of the run is
// an error.
func (r *Run) answerByHost(name, args string) (string, error) {
	r.s.mu.Lock()
	c, ok := r.s.commands[name]
	r.s.mu.Unlock()
	if !ok {
		return fmt.Sprintf("There is no command /%s. Type /help for the list.", name), nil
	}
	text, err := c.answer(r.ctx, args, r.s.commandContext())
	switch {
	case r.ctx.Err() != nil:
		return "", context.Cause(r.ctx)
	case err != nil:
		return fmt.Sprintf("The command /%s failed: %v", name, err), nil
	}
	return text, nil
}

func (s *Session) commandContext() CommandContext {
	s.seq.view.RLock()
	defer s.seq.view.RUnlock()
	f := s.seq.fold
	c := CommandContext{
		SessionID: s.cfg.ID, Workspace: s.cfg.Data.Config.Workspace, Model: s.cfg.Data.ModelName,
		HistoryLen: len(f.messages), TotalTokens: f.usage.TotalTokens, ToolNames: s.cfg.Engine.Tools.Names(),
	}
	if f.data != nil {
		c.TotalCost = f.data.TotalCost
	}
	return c
}

func help(all []Command) string {
	var b strings.Builder
	b.WriteString("Commands:\n")
	for _, c := range all {
		fmt.Fprintf(&b, "  /%-8s %s\n", c.Name, c.Description)
		if c.Usage != nil && *c.Usage != "" {
			fmt.Fprintf(&b, "            usage: %s\n", *c.Usage)
		}
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
