package schema

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

const person = `{"type":"object","additionalProperties":false,"required":["name"],"properties":{
	"name":{"type":"string","minLength":1},
	"age":{"type":"integer","minimum":0},
	"a/b":{"type":"array","items":{"type":"boolean"},"maxItems":3},
	"kind":{"enum":["x","y"]}}}`

func TestValidate(t *testing.T) {
	for _, c := range []struct{ name, args, want string }{
		{"good", `{"name":"n","age":3}`, ""},
		{"integral float", `{"name":"n","age":3.0}`, ""},
		{"missing", `{}`, `$: missing property 'name'`},
		{"unknown", `{"name":"n","nmae":1}`, `$: additional properties 'nmae' not allowed`},
		{"two", `{"name":"","age":-1}`, `/age: minimum: got -1, want 0; /name: minLength: got 0, want 1`},
		{"pointer", `{"name":"n","a/b":[true,1]}`, `/a~1b/1: got number, want boolean`},
		{"enum", `{"name":"n","kind":"z"}`, `/kind: value must be one of 'x', 'y'`},
		{"last key wins", `{"name":1,"name":"n"}`, ""},
		{"last key loses", `{"name":"n","name":1}`, `/name: got number, want string`},
		{"JSON-04 empty", ``, `$: not JSON: empty text`},
		{"JSON-04 cut", `{"name":"n`, `$: not JSON: unexpected EOF`},
		{"JSON-04 two values", `{"name":"n"}{}`, `$: not JSON: text after the JSON value`},
		{"array", `[]`, `$: the arguments must be a JSON object`},
		{"null", `null`, `$: the arguments must be a JSON object`},
		{"not UTF-8", "{\"name\":\"\xff\"}", `$: invalid UTF-8 at byte 9`},
		{"deep", strings.Repeat("[", 65), `$: JSON nested deeper than 64 at byte 64`},
		{"huge exponent", `{"name":"n","age":1e9999}`, `$: number at byte 18 is beyond any use`},
		{"long number", `{"name":"n","age":` + strings.Repeat("9", 400) + `}`, `$: number at byte 18 is beyond any use`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := said(Validate(json.RawMessage(person), json.RawMessage(c.args)))
			if c.name == "two" && strings.HasPrefix(got, "/name") { // the order of properties is open
				parts := strings.Split(got, "; ")
				got = parts[1] + "; " + parts[0]
			}
			if got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func said(err error) string {
	if err == nil {
		return ""
	}
	return fault.From("", err).Message
}

func TestValidateBounds(t *testing.T) {
	var args strings.Builder
	args.WriteString(`{"name":"n"`)
	for i := range 40 {
		fmt.Fprintf(&args, `,"%s%d":%d`, strings.Repeat("é", 400), i, i)
	}
	args.WriteString("}")
	got := said(Validate(json.RawMessage(person), json.RawMessage(args.String())))
	if len(got) > maxProblem || !utf8.ValidString(got) || !strings.HasSuffix(got, "...") {
		t.Errorf("one problem of %d bytes: %q", len(got), got)
	}
	many := `{"type":"object","additionalProperties":{"type":"string"}}`
	args.Reset()
	args.WriteString(`{"k":0`)
	for i := range 40 {
		fmt.Fprintf(&args, `,"%s%d":%d`, strings.Repeat("é", 400), i, i)
	}
	args.WriteString("}")
	got = said(Validate(json.RawMessage(many), json.RawMessage(args.String())))
	if n := strings.Count(got, "; ") + 1; n > maxProblems || len(got) > maxMessage || !utf8.ValidString(got) {
		t.Errorf("%d problems, %d bytes", n, len(got))
	}
}

func TestCompile(t *testing.T) {
	for _, c := range []struct{ name, schema, want string }{
		{"empty", `{}`, ""},
		{"older draft", `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object"}`, ""},
		{"inner reference", `{"$defs":{"a":{"type":"string"}},"properties":{"x":{"$ref":"#/$defs/a"}}}`, ""},
		{"remote", `{"$ref":"http://127.0.0.1:1/x.json"}`, "schemas are not loaded from elsewhere"},
		{"file", `{"$ref":"file:///etc/passwd"}`, "schemas are not loaded from elsewhere"},
		{"wrong keyword", `{"type":"objekt"}`, "no schema of draft 2020-12: /type: value must be one of"},
		{"not JSON", `{`, "schema is not JSON: unexpected EOF"},
		{"too big", `{"description":"` + strings.Repeat("x", MaxSchema) + `"}`, "the limit is 262144"},
		{"bad pattern", `{"pattern":"(?=x)"}`, "not valid regex"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Compile(json.RawMessage(c.schema))
			if got := said(err); !strings.Contains(got, c.want) || (c.want == "") != (err == nil) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	a, _ := Compile(json.RawMessage(person))
	b, _ := Compile(json.RawMessage(person))
	if a != b {
		t.Error("compiled twice")
	}
}

func TestDepthIsCheap(t *testing.T) {
	deep := []byte(strings.Repeat("[", 1_000_000) + strings.Repeat("]", 1_000_000))
	start := time.Now()
	if err := Depth(deep, 64); err == nil {
		t.Error("accepted")
	}
	if err := Depth(deep, 1_000_000); err != nil {
		t.Error(err)
	}
	if err := Validate(json.RawMessage(`{}`), deep); err == nil {
		t.Error("accepted")
	}
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("took %v", d)
	}
}

func TestBounds(t *testing.T) {
	b := Bounds{Size: 40, Depth: 2, Values: 5, NoNUL: true}
	for _, c := range []struct{ name, text, want string }{
		{"good", `{"a":["\\u0000",1.5e3]}`, ""},
		{"brackets in strings", `"[[[[[[\"[[["`, ""},
		{"size", strings.Repeat(" ", 41), "41 bytes of JSON, the limit is 40"},
		{"depth", `[[[`, "JSON nested deeper than 2 at byte 2"},
		{"values", `[1,2,3,4,5,6]`, "more than 5 JSON values"},
		{"raw NUL", "\"\x00\"", "NUL at byte 1"},
		{"NUL outside", "\x00", "NUL at byte 0"},
		{"escaped NUL", `"a\u0000"`, "NUL at byte 2"},
		{"UTF-8", "\"ab\xe2\x82\"", "invalid UTF-8 at byte 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := said(b.Check([]byte(c.text))); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// FuzzCheck holds the scanner against the decoder: what is within the bounds by one is
// within the bounds by the other.
func FuzzCheck(f *testing.F) {
	for _, s := range []string{`{"a":[1,2,{"b":null}]}`, `"\u0000"`, `[[[[]]]]`, `-1.5e-7`, "\xff", `{"a`, `1e999999`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		err := Bounds{Size: 1 << 16, Depth: 8, NoNUL: true}.Check(text)
		_ = Validate(json.RawMessage(person), text)
		if err != nil || !json.Valid(text) {
			return
		}
		var v any
		if err := json.Unmarshal(text, &v); err != nil {
			return
		}
		if d := depth(v); d > 8 {
			t.Errorf("depth %d accepted", d)
		}
		if hasNUL(v) {
			t.Error("NUL accepted")
		}
	})
}

func depth(v any) int {
	d := 0
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			d = max(d, depth(e))
		}
	case map[string]any:
		for _, e := range v {
			d = max(d, depth(e))
		}
	default:
		return 0
	}
	return d + 1
}

func hasNUL(v any) bool {
	switch v := v.(type) {
	case string:
		return strings.Contains(v, "\x00")
	case []any:
		for _, e := range v {
			if hasNUL(e) {
				return true
			}
		}
	case map[string]any:
		for k, e := range v {
			if strings.Contains(k, "\x00") || hasNUL(e) {
				return true
			}
		}
	}
	return false
}
