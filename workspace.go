package a3s

import (
	"context"
	"encoding/json"
	"io"

	"github.com/a3s-lab/liba3s/runtime/agent"
	"github.com/a3s-lab/liba3s/runtime/fault"
)

// Workspace is a place of files for sessions to work in. Paths are clean, with slashes and
// relative to the root, which is ".". Failures that the model should tell apart have a
// kind: return fs.ErrNotExist and the like, Conflict, or a *ExtensionError with a Kind
// of not_found, conflict, denied, invalid, limit, exists, unsupported or io. A request has
// a minute. Methods may be called concurrently.
//
// One that is also a CommandWorkspace has a shell, and a SearchWorkspace grep and glob.
type Workspace interface {
	// Stat describes what is at a path: its type and, of a file, its size.
	Stat(ctx context.Context, path string) (WorkspaceEntry, error)
	// List gives the entries of a folder, each with its name.
	List(ctx context.Context, path string) ([]WorkspaceEntry, error)
	// Read gives a whole file and its version, a token that changes whenever the content
	// does. A file of more than max bytes is refused whether or not it is read.
	Read(ctx context.Context, path string, max int64) (data []byte, version string, err error)
	// Write replaces a whole file, makes missing folders, and gives the new version. If
	// the file has another version than IfVersion, or is there although IfAbsent, it gives
	// Conflict.
	Write(ctx context.Context, w WorkspaceWrite) (version string, err error)
	// Remove removes a file. What is not there is no failure; a folder is one, of kind
	// invalid.
	Remove(ctx context.Context, path string) error
}

// CommandWorkspace is a Workspace with a shell.
type CommandWorkspace interface {
	Workspace
	// Run runs a shell command in the root, writes its output to out, and gives its exit
	// code. When TimeoutMS is up the command is ended with all that it started, and
	// timedOut says so.
	Run(ctx context.Context, c WorkspaceCommand, out io.Writer) (exitCode int, timedOut bool, err error)
}

// SearchWorkspace is a Workspace that is searched where it is.
type SearchWorkspace interface {
	Workspace
	// Search finds files by name (s.Glob) or lines by content (s.Grep).
	Search(ctx context.Context, s WorkspaceSearch) (WorkspaceFound, error)
}

// Conflict is the error that says that a file is not what the writer thought: expected is the version
// that was asked for, actual the present one, "absent" where there is no file.
func Conflict(expected, actual string) error {
	return &ExtensionError{
		Type: "Conflict", Message: "expected version " + expected + ", found " + actual, Kind: string(fault.Conflict),
		Details: map[string]any{"expected": expected, "actual": actual},
	}
}

// WorkspaceRegistration is a workspace of your program.
type WorkspaceRegistration struct {
	Registration
	name string
}

// Option is the value for SessionOptions.WorkspaceBackend.
func (r *WorkspaceRegistration) Option() *WorkspaceBackend {
	return &WorkspaceBackend{Kind: "host", Name: r.name}
}

// RegisterWorkspace supplies a workspace to sessions that open afterwards with its Option;
// their workspace is then empty. Options: Root, Timeout.
func (a *Agent) RegisterWorkspace(ctx context.Context, name string, w Workspace, options ...ExtensionOption) (*WorkspaceRegistration, error) {
	if none(w) {
		return nil, missing("workspace", "workspace")
	}
	spec, handlers := map[string]any{"name": name}, fileHandlers(w)
	if c, ok := w.(CommandWorkspace); ok {
		spec["run"], handlers["run"] = true, runHandler(c)
	}
	if s, ok := w.(SearchWorkspace); ok {
		spec["search"], handlers["search"] = true, typed(func(ctx context.Context, p WorkspaceSearch) (any, error) { return s.Search(ctx, p) })
	}
	r, err := a.supply(ctx, "workspace", spec, options, handlers)
	if err != nil {
		return nil, err
	}
	return &WorkspaceRegistration{*r, name}, nil
}

func fileHandlers(w Workspace) map[string]Handler {
	return map[string]Handler{
		"stat": typed(func(ctx context.Context, p agent.HostWorkspacePath) (any, error) { return w.Stat(ctx, p.Path) }),
		"list": typed(func(ctx context.Context, p agent.HostWorkspacePath) (any, error) {
			entries, err := w.List(ctx, p.Path)
			if entries == nil {
				entries = []WorkspaceEntry{}
			}
			return agent.HostWorkspaceList{Entries: entries}, err
		}),
		"read": typed(func(ctx context.Context, p agent.HostWorkspaceRead) (any, error) {
			data, version, err := w.Read(ctx, p.Path, p.Max)
			if data == nil {
				data = []byte{} // an empty file; null is no answer
			}
			return agent.HostWorkspaceFile{Data: &data, Version: version}, err
		}),
		"write": typed(func(ctx context.Context, p WorkspaceWrite) (any, error) {
			version, err := w.Write(ctx, p)
			return agent.HostWorkspaceWritten{Version: version}, err
		}),
		"remove": typed(func(ctx context.Context, p agent.HostWorkspacePath) (any, error) { return nil, w.Remove(ctx, p.Path) }),
	}
}

func runHandler(w CommandWorkspace) Handler {
	return func(ctx context.Context, params json.RawMessage, chunk func(any) error) (any, error) {
		var p WorkspaceCommand
		if err := json.Unmarshal(params, &p); err != nil {
			return nil, err
		}
		code, timedOut, err := w.Run(ctx, p, output(chunk))
		return agent.HostWorkspaceExit{ExitCode: &code, TimedOut: timedOut}, err
	}
}

// output tells what is written to it.
type output func(any) error

func (o output) Write(b []byte) (int, error) {
	const most = 1 << 20 // of one piece
	n := 0
	for n < len(b) {
		piece := b[n:min(len(b), n+most)]
		if err := o(agent.HostWorkspaceOutput{Data: &piece}); err != nil {
			return n, err
		}
		n += len(piece)
	}
	return n, nil
}
