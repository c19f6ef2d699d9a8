package builtin

import (
	"context"
	_ "embed" // bash.md
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/tool"
	"github.com/a3s-lab/liba3s/runtime/workspace"
)

const (
	bashDefault = 120_000 // ms
	bashMin     = 1_000
	bashMax     = 24 * 60 * 60 * 1000
)

//go:embed bash.md
var bashDoc string

const bashParameters = `{"type":"object","additionalProperties":false,"required":["command"],"properties":{
"command":{"type":"string","minLength":1,"description":"The command line."},
"timeout":{"type":"integer","minimum":1,"description":"Milliseconds until the command is ended; 120000 unless given, at least 1000."}}}`

type bashTool struct{ base }

var bashBase = describe("bash", bashDoc, bashParameters)

func newBash() tool.Tool { return bashTool{bashBase} }

type bashArgs struct {
	Command string `json:"command"`
	Timeout *whole `json:"timeout"`
}

func (bashTool) decode(args json.RawMessage) (bashArgs, error) {
	a, err := decode[bashArgs](args)
	switch {
	case err != nil:
		return a, err
	case strings.TrimSpace(a.Command) == "":
		return a, invalid("command is empty")
	case strings.ContainsRune(a.Command, 0):
		return a, invalid("command has a NUL character, which no shell takes")
	}
	return a, nil
}

// Check refuses what no shell can run.
func (t bashTool) Check(args json.RawMessage) error {
	_, err := t.decode(args)
	return err
}

// Effects: a command may do anything.
func (bashTool) Effects(json.RawMessage) chat.Effects {
	return chat.Effects{Read: true, Write: true, Exec: true, Network: true}
}

// Run runs the command to its end.
func (t bashTool) Run(ctx context.Context, env tool.Env, args json.RawMessage) (chat.Result, error) {
	a, err := t.decode(args)
	if err != nil {
		return failed("bash", "", err), nil
	}
	runner, ok := env.Workspace.(workspace.Runner)
	if !ok {
		return failed("bash", "", fault.New(fault.Unsupported, "tool.bash", "this workspace cannot run commands")), nil
	}
	limit := time.Duration(min(max(a.Timeout.or(bashDefault), bashMin), bashMax)) * time.Millisecond
	if env.Timeout > 0 {
		limit = min(limit, env.Timeout)
	}
	out := capture{emit: env.Emit}
	began := time.Now()
	exit, err := runner.Run(ctx, workspace.Command{Line: a.Command, Timeout: limit}, out.write)
	out.end()
	if err != nil && ctx.Err() == nil {
		r := failed("bash", "", err)
		r.Metadata = map[string]any{"exit_code": nil, "sandboxed": false}
		return r, nil
	}
	if ctx.Err() != nil {
		// A caller's own deadline is a time-out too; anything else is a cancel.
		if !exit.TimedOut && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			exit.TimedOut = true
			limit = time.Since(began).Round(time.Millisecond)
		}
		exit.Cancelled = !exit.TimedOut
		if err != nil {
			exit.Code = -1
		}
	}
	return bashResult(&out, exit, limit), nil
}

func bashResult(out *capture, exit workspace.Exit, limit time.Duration) chat.Result {
	text, captured := out.text()
	r := chat.Result{Metadata: map[string]any{
		"exit_code": exit.Code, "sandboxed": false,
		"output": map[string]any{
			"total_bytes": out.total, "captured_bytes": captured,
			"truncated": captured < out.total, "timed_out": exit.TimedOut,
		},
	}}
	var notes []string
	switch {
	case exit.TimedOut:
		notes = append(notes, fmt.Sprintf("[Command timed out after %dms]", limit.Milliseconds()))
		r.Metadata["timeout_ms"] = limit.Milliseconds()
		r.Error = &chat.ErrorKind{Type: chat.TimedOut, Op: "bash", DurationMS: limit.Milliseconds()}
	case exit.Cancelled:
		notes = append(notes, "[Command cancelled]")
		r.Error = &chat.ErrorKind{Type: chat.WasCancelled, Op: "bash"}
	case exit.Unknown:
		notes = append(notes, "[How the command ended is not known: the host ignores SIGCHLD]")
	case exit.Code < 0 && text == "":
		notes = append(notes, "[Command ended by a signal]")
	case exit.Code != 0 && text == "":
		notes = append(notes, fmt.Sprintf("[Command exited with code %d]", exit.Code))
	}
	if exit.Background > 0 {
		notes = append(notes, fmt.Sprintf("[%d background process(es) ended with the command]", exit.Background))
		r.Metadata["background_ended"] = exit.Background
	}
	if exit.Code != 0 || r.Error != nil {
		r.ExitCode = 1
	}
	if len(notes) > 0 && text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	r.Output = text + strings.Join(notes, "\n")
	return r
}
