// Package record holds what a session keeps: the facts of its journal, and the
// snapshot that compacts them. The shapes of the snapshot are those of A3S Code 6.x.
// It is data, its validation and its codec; who writes when is session's. Floor 3.
package record

import (
	"context"
	"encoding/json"

	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/event"
)

// Pos is a place in a session's journal: a generation and a byte offset in it.
type Pos struct {
	Generation uint64
	Offset     int64
}

// Fact is one record of the journal. Exactly one field is set. An Event is numbered
// and told to the host; the rest is kept only.
type Fact struct {
	Event   event.Payload
	Message *Message
	Mark    *Mark
}

// Message is a fact that belongs to the transcript.
type Message struct {
	RunID string `json:"run_id"`
	// Isolated messages belong to a history= run; the fold skips them (S21).
	Isolated bool         `json:"isolated,omitempty"`
	Message  chat.Message `json:"message"`
}

// Mark is any other fact. Exactly one field is set.
type Mark struct {
	// Session describes the session; it is the first fact of a journal that follows no
	// snapshot, so that an unsaved session can be resumed.
	Session *SessionData `json:"session,omitempty"`
	// Replace puts messages in the place of the first ones of the transcript:
	// compaction, and clearing with no messages.
	Replace *Replace `json:"replace,omitempty"`
	// Artifact says that a long text was kept as a blob; its Content is empty here.
	Artifact *Artifact `json:"artifact,omitempty"`
	// Trace sums up a direct call of the host, which belongs to no run (S23).
	Trace *TraceEvent `json:"trace,omitempty"`
}

// Replace is a compaction: the first Count messages give way to With.
type Replace struct {
	Count int            `json:"count"`
	With  []chat.Message `json:"with"`
}

// Log is where a run writes its facts; session implements it. Write and Commit are
// called on the run's goroutine and return when the facts are written and told, in order.
type Log interface {
	// Write appends a group of facts.
	Write(ctx context.Context, facts ...Fact) error
	// Commit appends a group of facts and flushes it: it survives a power loss.
	Commit(ctx context.Context, facts ...Fact) error
	// Delta hands in a piece of a stream (text_delta, reasoning_delta,
	// tool_input_delta, tool_output_delta). It may be merged with its neighbours and
	// told up to 10 ms later; it is always before the next fact. Tools that run at the
	// same time call it from their own goroutines.
	Delta(ctx context.Context, p event.Payload) error
}

// Status of a run.
type Status string

// The statuses. The first terminal one wins.
const (
	Created   Status = "created"
	Planning  Status = "planning"
	Executing Status = "executing"
	Verifying Status = "verifying"
	Completed Status = "completed"
	Failed    Status = "failed"
	Cancelled Status = "cancelled"
)

// Terminal says that a run with this status has ended.
func (s Status) Terminal() bool { return s == Completed || s == Failed || s == Cancelled }

// RunSnapshot is what is known of a run at one moment.
type RunSnapshot struct {
	ID          string `json:"id"`
	SessionID   string `json:"session_id"`
	Status      Status `json:"status"`
	Prompt      string `json:"prompt"`
	CreatedAtMS int64  `json:"created_at_ms"`
	UpdatedAtMS int64  `json:"updated_at_ms"`
	ResultText  string `json:"result_text,omitempty"`
	Error       string `json:"error,omitempty"`
	// EventCount is the number of the next event; trimming never lowers it.
	EventCount int64 `json:"event_count"`
	// Extra keeps the fields this version does not know.
	Extra map[string]json.RawMessage `json:"-"`
}

// RunRecord is a run with the events that are kept of it.
type RunRecord struct {
	Snapshot RunSnapshot   `json:"snapshot"`
	Events   []StoredEvent `json:"events"`
}

// StoredEvent is an event in the flat form of the snapshot: {"type": ..., fields}.
type StoredEvent struct {
	Sequence    int64           `json:"sequence"`
	TimestampMS int64           `json:"timestamp_ms"`
	Event       json.RawMessage `json:"event"`
}

// Artifact is a text kept outside the transcript.
type Artifact struct {
	ArtifactID    string `json:"artifact_id"`
	ArtifactURI   string `json:"artifact_uri"`
	ToolName      string `json:"tool_name"`
	Content       string `json:"content"`
	OriginalBytes int64  `json:"original_bytes"`
	ShownBytes    int64  `json:"shown_bytes"`
}

// TraceEvent sums up one tool execution.
type TraceEvent struct {
	Schema       string          `json:"schema"`
	Kind         string          `json:"kind"`
	Name         string          `json:"name"`
	Success      bool            `json:"success"`
	ExitCode     int             `json:"exit_code"`
	DurationMS   int64           `json:"duration_ms"`
	OutputBytes  int64           `json:"output_bytes"`
	MetadataKeys []string        `json:"metadata_keys"`
	ArtifactURIs []string        `json:"artifact_uris"`
	Details      json.RawMessage `json:"details,omitempty"`
}

// Snapshot is SessionSnapshotV1.
type Snapshot struct {
	SchemaVersion       int               `json:"schema_version"`
	Session             SessionData       `json:"session"`
	Artifacts           []Artifact        `json:"artifacts"`
	TraceEvents         []TraceEvent      `json:"trace_events"`
	RunRecords          []RunRecord       `json:"run_records"`
	VerificationReports []json.RawMessage `json:"verification_reports"`
	SubagentTasks       []SubagentTask    `json:"subagent_tasks"`
	// Extra keeps the fields this version does not know, such as those of 8.x; who
	// saves a loaded session carries it over.
	Extra map[string]json.RawMessage `json:"-"`
}

// SubagentTask is the record of a delegated task; only the fields that a snapshot is
// checked by are decoded, the rest is kept as it is.
type SubagentTask struct {
	TaskID          string
	ParentSessionID string
	Raw             json.RawMessage
}

// MarshalJSON gives the record back as it came.
func (t SubagentTask) MarshalJSON() ([]byte, error) { return t.Raw, nil }

// UnmarshalJSON keeps the record and reads its keys.
func (t *SubagentTask) UnmarshalJSON(b []byte) error {
	var keys struct {
		TaskID          string `json:"task_id"`
		ParentSessionID string `json:"parent_session_id"`
	}
	if err := json.Unmarshal(b, &keys); err != nil {
		return err
	}
	*t = SubagentTask{keys.TaskID, keys.ParentSessionID, append(json.RawMessage(nil), b...)}
	return nil
}

// SessionData is the session's part of a snapshot.
type SessionData struct {
	ID              string            `json:"id"`
	Config          SessionConfig     `json:"config"`
	State           string            `json:"state"` // Unknown, Active, Paused, Completed, Error
	Messages        []chat.Message    `json:"messages"`
	ContextUsage    ContextUsage      `json:"context_usage"`
	TotalUsage      chat.Usage        `json:"total_usage"`
	TotalCost       float64           `json:"total_cost"`
	ModelName       string            `json:"model_name,omitempty"`
	CostRecords     []json.RawMessage `json:"cost_records"`
	ToolNames       []string          `json:"tool_names"`
	ThinkingEnabled bool              `json:"thinking_enabled"`
	ThinkingBudget  *int              `json:"thinking_budget,omitempty"`
	CreatedAt       int64             `json:"created_at"` // Unix seconds
	UpdatedAt       int64             `json:"updated_at"`
	LLMConfig       *LLMConfig        `json:"llm_config,omitempty"`
	Tasks           []json.RawMessage `json:"tasks"`
	ParentID        string            `json:"parent_id,omitempty"`
	Labels
	// Extra keeps the fields this version does not know.
	Extra map[string]json.RawMessage `json:"-"`
}

// Labels are opaque identity labels; they flow to records and are restored on resume.
type Labels struct {
	TenantID        string `json:"tenant_id,omitempty"`
	Principal       string `json:"principal,omitempty"`
	AgentTemplateID string `json:"agent_template_id,omitempty"`
	CorrelationID   string `json:"correlation_id,omitempty"`
}

// LLMConfig names the model; never its key.
type LLMConfig struct {
	Provider string `json:"provider"`
	Model    string `json:"model"`
	BaseURL  string `json:"base_url,omitempty"`
}

// ContextUsage says how full the window is.
type ContextUsage struct {
	UsedTokens int     `json:"used_tokens"`
	MaxTokens  int     `json:"max_tokens"`
	Percent    float64 `json:"percent"`
	Turns      int     `json:"turns"`
}

// SessionConfig is the part of the options that a resume restores.
type SessionConfig struct {
	Name                 string          `json:"name"`
	Workspace            string          `json:"workspace"`
	SystemPrompt         string          `json:"system_prompt,omitempty"`
	MaxContextLength     int             `json:"max_context_length"`
	AutoCompact          bool            `json:"auto_compact"`
	AutoCompactThreshold float64         `json:"auto_compact_threshold"`
	StorageType          string          `json:"storage_type"`
	QueueConfig          json.RawMessage `json:"queue_config,omitempty"`
	ConfirmationPolicy   json.RawMessage `json:"confirmation_policy,omitempty"`
	PermissionPolicy     json.RawMessage `json:"permission_policy,omitempty"`
	// EnforceActiveSkillToolRestrictions is always written: 6.x requires it.
	EnforceActiveSkillToolRestrictions bool            `json:"enforce_active_skill_tool_restrictions"`
	MaxParallelTasks                   *int            `json:"max_parallel_tasks,omitempty"`
	AutoDelegation                     json.RawMessage `json:"auto_delegation,omitempty"`
	ParentID                           string          `json:"parent_id,omitempty"`
	SecurityConfig                     json.RawMessage `json:"security_config,omitempty"`
	PlanningMode                       string          `json:"planning_mode"`
	GoalTracking                       bool            `json:"goal_tracking"`
	// Extra keeps the fields this version does not know.
	Extra map[string]json.RawMessage `json:"-"`
}
