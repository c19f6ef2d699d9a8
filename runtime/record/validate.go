package record

import (
	"bytes"
	"encoding/json"

	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/fault"
)

// SchemaVersion of the snapshot that is read and written.
const SchemaVersion = 1

// Validate checks what must hold of a snapshot of session id, on save and on load:
// SERIALIZATION_ERROR if the document itself is wrong, SESSION_ERROR if its parts do
// not belong together. Details "field" names the part.
func (s *Snapshot) Validate(id string) error {
	if s.SchemaVersion != SchemaVersion {
		return malformed("schema_version", "schema_version is %d, only %d can be read", s.SchemaVersion, SchemaVersion)
	}
	if s.Session.ID != id {
		return foreign("session.id", "it holds session %q, not %q", s.Session.ID, id)
	}
	seen := make(map[string]bool, len(s.RunRecords))
	for _, r := range s.RunRecords {
		if r.Snapshot.ID == "" {
			return malformed("run_records", "a run has no id")
		}
		if seen[r.Snapshot.ID] {
			return foreign("run_records", "run %q is there twice", r.Snapshot.ID)
		}
		seen[r.Snapshot.ID] = true
		if err := r.validate(id); err != nil {
			return err
		}
	}
	for _, t := range s.SubagentTasks {
		if t.ParentSessionID != "" && t.ParentSessionID != id {
			return foreign("subagent_tasks", "sub-agent task %q belongs to session %q", t.TaskID, t.ParentSessionID)
		}
	}
	return nil
}

func (r RunRecord) validate(id string) error {
	run := r.Snapshot.ID
	if r.Snapshot.SessionID != id {
		return foreign("run_records", "run %q belongs to session %q", run, r.Snapshot.SessionID)
	}
	if r.Snapshot.EventCount < 0 {
		return malformed("run_records", "run %q has event_count %d", run, r.Snapshot.EventCount)
	}
	last := int64(-1)
	for i, e := range r.Events {
		if e.Sequence <= last {
			return foreign("run_records", "run %q: event %d has sequence %d after %d", run, i, e.Sequence, last)
		}
		if b := bytes.TrimSpace(e.Event); len(b) == 0 || b[0] != '{' {
			return malformed("run_records", "run %q: event %d is not an object", run, e.Sequence)
		}
		last = e.Sequence
	}
	// Written without last+1, which would overflow for the largest number.
	if last >= r.Snapshot.EventCount {
		return foreign("run_records", "run %q has event_count %d, but keeps event %d", run, r.Snapshot.EventCount, last)
	}
	return nil
}

// Normalise puts empty lists in the place of missing ones, which readers of the
// format require.
func (s *Snapshot) Normalise() {
	fill(&s.Artifacts)
	fill(&s.TraceEvents)
	fill(&s.RunRecords)
	fill(&s.VerificationReports)
	fill(&s.SubagentTasks)
	fill(&s.Session.Messages)
	fill(&s.Session.CostRecords)
	fill(&s.Session.ToolNames)
	fill(&s.Session.Tasks)
	for i := range s.TraceEvents {
		fill(&s.TraceEvents[i].MetadataKeys)
		fill(&s.TraceEvents[i].ArtifactURIs)
	}
	for i := range s.RunRecords {
		fill(&s.RunRecords[i].Events)
	}
	for i := range s.Session.Messages {
		fill(&s.Session.Messages[i].Content)
	}
}

// normalised is Normalise on a copy of all that it may change, for a snapshot that the
// caller still owns.
func (s *Snapshot) normalised() *Snapshot {
	c := *s
	c.TraceEvents = append([]TraceEvent(nil), s.TraceEvents...)
	c.RunRecords = append([]RunRecord(nil), s.RunRecords...)
	c.Session.Messages = append([]chat.Message(nil), s.Session.Messages...)
	c.Normalise()
	return &c
}

func fill[T any](list *[]T) {
	if *list == nil {
		*list = []T{}
	}
}

// checkRaw names the first kept JSON text that is none: encoding/json would only say
// that something somewhere is wrong.
func (s *Snapshot) checkRaw() error {
	for i, m := range s.Session.Messages {
		for j, b := range m.Content {
			if len(b.Input) > 0 && !json.Valid(b.Input) {
				return malformed("session.messages", "message %d, block %d: the input of call %q is not JSON", i, j, b.ID)
			}
		}
	}
	for _, r := range s.RunRecords {
		for _, e := range r.Events {
			if !json.Valid(e.Event) {
				return malformed("run_records", "run %q: event %d is not JSON", r.Snapshot.ID, e.Sequence)
			}
		}
	}
	return nil
}

func malformed(field, format string, args ...any) *fault.Error {
	return fault.Of(fault.CodeSerialization, "record.validate", "snapshot: "+format, args...).With("field", field)
}

func foreign(field, format string, args ...any) *fault.Error {
	return fault.Of(fault.CodeSession, "record.validate", "snapshot: "+format, args...).WithKind(fault.Invalid).With("field", field)
}
