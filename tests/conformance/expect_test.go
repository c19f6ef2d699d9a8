package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
)

// expectError compares how the play ended with want/error.
func (p *play) expectError(err error) error {
	text, wanted := p.sc.sections["want/error"]
	switch {
	case !wanted:
		return err
	case err == nil:
		return fmt.Errorf("nothing failed, want %s", strings.TrimSpace(text))
	}
	f := asFault(err)
	if f == nil || strings.HasPrefix(err.Error(), "step ") {
		return err
	}
	want, bad := parseFacts("error " + p.place.fill(strings.TrimSpace(text)))
	if bad != nil {
		return bad
	}
	got, bad := plain(f, nil)
	if bad != nil {
		return bad
	}
	if !want.fits(got.(map[string]any), []string{"code"}) {
		return fmt.Errorf("failed with %s, want %s", encode(got), strings.TrimSpace(text))
	}
	return nil
}

// ended checks what holds for every run, whatever the scenario is about, and keeps its
// events.
func (p *play) ended(run []any) error {
	events := make([]ev, len(run))
	for i, v := range run {
		e, err := eventOf(v)
		if err != nil {
			return err
		}
		events[i] = e
	}
	p.events = append(p.events, events...)
	if err := inOrder(events); err != nil {
		return err
	}
	id := fmt.Sprint(events[0].Metadata["run_id"])
	if err := p.recorded(id, events, run); err != nil {
		return err
	}
	if info, err := p.view("info"); err != nil || events[0].Metadata["session_id"] != info.(map[string]any)["session_id"] {
		return fmt.Errorf("the events are of session %v, %v", events[0].Metadata["session_id"], err)
	}
	now, err := p.session.call("current_run", map[string]any{})
	if err != nil || now != nil {
		return fmt.Errorf("a run is still active after the last event: %s, %v", short(now), err)
	}
	return nil
}

// inOrder checks numbers, times and the one terminal event.
func inOrder(events []ev) error {
	if len(events) == 0 {
		return fmt.Errorf("a run without events")
	}
	before := 0.0
	for i, e := range events {
		at, _ := e.Metadata["timestamp_ms"].(float64)
		terminal := e.Type == "agent_end" || e.Type == "error"
		switch {
		case e.Version != 1:
			return fmt.Errorf("event %d has version %d", i, e.Version)
		case e.Metadata["sequence"] != float64(i):
			return fmt.Errorf("event %d has number %v", i, e.Metadata["sequence"])
		case e.Metadata["run_id"] != events[0].Metadata["run_id"]:
			return fmt.Errorf("event %d is of another run", i)
		case at < before:
			return fmt.Errorf("event %d is older than the one before", i)
		case terminal != (i == len(events)-1):
			return fmt.Errorf("event %d of %d is %s", i, len(events), e.Type)
		}
		before = at
	}
	return nil
}

// recorded compares the run as it was told with its records.
func (p *play) recorded(id string, events []ev, told []any) error {
	kept, err := p.session.call("run_events", map[string]any{"run_id": id})
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(kept, any(told)) && len(kept.([]any)) >= len(told) { // fewer: retention let some go
		return fmt.Errorf("the recorded events differ from those told: %s", short(kept))
	}
	runs, err := p.view("runs")
	if err != nil {
		return err
	}
	last := events[len(events)-1]
	status := map[string]string{"agent_end": "completed", "error": "failed"}[last.Type]
	if last.Payload["code"] == "CANCELLED" {
		status = "cancelled"
	}
	for _, v := range runs.([]any) {
		r := v.(map[string]any)
		if r["id"] == id && (r["status"] != status || r["event_count"] != float64(len(events))) {
			return fmt.Errorf("after %d events, the last one %s, the run is %s", len(events), last.Type, short(r))
		}
	}
	return nil
}

// view gives what check and want/NAME.json look at.
func (p *play) view(name string) (any, error) {
	calls := map[string]string{"commands": "list_commands", "history": "history", "info": "info", "pending": "pending_confirmations", "runs": "runs", "tools": "tool_names", "traces": "trace_events"}
	switch name {
	case "sessions":
		return plain(p.agent().sessions(), nil)
	case "events":
		runs, err := p.view("runs")
		if err != nil {
			return nil, err
		}
		all := runs.([]any)
		if len(all) == 0 {
			return []any{}, nil
		}
		return p.session.call("run_events", map[string]any{"run_id": all[len(all)-1].(map[string]any)["id"]})
	}
	call, ok := calls[name]
	if !ok {
		return nil, fmt.Errorf("there is nothing called %q to look at", name)
	}
	return p.session.call(call, map[string]any{})
}

func (p *play) check(rest string) error {
	name, text, _ := strings.Cut(rest, " ")
	var want any
	if err := json.Unmarshal([]byte(text), &want); err != nil {
		return err
	}
	got, err := p.view(name)
	if err != nil {
		return err
	}
	if d := diff(got, want, name); d != "" {
		return errors.New(d)
	}
	return nil
}

// expectRest checks everything that the scenario wants at its end.
func (p *play) expectRest() error {
	if text, ok := p.sc.sections["want/events"]; ok {
		if err := compare(joined(p.events), p.place.fill(text)); err != nil {
			return err
		}
	}
	if text, ok := p.sc.sections["want/result.json"]; ok {
		var want any
		if err := json.Unmarshal([]byte(p.place.fill(text)), &want); err != nil {
			return fmt.Errorf("want/result.json: %v", err)
		}
		var got any = p.results
		if _, many := want.([]any); !many && len(p.results) > 0 {
			got = p.results[len(p.results)-1]
		}
		if d := diff(got, want, "result"); d != "" {
			return errors.New(d)
		}
	}
	for _, name := range views {
		if text, ok := p.sc.sections["want/"+name+".json"]; ok {
			if err := p.check(name + " " + p.place.fill(text)); err != nil {
				return err
			}
		}
	}
	want, err := p.sc.wantFiles(p.place)
	if err != nil {
		return err
	}
	for path, w := range want {
		if g := got(filepath.Join(p.place.workspace, path)); encode(g) != encode(w) {
			return fmt.Errorf("file %s is %s, want %s", path, short(g), short(w))
		}
	}
	return nil
}
