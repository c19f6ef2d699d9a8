package session_test

import (
	"bytes"
	"testing"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

// A journal of whatever lines opens or is refused, and what opens has ended runs and no
// open call.
func FuzzLoad(f *testing.F) {
	end := `,"metadata":{"run_id":"r","session_id":"s","sequence":`
	start := `{"version":1,"type":"agent_start","payload":{"prompt":"x"}` + end + `0,"timestamp_ms":1}}`
	f.Add([]byte(start))
	f.Add([]byte(start + "\n" + `{"fact":"message","message":{"run_id":"r","message":{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"bash","input":{}}]}}}` + "\n" +
		`{"version":1,"type":"tool_execution_start","payload":{"id":"c","name":"bash","args":{}}` + end + `1,"timestamp_ms":1}}`))
	f.Add([]byte(start + "\n" + `{"version":1,"type":"tool_end","payload":{"id":"c","name":"bash","output":"x","exit_code":0}` + end + `1,"timestamp_ms":-5}}` + "\n" +
		`{"version":1,"type":"error","payload":{"message":"x","code":"CANCELLED"}` + end + `2,"timestamp_ms":1}}`))
	f.Add([]byte(`{"fact":"mark","mark":{"replace":{"count":-3,"with":null}}}` + "\n" + `{"fact":"mark","mark":{"session":{"id":"t"}}}`))
	f.Add([]byte(`{"fact":"mark","mark":{"artifact":{"artifact_id":"a","artifact_uri":"a3s://x","original_bytes":-1}}}`))
	f.Add([]byte(`{"fact":"message"}` + "\n" + `{"fact":"newer","x":1}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		st := memory(t)
		place := keep(t, st)
		if _, err := place.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		for line := range bytes.SplitSeq(text, []byte("\n")) {
			if len(line) == 0 {
				continue
			}
			if _, err := place.Session.Append(t.Context(), [][]byte{line}); err != nil {
				t.Fatal(err)
			}
		}
		if err := place.Close(); err != nil {
			t.Fatal(err)
		}
		left := keep(t, st)
		r, err := tryOpen(t, setup{kept: left, model: untouched(t)})
		if err != nil {
			_ = left.Close()
			if k := fault.KindOf(err); k != fault.Invalid {
				t.Errorf("%v", err)
			}
			return
		}
		for _, run := range r.Runs() {
			if !run.Status.Terminal() {
				t.Errorf("%+v", run)
			}
			r.RunEvents(run.ID)
		}
		r.History()
		if err := r.Save(t.Context()); err != nil {
			t.Errorf("what was loaded cannot be saved: %v", err)
		}
		if err := r.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
