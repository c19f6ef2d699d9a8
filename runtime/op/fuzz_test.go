package op_test

import (
	"encoding/json"
	"testing"

	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/op"
)

// A request is decoded whole or refused with INVALID_REQUEST, whatever its bytes.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{``, `{}`, `null`, `{"name":"ls","args":{}}`, `{"name":"ls","args":[1,{"a":null}]}`, `{"name":1}`, `{"nome":"x"}`, `{"name":"a"}{"name":"b"}`, "{\"name\":\"\xff\"}", `{"name":"\u0000"}`,
		`{"prompt":"x","history":[{"role":"user","content":[{"type":"text","text":"y"}]}]}`, `{"prompt":"x","history":null}`, `{"run_id":"r","after_sequence":9223372036854775807,"limit":1e3}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, into := range []any{new(op.ToolCall), new(op.RunStart), new(op.PageOf), new(op.AgentOpen), new(op.SessionOpen), new(op.Confirm)} {
			err := op.Decode("fuzz", b, into)
			if err != nil {
				if e := fault.From("", err); e.Code != fault.CodeInvalidRequest {
					t.Errorf("%T: %v", into, err)
				}
				continue
			}
			if _, err := json.Marshal(into); err != nil {
				t.Errorf("%T: what was decoded cannot be encoded: %v", into, err)
			}
		}
	})
}
