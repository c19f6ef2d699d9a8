package event

import (
	"encoding/json"
	"strings"
	"testing"
)

// A byte that needs care is put at every place of texts around the eights in which
// plain bytes are skipped; what comes out must mean the same to encoding/json.
func TestAppendString(t *testing.T) {
	special := []string{"", `"`, `\`, "\n", "\r", "\t", "\x00", "\x1f", " ", "\x7f", "!", "#", "[", "]", "\u00e9", "\u2028", "\U0001f600", "\xff", "\xc3", "\x80"}
	for _, sp := range special {
		for before := range 18 {
			for after := range 18 {
				s := strings.Repeat("a", before) + sp + strings.Repeat("b", after)
				got := AppendString([]byte("x"), s)
				var back string
				if err := json.Unmarshal(got[1:], &back); err != nil {
					t.Fatalf("%q gives %s: %v", s, got[1:], err)
				}
				if want := strings.ToValidUTF8(s, "\ufffd"); back != want {
					t.Fatalf("%q gives %q, want %q", s, back, want)
				}
			}
		}
	}
}

func BenchmarkAppendDelta(b *testing.B) {
	m := Metadata{RunID: "run-0190a3f0-0000-7000-8000-000000000000", SessionID: "0190a3f0-0000-7000-8000-000000000000", Sequence: 1234, TimestampMS: 1700000000000}
	var p Payload = TextDelta{Text: "nineteen-byte-words "}
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if buf, err = Append(buf[:0], p, m); err != nil {
			b.Fatal(err)
		}
	}
}
