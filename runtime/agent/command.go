package agent

import (
	"context"
	"time"

	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/host"
	"github.com/a3s-lab/liba3s/runtime/session"
)

const (
	commandDeadline = 5 * time.Second
	maxCommandText  = 1 << 20
)

// CommandSpec describes a slash command of the host.
type CommandSpec struct {
	host.Extension
	// Description is what /help and list_commands say.
	Description string `json:"description,omitempty"`
	// Usage shows how it is called.
	Usage string `json:"usage,omitempty"`
}

// CommandRequest are the parameters of "run".
type CommandRequest struct {
	// Args is what follows the name.
	Args string                 `json:"args"`
	Ctx  session.CommandContext `json:"ctx"`
}

// CommandResult is the result of "run".
type CommandResult struct {
	// Text is the answer.
	Text *string `json:"text"`
}

// attachCommand lets a session answer a command of the host.
func (a *Agent) attachCommand(_ context.Context, r *registration, s *session.Session) (func() error, error) {
	spec := r.spec.(*CommandSpec)
	c := session.Command{Name: r.name, Description: host.Cut(spec.Description, 1024)}
	if spec.Usage != "" {
		usage := host.Cut(spec.Usage, 1024)
		c.Usage = &usage
	}
	err := s.AddCommand(c, func(ctx context.Context, args string, cc session.CommandContext) (string, error) {
		var result CommandResult
		if err := r.line.Ask(ctx, host.Question{Op: "run", Params: CommandRequest{args, cc}, SessionID: s.ID(), Max: maxCommandText}, &result); err != nil {
			return "", err
		}
		if result.Text == nil {
			return "", fault.New(fault.Invalid, "host.command", "the answer has no text")
		}
		return *result.Text, nil
	})
	return func() error { return s.RemoveCommand(r.name) }, err
}
