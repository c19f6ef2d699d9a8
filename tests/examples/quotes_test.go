package examples

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every block of code in the pages about the examples stands in a program as it is, but
// for its indentation.
func TestQuotes(t *testing.T) {
	root := filepath.Join("..", "..", "examples")
	for page, files := range map[string]string{"go": "go/*/*.go", "c": "c/*.[ch]"} {
		text, err := os.ReadFile(filepath.Join(root, page, "README.md"))
		if err != nil {
			t.Fatal(err)
		}
		names, err := filepath.Glob(filepath.Join(root, files))
		if err != nil {
			t.Fatal(err)
		}
		var code strings.Builder
		for _, name := range names {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			code.WriteString(flush(string(b)))
		}
		blocks := regexp.MustCompile("(?s)```"+page+"\n(.*?)```").FindAllStringSubmatch(string(text), -1)
		if len(blocks) < 5 {
			t.Errorf("%s: %d blocks", page, len(blocks))
		}
		for _, b := range blocks {
			if !strings.Contains(code.String(), flush(b[1])) {
				t.Errorf("%s: no program has\n%s", page, b[1])
			}
		}
	}
}

// flush takes the indentation off every line.
func flush(code string) string {
	return regexp.MustCompile(`(?m)^[ \t]+`).ReplaceAllString(code, "")
}
