package schema

import (
	"encoding/json"
	"strings"
	"testing"
)

func BenchmarkCheck(b *testing.B) {
	for name, text := range map[string]string{
		"strings": `{"content":"` + strings.Repeat("some text of a file\\n", 50_000) + `"}`,
		"values":  `[` + strings.Repeat(`{"a":1.5,"b":[true,null]},`, 40_000) + `0]`,
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if err := Request.Check([]byte(text)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkValidate(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if err := Validate(json.RawMessage(person), json.RawMessage(`{"name":"n","age":3}`)); err != nil {
			b.Fatal(err)
		}
	}
}
