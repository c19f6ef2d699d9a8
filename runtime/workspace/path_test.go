package workspace

import (
	"bufio"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

// TestCorpus reads tests/corpus/paths: "ROOT | INPUT | ANSWER" a line, where INPUT
// and ANSWER may be quoted Go strings and ANSWER is the clean path or "!" and the error kind.
func TestCorpus(t *testing.T) {
	files, err := filepath.Glob("../../tests/corpus/paths/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no corpus: %v", err)
	}
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		lines := bufio.NewScanner(f)
		for n := 1; lines.Scan(); n++ {
			line := strings.TrimSpace(lines.Text())
			if line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			parts := strings.Split(line, " | ")
			if len(parts) != 3 {
				t.Fatalf("%s:%d: want three fields: %s", file, n, line)
			}
			root, input, want := parts[0], parts[1], strings.TrimSpace(parts[2])
			for _, field := range []*string{&input, &want} {
				if !strings.HasPrefix(*field, `"`) {
					continue
				}
				if *field, err = strconv.Unquote(*field); err != nil {
					t.Fatalf("%s:%d: %v", file, n, err)
				}
			}
			got, err := Clean(root, input)
			if err != nil {
				got = "!" + string(fault.KindOf(err))
			}
			if got != want {
				t.Errorf("%s:%d: Clean(%q, %q) = %q, want %q", filepath.Base(file), n, root, input, got, want)
			}
		}
	}
}

func TestCleanTooLong(t *testing.T) {
	if _, err := Clean("/r", strings.Repeat("a", MaxPath)); err != nil {
		t.Errorf("%d bytes: %v", MaxPath, err)
	}
	if _, err := Clean("/r", strings.Repeat("a", MaxPath+1)); fault.KindOf(err) != fault.Invalid {
		t.Errorf("%d bytes: %v, want invalid", MaxPath+1, err)
	}
}

func TestDisplay(t *testing.T) {
	for in, want := range map[string]string{
		"a/b.go":         "a/b.go",
		"größe/日本.txt":   "größe/日本.txt",
		"a\nb":           `a\nb`,
		"a\tb\r":         `a\tb\r`,
		"\x1b[31mred":    `\x1b[31mred`,
		"cod\u202efdp.x": `cod\u202efdp.x`,
		"a\u200bb":       `a\u200bb`,
		"a\u2028b":       `a\u2028b`,
		"caf\xe9":        `caf\xe9`,
		"a\x05\x7f":      `a\x05\x7f`,
		`a\nb`:           `a\\nb`,
		"with space":     "with space",
		"it's":           "it's",
		"\ufffd":         "\ufffd",
		"e\u0301":        "e\u0301",
		"\U000e0041":     `\U000e0041`,
	} {
		if got := Display(in); got != want {
			t.Errorf("Display(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestProtected(t *testing.T) {
	for in, want := range map[string]bool{
		".":                false,
		".git":             true,
		".git/config":      true,
		"sub/.git/hooks/x": true,
		".GIT/config":      true,
		".git./config":     true,
		".git /config":     true,
		".git::$DATA":      true,
		".a3s/x":           true,
		"a/.A3s":           true,
		".gitignore":       false,
		".github/x":        false,
		"git/x":            false,
		"a.git/x":          false,
		".a3s-code":        false,
	} {
		if got := Protected(in); got != want {
			t.Errorf("Protected(%q) = %v, want %v", in, got, want)
		}
	}
}

func TestWithin(t *testing.T) {
	for _, c := range []struct {
		dir, p string
		want   bool
	}{
		{".", "a", true}, {"a", "a", true}, {"a", "a/b", true}, {"a", "ab", false}, {"a/b", "a", false},
		{"/", "/x", true}, {"/tmp/p", "/tmp/p-other", false}, {"/tmp/p", "/tmp/p/x", true},
	} {
		if got := Within(c.dir, c.p); got != c.want {
			t.Errorf("Within(%q, %q) = %v, want %v", c.dir, c.p, got, c.want)
		}
	}
}

// FuzzClean holds what every back-end relies on: the answer is relative, has no dots,
// never leaves the root, and cleaning it again changes nothing.
func FuzzClean(f *testing.F) {
	for _, s := range []string{"a/../b", "../x", `a\..\..\b`, "/r/a", "/r-other", "C:x", "./C:/x", "//h/s", "a//b/./c/", "..a", "a/..", "\u202e"} {
		f.Add("/r", s)
	}
	f.Add("/", "/etc")
	f.Add("mem:", "/etc")
	f.Fuzz(func(t *testing.T, root, in string) {
		got, err := Clean(root, in)
		if err != nil {
			if k := fault.KindOf(err); k != fault.Invalid && k != fault.Denied {
				t.Fatalf("kind %s", k)
			}
			return
		}
		if path.Clean(got) != got || path.IsAbs(got) || got == ".." || strings.HasPrefix(got, "../") || strings.ContainsAny(got, "\\\x00") {
			t.Fatalf("Clean(%q, %q) = %q", root, in, got)
		}
		again, err := Clean(root, got)
		if err != nil || again != got {
			t.Fatalf("Clean(%q) = %q, %v: not stable", got, again, err)
		}
		if d := Display(got); strings.ContainsAny(d, "\n\r\x1b\u202e") {
			t.Fatalf("Display(%q) = %q", got, d)
		}
	})
}

func ExampleClean() {
	p, _ := Clean("/home/ann/project", "/home/ann/project/src/../main.go")
	fmt.Println(p)
	// Output: main.go
}
