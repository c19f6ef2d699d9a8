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
	// HostToolCall is a call of a tool, HostToolResult its result, HostToolChunk a piece of
	// its output.
	HostToolCall   = toolhost.ToolCallRequest
	HostToolResult = toolhost.ToolResult
	HostToolChunk  = toolhost.ToolChunk
	// HostModelRequest is a conversation, HostModelChunk a piece of the answer,
	// HostModelResult its end.
	HostModelRequest  = modelhost.ModelRequest
	HostModelChunk    = modelhost.ModelChunk
	HostModelToolCall = modelhost.ModelToolCall
	HostModelResult   = modelhost.ModelResult
	// HostPermissionCheck is a call to be judged, HostPermissionExpose a tool to be shown.
	HostPermissionCheck    = policyhost.PermissionCheck
	HostPermissionDecision = policyhost.PermissionDecision
	HostPermissionExpose   = policyhost.PermissionExpose
	HostPermissionVisible  = policyhost.PermissionVisible
	// HostContextQuery is a prompt, HostContextItem a piece of its background.
	HostContextQuery  = prompthost.ContextQuery
	HostContextItem   = prompthost.ContextItem
	HostContextResult = prompthost.ContextResult
	// HostCommandRequest is a command that was given, HostCommandResult the answer.
	HostCommandRequest = CommandRequest
	HostCommandResult  = CommandResult
	// HostStoreLoad and the following are the five operations of a store.
	HostStoreLoad   = storehost.StoreLoad
	HostStoreLoaded = storehost.StoreLoaded
	HostStoreAppend = storehost.StoreAppend
	HostStoreSave   = storehost.StoreSave
	HostStoreDelete = storehost.StoreDelete
	HostStoreListed = storehost.StoreListed
	// HostWorkspacePath and the following are the operations of a workspace.
	HostWorkspacePath    = workspacehost.WorkspacePath
	HostWorkspaceEntry   = workspacehost.WorkspaceEntry
	HostWorkspaceList    = workspacehost.WorkspaceList
	HostWorkspaceRead    = workspacehost.WorkspaceRead
	HostWorkspaceFile    = workspacehost.WorkspaceFile
	HostWorkspaceWrite   = workspacehost.WorkspaceWrite
	HostWorkspaceWritten = workspacehost.WorkspaceWritten
	HostWorkspaceCommand = workspacehost.WorkspaceCommand
	HostWorkspaceOutput  = workspacehost.WorkspaceOutput
	HostWorkspaceExit    = workspacehost.WorkspaceExit
	HostWorkspaceSearch  = workspacehost.WorkspaceSearch
	HostWorkspaceGlob    = workspacehost.WorkspaceGlob
	HostWorkspaceGrep    = workspacehost.WorkspaceGrep
	HostWorkspaceFound   = workspacehost.WorkspaceFound
	HostWorkspaceMatch   = workspacehost.WorkspaceMatch
	HostWorkspaceLine    = workspacehost.WorkspaceLine
	// HostTransportRequest is an HTTP request, HostTransportChunk a piece of its response.
	HostTransportRequest = modelhost.TransportRequest
	HostTransportChunk   = modelhost.TransportChunk
	// HostLogLine is a line of the log.
	HostLogLine = event.LogLine
)
