package op

import (
	"context"
	"encoding/json"

	"github.com/a3s-lab/liba3s/internal/tape"
	"github.com/a3s-lab/liba3s/runtime/agent"
	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/host"
	"github.com/a3s-lab/liba3s/runtime/session"
)

// AgentOpen is the request of agent_open.
type AgentOpen struct {
	// Source is the path of an .acl file or a configuration as text: one line that ends in
	// .acl is a path. Exactly one of source, acl and acl_path is given.
	Source string `json:"source,omitempty"`
	// ACL is a configuration as text.
	ACL string `json:"acl,omitempty"`
	// ACLPath is the path of an .acl file.
	ACLPath string `json:"acl_path,omitempty"`
	// Env answers env("NAME") in the configuration and gives child processes PATH, HOME
	// and LANG; absent is empty. It is never stored, logged or told.
	Env map[string]string `json:"env,omitempty"`
	// Cwd is the absolute path that completes relative ones.
	Cwd string `json:"cwd"`
	// LogLevel is the least level of log frames: debug, info, warn (default) or error.
	LogLevel string `json:"log_level,omitempty"`
	// Limits hold for the whole process: the first open sets them, a later different
	// value is refused.
	Limits *ProcessLimits `json:"limits,omitempty"`
}

// ProcessLimits are limits of the whole process.
type ProcessLimits struct {
	// GCPercent of the Go runtime; 100 is its default.
	GCPercent int `json:"gc_percent,omitempty"`
	// MemoryBytes is the soft memory limit of the Go runtime; 0 is none.
	MemoryBytes int64 `json:"memory_bytes,omitempty"`
	// Threads run Go code at once; 0 is the number of cores.
	Threads int `json:"threads,omitempty"`
}

// SessionOpen is the request of session_open.
type SessionOpen struct {
	// Workspace is the folder of a new session.
	Workspace string `json:"workspace,omitempty"`
	// Resume is the id of a kept session.
	Resume string `json:"resume,omitempty"`
	// Cwd completes relative paths of this request; absent is the agent's.
	Cwd string `json:"cwd,omitempty"`
	// Options of the session; see the option table.
	Options json.RawMessage `json:"options,omitempty" jsonschema:"type=object"`
}

// RunStart is the request of run_start.
type RunStart struct {
	// Prompt is the user's message, or a slash command.
	Prompt string `json:"prompt"`
	// History, if given, is the whole context: the run is isolated and leaves the
	// transcript alone.
	History *[]chat.Message `json:"history,omitempty"`
}

// StreamOpen is the request of stream_open.
type StreamOpen struct {
	// FromSeq is the number of the first wanted event of a run; default 0. A session's
	// stream starts now and refuses it.
	FromSeq *int64 `json:"from_seq,omitempty"`
}

// OpenAgent makes an agent of an AgentOpen request.
func OpenAgent(ctx context.Context, request []byte) (*agent.Agent, error) {
	var r AgentOpen
	if err := Decode("agent.open", request, &r); err != nil {
		return nil, err
	}
	if err := setLimits(r.Limits); err != nil {
		return nil, err
	}
	return agent.Open(ctx, agent.Setup{Source: r.Source, ACL: r.ACL, ACLPath: r.ACLPath, Env: r.Env, Cwd: r.Cwd, LogLevel: r.LogLevel})
}

// OpenSession opens or resumes a session by a SessionOpen request.
func OpenSession(ctx context.Context, a *agent.Agent, request []byte) (*session.Session, error) {
	var r SessionOpen
	if err := Decode("session.open", request, &r); err != nil {
		return nil, err
	}
	o, err := agent.DecodeOptions(r.Options)
	if err != nil {
		return nil, err
	}
	return a.OpenSession(ctx, agent.SessionSpec{Workspace: r.Workspace, Resume: r.Resume, Cwd: r.Cwd, Options: o})
}

// StartRun starts a run by a RunStart request.
func StartRun(_ context.Context, s *session.Session, request []byte) (*session.Run, error) {
	var r RunStart
	if err := Decode("run.start", request, &r); err != nil {
		return nil, err
	}
	return s.Start(r.prompt())
}

func (r RunStart) prompt() session.Prompt {
	p := session.Prompt{Text: r.Prompt}
	if r.History != nil {
		p.History = append([]chat.Message{}, *r.History...) // not nil, however short
	}
	return p
}

// Stream is a cursor that its source forgets when it is closed.
type Stream struct {
	*tape.Cursor
	release func()
}

// Close ends the stream; what it reads from goes on.
func (s *Stream) Close() {
	s.Cursor.Close()
	s.release()
}

// OpenStream opens a stream of an agent (its control stream), a session or a run.
func OpenStream(_ context.Context, h Handle, opts []byte) (*Stream, error) {
	var r StreamOpen
	if err := Decode("stream.open", opts, &r); err != nil {
		return nil, err
	}
	run, isRun := h.(*session.Run)
	switch {
	case r.FromSeq != nil && !isRun:
		return nil, badField("stream.open", "from_seq", "belongs to the stream of a run; any other starts now")
	case r.FromSeq != nil && *r.FromSeq < 0:
		return nil, badField("stream.open", "from_seq", "must not be negative, got %d", *r.FromSeq)
	}
	switch on := h.(type) {
	case *agent.Agent:
		c, err := on.Stream()
		return &Stream{c, func() { on.Release(c) }}, err
	case *session.Session:
		c, err := on.Stream()
		return &Stream{c, func() { on.Release(c) }}, err
	case *session.Run:
		from := int64(0)
		if r.FromSeq != nil {
			from = *r.FromSeq
		}
		return &Stream{run.Stream(from), func() {}}, nil
	}
	return nil, fault.New(fault.Handle, "stream.open", "a %s has no stream", kindOf(h))
}

// Close ends an agent, a session or a registration. A run has no close of its own.
func Close(ctx context.Context, h Handle) error {
	switch on := h.(type) {
	case *agent.Agent:
		return on.Close(ctx)
	case *session.Session:
		return on.Close(ctx)
	case *agent.Registration:
		return on.Close()
	}
	return nil
}

// Cancel asks a run to stop.
func Cancel(_ context.Context, r *session.Run, reason string) error {
	r.Cancel(reason)
	return nil
}

// Wait waits for a run and gives its result as JSON.
func Wait(ctx context.Context, r *session.Run) ([]byte, error) {
	result, err := r.Wait(ctx)
	if err != nil {
		return nil, err
	}
	return json.Marshal(result)
}

// RunInput is what a host says to a run that goes on.
type RunInput struct {
	// Confirm answers a question.
	Confirm *Confirm `json:"confirm,omitempty"`
}

// Input hands a RunInput to a run.
func Input(_ context.Context, r *session.Run, input []byte) error {
	var in RunInput
	if err := Decode("run.input", input, &in); err != nil {
		return err
	}
	if in.Confirm == nil {
		return fault.Of(fault.CodeInvalidRequest, "run.input", "the one input of this version is {\"confirm\": {\"tool_id\", \"approved\", \"reason\"}}").With("field", "confirm")
	}
	if err := required("run.input", in.Confirm); err != nil {
		return err
	}
	if s := r.Session().Confirm(in.Confirm.ToolID, *in.Confirm.Approved, in.Confirm.Reason); s != session.AnswerAccepted {
		return fault.New(fault.NotFound, "run.input", "no open question %q: it is %s", in.Confirm.ToolID, s).With("status", string(s))
	}
	return nil
}

// HostRegister lets the host supply an extension to an agent or a session.
func HostRegister(ctx context.Context, h Handle, kind string, spec []byte) (*agent.Registration, error) {
	return HostSupply(ctx, h, kind, spec, nil)
}

// HostSupply is HostRegister of an extension that lives in this process: its requests go
// to by, and to the control streams if by is nil.
func HostSupply(ctx context.Context, h Handle, kind string, spec []byte, by host.Sender) (*agent.Registration, error) {
	if len(spec) == 0 {
		spec = []byte("{}")
	}
	if err := CheckRequest("host.register", spec); err != nil {
		return nil, err
	}
	switch on := h.(type) {
	case *agent.Agent:
		return on.Supply(ctx, nil, kind, spec, by)
	case *session.Session:
		return ownerOf(on).Supply(ctx, on, kind, spec, by)
	}
	return nil, fault.New(fault.Handle, "host.register", "extensions belong to an agent or a session, not to a %s", kindOf(h))
}

// HostChunk hands in progress of a host request.
func HostChunk(_ context.Context, h Handle, request uint64, b []byte) error {
	a, err := agentOf(h)
	if err != nil {
		return err
	}
	return a.Chunk(request, b)
}

// HostReply answers a host request.
func HostReply(_ context.Context, h Handle, request uint64, b []byte) error {
	a, err := agentOf(h)
	if err != nil {
		return err
	}
	return a.Reply(request, b)
}

// Tell puts the end of a started call on the control stream of h's agent.
func Tell(h Handle, call uint64, result []byte, err error) {
	a, bad := agentOf(h)
	if bad != nil {
		return
	}
	f := event.CallResult{Call: call, Result: result}
	if err != nil {
		f.Result, f.Error = nil, fault.From("call", err)
	}
	a.Tell(f)
}

func agentOf(h Handle) (*agent.Agent, error) {
	switch on := h.(type) {
	case *agent.Agent:
		return on, nil
	case *session.Session:
		return ownerOf(on), nil
	case *session.Run:
		return ownerOf(on.Session()), nil
	}
	return nil, fault.New(fault.Handle, "host", "a %s belongs to no agent", kindOf(h))
}

// ownerOf gives the agent that opened a session.
func ownerOf(s *session.Session) *agent.Agent { return s.Owner().(*agent.Agent) }
