package a3s

import (
	"time"

	"github.com/a3s-lab/liba3s/runtime/agent"
	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/session"
	"github.com/a3s-lab/liba3s/runtime/workspace"
)

// The words of what a program supplies. docs/extensions.md describes their fields.
type (
	// ModelRequest is the conversation that a Model answers.
	ModelRequest = agent.HostModelRequest
	// ModelToolCall is a call that a Model proposes.
	ModelToolCall = agent.HostModelToolCall
	// ModelResult ends the answer of a Model. What was told in pieces is not repeated.
	ModelResult = agent.HostModelResult
	// PermissionCheck is the call that a PermissionChecker judges.
	PermissionCheck = agent.HostPermissionCheck
	// PermissionDecision is its word: Allow, Ask or Deny, and why.
	PermissionDecision = agent.HostPermissionDecision
	// PermissionExpose names a tool that the model may be told of.
	PermissionExpose = agent.HostPermissionExpose
	// ContextQuery is the prompt that a ContextProvider gives background to.
	ContextQuery = agent.HostContextQuery
	// ContextItem is a piece of background; ID and Content are needed.
	ContextItem = agent.HostContextItem
	// CommandContext describes the session in which a command was given.
	CommandContext = session.CommandContext
	// LogLine is a line of the log.
	LogLine = event.LogLine
	// StoreLoaded is what a Store keeps of a session.
	StoreLoaded = agent.HostStoreLoaded
	// WorkspaceEntry describes what is at a path.
	WorkspaceEntry = agent.HostWorkspaceEntry
	// WorkspaceWrite is a file to be replaced, on a condition.
	WorkspaceWrite = agent.HostWorkspaceWrite
	// WorkspaceCommand is a shell command.
	WorkspaceCommand = agent.HostWorkspaceCommand
	// WorkspaceSearch asks for files by name or lines by content.
	WorkspaceSearch = agent.HostWorkspaceSearch
	// WorkspaceGlob selects files by name.
	WorkspaceGlob = agent.HostWorkspaceGlob
	// WorkspaceGrep selects lines by content.
	WorkspaceGrep = agent.HostWorkspaceGrep
	// WorkspaceFound is what a search found.
	WorkspaceFound = agent.HostWorkspaceFound
	// WorkspaceMatch is a file that was found.
	WorkspaceMatch = agent.HostWorkspaceMatch
	// WorkspaceLine is a line that was found.
	WorkspaceLine = agent.HostWorkspaceLine
)

// What a policy or a PermissionChecker says of a call: it runs, you are asked, it does not
// run.
const (
	Allow = "allow"
	Ask   = "ask"
	Deny  = "deny"
)

// What is at a path of a Workspace.
const (
	File = workspace.File
	Dir  = workspace.Dir
	Link = workspace.Link
)

// ExtensionOption says more of what is registered. An option that does not belong to the
// kind is refused with INVALID_REQUEST.
type ExtensionOption func(spec map[string]any)

// Timeout bounds one request, in the place of the kind's own deadline; 0 keeps that.
// A part of a millisecond counts as a whole one; more than a day, and less than nothing, is
// refused.
func Timeout(d time.Duration) ExtensionOption {
	ms := d.Milliseconds()
	if d < 0 {
		ms = -1
	} else if d%time.Millisecond > 0 {
		ms++
	}
	return with("timeout_ms", ms)
}

// ReadOnly says of a tool that a call changes nothing and may be repeated: it is allowed
// where read-only tools are, and runs beside others. Without it a call counts as one that
// may do anything.
func ReadOnly() ExtensionOption { return with("read_only", true) }

// ContextTokens is the size of a model's window; without it 200000.
func ContextTokens(n int) ExtensionOption { return with("context", n) }

// OutputTokens bounds an answer of a model; without it the model decides.
func OutputTokens(n int) ExtensionOption { return with("output", n) }

// Reasoning says of a model that it takes a thinking budget.
func Reasoning() ExtensionOption { return with("reasoning", true) }

// NoToolCalls says of a model that it cannot call tools: it is shown none.
func NoToolCalls() ExtensionOption { return with("tool_call", false) }

// Usage shows how a command is called, such as "/deploy PLACE".
func Usage(text string) ExtensionOption { return with("usage", text) }

// Level is the least level that a receiver of the log gets: "debug", "info", "warn" or
// "error"; without it the agent's.
func Level(level string) ExtensionOption { return with("level", level) }

// Root is what people and models are told of the place of a workspace, such as "/srv/app";
// absolute paths below an absolute root are taken. Without it "host:NAME".
func Root(root string) ExtensionOption { return with("root", root) }

func with(key string, value any) ExtensionOption {
	return func(spec map[string]any) { spec[key] = value }
}

// describe makes the description of an extension.
func describe(spec map[string]any, options []ExtensionOption) map[string]any {
	for _, o := range options {
		if o != nil {
			o(spec)
		}
	}
	return spec
}
