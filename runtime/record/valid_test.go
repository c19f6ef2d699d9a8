package record

import (
	"encoding/json"
	"strings"
	"testing"
)

func FuzzValidJSON(f *testing.F) {
	for _, s := range []string{
		``, ` `, `null`, `nul`, `true`, `false `, ` [ ] `, `{}`, `{"a":1,"b":[2,{"c":null}]}`, `{"a":1,}`, `[1,]`, `[,1]`, `{"a"}`, `{"a":}`, `{a:1}`,
		`0`, `-0`, `00`, `01`, `-`, `1.`, `.1`, `1.5e+10`, `1e`, `1e+`, `+1`, `"a`, `"\u00e9\ud83d"`, `"\u00g0"`, `"\x"`, "\"\n\"", "\"\x7f\xff\"", `"\`, `1 2`, `{} {}`,
		strings.Repeat("[", 100) + strings.Repeat("]", 100), `"\"\\\/\b\f\n\r\t"`, `{"a" : 1 , "a":2}`, "\t[\n1\r, 2 ]",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if got, want := validJSON(b), json.Valid(b); got != want && !(want && strings.Count(string(b), "[")+strings.Count(string(b), "{") > maxPlainDepth) {
			t.Errorf("%q: got %v, want %v", b, got, want)
		}
	})
}
