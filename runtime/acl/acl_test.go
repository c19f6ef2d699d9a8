package acl

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

// show writes a body in one line, so that tables can compare whole trees.
func show(b Body) string {
	var parts []string
	for _, item := range b {
		if a := item.Attribute; a != nil {
			parts = append(parts, a.Name+"="+showValue(a.Value))
			continue
		}
		s := item.Block.Name
		for _, l := range item.Block.Labels {
			s += fmt.Sprintf(" %q", l)
		}
		parts = append(parts, s+" {"+show(item.Block.Body)+"}")
	}
	return strings.Join(parts, "; ")
}

func showValue(v Value) string {
	list := func() string {
		var parts []string
		for _, e := range v.List {
			parts = append(parts, showValue(e))
		}
		return strings.Join(parts, ", ")
	}
	switch v.Kind {
	case String:
		if v.Bare {
			return "'" + v.Text
		}
		return fmt.Sprintf("%q", v.Text)
	case Number:
		return fmt.Sprintf("%g", v.Number)
	case Bool:
		return fmt.Sprint(v.Bool)
	case Null:
		return "null"
	case List:
		return "[" + list() + "]"
	case Call:
		return v.Text + "(" + list() + ")"
	}
	var parts []string
	for _, a := range v.Object {
		parts = append(parts, a.Name+"="+showValue(a.Value))
	}
	return "{" + strings.Join(parts, "; ") + "}"
}

func TestParse(t *testing.T) {
	tests := []struct {
		name, src, want string
		warnings        []string
	}{
		{name: "empty"},
		{name: "attributes", src: "a = 1\nb: 'x'\nc = true d = null e = word", want: `a=1; b="x"; c=true; d=null; e='word`},
		{name: "value on the next line", src: "a =\n\n 1", want: "a=1"},
		{name: "one line of models without a key",
			src:  `providers "ollama" { baseUrl = "http://127.0.0.1:11434" models "qwen3" { tool_call = true limit = { context = 32768 } } }`,
			want: `providers "ollama" {baseUrl="http://127.0.0.1:11434"; models "qwen3" {tool_call=true; limit={context=32768}}}`},
		{name: "script sample",
			src:  "default_model = \"script/main\"\nproviders \"script\" { models \"main\" { script = \"turns.txt\" } }\n",
			want: `default_model="script/main"; providers "script" {models "main" {script="turns.txt"}}`},
		{name: "labels repeat and the body opens on the next line", src: "item \"a\" 'b'\n\n{ x = 1 }\nitem \"c\" {}", want: `item "a" "b" {x=1}; item "c" {}`},
		{name: "comments", src: "# one\na = 1 // two\n// three\nb = 2 # four", want: "a=1; b=2"},
		{name: "a single slash comments, with a warning", src: "a = 1 /etc", want: "a=1",
			warnings: []string{"line 1, column 7: a single / starts a comment; put a path in quotes"}},
		{name: "double-quote escapes", src: `a = "\n\r\t\\\"\x"`, want: `a="\n\r\t\\\"\\x"`},
		{name: "single-quote escapes", src: `a = 'it\'s \n\\'`, want: `a="it's \\n\\\\"`},
		{name: "numbers", src: "a=-1.5 b=2e3 c=1E-2 d=0", want: "a=-1.5; b=2000; c=0.01; d=0"},
		{name: "lists", src: "a = [1, 'x'\n word, [true],]", want: `a=[1, "x", 'word, [true]]`},
		{name: "object with quoted names", src: `h = { "X-Token" = "t", plain: 1 }`, want: `h={X-Token="t"; plain=1}`},
		{name: "calls", src: `a = env("KEY") b = concat("x",` + "\n" + `env('Y'),)`, want: `a=env("KEY"); b=concat("x", env("Y"))`},
		{name: "block in the place of a value", src: `a = thing "l" { x = 1 }`, want: `a={_block={name="thing"; labels=["l"]; attributes={x=1}}}`},
		{name: "bare word before a block", src: "a = word\nb \"l\" {}", want: `a='word; b "l" {}`},
		{name: "blocks in objects are dropped, with a warning", src: "a = { b = 1 c { d = 2 } }", want: "a={b=1}",
			warnings: []string{`line 1, column 13: block "c" inside an object value is ignored; write c = { ... }`}},
		{name: "a repeated name warns", src: "b {\n x = 1\n x = 2\n}", want: "b {x=1; x=2}",
			warnings: []string{`line 3, column 2: "x" was already set on line 2; the last one counts`}},
		{name: "stray tokens of a body warn", src: `b { 3 ] "s" x = 1, y = 2 }`, want: "b {x=1; y=2}",
			warnings: []string{"line 1, column 5: number 3 is ignored here", `line 1, column 7: "]" is ignored here`, `line 1, column 9: string "s" is ignored here`}},
		{name: "unknown characters warn", src: "a = 1 ;\nb = 2", want: "a=1; b=2",
			warnings: []string{"line 1, column 7: character ';' is ignored; put text in quotes"}},
		{name: "a string ends with its line, with a warning", src: "a = \"x\nb = 2", want: `a="x"; b=2`,
			warnings: []string{"line 1, column 5: the string has no closing quote on its line"}},
		{name: "a label without a body", src: "default_model \"a/b\"\nx = 1", want: `default_model "a/b" {}; x=1`,
			warnings: []string{`line 1, column 1: block "default_model" has no body`}},
		{name: "byte order mark and carriage returns", src: "\ufeffa = 1\r\nb = 2\r\n", want: "a=1; b=2"},
		{name: "letters of any script", src: "名字 = \"值\" _x1 = 2", want: `名字="值"; _x1=2`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			doc, err := Parse([]byte(tt.src), Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if got := show(doc.Body); got != tt.want {
				t.Errorf("tree:\n got %s\nwant %s", got, tt.want)
			}
			var warnings []string
			for _, w := range doc.Warnings {
				warnings = append(warnings, w.String())
			}
			if fmt.Sprint(warnings) != fmt.Sprint(tt.warnings) {
				t.Errorf("warnings:\n got %q\nwant %q", warnings, tt.warnings)
			}
		})
	}
}

func TestParseErrors(t *testing.T) {
	small := Limits{MaxDocumentBytes: 80, MaxNestingDepth: 3, MaxCollectionItems: 3, MaxTokenBytes: 16}
	tests := []struct {
		name, src    string
		line, column int
		diagnostic   Diagnostic
	}{
		{"top level starts with a bracket", "a = 1\n[x]", 2, 1, UnexpectedToken},
		{"top level string", `"a" = 1`, 1, 1, UnexpectedToken},
		{"no value", "a = }", 1, 5, UnexpectedToken},
		{"no value at the end", "a =\n", 2, 1, UnexpectedEOF},
		{"name alone", "a = 1\nword\nb = 2", 2, 5, ExpectedToken},
		{"hyphen in a name", "my-key = 3", 1, 4, ExpectedToken},
		{"unit after a number", "b { t = 30s\n}", 1, 12, ExpectedToken},
		{"append is no assignment", "a += 1", 1, 3, ExpectedToken},
		{"block never closed", "b {\n x = 1\n", 3, 1, UnexpectedEOF},
		{"list never closed", "a = [1, 2", 1, 10, UnexpectedEOF},
		{"call without commas", "a = f(1 2)", 1, 9, ExpectedToken},
		{"double comma", "a = [1,,2]", 1, 8, UnexpectedToken},
		{"number without exponent", "a = 1e", 1, 5, UnexpectedToken},
		{"number out of range", "a = 1e999", 1, 5, UnexpectedToken},
		{"invalid UTF-8", "a = \"\xff\"", 1, 6, UnexpectedToken},
		{"NUL", "a = 1\n\x00", 2, 1, UnexpectedToken},
		{"document too long", strings.Repeat("#", 81), 1, 1, DocumentBytesLimit},
		{"token too long", "a = '" + strings.Repeat("x", 16) + "'", 1, 5, TokenBytesLimit},
		{"too deep", "a = [[[[1]]]]", 1, 8, NestingDepthLimit},
		{"too deep in blocks", "a { b { c { d {} } } }", 1, 15, NestingDepthLimit},
		{"too many top-level items", "a=1 b=2 c=3 d=4", 1, 13, CollectionItemsLimit},
		{"too many elements", "a = [1 2 3 4]", 1, 12, CollectionItemsLimit},
		{"too many labels", "a '1' '2' '3' '4' {}", 1, 15, CollectionItemsLimit},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			doc, err := Parse([]byte(tt.src), small)
			var f *fault.Error
			if !errors.As(err, &f) {
				t.Fatalf("got %v and error %v", doc, err)
			}
			got := fmt.Sprint(f.Code, " ", f.Details["line"], " ", f.Details["column"], " ", f.Details["diagnostic"])
			want := fmt.Sprint(fault.CodeConfig, " ", tt.line, " ", tt.column, " ", tt.diagnostic)
			if got != want {
				t.Errorf("got %s, want %s: %v", got, want, err)
			}
		})
	}
}

func TestSpans(t *testing.T) {
	src := "a = 1\nbé \"l\" {\n  key = [1,\n 2]\n}\n"
	doc, err := Parse([]byte(src), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	cut := func(s Span) string { return src[s.Start.Offset:s.End.Offset] }
	block := doc.Body.Blocks("bé")[0]
	attr := block.Body.Attribute("key")
	got := []string{cut(doc.Body.Attribute("a").Span), cut(block.NameSpan), cut(block.Span), cut(attr.Span), cut(attr.Value.List[1].Span)}
	want := []string{"a = 1", "bé", "bé \"l\" {\n  key = [1,\n 2]\n}", "key = [1,\n 2]", "2"}
	if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if at := attr.Value.List[1].Span.Start; at != (Pos{4, 2, strings.Index(src, "2]")}) {
		t.Errorf("place of the element: %+v", at)
	}
}

func TestLastAttributeCounts(t *testing.T) {
	doc, err := Parse([]byte("a = 1\na = 2\no = { k = 1 k = 2 }"), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if v := doc.Body.Attribute("a").Value.Number; v != 2 {
		t.Errorf("a = %v", v)
	}
	if v, ok := doc.Body.Attribute("o").Value.Entry("k"); !ok || v.Number != 2 {
		t.Errorf("o.k = %v, %v", v.Number, ok)
	}
	if _, ok := doc.Body.Attribute("o").Value.Entry("x"); ok || doc.Body.Attribute("x") != nil || doc.Body.Blocks("x") != nil {
		t.Error("found what is not there")
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"a = 1", `p "x" { m "y" { k = env("Z") l = { a = 1, "b-c": [1 2] } } }`,
		"a = thing \"l\" { x = 1 }", "a \"b\"\n\n{}", "a = 'x\\'", "/", "a=[", "b { 3 ; }", "a += 1",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		limits := Limits{MaxNestingDepth: 8, MaxCollectionItems: 50, MaxTokenBytes: 64}
		doc, err := Parse(src, limits)
		if err != nil {
			var e *fault.Error
			if !errors.As(err, &e) || e.Code != fault.CodeConfig || e.Details["line"].(int) < 1 || e.Details["column"].(int) < 1 {
				t.Fatalf("error without a place: %#v", err)
			}
			return
		}
		checkSpans(t, doc.Body, 0, len(src))
		again, err := Parse(src, limits)
		if err != nil || show(again.Body) != show(doc.Body) {
			t.Fatalf("a second parse differs: %v", err)
		}
	})
}

func checkSpans(t *testing.T, b Body, from, to int) {
	for _, item := range b {
		var s Span
		if item.Attribute != nil {
			s = item.Attribute.Span
		} else {
			s = item.Block.Span
			checkSpans(t, item.Block.Body, s.Start.Offset, s.End.Offset)
		}
		if s.Start.Offset < from || s.End.Offset > to || s.Start.Offset >= s.End.Offset {
			t.Fatalf("span %+v outside [%d, %d)", s, from, to)
		}
		from = s.End.Offset
	}
}
