package agent

import (
	"github.com/a3s-lab/liba3s/runtime/event"
	modelhost "github.com/a3s-lab/liba3s/runtime/model/host"
	policyhost "github.com/a3s-lab/liba3s/runtime/policy/host"
	prompthost "github.com/a3s-lab/liba3s/runtime/prompt/host"
	storehost "github.com/a3s-lab/liba3s/runtime/store/host"
	toolhost "github.com/a3s-lab/liba3s/runtime/tool/host"
	workspacehost "github.com/a3s-lab/liba3s/runtime/workspace/host"
)

// The words of host requests, for a host that is written in Go: it has no other way to
// the back-ends.
type (
	// HostToolCall is a call of a tool.
	HostToolCall = toolhost.ToolCallRequest
	// HostToolResult is the result of a call.
	HostToolResult = toolhost.ToolResult
	// HostToolChunk is a piece of output.
	HostToolChunk = toolhost.ToolChunk
	// HostModelRequest is a conversation to be answered.
	HostModelRequest = modelhost.ModelRequest
	// HostModelChunk is a piece of an answer.
	HostModelChunk = modelhost.ModelChunk
	// HostModelToolCall is a call that a model proposes.
	HostModelToolCall = modelhost.ModelToolCall
	// HostModelResult ends an answer.
	HostModelResult = modelhost.ModelResult
	// HostPermissionCheck is a call to be judged.
	HostPermissionCheck = policyhost.PermissionCheck
	// HostPermissionDecision is the word of a checker.
	HostPermissionDecision = policyhost.PermissionDecision
	// HostPermissionExpose is a tool that may be shown.
	HostPermissionExpose = policyhost.PermissionExpose
	// HostPermissionVisible says whether it is shown.
	HostPermissionVisible = policyhost.PermissionVisible
	// HostContextQuery is a prompt.
	HostContextQuery = prompthost.ContextQuery
	// HostContextItem is a piece of its background.
	HostContextItem = prompthost.ContextItem
	// HostContextResult is its background.
	HostContextResult = prompthost.ContextResult
	// HostCommandRequest is a command that was given.
	HostCommandRequest = CommandRequest
	// HostCommandResult is the answer to it.
	HostCommandResult = CommandResult
	// HostStoreLoad asks for a session, or a blob.
	HostStoreLoad = storehost.StoreLoad
	// HostStoreLoaded is what is kept of it.
	HostStoreLoaded = storehost.StoreLoaded
	// HostStoreAppend are more facts, or a blob.
	HostStoreAppend = storehost.StoreAppend
	// HostStoreSave is a snapshot.
	HostStoreSave = storehost.StoreSave
	// HostStoreDelete names a session, or a blob, to be removed.
	HostStoreDelete = storehost.StoreDelete
	// HostStoreListed are the sessions that are kept.
	HostStoreListed = storehost.StoreListed
	// HostWorkspacePath names a file or folder.
	HostWorkspacePath = workspacehost.WorkspacePath
	// HostWorkspaceEntry describes what is there.
	HostWorkspaceEntry = workspacehost.WorkspaceEntry
	// HostWorkspaceList are the entries of a folder.
	HostWorkspaceList = workspacehost.WorkspaceList
	// HostWorkspaceRead asks for a file.
	HostWorkspaceRead = workspacehost.WorkspaceRead
	// HostWorkspaceFile is a file.
	HostWorkspaceFile = workspacehost.WorkspaceFile
	// HostWorkspaceWrite is a file to be replaced.
	HostWorkspaceWrite = workspacehost.WorkspaceWrite
	// HostWorkspaceWritten is its new version.
	HostWorkspaceWritten = workspacehost.WorkspaceWritten
	// HostWorkspaceCommand is a shell command.
	HostWorkspaceCommand = workspacehost.WorkspaceCommand
	// HostWorkspaceOutput is a piece of its output.
	HostWorkspaceOutput = workspacehost.WorkspaceOutput
	// HostWorkspaceExit says how it ended.
	HostWorkspaceExit = workspacehost.WorkspaceExit
	// HostWorkspaceSearch asks for files or lines.
	HostWorkspaceSearch = workspacehost.WorkspaceSearch
	// HostWorkspaceGlob selects files.
	HostWorkspaceGlob = workspacehost.WorkspaceGlob
	// HostWorkspaceGrep selects lines.
	HostWorkspaceGrep = workspacehost.WorkspaceGrep
	// HostWorkspaceFound is what was found.
	HostWorkspaceFound = workspacehost.WorkspaceFound
	// HostWorkspaceMatch is a file that was found.
	HostWorkspaceMatch = workspacehost.WorkspaceMatch
	// HostWorkspaceLine is a line that was found.
	HostWorkspaceLine = workspacehost.WorkspaceLine
	// HostTransportRequest is an HTTP request.
	HostTransportRequest = modelhost.TransportRequest
	// HostTransportChunk is a piece of its response.
	HostTransportChunk = modelhost.TransportChunk
	// HostLogLine is a line of the log.
	HostLogLine = event.LogLine
)
