// Package event holds every event a host can be told, in the order a run meets them,
// and the envelope they travel in. It is pure data: no behaviour but encoding. Floor 2.
package event

import (
	"encoding/json"

	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/fault"
)

// Version of the envelope (EventEnvelopeV1).
const Version = 1

// Payload is the content of one event. The set of types is open.
type Payload interface {
	// Type is the wire name, such as "text_delta".
	Type() string
}

// Metadata places a recorded event.
type Metadata struct {
	RunID     string `json:"run_id"`
	SessionID string `json:"session_id"`
	// Sequence starts at 0 in every run and rises by exactly 1.
	Sequence int64 `json:"sequence"`
	// TimestampMS is Unix milliseconds and never falls within a run.
	TimestampMS int64 `json:"timestamp_ms"`
}

// Envelope is an event as hosts see it. Metadata is nil on unnumbered frames.
type Envelope struct {
	Version  int             `json:"version"`
	Type     string          `json:"type"`
	Payload  json.RawMessage `json:"payload"`
	Metadata *Metadata       `json:"metadata,omitempty"`
}

// The events, in the canonical order of the catalogue.
type (
	// AgentStart opens a run.
	AgentStart struct {
		Prompt string `json:"prompt"`
	}
	// AgentModeChanged says that another style of agent took over.
	AgentModeChanged struct {
		Mode        string `json:"mode"`
		Agent       string `json:"agent"`
		Description string `json:"description"`
	}
	// TurnStart opens a model call; the same number may come twice after a retry.
	TurnStart struct {
		Turn int `json:"turn"`
	}
	// TextDelta is a piece of the answer.
	TextDelta struct {
		Text string `json:"text"`
	}
	// ReasoningDelta is a piece of the model's reasoning.
	ReasoningDelta struct {
		Text string `json:"text"`
	}
	// ToolStart says that the model began a call; its arguments are not known yet.
	ToolStart struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	}
	// ToolInputDelta is a piece of a call's arguments.
	ToolInputDelta struct {
		ID    string `json:"id,omitempty"`
		Delta string `json:"delta"`
	}
	// ToolExecutionStart says that a call passed the Gate and runs now. It is the intent
	// fact of the call: written before anything happens, and flushed if the call has
	// effects, so that a crash leaves no effect without a trace.
	ToolExecutionStart struct {
		ID   string          `json:"id"`
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
		// ReadOnly says that repeating the call is harmless.
		ReadOnly bool `json:"read_only,omitempty"`
	}
	// ToolEnd is the outcome of a call, refused ones included.
	ToolEnd struct {
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Args      json.RawMessage `json:"args,omitempty"`
		Output    string          `json:"output"`
		ExitCode  int             `json:"exit_code"`
		Metadata  map[string]any  `json:"metadata,omitempty"`
		ErrorKind *chat.ErrorKind `json:"error_kind,omitempty"`
	}
	// ToolOutputDelta is a piece of a running tool's output.
	ToolOutputDelta struct {
		ID    string `json:"id"`
		Name  string `json:"name"`
		Delta string `json:"delta"`
	}
	// TurnEnd closes a model call and the execution of its tools.
	TurnEnd struct {
		Turn  int        `json:"turn"`
		Usage chat.Usage `json:"usage"`
	}
	// AgentEnd closes a run that completed.
	AgentEnd struct {
		Text                string              `json:"text"`
		Usage               chat.Usage          `json:"usage"`
		VerificationSummary VerificationSummary `json:"verification_summary"`
		Meta                json.RawMessage     `json:"meta,omitempty"`
	}
	// Error closes a run that failed or was cancelled. It is the whole error object.
	Error struct {
		Message   string         `json:"message"`
		Code      fault.Code     `json:"code"`
		Status    fault.Status   `json:"status"`
		Kind      fault.Kind     `json:"kind"`
		Op        string         `json:"op,omitempty"`
		Retryable bool           `json:"retryable"`
		Details   map[string]any `json:"details,omitempty"`
	}
	// ConfirmationRequired asks the host whether a call may run.
	ConfirmationRequired struct {
		ToolID    string          `json:"tool_id"`
		ToolName  string          `json:"tool_name"`
		Args      json.RawMessage `json:"args"`
		TimeoutMS int64           `json:"timeout_ms"`
		// ArgsSHA256 is the hash of Args as told, so that an answer can be bound to it.
		ArgsSHA256 string `json:"args_sha256,omitempty"`
		// Cwd is the folder the call would run in.
		Cwd string `json:"cwd,omitempty"`
		// Effects is what the tool declared for this call.
		Effects *chat.Effects `json:"effects,omitempty"`
		// SessionID names the child session the question comes from; absent for the own.
		SessionID string `json:"session_id,omitempty"`
	}
	// ConfirmationReceived is the host's answer.
	ConfirmationReceived struct {
		ToolID   string  `json:"tool_id"`
		Approved bool    `json:"approved"`
		Reason   *string `json:"reason"`
	}
	// ConfirmationTimeout says that nobody answered in time.
	ConfirmationTimeout struct {
		ToolID      string `json:"tool_id"`
		ActionTaken string `json:"action_taken"` // "rejected" or "auto_approved"
	}
	// ExternalTaskPending hands a queued task to the host.
	ExternalTaskPending struct {
		TaskID      string          `json:"task_id"`
		SessionID   string          `json:"session_id"`
		Lane        string          `json:"lane"`
		CommandType string          `json:"command_type"`
		Payload     json.RawMessage `json:"payload"`
		TimeoutMS   int64           `json:"timeout_ms"`
	}
	// ExternalTaskCompleted closes an external task.
	ExternalTaskCompleted struct {
		TaskID    string `json:"task_id"`
		SessionID string `json:"session_id"`
		Success   bool   `json:"success"`
	}
	// PermissionDenied says that the Gate refused a call.
	PermissionDenied struct {
		ToolID   string          `json:"tool_id"`
		ToolName string          `json:"tool_name"`
		Args     json.RawMessage `json:"args"`
		Reason   string          `json:"reason"`
	}
	// ContextResolving says which context providers are asked.
	ContextResolving struct {
		Providers []string `json:"providers"`
	}
	// ContextResolved counts what they gave.
	ContextResolved struct {
		TotalItems  int `json:"total_items"`
		TotalTokens int `json:"total_tokens"`
	}
	// CommandDeadLettered says that a queued command was given up.
	CommandDeadLettered struct {
		CommandID   string `json:"command_id"`
		CommandType string `json:"command_type"`
		Lane        string `json:"lane"`
		Error       string `json:"error"`
		Attempts    int    `json:"attempts"`
	}
	// CommandRetry says that a queued command is tried again.
	CommandRetry struct {
		CommandID   string `json:"command_id"`
		CommandType string `json:"command_type"`
		Lane        string `json:"lane"`
		Attempt     int    `json:"attempt"`
		DelayMS     int64  `json:"delay_ms"`
	}
	// QueueAlert reports the state of a queue.
	QueueAlert struct {
		Level     string `json:"level"`
		AlertType string `json:"alert_type"`
		Message   string `json:"message"`
	}
	// TaskUpdated carries the whole task list.
	TaskUpdated struct {
		SessionID string            `json:"session_id"`
		Tasks     []json.RawMessage `json:"tasks"`
	}
	// MemoryStored says that something was remembered.
	MemoryStored struct {
		MemoryID   string   `json:"memory_id"`
		MemoryType string   `json:"memory_type"`
		Importance float64  `json:"importance"`
		Tags       []string `json:"tags"`
	}
	// MemoryRecalled says that something was recalled.
	MemoryRecalled struct {
		MemoryID  string  `json:"memory_id"`
		Content   string  `json:"content"`
		Relevance float64 `json:"relevance"`
	}
	// MemoriesSearched counts what a search of the memory found.
	MemoriesSearched struct {
		Query       *string  `json:"query"`
		Tags        []string `json:"tags"`
		ResultCount int      `json:"result_count"`
	}
	// MemoryCleared says that a tier of the memory was emptied.
	MemoryCleared struct {
		Tier  string `json:"tier"`
		Count int    `json:"count"`
	}
	// SubagentStart opens a delegated task.
	SubagentStart struct {
		TaskID          string `json:"task_id"`
		SessionID       string `json:"session_id"`
		ParentSessionID string `json:"parent_session_id"`
		Agent           string `json:"agent"`
		Description     string `json:"description"`
		StartedMS       int64  `json:"started_ms"`
	}
	// SubagentProgress reports on a delegated task.
	SubagentProgress struct {
		TaskID    string          `json:"task_id"`
		SessionID string          `json:"session_id"`
		Status    string          `json:"status"`
		Metadata  json.RawMessage `json:"metadata"`
	}
	// SubagentEnd closes a delegated task.
	SubagentEnd struct {
		TaskID     string `json:"task_id"`
		SessionID  string `json:"session_id"`
		Agent      string `json:"agent"`
		Output     string `json:"output"`
		Success    bool   `json:"success"`
		FinishedMS int64  `json:"finished_ms"`
	}
	// PlanningStart opens planning.
	PlanningStart struct {
		Prompt string `json:"prompt"`
	}
	// PlanningEnd carries the plan.
	PlanningEnd struct {
		Plan           json.RawMessage `json:"plan"`
		EstimatedSteps int             `json:"estimated_steps"`
	}
	// StepStart opens a step of the plan.
	StepStart struct {
		StepID      string `json:"step_id"`
		Description string `json:"description"`
		StepNumber  int    `json:"step_number"`
		TotalSteps  int    `json:"total_steps"`
	}
	// StepEnd closes a step of the plan.
	StepEnd struct {
		StepID     string `json:"step_id"`
		Status     string `json:"status"`
		StepNumber int    `json:"step_number"`
		TotalSteps int    `json:"total_steps"`
	}
	// GoalExtracted carries the goal of the prompt.
	GoalExtracted struct {
		Goal json.RawMessage `json:"goal"`
	}
	// GoalProgress measures the way to the goal.
	GoalProgress struct {
		Goal           string  `json:"goal"`
		Progress       float64 `json:"progress"`
		CompletedSteps int     `json:"completed_steps"`
		TotalSteps     int     `json:"total_steps"`
	}
	// GoalAchieved says that the goal is reached.
	GoalAchieved struct {
		Goal       string `json:"goal"`
		TotalSteps int    `json:"total_steps"`
		DurationMS int64  `json:"duration_ms"`
	}
	// ContextCompacted says that older messages were replaced by a summary.
	ContextCompacted struct {
		SessionID      string  `json:"session_id"`
		BeforeMessages int     `json:"before_messages"`
		AfterMessages  int     `json:"after_messages"`
		PercentBefore  float64 `json:"percent_before"`
		Summary        string  `json:"summary,omitempty"`
	}
	// PersistenceFailed says that an automatic save failed.
	PersistenceFailed struct {
		SessionID string `json:"session_id"`
		Operation string `json:"operation"`
		Error     string `json:"error"`
	}
	// BudgetThresholdHit says that a budget guard warned or refused.
	BudgetThresholdHit struct {
		Resource string  `json:"resource"`
		Kind     string  `json:"kind"` // "soft" or "hard"
		Consumed float64 `json:"consumed"`
		Limit    float64 `json:"limit"`
		Message  string  `json:"message,omitempty"`
	}
	// PassivationRequested asks the session to make room.
	PassivationRequested struct {
		Reason     string `json:"reason"`
		DeadlineMS *int64 `json:"deadline_ms,omitempty"`
	}
	// PeerInvocation says that another session called this one.
	PeerInvocation struct {
		FromSessionID string `json:"from_session_id"`
		FromTenantID  string `json:"from_tenant_id,omitempty"`
		CorrelationID string `json:"correlation_id,omitempty"`
	}
)

// VerificationSummary sums up verification reports.
type VerificationSummary struct {
	Status                    string   `json:"status"`
	ReportCount               int      `json:"report_count"`
	RequiredCheckCount        int      `json:"required_check_count"`
	PendingRequiredCheckCount int      `json:"pending_required_check_count"`
	FailedCheckCount          int      `json:"failed_check_count"`
	ResidualRiskCount         int      `json:"residual_risk_count"`
	PendingSubjects           []string `json:"pending_subjects"`
	FailedSubjects            []string `json:"failed_subjects"`
}

// Unnumbered frames: never facts, never on a run's stream.
type (
	// HostRequest asks a host extension for something; answered with a3s_host_reply.
	HostRequest struct {
		Request    uint64          `json:"request"`
		Kind       string          `json:"kind"` // "tool", "model", ...
		Name       string          `json:"name"` // of the registration
		Op         string          `json:"op"`   // "call", ...
		Params     json.RawMessage `json:"params"`
		SessionID  string          `json:"session_id,omitempty"`
		DeadlineMS int64           `json:"deadline_ms"` // from now
	}
	// HostCancel withdraws a host request; a late reply gets NOTFOUND.
	HostCancel struct {
		Request uint64 `json:"request"`
		Reason  string `json:"reason"`
	}
	// CallResult is the end of a call started with a3s_call_start.
	CallResult struct {
		Call   uint64          `json:"call"`
		Result json.RawMessage `json:"result,omitempty"`
		Error  *fault.Error    `json:"error,omitempty"`
	}
	// LogLine is a line of the library's log.
	LogLine struct {
		Level     string         `json:"level"` // "debug", "info", "warn", "error"
		Message   string         `json:"message"`
		SessionID string         `json:"session_id,omitempty"`
		RunID     string         `json:"run_id,omitempty"`
		ErrorKind string         `json:"error_kind,omitempty"`
		Fields    map[string]any `json:"fields,omitempty"`
	}
	// Gap says that the events [From, To) of a run are no longer kept.
	Gap struct {
		RunID string `json:"run_id"`
		From  int64  `json:"from"`
		To    int64  `json:"to"`
	}
)

// FromFault makes the terminal event of a failed run.
func FromFault(e *fault.Error) Error {
	return Error{Message: e.Error(), Code: e.Code, Status: e.Status(), Kind: e.Kind, Op: e.Op, Retryable: e.Retryable, Details: e.Details}
}
