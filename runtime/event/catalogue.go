package event

// Row is one line of the event table.
type Row struct {
	Name    string
	Payload Payload // the zero value
}

// Catalogue lists the 44 events of the contract in canonical order. Bindings are
// generated from it; a decoder keeps types that are not in it.
var Catalogue = []Row{
	{"agent_start", AgentStart{}},
	{"agent_mode_changed", AgentModeChanged{}},
	{"turn_start", TurnStart{}},
	{"text_delta", TextDelta{}},
	{"reasoning_delta", ReasoningDelta{}},
	{"tool_start", ToolStart{}},
	{"tool_input_delta", ToolInputDelta{}},
	{"tool_execution_start", ToolExecutionStart{}},
	{"tool_end", ToolEnd{}},
	{"tool_output_delta", ToolOutputDelta{}},
	{"turn_end", TurnEnd{}},
	{"agent_end", AgentEnd{}},
	{"error", Error{}},
	{"confirmation_required", ConfirmationRequired{}},
	{"confirmation_received", ConfirmationReceived{}},
	{"confirmation_timeout", ConfirmationTimeout{}},
	{"external_task_pending", ExternalTaskPending{}},
	{"external_task_completed", ExternalTaskCompleted{}},
	{"permission_denied", PermissionDenied{}},
	{"context_resolving", ContextResolving{}},
	{"context_resolved", ContextResolved{}},
	{"command_dead_lettered", CommandDeadLettered{}},
	{"command_retry", CommandRetry{}},
	{"queue_alert", QueueAlert{}},
	{"task_updated", TaskUpdated{}},
	{"memory_stored", MemoryStored{}},
	{"memory_recalled", MemoryRecalled{}},
	{"memories_searched", MemoriesSearched{}},
	{"memory_cleared", MemoryCleared{}},
	{"subagent_start", SubagentStart{}},
	{"subagent_progress", SubagentProgress{}},
	{"subagent_end", SubagentEnd{}},
	{"planning_start", PlanningStart{}},
	{"planning_end", PlanningEnd{}},
	{"step_start", StepStart{}},
	{"step_end", StepEnd{}},
	{"goal_extracted", GoalExtracted{}},
	{"goal_progress", GoalProgress{}},
	{"goal_achieved", GoalAchieved{}},
	{"context_compacted", ContextCompacted{}},
	{"persistence_failed", PersistenceFailed{}},
	{"budget_threshold_hit", BudgetThresholdHit{}},
	{"passivation_requested", PassivationRequested{}},
	{"peer_invocation", PeerInvocation{}},
}

// Frames lists the unnumbered frames.
var Frames = []Row{
	{"host_request", HostRequest{}},
	{"host_cancel", HostCancel{}},
	{"call_result", CallResult{}},
	{"log", LogLine{}},
	{"gap", Gap{}},
}

// Types gives the names of the catalogue in order.
func Types() []string {
	names := make([]string, len(Catalogue))
	for i, r := range Catalogue {
		names[i] = r.Name
	}
	return names
}

// Type is "agent_start".
func (AgentStart) Type() string { return "agent_start" }

// Type is "agent_mode_changed".
func (AgentModeChanged) Type() string { return "agent_mode_changed" }

// Type is "turn_start".
func (TurnStart) Type() string { return "turn_start" }

// Type is "text_delta".
func (TextDelta) Type() string { return "text_delta" }

// Type is "reasoning_delta".
func (ReasoningDelta) Type() string { return "reasoning_delta" }

// Type is "tool_start".
func (ToolStart) Type() string { return "tool_start" }

// Type is "tool_input_delta".
func (ToolInputDelta) Type() string { return "tool_input_delta" }

// Type is "tool_execution_start".
func (ToolExecutionStart) Type() string { return "tool_execution_start" }

// Type is "tool_end".
func (ToolEnd) Type() string { return "tool_end" }

// Type is "tool_output_delta".
func (ToolOutputDelta) Type() string { return "tool_output_delta" }

// Type is "turn_end".
func (TurnEnd) Type() string { return "turn_end" }

// Type is "agent_end".
func (AgentEnd) Type() string { return "agent_end" }

// Type is "error".
func (Error) Type() string { return "error" }

// Type is "confirmation_required".
func (ConfirmationRequired) Type() string { return "confirmation_required" }

// Type is "confirmation_received".
func (ConfirmationReceived) Type() string { return "confirmation_received" }

// Type is "confirmation_timeout".
func (ConfirmationTimeout) Type() string { return "confirmation_timeout" }

// Type is "external_task_pending".
func (ExternalTaskPending) Type() string { return "external_task_pending" }

// Type is "external_task_completed".
func (ExternalTaskCompleted) Type() string { return "external_task_completed" }

// Type is "permission_denied".
func (PermissionDenied) Type() string { return "permission_denied" }

// Type is "context_resolving".
func (ContextResolving) Type() string { return "context_resolving" }

// Type is "context_resolved".
func (ContextResolved) Type() string { return "context_resolved" }

// Type is "command_dead_lettered".
func (CommandDeadLettered) Type() string { return "command_dead_lettered" }

// Type is "command_retry".
func (CommandRetry) Type() string { return "command_retry" }

// Type is "queue_alert".
func (QueueAlert) Type() string { return "queue_alert" }

// Type is "task_updated".
func (TaskUpdated) Type() string { return "task_updated" }

// Type is "memory_stored".
func (MemoryStored) Type() string { return "memory_stored" }

// Type is "memory_recalled".
func (MemoryRecalled) Type() string { return "memory_recalled" }

// Type is "memories_searched".
func (MemoriesSearched) Type() string { return "memories_searched" }

// Type is "memory_cleared".
func (MemoryCleared) Type() string { return "memory_cleared" }

// Type is "subagent_start".
func (SubagentStart) Type() string { return "subagent_start" }

// Type is "subagent_progress".
func (SubagentProgress) Type() string { return "subagent_progress" }

// Type is "subagent_end".
func (SubagentEnd) Type() string { return "subagent_end" }

// Type is "planning_start".
func (PlanningStart) Type() string { return "planning_start" }

// Type is "planning_end".
func (PlanningEnd) Type() string { return "planning_end" }

// Type is "step_start".
func (StepStart) Type() string { return "step_start" }

// Type is "step_end".
func (StepEnd) Type() string { return "step_end" }

// Type is "goal_extracted".
func (GoalExtracted) Type() string { return "goal_extracted" }

// Type is "goal_progress".
func (GoalProgress) Type() string { return "goal_progress" }

// Type is "goal_achieved".
func (GoalAchieved) Type() string { return "goal_achieved" }

// Type is "context_compacted".
func (ContextCompacted) Type() string { return "context_compacted" }

// Type is "persistence_failed".
func (PersistenceFailed) Type() string { return "persistence_failed" }

// Type is "budget_threshold_hit".
func (BudgetThresholdHit) Type() string { return "budget_threshold_hit" }

// Type is "passivation_requested".
func (PassivationRequested) Type() string { return "passivation_requested" }

// Type is "peer_invocation".
func (PeerInvocation) Type() string { return "peer_invocation" }

// Type is "host_request".
func (HostRequest) Type() string { return "host_request" }

// Type is "host_cancel".
func (HostCancel) Type() string { return "host_cancel" }

// Type is "call_result".
func (CallResult) Type() string { return "call_result" }

// Type is "log".
func (LogLine) Type() string { return "log" }

// Type is "gap".
func (Gap) Type() string { return "gap" }
