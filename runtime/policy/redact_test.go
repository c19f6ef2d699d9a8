package policy

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// encoded writes s as the inside of a JSON string.
func encoded(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b[1 : len(b)-1])
}

func TestRedactor(t *testing.T) {
	r := NewRedactor([]string{"sk-secret-1", "sk-secret-12345", "pa\"ss<word", "geheimß😀x", "short", " padded-key\n", "line1\nline2", "nabcdef", "ends-with-\\"})
	every := ""
	for _, c := range "sk-secret-1" {
		every += fmt.Sprintf(`\u%04x`, c)
	}
	tests := []struct{ name, text, want string }{
		{"nothing", "a plain text", "a plain text"},
		{"one", "key=sk-secret-1;", "key=[REDACTED];"},
		{"the longer of two", "key=sk-secret-12345.", "key=[REDACTED]."},
		{"the shorter of two", "key=sk-secret-1234.", "key=[REDACTED]234."},
		{"two in a row", "sk-secret-1sk-secret-1", "[REDACTED][REDACTED]"},
		{"all of it", "sk-secret-1", "[REDACTED]"},
		{"too short to be one", "short", "short"},
		{"padded", "x padded-key\ny", "x[REDACTED]y"},
		{"padded, without blanks", "x padded-key y", "x [REDACTED] y"},
		{"over lines", "line1\nline2", "[REDACTED]"},
		{"JSON", `{"k":"` + encoded("a pa\"ss<word b") + `"}`, `{"k":"a [REDACTED] b"}`},
		{"JSON without HTML escapes", `{"k":"pa\"ss<word"}`, `{"k":"[REDACTED]"}`},
		{"JSON with every character escaped", `{"k":"` + every + `"}`, `{"k":"[REDACTED]"}`},
		{"JSON with upper-case escapes of two words", `"geheim\u00DF\uD83D\uDE00x"`, `"[REDACTED]"`},
		{"JSON in JSON", encoded(`{"k":"` + encoded("pa\"ss<word") + `"}`), encoded(`{"k":"[REDACTED]"}`)},
		{"JSON in JSON in JSON", encoded(encoded(encoded("pa\"ss<word"))), "[REDACTED]"},
		{"an escape is replaced whole", `{"k":"a\nabcdef"}`, `{"k":"a[REDACTED]"}`},
		{"an escape at the end too", `{"k":"ends-with-\n"}`, `{"k":"[REDACTED]"}`},
		{"no escape", `C:\xsk-secret-1`, `C:\x[REDACTED]`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := r.String(tt.text); got != tt.want {
				t.Errorf("String: got %q, want %q", got, tt.want)
			}
			if got := string(r.Bytes([]byte(tt.text))); got != tt.want {
				t.Errorf("Bytes: got %q, want %q", got, tt.want)
			}
			if json.Valid([]byte(tt.text)) && !json.Valid([]byte(tt.want)) {
				t.Errorf("%q is no JSON any more", tt.want)
			}
			for n := range len(tt.text) {
				s := r.Stream()
				if got := s.Push(tt.text[:n]) + s.Push(tt.text[n:]) + s.Flush(); got != tt.want {
					t.Errorf("stream split at %d: got %q, want %q", n, got, tt.want)
				}
			}
		})
	}
}

func TestRedactorWithoutSecrets(t *testing.T) {
	r := NewRedactor([]string{"", "abc"})
	s := r.Stream()
	b := []byte("abcdef")
	if r != nil || r.String("abcdef") != "abcdef" || &r.Bytes(b)[0] != &b[0] || s.Push("abc")+s.Flush() != "abc" {
		t.Error("a redactor without secrets changes text")
	}
	if n := testing.AllocsPerRun(10, func() { r.String("abcdef"); r.Bytes(b) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	some := NewRedactor([]string{"sk-secret-1"})
	if n := testing.AllocsPerRun(10, func() { some.String("nothing to see here"); some.Bytes(b) }); n != 0 {
		t.Errorf("%v allocations for a text without secrets", n)
	}
}

func TestStreamHoldsBackNoMoreThanNeeded(t *testing.T) {
	s := NewRedactor([]string{"sk-secret-1"}).Stream()
	for _, step := range []struct{ push, want string }{
		{"hello ", "hello "}, {"sk", ""}, {"-se", ""}, {"nd", "sk-send"}, {` \u00`, " "}, {"41", `\u0041`},
		{"sk-secret-1", "[REDACTED]"}, {".", "."},
	} {
		if got := s.Push(step.push); got != step.want {
			t.Errorf("Push(%q) = %q, want %q", step.push, got, step.want)
		}
	}
	if got := s.Push("sk-") + "|" + s.Flush() + "|" + s.Flush(); got != "|sk-|" {
		t.Errorf("the end: %q", got)
	}
}

func FuzzStream(f *testing.F) {
	for _, s := range []string{"aababa|xxaababaab", "a\\nb\"cc|a\\\\nb\\\"cc", "abcabc|abcabcabcabc", `\u0061bcdef|\\u0061bcdef\`, "aaaaaa|aaaaaaaaaaaaaaa", `\ud83d\ude00aaaa|\\ud83d\\ude00aaaa`} {
		secret, text, _ := strings.Cut(s, "|")
		f.Add(secret, text, uint64(0x9e3779b97f4a7c15))
		f.Add(text, secret+text, uint64(7))
	}
	f.Fuzz(func(t *testing.T, secret, text string, cuts uint64) {
		if len(secret) > 40 || len(text) > 400 {
			return
		}
		secrets := []string{secret, secret[len(secret)/2:] + secret[:len(secret)/2], "aabaab", "baabaa\\", `\"nn\"n`}
		r := NewRedactor(secrets)
		for _, whole := range []string{text, text + secret + text, text + encoded(secret) + text, encoded(encoded(text + secret))} {
			want := r.String(whole)
			s := r.Stream()
			var got strings.Builder
			rest := whole
			for c := cuts; len(rest) > 0; c = c>>3 | c<<61 {
				n := min(int(c&7), len(rest))
				got.WriteString(s.Push(rest[:n]))
				rest = rest[n:]
				if c == 0 {
					break
				}
			}
			got.WriteString(s.Push(rest))
			got.WriteString(s.Flush())
			if got.String() != want {
				t.Fatalf("secrets %q, text %q: the stream gives\n%q, the whole\n%q", secrets, whole, got.String(), want)
			}
		}
		if got := r.String(secret); len(secret) >= minSecret && strings.Contains(got, secret) && !strings.Contains(Redacted, secret) {
			t.Fatalf("%q is still there: %q", secret, got)
		}
		inside := r.String(`{"k":"` + encoded(secret) + `"}`)
		if !json.Valid([]byte(inside)) {
			return // a secret may look like the text around it
		}
		var v struct{ K string }
		if json.Unmarshal([]byte(inside), &v) == nil && len(secret) >= minSecret && v.K == secret && strings.ToValidUTF8(secret, "\ufffd") == secret {
			t.Fatalf("%q is still inside %q", secret, inside)
		}
	})
}

func manySecrets() []string {
	var secrets []string
	for i := range 100 {
		secrets = append(secrets, fmt.Sprintf("sk-%03d-%s", i*7%100, strings.Repeat("k9", 18)))
	}
	return secrets
}

func BenchmarkRedact(b *testing.B) {
	text := strings.Repeat("the quick brown fox asks for a skirt of sk-yblue; ", 2048)
	lines := strings.ReplaceAll(text, "; ", `;\n`)
	for _, bb := range []struct {
		name    string
		secrets []string
		text    string
	}{{"none", nil, text}, {"1", manySecrets()[:1], text}, {"100", manySecrets(), text}, {"100-escaped", manySecrets(), lines}} {
		b.Run(bb.name, func(b *testing.B) {
			r := NewRedactor(bb.secrets)
			b.SetBytes(int64(len(bb.text)))
			for b.Loop() {
				r.String(bb.text)
			}
		})
	}
}

func BenchmarkRedactDeltas(b *testing.B) {
	s := NewRedactor(manySecrets()).Stream()
	for b.Loop() {
		s.Push("a few words of text\n")
	}
}
