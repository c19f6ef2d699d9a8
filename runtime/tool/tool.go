// Package tool is the port to what a model can call: a name, a schema, the effects of
// one call, and its execution inside an Env. The registry and the validation of
// arguments live here. Floor 3.
package tool

import (
	"context"
	"encoding/json"
	"time"

	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/workspace"
)

// Tool is something a model can call. Its methods may be called concurrently.
type Tool interface {
	// Spec is what the model is told. It does not change.
	Spec() chat.ToolSpec
	// Effects says what this call may do. It is called after the arguments were
	// validated, touches nothing, and errs towards more effects.
	Effects(args json.RawMessage) chat.Effects
	// Run does it. A failure of the tool is a Result with ExitCode 1 and text for the
	// model; an error means that the runtime broke. Cancelling ctx ends it soon, with
	// the output so far.
	Run(ctx context.Context, env Env, args json.RawMessage) (chat.Result, error)
}

// Env is what a tool may reach. Everything higher than the tool comes in as a function.
type Env struct {
	Workspace workspace.Workspace
	// Call is the call being run.
	Call chat.Call
	// Timeout of this call; 0 for none. A tool with its own time-out takes the smaller.
	Timeout time.Duration
	// Emit tells a piece of output while the tool runs. It may be called from one
	// goroutine at a time and never after Run returned. Never nil.
	Emit func(delta string)
	// MayRead says whether the read rules of the policy allow a path; search results
	// are filtered by it (case PATH-04). Never nil.
	MayRead func(path string) bool
	// Protected says whether writing path is refused whatever the rules say (S24).
	// Never nil.
	Protected func(path string) bool
	// Artifact opens the content of an artifact of the own session by URI;
	// fault.NotFound if there is none. Never nil.
	Artifact func(ctx context.Context, uri string) (string, error)
	// Keep stores a text as an artifact under a tool name and gives its URI. Never nil.
	Keep func(ctx context.Context, name, content string) (uri string, err error)
}
