package policy

import (
	"bytes"
	"encoding/json"
	"testing"
)

func FuzzObject(f *testing.F) {
	for _, s := range []string{`{"a":1,"b":[{"a":"x"}]}`, `{"a":1,"a":2}`, `[1]`, `{} {}`, `{"a":`, "", "\xff", `{"\u0061":1,"a":2}`, `{"a":1e999}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		args, err := object(raw)
		if err != nil {
			return
		}
		var v map[string]json.RawMessage
		if err := json.Unmarshal(args, &v); err != nil {
			t.Fatalf("%q is taken for an object: %v", raw, err)
		}
		once, err := canonical(args)
		if err != nil {
			t.Fatalf("%q has no canonical form: %v", raw, err)
		}
		if twice, err := canonical(once); err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("%q: the canonical form %q has another: %q, %v", raw, once, twice, err)
		}
	})
}
