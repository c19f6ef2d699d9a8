package schema

import (
	"strings"
	"testing"
)

func TestPlace(t *testing.T) {
	for text, want := range map[string]string{
		`{"prompt":"a^"}`: "prompt", `{"a":1,"b":{"c":[true,null,{"d":"^"}]}}`: "b.c[2].d", `{"a":["x","^"]}`: "a[1]",
		`{"a":[{"b":1},[2,"^"]]}`: "a[1][1]", `{"a":{},"b":[],"c":"^"}`: "c", `{"a":{"b":1,"^":2}}`: "a", `{"a":1}^`: "", `["^"]`: "[0]",
		`"^"`: "", `{"a":^`: "", `{]^`: "", `^`: "", `{"a":"\u00e9^"}`: "a", "{\"a\":1,\"b\":\"\xff^\"}": "b",
	} {
		if got := Place([]byte(text), strings.Index(text, "^")); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func FuzzPlace(f *testing.F) {
	f.Add([]byte(`{"a":[{"b":"c"}]}`), 12)
	f.Fuzz(func(_ *testing.T, text []byte, at int) { Place(text, at) })
}
