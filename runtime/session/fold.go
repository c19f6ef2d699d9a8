package session

import (
	"encoding/json"
	"slices"

	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/record"
)

// traceSchema names the form of trace events.
const traceSchema = "a3s.trace_event.v1"

// fold is the state of a session: what its facts add up to, live and after a load
// alike. There is no second place where this truth is kept. The sequencer's
// view guards it.
type fold struct {
	messages  []chat.Message
	usage     chat.Usage
	turns     int
	lastUsed  int // prompt tokens of the latest model call
	runs      []*runLog
	byID      map[string]*runLog
	traces    []record.TraceEvent
	artifacts []record.Artifact // while it is loaded, oldest first; else nil
	data      *record.SessionData
}

func newFold() *fold { return &fold{byID: map[string]*runLog{}} }

// names gives the ids that are in use.
func (f *fold) names(taken func(string)) {
	for _, r := range f.runs {
		taken(r.snap.ID)
	}
	for _, m := range f.messages {
		for _, c := range m.Calls() {
			taken(c.ID)
		}
	}
}

func (f *fold) add(r *runLog) {
	f.runs = append(f.runs, r)
	f.byID[r.snap.ID] = r
}

// event folds one told event.
func (f *fold) event(r *runLog, p event.Payload, m event.Metadata) {
	r.next = m.Sequence + 1
	r.lastMS = m.TimestampMS
	r.snap.EventCount = r.next
	r.snap.UpdatedAtMS = max(r.snap.UpdatedAtMS, m.TimestampMS)
	switch e := p.(type) {
	case event.AgentStart:
		r.snap.Prompt, r.snap.CreatedAtMS = e.Prompt, m.TimestampMS
		r.status(record.Executing)
	case event.PlanningStart:
		r.planning = true
		r.status(record.Planning)
	case event.PlanningEnd:
		r.planning = false
	case event.TurnStart, event.ToolStart, event.StepStart:
		if !r.planning {
			r.status(record.Executing)
		}
	case event.ToolExecutionStart:
		r.started[e.ID] = startedOf(e, m.TimestampMS)
		r.active[e.ID] = chatActive{e.Name, m.TimestampMS}
	case event.ConfirmationRequired:
		r.questions[e.ToolID] = chat.Call{ID: e.ToolID, Name: e.ToolName, Args: e.Args}
	case event.ConfirmationReceived:
		delete(r.questions, e.ToolID)
	case event.ConfirmationTimeout:
		delete(r.questions, e.ToolID)
	case event.ToolEnd:
		f.toolEnd(r, e, m)
	case event.TurnEnd:
		r.usage = r.usage.Add(e.Usage)
		f.usage = f.usage.Add(e.Usage)
		f.turns++
		f.lastUsed = e.Usage.PromptTokens
	case event.AgentEnd:
		r.end(record.Completed, e.Text, "", p)
	case event.Error:
		status := record.Failed
		if e.Code == fault.CodeCancelled {
			status = record.Cancelled
		}
		r.end(status, "", e.Message, p)
	}
}

func startedOf(e event.ToolExecutionStart, ms int64) startedCall {
	return startedCall{call: chat.Call{ID: e.ID, Name: e.Name, Args: e.Args}, readOnly: e.ReadOnly, atMS: ms}
}

// toolEnd derives the tool message: output is kept once, in the event (S22).
func (f *fold) toolEnd(r *runLog, e event.ToolEnd, m event.Metadata) {
	delete(r.active, e.ID)
	started, ran := r.started[e.ID]
	delete(r.started, e.ID)
	if ran {
		r.calls++
		f.traces = append(f.traces, traceOf(e, m.TimestampMS-started.atMS))
	}
	i := slices.IndexFunc(r.open, func(c chat.Call) bool { return c.ID == e.ID })
	if i < 0 {
		return // a nested call: its outer call answers the model
	}
	r.open = slices.Delete(r.open, i, i+1)
	if r.isolated {
		return
	}
	f.messages = chat.Answer(f.messages, e.ID, e.Output, e.ExitCode != 0)
}

func traceOf(e event.ToolEnd, ms int64) record.TraceEvent {
	t := record.TraceEvent{
		Schema: traceSchema, Kind: "tool_execution", Name: e.Name, Success: e.ExitCode == 0, ExitCode: e.ExitCode,
		DurationMS: ms, OutputBytes: int64(len(e.Output)), MetadataKeys: []string{}, ArtifactURIs: []string{},
	}
	for k := range e.Metadata {
		t.MetadataKeys = append(t.MetadataKeys, k)
	}
	slices.Sort(t.MetadataKeys)
	if a, ok := e.Metadata["artifact"].(map[string]any); ok {
		if uri, ok := a["artifact_uri"].(string); ok {
			t.ArtifactURIs = append(t.ArtifactURIs, uri)
		}
	}
	return t
}

// message folds a message of the transcript.
func (f *fold) message(r *runLog, m record.Message) {
	if r != nil {
		r.isolated = m.Isolated
		if m.Message.Role == chat.Assistant && !m.Message.Partial {
			r.open = m.Message.Calls()
		}
	}
	if !m.Isolated {
		f.messages = append(f.messages, m.Message)
	}
}

// mark folds any other fact.
func (f *fold) mark(m record.Mark) {
	switch {
	case m.Session != nil:
		f.data = m.Session
	case m.Replace != nil:
		n := min(max(0, m.Replace.Count), len(f.messages))
		f.messages = slices.Concat(m.Replace.With, f.messages[n:])
	case m.Artifact != nil && f.artifacts != nil:
		f.artifacts = append(f.artifacts, *m.Artifact)
	case m.Trace != nil:
		f.traces = append(f.traces, *m.Trace)
	}
}

// line folds one decoded line of a journal; what a newer version wrote is passed over.
func (f *fold) line(sid string, raw []byte, l record.Line) error {
	switch {
	case l.Event != nil:
		return f.stored(sid, raw, l.Event)
	case l.Message != nil:
		f.message(f.byID[l.Message.RunID], *l.Message)
	case l.Mark != nil:
		f.mark(*l.Mark)
	}
	return nil
}

// stored folds an event that was told before.
func (f *fold) stored(sid string, raw []byte, e *event.Envelope) error {
	m := *e.Metadata
	if e.Type == "" || m.RunID == "" || m.Sequence < 0 {
		return fault.Of(fault.CodeSerialization, "session.load", "event %d of run %q has no type or no place", m.Sequence, m.RunID)
	}
	r := f.byID[m.RunID]
	if r == nil {
		r = newRunLog(m.RunID, sid, m.Sequence)
		f.add(r)
	}
	if m.Sequence != r.next {
		return fault.Of(fault.CodeSerialization, "session.load", "run %q: event %d follows %d", m.RunID, m.Sequence, r.next-1)
	}
	var p event.Payload // a delta adds nothing but its number: the message has the text again
	if !isDelta(e.Type) {
		var err error
		if p, err = event.Decode(e.Type, e.Payload); err != nil {
			return fault.Of(fault.CodeSerialization, "session.load", "run %q event %d: %v", m.RunID, m.Sequence, err)
		}
	}
	f.event(r, p, m)
	r.tape.Append(raw)
	if r.terminal != nil {
		r.tape.End()
	}
	return nil
}

func isDelta(name string) bool {
	switch name {
	case event.TextDelta{}.Type(), event.ReasoningDelta{}.Type(), event.ToolInputDelta{}.Type(), event.ToolOutputDelta{}.Type():
		return true
	}
	return false
}

// status moves a run on; the first terminal status wins.
func (r *runLog) status(s record.Status) {
	if !r.snap.Status.Terminal() {
		r.snap.Status = s
	}
}

func (r *runLog) end(s record.Status, text, failure string, p event.Payload) {
	if r.snap.Status.Terminal() {
		return
	}
	r.snap.Status, r.snap.ResultText, r.snap.Error = s, text, failure
	r.terminal = p
	clear(r.active)
}

// flat gives the event of an envelope in the form of the snapshot.
func flat(envelope []byte) (record.StoredEvent, error) {
	var e event.Envelope
	if err := json.Unmarshal(envelope, &e); err != nil {
		return record.StoredEvent{}, err
	}
	return record.Flatten(&e)
}
