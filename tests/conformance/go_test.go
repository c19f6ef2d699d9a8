// Package conformance plays the scenarios that all languages share, in Go: once
// through package a3s, once through the table of operations, and once through the C
// header in a process of its own. README.md says what a scenario is made of.
package conformance

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/tools/txtar"
)

var folder = flag.String("scenarios", "scenarios", "play the files of another folder, such as scenarios that are being written; nothing is reported then")

var update = flag.Bool("update", false, "write want/events of the scenarios that differ anew; read the diff before you commit it")

func TestScenarios(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(*folder, "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatal("no scenarios", err)
	}
	c := startProcess(t)
	drivers := map[string]driver{"go": facade{}, "op": table{}, "c": header{c}}
	for _, name := range []string{"c", "op", "go"} {
		before := descriptors()
		results := map[string]string{}
		t.Run(name, func(t *testing.T) {
			for _, file := range files {
				title := strings.TrimSuffix(filepath.Base(file), ".txtar")
				results[title] = "fail"
				t.Run(title, func(t *testing.T) {
					results[title] = perform(t, file, drivers[name])
				})
			}
		})
		if name == "c" {
			if err := c.finish(); err != nil {
				t.Error(err)
			}
		}
		if *folder == "scenarios" {
			report(t, name, results)
		}
		goleak.VerifyNone(t)
		if after := descriptors(); name == "go" && after > before { // the first driver opens what the runtime keeps for good
			t.Errorf("%d descriptors before the scenarios, %d after", before, after)
		}
	}
}

// perform plays one scenario and gives pass, fail or skip.
func perform(t *testing.T, file string, d driver) string {
	sc, err := load(file)
	if err != nil {
		t.Error(err)
		return "fail"
	}
	p, err := prepare(t, sc, d)
	if err != nil {
		t.Error(err)
		return "fail"
	}
	err = p.run()
	switch {
	case errors.Is(err, errLacking):
		t.Log("skipped:", err)
		return "skip"
	case err != nil && *update && strings.HasPrefix(err.Error(), "want/events"):
		err = rewrite(p)
	}
	if err != nil {
		t.Error(err)
		return "fail"
	}
	return "pass"
}

// prepare makes the place of a play.
func prepare(t *testing.T, sc *scenario, d driver) (*play, error) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		return nil, err
	}
	p := &play{sc: sc, driver: d, place: place{dir, filepath.Join(dir, "workspace")}}
	if err := os.Mkdir(p.place.workspace, 0o755); err != nil {
		return nil, err
	}
	if err := sc.set(p.place); err != nil {
		return nil, err
	}
	p.env = map[string]string{"PATH": os.Getenv("PATH"), "HOME": dir, "LANG": "C.UTF-8"}
	var tools []*hostTool
	parts := map[string]any{"env.json": &p.env, "host_tools.json": &tools, "options.json": &p.options}
	for name, into := range parts {
		text, ok := sc.sections[name]
		if !ok {
			continue
		}
		text = strings.ReplaceAll(p.place.fill(text), "$UNIQUE", dir)
		if err := json.Unmarshal([]byte(text), into); err != nil {
			return nil, fmt.Errorf("%s: %v", name, err)
		}
	}
	for _, t := range tools {
		p.host = append(p.host, t.extension())
	}
	if text, ok := sc.sections["host.json"]; ok {
		more, err := hostExtensions(strings.ReplaceAll(p.place.fill(text), "$UNIQUE", dir))
		if err != nil {
			return nil, fmt.Errorf("host.json: %v", err)
		}
		p.host = append(p.host, more...)
	}
	return p, nil
}

// rewrite puts the events that came into the scenario.
func rewrite(p *play) error {
	var b strings.Builder
	for _, e := range joined(p.events) {
		b.WriteString(p.place.unfill(describe(e)) + "\n")
	}
	for i, f := range p.sc.archive.Files {
		if f.Name == "want/events" {
			p.sc.archive.Files[i].Data = []byte(b.String())
		}
	}
	return os.WriteFile(p.sc.file, txtar.Format(p.sc.archive), 0o644)
}

// report writes build/conformance-NAME.json.
func report(t *testing.T, name string, results map[string]string) {
	dir := filepath.Join("..", "..", "build")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	b, err := json.MarshalIndent(results, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "conformance-"+name+".json"), append(b, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}

// descriptors counts the open files of the process.
func descriptors() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(entries)
}
