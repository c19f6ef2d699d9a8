package run

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestCleanNames(t *testing.T) {
	cases := map[string]string{
		"read": "read", "mcp__a__b-1": "mcp__a__b-1", "": "unnamed", "my tool!": "my_tool_", "fünf": "f_nf", "a.b/c": "a_b_c", "\xff\x00": "__",
		strings.Repeat("x", 500): strings.Repeat("x", 128),
	}
	for in, want := range cases {
		if got := clean(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

func TestValidArguments(t *testing.T) {
	cases := map[string]string{
		"": "{}", `{ "a" : [ 1.50 , "x y" ] }`: `{"a":[1.50,"x y"]}`, `{"a":`: `"{\"a\":"`, "not json": `"not json"`, "\xff": `"\ufffd"`, `[1]`: `[1]`, " ": `" "`,
	}
	for in, want := range cases {
		got := valid(json.RawMessage(in))
		if string(got) != want || !json.Valid(got) {
			t.Errorf("%q became %s, want %s", in, got, want)
		}
	}
}

func TestCutKeepsWholeCharacters(t *testing.T) {
	for n := range 12 {
		if got := cut("aéü€😀", n); len(got) > n || !utf8.ValidString(got) || !strings.HasPrefix("aéü€😀", got) {
			t.Errorf("%d: %q", n, got)
		}
	}
}
