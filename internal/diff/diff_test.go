package diff

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestUnified(t *testing.T) {
	big := strings.Repeat("line é\n", MaxInput/8)
	many := "a\nB\nc\n" + strings.Repeat("x\n", 40)
	for _, c := range []struct {
		name, before, after string
		max                 int
		want                string
		omitted             bool
	}{
		{"equal", "a\n", "a\n", 100, "", false},
		{"change", "a\nb\nc\n", "a\nB\nc\n", 1000, "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n", false},
		{"new", "", "a\n", 1000, "--- a/f\n+++ b/f\n@@ -0,0 +1 @@\n+a\n", false},
		{"no final newline", "a", "b", 1000, "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n", false},
		{"cut", "a\nb\nc\n", many, 66, "--- a/f\n+++ b/f\n@@ -1,3 +1,43 @@\n a\n[diff cut: 165 bytes in all]\n", true},
		{"too big", big, big + "x", 1000, "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, omitted := Unified("f", c.before, c.after, c.max)
			if got != c.want || omitted != c.omitted {
				t.Errorf("got %q %v\nwant %q %v", got, omitted, c.want, c.omitted)
			}
		})
	}
}

func TestCutStaysText(t *testing.T) {
	line := strings.Repeat("é", 400)
	for max := range 300 {
		got, omitted := Unified("f", line, line+"é", max)
		if len(got) > max || !utf8.ValidString(got) || !omitted {
			t.Fatalf("max %d: %d bytes, %v", max, len(got), omitted)
		}
	}
}

// TestApplies holds the diff to its purpose: applied to the first text it gives the
// second.
func TestApplies(t *testing.T) {
	lines := rapid.StringMatching(`([ab]?\r?\n){0,12}[ab]?`)
	rapid.Check(t, func(t *rapid.T) {
		before, after := lines.Draw(t, "before"), lines.Draw(t, "after")
		text, omitted := Unified("f", before, after, 1<<20)
		if omitted {
			t.Fatal("omitted")
		}
		if text == "" {
			if before != after {
				t.Fatal("empty diff")
			}
			return
		}
		if got := apply(t, text, before); got != after {
			t.Fatalf("got %q\nwant %q\n%s", got, after, text)
		}
	})
}

// apply is the plainest reading of a unified diff.
func apply(t *rapid.T, text, before string) string {
	var out strings.Builder
	old := strings.SplitAfter(before, "\n")
	at, lines := 0, strings.SplitAfter(text, "\n")[2:]
	for i, line := range lines {
		if line == "" || line[0] == '\\' {
			continue
		}
		body := line[1:]
		if i+1 < len(lines) && strings.HasPrefix(lines[i+1], "\\") {
			body = strings.TrimSuffix(body, "\n")
		}
		switch line[0] {
		case '@':
			var start int
			if _, err := fmt.Sscanf(line, "@@ -%d", &start); err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(line, fmt.Sprintf("@@ -%d,0 ", start)) {
				start++ // the hunk comes after that line
			}
			for ; at < start-1; at++ {
				out.WriteString(old[at])
			}
		case '+':
			out.WriteString(body)
		default:
			if at >= len(old) || old[at] != body {
				t.Fatalf("line %d: %q does not fit", at+1, body)
			}
			at++
			if line[0] == ' ' {
				out.WriteString(body)
			}
		}
	}
	for ; at < len(old); at++ {
		out.WriteString(old[at])
	}
	return out.String()
}
