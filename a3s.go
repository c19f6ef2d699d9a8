package a3s

import (
	"context"
	"os"
	"strings"

	"github.com/a3s-lab/liba3s/runtime/agent"
	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/policy"
	"github.com/a3s-lab/liba3s/runtime/record"
	"github.com/a3s-lab/liba3s/runtime/session"
)

// The words of the runtime, under one name.
type (
	// Error is the one error shape; errors.As finds it, errors.Is compares codes.
	Error = fault.Error
	// Code is a stable error code.
	Code = fault.Code
	// Event is an event in its envelope.
	Event = event.Envelope
	// Message is an entry of the transcript.
	Message = chat.Message
	// SessionOptions are the options of a session; nil fields keep the defaults.
	SessionOptions = agent.Options
	// PermissionPolicy decides which calls may run.
	PermissionPolicy = policy.Policy
	// ConfirmationPolicy says whether and how you are asked.
	ConfirmationPolicy = policy.ConfirmationPolicy
	// WorkspaceBackend names a workspace.
	WorkspaceBackend = agent.WorkspaceBackend
	// SessionStore names a store.
	SessionStore = agent.SessionStore
	// HostEnv fixes ids and clock.
	HostEnv = agent.HostEnv
	// Result is how a run ended.
	Result = session.Result
	// ToolResult is the outcome of a direct tool call.
	ToolResult = session.ToolResult
	// RunSnapshot is what is known of a run.
	RunSnapshot = record.RunSnapshot
	// Page is a part of a run's events.
	Page = session.Page
	// Pending is an open question.
	Pending = session.Pending
	// SessionInfo says what a session is.
	SessionInfo = session.Info
	// Artifact is a text kept outside the transcript.
	Artifact = record.Artifact
	// ToolSpec is what a model is told of a tool.
	ToolSpec = chat.ToolSpec
	// Command is a slash command.
	Command = session.Command
	// ActiveTool is a call that runs now.
	ActiveTool = session.ActiveTool
	// TraceEvent sums up the execution of a tool.
	TraceEvent = record.TraceEvent
	// TokenUsage counts the tokens of model calls.
	TokenUsage = chat.Usage
	// Block is a part of a message: a text, a call of a tool ("tool_use") or its result
	// ("tool_result").
	Block = chat.Block
)

// FileStore names a store that keeps sessions in files below a folder; a relative one is
// completed as the agent's paths are.
func FileStore(dir string) *SessionStore { return &SessionStore{Kind: "file", Dir: dir} }

// MemoryStore names a store in the memory of this process. All agents that name the same
// id share it, until DropMemoryStore.
func MemoryStore(id string) *SessionStore { return &SessionStore{Kind: "memory", InstanceID: id} }

// DropMemoryStore forgets a store in memory: what is kept in it is gone.
func DropMemoryStore(id string) { agent.DropMemory(id) }

// Ptr gives a pointer to v, for optional fields.
func Ptr[T any](v T) *T { return &v }

// EventTypes gives the names of the event catalogue in canonical order.
func EventTypes() []string { return event.Types() }

// EventEnvelopeVersion is the version of the event envelope.
const EventEnvelopeVersion = event.Version

// Option changes how an agent is created.
type Option func(*agent.Setup)

// WithEnv sets the environment that env("NAME") and child processes see, instead of the
// process's own.
func WithEnv(env map[string]string) Option { return func(s *agent.Setup) { s.Env = env } }

// WithDir sets the folder that completes relative paths, instead of the process's
// working directory.
func WithDir(dir string) Option { return func(s *agent.Setup) { s.Cwd = dir } }

// WithLogLevel sets the least level of log frames: debug, info, warn or error.
func WithLogLevel(level string) Option { return func(s *agent.Setup) { s.LogLevel = level } }

// Agent holds a configuration and its open sessions. Methods may be called
// concurrently.
type Agent struct {
	owner
	a *agent.Agent
}

// Create makes an agent. source is the path of an .acl file, or the configuration
// itself. The error is a *Error with code CONFIG_ERROR if it makes no sense. Nothing is
// contacted.
func Create(ctx context.Context, source string, opts ...Option) (*Agent, error) {
	if err := over(ctx, "agent.open"); err != nil {
		return nil, err
	}
	s := agent.Setup{Source: source}
	for _, o := range opts {
		if o != nil {
			o(&s)
		}
	}
	if s.Env == nil {
		s.Env = environ()
	}
	if s.Cwd == "" {
		cwd, err := os.Getwd()
		if err != nil {
			return nil, fault.New(fault.IO, "agent.open", "working directory: %v", err)
		}
		s.Cwd = cwd
	}
	a, err := agent.Open(ctx, s)
	if err != nil {
		return nil, err
	}
	return &Agent{owner{a, a}, a}, nil
}

// NewAgent is another name of Create.
func NewAgent(ctx context.Context, source string, opts ...Option) (*Agent, error) {
	return Create(ctx, source, opts...)
}

// environ is the process's environment; this facade is the host's side, and reads it
// once at Create.
func environ() map[string]string {
	m := map[string]string{}
	for _, kv := range os.Environ() {
		if k, v, ok := strings.Cut(kv, "="); ok {
			m[k] = v
		}
	}
	return m
}

// Session opens a new session in a workspace. opts may be nil. The error is a *Error
// with code SESSION_CONFIGURATION_ERROR and the detail "field" if an option is wrong.
func (a *Agent) Session(ctx context.Context, workspace string, opts *SessionOptions) (*Session, error) {
	return a.open(ctx, agent.SessionSpec{Workspace: workspace, Options: opts})
}

// ResumeSession opens a kept session; opts must name its store. Runs that a dead process
// left open are settled; nothing is executed. The error has code SESSION_ERROR if the
// store does not have it, SESSION_BUSY if it is open elsewhere.
func (a *Agent) ResumeSession(ctx context.Context, id string, opts *SessionOptions) (*Session, error) {
	if id == "" {
		return nil, fault.Of(fault.CodeInvalidRequest, "session.open", "the id of the session to resume is empty").With("field", "resume").With("reason", fault.BadValue)
	}
	return a.open(ctx, agent.SessionSpec{Resume: id, Options: opts})
}

func (a *Agent) open(ctx context.Context, spec agent.SessionSpec) (*Session, error) {
	if spec.Options != nil { // the same checks as for every language
		b, err := encode("session.open", "options", spec.Options)
		if err != nil {
			return nil, err
		}
		if spec.Options, err = agent.DecodeOptions(b); err != nil {
			return nil, err
		}
	}
	s, err := a.a.OpenSession(ctx, spec)
	if err != nil {
		return nil, because(ctx, err)
	}
	return &Session{owner{s, a.a}, s}, nil
}

// ListSessions gives the ids of the open sessions, sorted.
func (a *Agent) ListSessions() []string { return a.a.ListSessions() }

// ListStoredSessions gives the ids of the sessions kept in a store, open or not, sorted.
// store nil is that of the configuration.
func (a *Agent) ListStoredSessions(ctx context.Context, store *SessionStore) ([]string, error) {
	ids, err := a.a.ListStored(ctx, store, "")
	return ids, because(ctx, err)
}

// CloseSession closes an open session by id; false if there is none.
func (a *Agent) CloseSession(ctx context.Context, id string) (bool, error) {
	was, err := a.a.CloseSession(ctx, id)
	return was, because(ctx, err)
}

// Warnings of the configuration, with line and column.
func (a *Agent) Warnings() []string { return a.a.Warnings() }

// IsClosed says whether Close was called.
func (a *Agent) IsClosed() bool { return a.a.Closed() }

// Close closes every session and the agent. If ctx ends first the error has code
// TIMEOUT and the rest goes on in the background.
func (a *Agent) Close(ctx context.Context) error { return because(ctx, a.a.Close(ctx)) }

// Decode reads the payload of an event into its Go type of package event; a type that this
// version does not know becomes an event.Unknown. The error is a *Error with code
// INVALID_REQUEST for a payload that does not fit the type.
func Decode(e Event) (event.Payload, error) {
	p, err := event.Decode(e.Type, e.Payload)
	if err != nil {
		return nil, fault.Of(fault.CodeInvalidRequest, "event.decode", "the payload of a %s cannot be read: %v", e.Type, err)
	}
	return p, nil
}
