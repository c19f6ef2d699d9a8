package session_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/a3s-lab/liba3s/internal/tape"
	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/session"
)

// start begins a run.
func (r *rig) start(text string) *session.Run {
	r.t.Helper()
	x, err := r.Start(session.Prompt{Text: text})
	if err != nil {
		r.t.Fatal(err)
	}
	return x
}

// play runs a prompt to its end and gives everything it told, and how it failed.
func (r *rig) play(text string) ([]event.Envelope, error) {
	r.t.Helper()
	x := r.start(text)
	events := told(r.t, x)
	_, err := x.Wait(r.t.Context())
	return events, err
}

// told reads the events of a run to its end and checks what holds of every run: numbers
// from 0 without gap, times that do not fall, exactly one terminal event, the last.
func told(t *testing.T, x *session.Run) []event.Envelope {
	t.Helper()
	c := x.Stream(0)
	defer c.Close()
	events := drain(t, c)
	whole(t, events)
	return events
}

// whole checks the events of a run that has ended.
func whole(t *testing.T, events []event.Envelope) {
	t.Helper()
	at, ends := int64(0), 0
	for i, e := range events {
		if e.Metadata == nil || e.Metadata.Sequence != int64(i) {
			t.Fatalf("event %d is %s %+v", i, e.Type, e.Metadata)
		}
		if e.Metadata.TimestampMS < at {
			t.Fatalf("event %d is told at %d, after one at %d", i, e.Metadata.TimestampMS, at)
		}
		at = e.Metadata.TimestampMS
		if e.Type == "agent_end" || e.Type == "error" {
			ends++
		}
	}
	if n := len(events); ends != 1 || events[n-1].Type != "agent_end" && events[n-1].Type != "error" {
		t.Fatalf("%d terminal events in %v", ends, names(events))
	}
}

// drain reads a cursor to its end.
func drain(t *testing.T, c *tape.Cursor) []event.Envelope {
	t.Helper()
	var all []event.Envelope
	buf := make([]byte, 4<<10)
	for {
		n, needed, err := c.Next(context.Background(), 16, buf)
		switch fault.KindOf(err) {
		case fault.Buffer:
			buf = make([]byte, needed)
			continue
		case fault.End:
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, decode(t, buf[:n])...)
	}
}

func decode(t *testing.T, b []byte) []event.Envelope {
	t.Helper()
	var batch []event.Envelope
	if err := json.Unmarshal(b, &batch); err != nil {
		t.Fatalf("%q: %v", b, err)
	}
	return batch
}

// names gives the types of events.
func names(events []event.Envelope) []string {
	var all []string
	for _, e := range events {
		all = append(all, e.Type)
	}
	return all
}

// brief gives one line an event: its type and what tells it from others of that type.
// Runs of deltas of one type are one line.
func brief(t *testing.T, events []event.Envelope) []string {
	t.Helper()
	var all []string
	for _, e := range events {
		line := e.Type
		p, err := event.Decode(e.Type, e.Payload)
		if err != nil {
			t.Fatal(err)
		}
		switch p := p.(type) {
		case event.TextDelta, event.ReasoningDelta, event.ToolInputDelta, event.ToolOutputDelta:
			if n := len(all); n > 0 && all[n-1] == line {
				continue
			}
		case event.ToolStart:
			line += " " + p.Name
		case event.ToolExecutionStart:
			line += " " + p.Name
		case event.ToolEnd:
			line += " " + p.Name
			if p.ErrorKind != nil {
				line += " " + p.ErrorKind.Type
			}
		case event.ConfirmationRequired:
			line += " " + p.ToolName
		case event.ConfirmationReceived:
			line += fmt.Sprintf(" %v", p.Approved)
			if p.Reason != nil {
				line += " " + *p.Reason
			}
		case event.ConfirmationTimeout:
			line += " " + p.ActionTaken
		case event.PermissionDenied:
			line += " " + p.ToolName
		case event.Error:
			line += " " + string(p.Code)
		}
		all = append(all, line)
	}
	return all
}

// same compares lists and shows both.
func same[T comparable](t *testing.T, what string, got, want []T) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\ngot  %v\nwant %v", what, got, want)
	}
}

// isCode checks the code of an error.
func isCode(t *testing.T, err error, want fault.Code) {
	t.Helper()
	if f := fault.From("", err); f == nil || f.Code != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
