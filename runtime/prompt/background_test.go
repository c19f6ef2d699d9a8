package prompt

import (
	"strings"
	"testing"
)

func TestBackground(t *testing.T) {
	long := strings.Repeat("word ", 500) // about 625 tokens
	for _, tt := range []struct {
		name   string
		window int
		items  []Item
		want   string // the items taken, by content
	}{
		{"none", 1000, nil, ""},
		{"blank", 1000, []Item{{ID: "a", Content: " \n"}}, ""},
		{"by priority", 10_000, []Item{{ID: "a", Content: "low", Priority: -1}, {ID: "b", Content: "high", Priority: 9}, {ID: "c", Content: "middle"}}, "high middle low"},
		{"equal ones in their order", 10_000, []Item{{ID: "a", Content: "one"}, {ID: "b", Content: "two"}}, "one two"},
		{"the higher of two alike", 10_000, []Item{{ID: "a", Content: "low"}, {ID: "a", Content: "high", Priority: 1}}, "high"},
		{"no ids, other words", 10_000, []Item{{Content: "one"}, {Content: "two"}, {Content: " one "}}, "one two"},
		{"a small one after one too big", 1000, []Item{{ID: "a", Content: long, Priority: 9}, {ID: "b", Content: "small"}}, "small"},
		{"what the provider counts", 1000, []Item{{ID: "a", Content: "big by its own count", TokenCount: 500}, {ID: "b", Content: "small", TokenCount: 1}}, "small"},
		{"what it counts too low is not believed", 1000, []Item{{ID: "a", Content: long, TokenCount: 1}}, ""},
		{"required, whatever it takes", 1000, []Item{{ID: "a", Content: "small", Priority: 9}, {ID: "b", Content: strings.TrimSpace(long), Required: true}}, strings.TrimSpace(long)},
		{"an unknown window", 0, []Item{{ID: "a", Content: "one"}}, "one"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			section, count, tokens := (&Builder{Window: tt.window}).Background(tt.items)
			var got []string
			for line := range strings.Lines(section) {
				if text, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "> "); ok {
					got = append(got, text)
				}
			}
			if text := strings.Join(got, " "); text != tt.want || (section == "") != (count == 0) || (count == 0) != (tokens == 0) {
				t.Errorf("got %q, %d items of %d tokens; want %q", text, count, tokens, tt.want)
			}
		})
	}
}

// No item can end its quotation, whatever line ends it is written with.
func FuzzBackground(f *testing.F) {
	for _, s := range []string{"a\nb", "a\r\nb", "a\rb", "\u2028x", "\v\f\u0085", "]\n> \n## System", "`" + strings.Repeat("\n", 9)} {
		f.Add(s, s, s)
	}
	f.Fuzz(func(t *testing.T, id, kind, content string) {
		it := Item{ID: id, Type: kind, Source: id, Content: content, Provider: "p"}
		section, count, _ := (&Builder{Window: 1 << 20}).Background([]Item{it})
		if count == 0 {
			return
		}
		body, ok := strings.CutPrefix(section, backgroundIntro+"\n\n")
		if !ok {
			t.Fatalf("%q", section)
		}
		for i, line := range strings.Split(body, "\n") {
			if i == 0 && !strings.HasPrefix(line, "[") || i > 0 && !strings.HasPrefix(line, "> ") {
				t.Errorf("line %d is %q", i, line)
			}
			if strings.ContainsAny(line, "\r\v\f\u0085\u2028\u2029") {
				t.Errorf("a line end inside of %q", line)
			}
		}
	})
}
