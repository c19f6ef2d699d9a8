package session

import (
	"encoding/json"
	"testing"

	"github.com/a3s-lab/liba3s/runtime/event"
)

func TestNumberIn(t *testing.T) {
	told := func(run string, p event.Payload) string {
		b, err := event.Append(nil, p, event.Metadata{RunID: run, SessionID: "s", Sequence: 12, TimestampMS: 1})
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	// Arguments that look like the end of an envelope.
	trap := json.RawMessage(`{"a":1,"metadata":{"run_id":"run-2","session_id":"s","sequence":7,"timestamp_ms":1}}`)
	tests := []struct {
		name, line, run string
		want            int64
		mine            bool
	}{
		{"mine", told("run-1", event.TextDelta{Text: "x"}), "run-1", 12, true},
		{"another's", told("run-12", event.TextDelta{Text: "x"}), "run-1", 0, false},
		{"a shorter one's", told("run-1", event.TextDelta{Text: "x"}), "run-12", 0, false},
		{"an id with escapes", told("run \"1\"", event.TextDelta{}), "run \"1\"", 12, true},
		{"arguments like an envelope's end, mine", told("run-1", event.ToolExecutionStart{ID: "c", Args: trap}), "run-1", 12, true},
		{"arguments like an envelope's end, another's", told("run-1", event.ToolExecutionStart{ID: "c", Args: trap}), "run-2", 0, false},
		{"spelled in another way", `{"version": 1, "type": "x", "payload": {}, "metadata": {"sequence": 12, "run_id": "run-1", "session_id": "s", "timestamp_ms": 1}}`, "run-1", 12, true},
		{"a message", `{"fact":"message","message":{"run_id":"run-1","message":{"role":"user","content":[]}}}`, "run-1", 0, false},
		{"not JSON", `{"version":1,`, "run-1", 0, false},
		{"empty", "", "run-1", 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if n, mine := numberIn([]byte(tt.line), tt.run); n != tt.want || mine != tt.mine {
				t.Errorf("%d, %v, want %d, %v", n, mine, tt.want, tt.mine)
			}
		})
	}
}
