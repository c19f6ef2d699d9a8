package host

import (
	"context"
	"encoding/json"
	"time"

	"github.com/a3s-lab/liba3s/runtime/fault"
	desk "github.com/a3s-lab/liba3s/runtime/host"
	"github.com/a3s-lab/liba3s/runtime/workspace"
)

// WorkspaceCommand are the parameters of "run".
type WorkspaceCommand struct {
	// Line is a shell command, to be run in the root.
	Line string `json:"line"`
	// TimeoutMS is when it must be ended, with all that it started; absent is never.
	TimeoutMS int64 `json:"timeout_ms,omitempty"`
	// Env is added to the environment of the command.
	Env map[string]string `json:"env,omitempty"`
}

// WorkspaceOutput is a piece of output while a command runs. Exactly one field is set.
type WorkspaceOutput struct {
	Text *string `json:"text,omitempty"`
	// Data is output that may be no text, in base64.
	Data *[]byte `json:"data,omitempty"`
}

// WorkspaceExit is the result of "run".
type WorkspaceExit struct {
	ExitCode *int `json:"exit_code"`
	// TimedOut says that the command was ended since its time was up.
	TimedOut bool `json:"timed_out,omitempty"`
	// Text or Data is the output that was not told in chunks.
	Text *string `json:"text,omitempty"`
	Data *[]byte `json:"data,omitempty"`
}

const (
	// runGrace is what a host gets to tell how a command ended that ran out of time.
	runGrace  = 5 * time.Second
	maxOutput = 16 << 20 // bytes of one piece
)

// runner is the capability of a host that runs commands.
type runner struct{ w *Workspace }

var _ workspace.Runner = runner{}

// Run implements workspace.Runner. Without a time-out of its own a command has the
// deadline of every request.
func (r runner) Run(ctx context.Context, cmd workspace.Command, output func([]byte)) (workspace.Exit, error) {
	const op = "workspace.run"
	q := desk.Question{
		Op: "run", Params: WorkspaceCommand{Line: cmd.Line, TimeoutMS: cmd.Timeout.Milliseconds(), Env: cmd.Env}, Max: maxOutput * 3 / 2,
		Chunk: func(b json.RawMessage) error {
			var o WorkspaceOutput
			if err := desk.Strict(b, maxOutput, &o); err != nil {
				return err
			}
			return r.tell(o, output)
		},
	}
	if cmd.Timeout > 0 {
		q.Deadline = cmd.Timeout + runGrace
	}
	var exit WorkspaceExit
	err := r.w.ask(ctx, op, ".", q, &exit)
	switch {
	case ctx.Err() != nil:
		return workspace.Exit{Code: -1, Cancelled: true}, nil
	case fault.KindOf(err) == fault.Timeout && cmd.Timeout > 0:
		return workspace.Exit{Code: -1, TimedOut: true}, nil
	case err != nil:
		return workspace.Exit{}, err
	case exit.ExitCode == nil:
		return workspace.Exit{}, r.w.garbage(op, ".", "says nothing of exit_code")
	}
	if exit.Text != nil || exit.Data != nil {
		if err := r.tell(WorkspaceOutput{exit.Text, exit.Data}, output); err != nil {
			return workspace.Exit{}, r.w.explain(ctx, op, ".", err)
		}
	}
	return workspace.Exit{Code: *exit.ExitCode, TimedOut: exit.TimedOut}, nil
}

// tell hands a piece of output on.
func (r runner) tell(o WorkspaceOutput, output func([]byte)) error {
	switch {
	case o.Text != nil && o.Data == nil:
		output([]byte(*o.Text))
	case o.Data != nil && o.Text == nil:
		output(*o.Data)
	default:
		return &desk.Failure{Type: "InvalidReply", Message: "output needs exactly one of text, data"}
	}
	return nil
}
