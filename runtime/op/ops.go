package op

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/a3s-lab/liba3s/runtime/agent"
	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/record"
	"github.com/a3s-lab/liba3s/runtime/session"
)

// The parameters and results of the operations.
type (
	// SessionIDs lists open sessions.
	SessionIDs struct {
		SessionIDs []string `json:"session_ids"`
	}
	// StoreOf names a store to look into; absent is that of the configuration.
	StoreOf struct {
		SessionStore *agent.SessionStore `json:"session_store,omitempty"`
		Cwd          string              `json:"cwd,omitempty"`
	}
	// SessionID names a session.
	SessionID struct {
		SessionID string `json:"session_id"`
	}
	// Closed says whether there was something to close.
	Closed struct {
		Closed bool `json:"closed"`
	}
	// AgentInfo says what an agent is.
	AgentInfo struct {
		Closed   bool     `json:"closed"`
		Warnings []string `json:"warnings"`
	}
	// EventTypes is the catalogue.
	EventTypes struct {
		Version int      `json:"version"`
		Types   []string `json:"types"`
	}
	// Instance names an in-memory store.
	Instance struct {
		InstanceID string `json:"instance_id"`
	}
	// Cancelled says whether something was cancelled.
	Cancelled struct {
		Cancelled bool `json:"cancelled"`
	}
	// RunID names a run.
	RunID struct {
		RunID string `json:"run_id"`
	}
	// Runs lists runs, oldest first.
	Runs struct {
		Runs []record.RunSnapshot `json:"runs"`
	}
	// MaybeRun is a run or null.
	MaybeRun struct {
		Run *record.RunSnapshot `json:"run"`
	}
	// Events lists event envelopes.
	Events struct {
		Events []json.RawMessage `json:"events"`
	}
	// PageOf asks for a part of a run's events.
	PageOf struct {
		RunID string `json:"run_id"`
		// AfterSequence is the last number already seen; absent: from the beginning.
		AfterSequence *int64 `json:"after_sequence,omitempty"`
		// Limit of events; default 256.
		Limit *int `json:"limit,omitempty"`
	}
	// MaybePage is a page or null.
	MaybePage struct {
		Page *session.Page `json:"page"`
	}
	// ActiveTools lists the calls that run now.
	ActiveTools struct {
		Tools []session.ActiveTool `json:"tools"`
	}
	// Messages is a transcript.
	Messages struct {
		Messages []chat.Message `json:"messages"`
	}
	// URI names an artifact.
	URI struct {
		URI string `json:"uri"`
	}
	// MaybeArtifact is an artifact or null.
	MaybeArtifact struct {
		Artifact *record.Artifact `json:"artifact"`
	}
	// PendingConfirmations lists open questions.
	PendingConfirmations struct {
		Pending []session.Pending `json:"pending"`
	}
	// Confirm answers a question.
	Confirm struct {
		ToolID   string `json:"tool_id"`
		Approved *bool  `json:"approved"`
		Reason   string `json:"reason,omitempty"`
	}
	// Confirmed says what an answer met: "accepted", "stale" or "unknown".
	Confirmed struct {
		Found  bool                 `json:"found"`
		Status session.AnswerStatus `json:"status"`
	}
	// Count counts.
	Count struct {
		Count int `json:"count"`
	}
	// ToolCall is a direct call of a tool.
	ToolCall struct {
		Name string          `json:"name"`
		Args json.RawMessage `json:"args,omitempty" jsonschema:"type=object"`
	}
	// Names lists names.
	Names struct {
		Names []string `json:"names"`
	}
	// ToolDefinitions lists tool specifications.
	ToolDefinitions struct {
		Tools []chat.ToolSpec `json:"tools"`
	}
	// Commands lists slash commands.
	Commands struct {
		Commands []session.Command `json:"commands"`
	}
	// Traces lists trace events.
	Traces struct {
		Events []record.TraceEvent `json:"events"`
	}
	// Reason says why.
	Reason struct {
		Reason string `json:"reason,omitempty"`
	}
)

const defaultPage = 256

// closeLimit bounds the operations that close, so that a store or a tool which does not
// end holds up nobody for long. The rest goes on in the background. A variable for tests.
var closeLimit = 10 * time.Second

var agentOps = []Op{
	define("agent.list_sessions", "Give the ids of the open sessions, sorted.", false, func(_ context.Context, a *agent.Agent, _ None) (SessionIDs, error) {
		return SessionIDs{a.ListSessions()}, nil
	}),
	define("agent.list_stored_sessions", "Give the ids of the sessions kept in a store, open or not, sorted. A session that was never saved is among them.", true, func(ctx context.Context, a *agent.Agent, p StoreOf) (SessionIDs, error) {
		ids, err := a.ListStored(ctx, p.SessionStore, p.Cwd)
		if ids == nil {
			ids = []string{}
		}
		return SessionIDs{ids}, err
	}),
	define("agent.close_session", "Close an open session by id; false if there is none.", true, func(ctx context.Context, a *agent.Agent, p SessionID) (Closed, error) {
		ctx, cancel := context.WithTimeout(ctx, closeLimit)
		defer cancel()
		ok, err := a.CloseSession(ctx, p.SessionID)
		return Closed{ok}, err
	}),
	define("agent.close", "Close every session and the agent. The handle stays valid.", true, func(ctx context.Context, a *agent.Agent, _ None) (None, error) {
		ctx, cancel := context.WithTimeout(ctx, closeLimit)
		defer cancel()
		return None{}, a.Close(ctx)
	}),
	define("agent.info", "Say whether the agent is closed, and the warnings of its configuration.", false, func(_ context.Context, a *agent.Agent, _ None) (AgentInfo, error) {
		w := a.Warnings()
		if w == nil {
			w = []string{}
		}
		return AgentInfo{a.Closed(), w}, nil
	}),
	define("agent.event_types", "Give the event catalogue and the version of its envelope.", false, func(context.Context, *agent.Agent, None) (EventTypes, error) {
		return EventTypes{event.Version, event.Types()}, nil
	}),
	define("agent.drop_memory_store", "Forget an in-memory session store: what is kept in it is gone.", false, func(_ context.Context, _ *agent.Agent, p Instance) (None, error) {
		agent.DropMemory(p.InstanceID)
		return None{}, nil
	}),
}

var sessionOps = []Op{
	define("session.info", "Say what the session is.", false, func(_ context.Context, s *session.Session, _ None) (session.Info, error) {
		return s.Info(), nil
	}),
	define("session.send", "Run a prompt and wait for its result. A run that fails is an error.", true, send),
	define("session.cancel", "Ask the active run to stop and return at once; false if there is none or it was asked before.", false, func(_ context.Context, s *session.Session, p Reason) (Cancelled, error) {
		return Cancelled{s.CancelActive(p.Reason)}, nil
	}),
	define("session.cancel_run", "Ask a run to stop if it is the active one.", false, func(_ context.Context, s *session.Session, p RunID) (Cancelled, error) {
		return Cancelled{s.CancelRun(p.RunID)}, nil
	}),
	define("session.save", "Commit the session to its store as one snapshot. Without a store nothing happens.", true, func(ctx context.Context, s *session.Session, _ None) (None, error) {
		return None{}, s.Save(ctx)
	}),
	define("session.close", "Close the session. The handle stays valid for reading.", true, func(ctx context.Context, s *session.Session, _ None) (None, error) {
		ctx, cancel := context.WithTimeout(ctx, closeLimit)
		defer cancel()
		return None{}, s.Close(ctx)
	}),
	define("session.runs", "Give the runs that are kept, oldest first.", false, func(_ context.Context, s *session.Session, _ None) (Runs, error) {
		return Runs{s.Runs()}, nil
	}),
	define("session.run_snapshot", "Give one run, or null.", false, func(_ context.Context, s *session.Session, p RunID) (MaybeRun, error) {
		return maybe(s.RunSnapshot(p.RunID)), nil
	}),
	define("session.run_events", "Give the kept events of a run; none for an unknown run.", false, func(_ context.Context, s *session.Session, p RunID) (Events, error) {
		return Events{s.RunEvents(p.RunID)}, nil
	}),
	define("session.run_event_page", "Give a part of a run's kept events, or null for an unknown run.", false, page),
	define("session.current_run", "Give the active run, or null.", false, func(_ context.Context, s *session.Session, _ None) (MaybeRun, error) {
		return maybe(s.Current()), nil
	}),
	define("session.active_tools", "Give the tool calls that run now, oldest first.", false, func(_ context.Context, s *session.Session, _ None) (ActiveTools, error) {
		return ActiveTools{s.ActiveTools()}, nil
	}),
	define("session.history", "Give the transcript.", false, func(_ context.Context, s *session.Session, _ None) (Messages, error) {
		return Messages{s.History()}, nil
	}),
	define("session.get_artifact", "Give an artifact by URI, or null.", true, func(ctx context.Context, s *session.Session, p URI) (MaybeArtifact, error) {
		a, ok, err := s.Artifact(ctx, p.URI)
		if !ok || err != nil {
			return MaybeArtifact{}, err
		}
		return MaybeArtifact{&a}, nil
	}),
	define("session.pending_confirmations", "Give the open questions.", false, func(_ context.Context, s *session.Session, _ None) (PendingConfirmations, error) {
		return PendingConfirmations{s.Pending()}, nil
	}),
	define("session.confirm_tool_use", "Answer a question. Exactly one answer counts; a late one is stale.", false, func(_ context.Context, s *session.Session, p Confirm) (Confirmed, error) {
		status := s.Confirm(p.ToolID, *p.Approved, p.Reason)
		return Confirmed{status == session.AnswerAccepted, status}, nil
	}),
	define("session.cancel_confirmations", "Reject every open question and count them.", false, func(_ context.Context, s *session.Session, p Reason) (Count, error) {
		reason := p.Reason
		if reason == "" {
			reason = "withdrawn by the host"
		}
		return Count{s.CancelConfirmations(reason)}, nil
	}),
	define("session.tool", "Run a tool for the host itself, beside any run: rules and questions are skipped. A failing tool is a result.", true, func(ctx context.Context, s *session.Session, p ToolCall) (session.ToolResult, error) {
		return s.Tool(ctx, p.Name, p.Args)
	}),
	define("session.tool_names", "Give the names of all tools, sorted.", false, func(_ context.Context, s *session.Session, _ None) (Names, error) {
		return Names{s.ToolNames()}, nil
	}),
	define("session.tool_definitions", "Give name, description and parameters of all tools, sorted by name.", false, func(_ context.Context, s *session.Session, _ None) (ToolDefinitions, error) {
		return ToolDefinitions{s.ToolDefinitions()}, nil
	}),
	define("session.list_commands", "Give the slash commands, sorted by name.", false, func(_ context.Context, s *session.Session, _ None) (Commands, error) {
		return Commands{s.Commands()}, nil
	}),
	define("session.trace_events", "Give the summaries of tool executions, oldest first.", false, func(_ context.Context, s *session.Session, _ None) (Traces, error) {
		return Traces{s.Traces()}, nil
	}),
}

var runOps = []Op{
	define("run.info", "Give the run.", false, func(_ context.Context, r *session.Run, _ None) (MaybeRun, error) {
		return maybe(r.Session().RunSnapshot(r.ID())), nil
	}),
}

func maybe(r record.RunSnapshot, ok bool) MaybeRun {
	if !ok {
		return MaybeRun{}
	}
	return MaybeRun{&r}
}

// send is run_start and run_wait in one. When ctx ends the run is cancelled and waited
// for: nothing goes on behind the caller's back (S8).
func send(ctx context.Context, s *session.Session, p RunStart) (session.Result, error) {
	r, err := s.Start(p.prompt())
	if err != nil {
		return session.Result{}, err
	}
	result, err := r.Wait(ctx)
	if ctx.Err() == nil {
		return result, err
	}
	r.Cancel("the call was given up")
	return r.Wait(context.WithoutCancel(ctx))
}

func page(_ context.Context, s *session.Session, p PageOf) (MaybePage, error) {
	limit := defaultPage
	if p.Limit != nil {
		limit = *p.Limit
	}
	if limit < 1 {
		return MaybePage{}, badField("session.run_event_page", "limit", "must be at least 1, got %d", limit)
	}
	if p.AfterSequence != nil && *p.AfterSequence < 0 {
		return MaybePage{}, badField("session.run_event_page", "after_sequence", "must not be negative, got %d", *p.AfterSequence)
	}
	pg, ok := s.RunEventPage(p.RunID, p.AfterSequence, limit)
	if !ok {
		return MaybePage{}, nil
	}
	return MaybePage{&pg}, nil
}

func (e Events) appendJSON(dst []byte) []byte {
	size := 16
	for _, raw := range e.Events {
		size += len(raw) + 1
	}
	dst = append(slices.Grow(dst, size), `{"events":[`...)
	for i, raw := range e.Events {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, raw...)
	}
	return append(dst, "]}"...)
}
