// Package chat holds the words of a conversation that every other package speaks:
// roles, content blocks, tool specifications, calls, results, effects and usage.
// It is pure data. Floor 1.
package chat

import (
	"encoding/json"
	"slices"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

// Role says who speaks.
type Role string

// The roles of a transcript. A tool's answer is a message of role Tool.
const (
	User      Role = "user"
	Assistant Role = "assistant"
	Tool      Role = "tool"
)

// Types of a Block.
const (
	Text       = "text"
	ToolUse    = "tool_use"
	ToolResult = "tool_result"
)

// Block is one part of a message. Type decides which fields count.
type Block struct {
	Type string `json:"type"`
	// Text of a text block.
	Text string `json:"text,omitempty"`
	// ID, Name and Input of a tool_use block. WireID is the provider's own id, kept
	// only for the wire, since providers repeat ids (case OAI-06).
	ID     string          `json:"id,omitempty"`
	Name   string          `json:"name,omitempty"`
	Input  json.RawMessage `json:"input,omitempty"`
	WireID string          `json:"wire_id,omitempty"`
	// ToolUseID, Content and IsError of a tool_result block.
	ToolUseID string `json:"tool_use_id,omitempty"`
	Content   string `json:"content,omitempty"`
	IsError   bool   `json:"is_error,omitempty"`
}

// Message is one entry of the transcript.
type Message struct {
	Role    Role    `json:"role"`
	Content []Block `json:"content"`
	// ReasoningContent is the model's reasoning, never mixed into its text.
	ReasoningContent string `json:"reasoning_content,omitempty"`
	// Partial marks an assistant message that was cut off by a cancel or a fault.
	Partial bool `json:"partial,omitempty"`
}

// Say makes a message of one text block.
func Say(r Role, text string) Message {
	return Message{Role: r, Content: []Block{{Type: Text, Text: text}}}
}

// Text joins the text blocks of m.
func (m Message) Text() string {
	var s string
	for _, b := range m.Content {
		if b.Type == Text {
			s += b.Text
		}
	}
	return s
}

// Answers says that m holds outcomes of calls: older programs put them into messages of
// the user.
func (m Message) Answers() bool {
	return m.Role == Tool || slices.ContainsFunc(m.Content, func(b Block) bool { return b.Type == ToolResult })
}

// Calls gives the tool calls of m in order.
func (m Message) Calls() []Call {
	var calls []Call
	for _, b := range m.Content {
		if b.Type == ToolUse {
			calls = append(calls, Call{ID: b.ID, WireID: b.WireID, Name: b.Name, Args: b.Input})
		}
	}
	return calls
}

// Answer adds the outcome of a call to a transcript: to the tool message at its end, or
// as a new one.
func Answer(messages []Message, id, output string, failed bool) []Message {
	b := Block{Type: ToolResult, ToolUseID: id, Content: output, IsError: failed}
	if n := len(messages); n > 0 && messages[n-1].Role == Tool {
		last := messages[n-1]
		last.Content = append(last.Content[:len(last.Content):len(last.Content)], b)
		messages[n-1] = last
		return messages
	}
	return append(messages, Message{Role: Tool, Content: []Block{b}})
}

// Call is a tool call that the model proposes.
type Call struct {
	// ID is unique in the session tree; the runtime makes it.
	ID string `json:"id"`
	// WireID is the id the provider gave, possibly empty or repeated.
	WireID string `json:"wire_id,omitempty"`
	Name   string `json:"name"`
	// Args is the JSON text as the model wrote it. It may be malformed: the Gate
	// decides, adapters never repair or drop it.
	Args json.RawMessage `json:"args"`
}

// ToolSpec is what a model is told about a tool.
type ToolSpec struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"` // JSON schema of an object
}

// Usage counts tokens of one or more model calls.
type Usage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	TotalTokens      int `json:"total_tokens"`
	CacheReadTokens  int `json:"cache_read_tokens,omitempty"`
	CacheWriteTokens int `json:"cache_write_tokens,omitempty"`
}

// Add gives the sum of u and v.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		PromptTokens:     u.PromptTokens + v.PromptTokens,
		CompletionTokens: u.CompletionTokens + v.CompletionTokens,
		TotalTokens:      u.TotalTokens + v.TotalTokens,
		CacheReadTokens:  u.CacheReadTokens + v.CacheReadTokens,
		CacheWriteTokens: u.CacheWriteTokens + v.CacheWriteTokens,
	}
}

// Effects says what one call may do. Gate and scheduler use nothing else.
type Effects struct {
	Read    bool `json:"read,omitempty"`    // reads the workspace
	Write   bool `json:"write,omitempty"`   // changes files
	Exec    bool `json:"exec,omitempty"`    // starts programs
	Network bool `json:"network,omitempty"` // leaves the machine
	// Paths are the workspace paths it names, as the call wrote them.
	Paths []string `json:"paths,omitempty"`
	// Idempotent says that doing it twice is the same as once.
	Idempotent bool `json:"idempotent,omitempty"`
	// Confirm is the tool's own demand for a confirmation; it can only escalate.
	Confirm string `json:"confirm,omitempty"`
	// Own says that the call touches nothing but the session's own records; it is
	// always allowed (artifact_read).
	Own bool `json:"own,omitempty"`
}

// ReadOnly says that the call changes nothing anywhere.
func (e Effects) ReadOnly() bool { return !e.Write && !e.Exec && !e.Network }

// Result is the outcome of a tool call, failed ones included.
type Result struct {
	Output   string         `json:"output"`
	ExitCode int            `json:"exit_code"` // 0 success
	Metadata map[string]any `json:"metadata,omitempty"`
	Error    *ErrorKind     `json:"error_kind,omitempty"`
}

// Types of an ErrorKind. The set is open.
const (
	VersionConflict = "version_conflict"
	NotFound        = "not_found"
	InvalidArgument = "invalid_argument"
	Unsupported     = "unsupported"
	TimedOut        = "timeout"
	Transport       = "transport"
	WasCancelled    = "cancelled"
	PartialFailure  = "partial_failure"
	RateLimited     = "rate_limited"
	// OutcomeUnknown: the process died between intent and outcome of a call with effects.
	OutcomeUnknown = "outcome_unknown"
	// WasInterrupted: the process died during a read-only call.
	WasInterrupted = "interrupted"
	// PermissionDenied: the Gate refused the call.
	PermissionDenied = "permission_denied"
)

// ErrorKind is the machine-readable reason of a failed result, told apart by Type.
type ErrorKind struct {
	Type         string `json:"type"`
	Path         string `json:"path,omitempty"`
	Expected     string `json:"expected,omitempty"`
	Actual       string `json:"actual,omitempty"`
	Message      string `json:"message,omitempty"`
	Op           string `json:"op,omitempty"`
	DurationMS   int64  `json:"duration_ms,omitempty"`
	RetryAfterMS int64  `json:"retry_after_ms,omitempty"`
	Failed       int    `json:"failed,omitempty"`
	Total        int    `json:"total,omitempty"`
}

// Fail makes a failed result with text for the model and a typed reason.
func Fail(kind ErrorKind, output string) Result {
	return Result{Output: output, ExitCode: 1, Error: &kind}
}

// Check refuses a message that no model can be sent: an unknown role or block.
func (m Message) Check() error {
	switch m.Role {
	case User, Assistant, Tool:
	default:
		return fault.New(fault.Invalid, "chat", "role %q is none of user, assistant, tool", m.Role)
	}
	for _, b := range m.Content {
		switch b.Type {
		case Text, ToolResult:
		case ToolUse:
			if b.Name == "" || b.ID == "" {
				return fault.New(fault.Invalid, "chat", "a tool_use block needs id and name")
			}
		default:
			return fault.New(fault.Invalid, "chat", "block type %q is none of text, tool_use, tool_result", b.Type)
		}
	}
	return nil
}
