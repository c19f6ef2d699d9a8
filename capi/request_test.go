package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

func TestCheckJSON(t *testing.T) {
	tests := map[string]struct {
		in   string
		want string // part of the message; empty for fine
	}{
		"object":             {`{"a": [1, 2]}`, ""},
		"64 deep":            {strings.Repeat("[", 64) + strings.Repeat("]", 64), ""},
		"65 deep":            {strings.Repeat("[", 65) + strings.Repeat("]", 65), "deeper than 64"},
		"65 deep, mixed":     {strings.Repeat(`{"a":[`, 33), "deeper than 64"},
		"brackets in text":   {`"` + strings.Repeat("[", 100) + `"`, ""},
		"escaped quote":      {`"\"` + strings.Repeat("[", 100) + `"`, ""},
		"escaped backslash":  {`"\\"` + strings.Repeat("[", 100), "deeper than 64"},
		"wide, not deep":     {strings.Repeat("[],", 1000), ""},
		"invalid UTF-8":      {"{\"a\": \"\xff\"}", "not UTF-8"},
		"surrogate in UTF-8": {"\"\xed\xa0\x80\"", "not UTF-8"},
		"NUL":                {"{\x00}", "NUL byte at offset 1"},
		"escaped NUL":        {`"\u0000"`, ""},
		"text cut in escape": {`"\`, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			err := checkJSON("params", []byte(tt.in))
			if tt.want == "" {
				if err != nil {
					t.Errorf("got %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) || fault.From("", err).Code != fault.CodeInvalidRequest {
				t.Errorf("got %v, want %q with INVALID_REQUEST", err, tt.want)
			}
		})
	}
	if err := checkText("params", make([]byte, 11), 10); err == nil || !strings.Contains(err.Error(), "more than 10 bytes") {
		t.Errorf("too long: got %v", err)
	}
}

// What passes the check and is JSON must be harmless to any decoder.
func FuzzCheckJSON(f *testing.F) {
	for _, s := range []string{`{}`, `{"a":"\"[{"}`, "\"\xff\"", "[[[[", `"\\"]`, "{\x00}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		err := checkJSON("params", in)
		if err == nil && (!utf8.Valid(in) || bytes.IndexByte(in, 0) >= 0) {
			t.Fatal("accepted a text that is no text")
		}
		if !json.Valid(in) {
			return
		}
		if d := depth(in); (d > maxDepth) != (err != nil && strings.Contains(err.Error(), "deeper")) && utf8.Valid(in) {
			t.Fatalf("depth %d, error %v", d, err)
		}
	})
}

// depth counts with the decoder of the standard library.
func depth(in []byte) int {
	d := json.NewDecoder(bytes.NewReader(in))
	deepest, now := 0, 0
	for {
		tok, err := d.Token()
		if err != nil {
			return deepest
		}
		switch tok {
		case json.Delim('{'), json.Delim('['):
			now++
			deepest = max(deepest, now)
		case json.Delim('}'), json.Delim(']'):
			now--
		}
	}
}
