package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The committed table counts the scenarios that there are, and nothing in it failed.
func TestFresh(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	b, err := os.ReadFile(filepath.Join(root, "tests", "conformance", "COVERAGE.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(b)
	files, err := filepath.Glob(filepath.Join(root, "tests", "conformance", "scenarios", "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatal("no scenarios", err)
	}
	sizes := make([]int, len(groups))
	for _, file := range files {
		sizes[group(strings.TrimSuffix(filepath.Base(file), ".txtar"))]++
	}
	wanted := []string{fmt.Sprintf("| all | %d |", len(files))}
	for i, g := range groups {
		if sizes[i] == 0 {
			t.Errorf("group %q has no scenario", g.title)
		}
		wanted = append(wanted, fmt.Sprintf("| %s | %d |", g.title, sizes[i]))
	}
	for _, w := range wanted {
		if !strings.Contains(page, w) {
			t.Errorf("COVERAGE.md does not say %q; run all runners, then ./build.sh coverage", w)
		}
	}
	if strings.Contains(page, "failed") {
		t.Error("COVERAGE.md tells of failures")
	}
	if readme, err := os.ReadFile(filepath.Join(root, "README.md")); err != nil || !strings.Contains(string(readme), begin+summary(page)+end) {
		t.Error("README.md does not hold the sum of COVERAGE.md; run ./build.sh coverage", err)
	}
}

func TestTable(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("tests/conformance/scenarios/host-log-twice.txtar", `{"twice": true}`)
	put("tests/conformance/scenarios/unicode.txtar", "x")
	if _, err := table(dir); err == nil {
		t.Error("no report, no error")
	}
	for _, w := range ways {
		put("build/conformance-"+w.name+".json", `{"host-log-twice":"skip","unicode":"pass"}`)
	}
	put("build/conformance-c.json", `{"host-log-twice":"fail","unicode":"pass"}`)
	got, err := table(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| host extension: log | 1 | 0 (1 not) | 0 (1 not) | 0 **1 failed** |", "| all | 2 | 1 (1 not) |",
		"- Go, operations, Python, Node, Rust: what answers is a function, which answers once. host-log-twice\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no %q in\n%s", want, got)
		}
	}
	put("README.md", "words\n"+begin+"old\n"+end+"more\n")
	if err := intoReadme(filepath.Join(dir, "README.md"), got); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "README.md")); err != nil || string(b) != "words\n"+begin+summary(got)+end+"more\n" || strings.Count(summary(got), "\n") != 3 {
		t.Errorf("the readme is %s, %v", b, err)
	}
	put("build/conformance-rust.json", `{"unicode":"pass"}`)
	if _, err := table(dir); err == nil || !strings.Contains(err.Error(), "Rust did not play host-log-twice") {
		t.Errorf("an old report: %v", err)
	}
}
