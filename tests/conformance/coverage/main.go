// Command coverage writes tests/conformance/COVERAGE.md: how many scenarios of which
// group each way to the library plays, from the reports of the latest runs
// (build/conformance-NAME.json). ./build.sh coverage runs it.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ways are the columns: the name of the report, and what people call it.
var ways = []struct{ name, title string }{
	{"go", "Go"}, {"op", "operations"}, {"c", "C"}, {"python", "Python"}, {"node", "Node"}, {"rust", "Rust"},
}

// groups are the rows. A scenario belongs to the first one with a beginning of its name.
var groups = []struct {
	title string
	names []string
}{
	{"host extension: tool", []string{"host-tool-"}},
	{"host extension: model", []string{"host-model-"}},
	{"host extension: permission", []string{"host-permission-"}},
	{"host extension: context", []string{"host-context-"}},
	{"host extension: command", []string{"host-command-"}},
	{"host extension: store", []string{"host-store-"}},
	{"host extension: workspace", []string{"host-workspace-"}},
	{"host extension: log", []string{"host-log-"}},
	{"host extension: transport", []string{"host-transport-"}},
	{"host extension: any kind", []string{"host-kind-", "host-no-"}},
	{"configuration and options", []string{"config-", "option-", "host-env-"}},
	{"permissions and rules", []string{"default-policy-", "denied-", "shell-rules-", "rule-", "yolo-", "path-", "git-", "search-"}},
	{"confirmations", []string{"confirm-"}},
	{"cancel, close, time limits", []string{"cancel-", "close", "run-timeout", "tool-timeout", "busy-"}},
	{"keeping and resuming", []string{"resume-", "save-", "store-", "retention", "two-"}},
	{"models and transcripts", []string{"model-", "malformed-", "reasoning", "compaction", "context-", "isolated-", "max-tool-", "unknown-tool", "duplicate-", "schema-"}},
	{"slash commands", []string{"slash-"}},
	{"tools, files, output", []string{""}},
}

func main() {
	text, err := table(".")
	if err == nil {
		err = os.WriteFile(filepath.Join("tests", "conformance", "COVERAGE.md"), []byte(text), 0o644)
	}
	if err == nil {
		err = intoReadme("README.md", text)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "coverage:", err)
		os.Exit(1)
	}
}

// The marks in README.md between which the last line of the table stands.
const (
	begin = "<!-- scenarios -->\n"
	end   = "<!-- end of scenarios -->\n"
)

// intoReadme puts the sum of the table into README.md.
func intoReadme(path, page string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(b), begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return fmt.Errorf("%s has no place for the table, between %q and %q", path, strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	return os.WriteFile(path, []byte(before+begin+summary(page)+end+after), 0o644)
}

// summary gives the head and the last row of the table.
func summary(page string) string {
	var out strings.Builder
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "| group") || strings.HasPrefix(line, "| ---") || strings.HasPrefix(line, "| all") {
			out.WriteString(line)
		}
	}
	return out.String()
}

// group gives the row of a scenario.
func group(name string) int {
	return slices.IndexFunc(groups, func(g struct {
		title string
		names []string
	}) bool {
		return slices.ContainsFunc(g.names, func(p string) bool { return strings.HasPrefix(name, p) })
	})
}

// cell counts what became of the scenarios of a group.
type cell struct{ passed, skipped, failed int }

func (c *cell) add(result string) {
	switch result {
	case "pass":
		c.passed++
	case "skip":
		c.skipped++
	default:
		c.failed++
	}
}

func (c cell) String() string {
	s := fmt.Sprint(c.passed)
	if c.skipped > 0 {
		s += fmt.Sprintf(" (%d not)", c.skipped)
	}
	if c.failed > 0 {
		s += fmt.Sprintf(" **%d failed**", c.failed)
	}
	return s
}

// table writes the page for the checkout at root.
func table(root string) (string, error) {
	files, err := filepath.Glob(filepath.Join(root, "tests", "conformance", "scenarios", "*.txtar"))
	if err != nil || len(files) == 0 {
		return "", fmt.Errorf("no scenarios in %s, %v", root, err)
	}
	rows := make([][]cell, len(groups)+1)
	for i := range rows {
		rows[i] = make([]cell, len(ways))
	}
	sizes := make([]int, len(groups))
	skips := map[string][]string{}
	for w, way := range ways {
		results, err := report(root, way.name)
		if err != nil {
			return "", err
		}
		for _, file := range files {
			name := strings.TrimSuffix(filepath.Base(file), ".txtar")
			result, played := results[name]
			if !played {
				return "", fmt.Errorf("%s did not play %s; run its tests first", way.title, name)
			}
			g := group(name)
			rows[g][w].add(result)
			rows[len(groups)][w].add(result)
			if w == 0 {
				sizes[g]++
			}
			if result == "skip" {
				skips[name] = append(skips[name], way.title)
			}
		}
	}
	return page(len(files), sizes, rows, skips, root)
}

func report(root, name string) (map[string]string, error) {
	b, err := os.ReadFile(filepath.Join(root, "build", "conformance-"+name+".json"))
	if err != nil {
		return nil, err
	}
	var results map[string]string
	return results, json.Unmarshal(b, &results)
}

func page(all int, sizes []int, rows [][]cell, skips map[string][]string, root string) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "<!-- Written by ./build.sh coverage from the latest runs. DO NOT EDIT. -->\n\n# What is played where\n\n%d scenarios, played through package a3s, the table of operations, the C header and each binding.\n\n| group | scenarios |", all)
	for _, w := range ways {
		fmt.Fprintf(&b, " %s |", w.title)
	}
	b.WriteString("\n| --- | --- |" + strings.Repeat(" --- |", len(ways)) + "\n")
	line := func(title string, n int, cells []cell) {
		fmt.Fprintf(&b, "| %s | %d |", title, n)
		for _, c := range cells {
			fmt.Fprintf(&b, " %s |", c)
		}
		b.WriteString("\n")
	}
	for i, g := range groups {
		line(g.title, sizes[i], rows[i])
	}
	line("all", all, rows[len(groups)])
	b.WriteString("\nNot played:\n\n")
	reasons := map[string][]string{}
	for name, titles := range skips {
		why, err := reason(root, name)
		if err != nil {
			return "", err
		}
		key := strings.Join(titles, ", ") + ": " + why
		reasons[key] = append(reasons[key], name)
	}
	var keys []string
	for k := range reasons {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		slices.Sort(reasons[k])
		fmt.Fprintf(&b, "- %s. %s\n", k, strings.Join(reasons[k], ", "))
	}
	if len(keys) == 0 {
		b.WriteString("- nothing\n")
	}
	return b.String(), nil
}

// reason says what of a scenario a binding cannot do.
func reason(root, name string) (string, error) {
	b, err := os.ReadFile(filepath.Join(root, "tests", "conformance", "scenarios", name+".txtar"))
	switch {
	case err != nil:
		return "", err
	case strings.Contains(string(b), `"twice"`):
		return "what answers is a function, which answers once", nil
	case strings.Contains(string(b), `"dies"`):
		return "the control stream belongs to the binding and cannot be closed alone", nil
	}
	return "the runner says why", nil
}
