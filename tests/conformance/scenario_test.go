package conformance

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/txtar"
)

// defaultACL is the agent.acl of a scenario that has none, and what is added to one
// that does not declare the script provider.
const (
	defaultACL     = "default_model = \"script/main\"\n"
	scriptProvider = "providers \"script\" { models \"main\" { script = \"turns.txt\" } }\n"
)

// sections that may stand in a scenario beside workspace/ and want/workspace/.
var sections = []string{
	"agent.acl", "env.json", "files.json", "host.json", "host_tools.json", "options.json", "script", "steps",
	"want/error", "want/events", "want/files.json", "want/result.json",
}

// views are what check and want/NAME.json can look at.
var views = []string{"commands", "events", "history", "info", "pending", "runs", "sessions", "tools", "traces"}

// scenario is one parsed file.
type scenario struct {
	file     string
	name     string
	archive  *txtar.Archive
	sections map[string]string
	steps    []step
}

// step is one line of steps.
type step struct {
	line  string
	fails string // the code it must fail with
	verb  string
	rest  string
}

var verbs = []string{
	"agent", "artifact", "await", "cancel", "cancel_confirmations", "cancel_run", "check", "close", "confirm",
	"confirm-late", "history", "join", "note", "open", "resume", "same", "save", "send", "start", "stream", "tool",
}

func load(file string) (*scenario, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	sc := &scenario{file: file, name: strings.TrimSuffix(filepath.Base(file), ".txtar"), archive: txtar.Parse(b), sections: map[string]string{}}
	if strings.TrimSpace(string(sc.archive.Comment)) == "" {
		return nil, fmt.Errorf("the first lines must say what the scenario shows")
	}
	for _, f := range sc.archive.Files {
		view := strings.TrimSuffix(strings.TrimPrefix(f.Name, "want/"), ".json")
		known := slices.Contains(sections, f.Name) || strings.HasPrefix(f.Name, "workspace/") || strings.HasPrefix(f.Name, "want/workspace/") ||
			f.Name == "want/"+view+".json" && slices.Contains(views, view)
		if !known {
			return nil, fmt.Errorf("there is no section %q", f.Name)
		}
		if _, twice := sc.sections[f.Name]; twice {
			return nil, fmt.Errorf("section %q stands there twice", f.Name)
		}
		sc.sections[f.Name] = string(f.Data)
	}
	for line := range strings.Lines(sc.sections["steps"]) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		st, err := parseStep(line)
		if err != nil {
			return nil, err
		}
		sc.steps = append(sc.steps, st)
	}
	return sc, nil
}

func parseStep(line string) (step, error) {
	st := step{line: line}
	st.verb, st.rest, _ = strings.Cut(line, " ")
	if st.verb == "fails" {
		st.fails, line, _ = strings.Cut(st.rest, " ")
		st.verb, st.rest, _ = strings.Cut(line, " ")
	}
	if !slices.Contains(verbs, st.verb) {
		return st, fmt.Errorf("there is no step %q", st.verb)
	}
	return st, nil
}

// place is the folder of one play: $DIR with agent.acl, turns.txt and $WORKSPACE.
type place struct{ dir, workspace string }

func (p place) fill(text string) string {
	return strings.NewReplacer("$WORKSPACE", p.workspace, "$DIR", p.dir).Replace(text)
}

// unfill is for expectations that are written anew.
func (p place) unfill(text string) string {
	return strings.NewReplacer(p.workspace, "$WORKSPACE", p.dir, "$DIR").Replace(text)
}

// set writes the files of the scenario.
func (sc *scenario) set(p place) error {
	acl, ok := sc.sections["agent.acl"]
	if !ok {
		acl = defaultACL
	}
	if !strings.Contains(acl, `providers "script"`) {
		acl += scriptProvider
	}
	files := map[string]any{"../agent.acl": p.fill(acl), "../turns.txt": p.fill(sc.sections["script"])}
	for _, f := range sc.archive.Files {
		if name, ok := strings.CutPrefix(f.Name, "workspace/"); ok {
			files[name] = p.fill(string(f.Data))
		}
	}
	if text, ok := sc.sections["files.json"]; ok {
		var more map[string]any
		if err := json.Unmarshal([]byte(p.fill(text)), &more); err != nil {
			return fmt.Errorf("files.json: %v", err)
		}
		for name, v := range more {
			files[name] = v
		}
	}
	for name, v := range files {
		if err := put(filepath.Join(p.workspace, name), v); err != nil {
			return err
		}
	}
	return nil
}

// put makes one file, folder or link.
func put(path string, v any) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	switch v := v.(type) {
	case string:
		return os.WriteFile(path, []byte(v), 0o644)
	case map[string]any:
		if to, ok := v["link"].(string); ok {
			return os.Symlink(to, path)
		}
		if v["folder"] == true {
			return os.MkdirAll(path, 0o755)
		}
	}
	return fmt.Errorf("files.json: %s must be a text, {\"link\": TARGET} or {\"folder\": true}", path)
}

// got gives what a path holds now, in the form of files.json; nil if there is nothing.
func got(path string) any {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return nil
	case info.IsDir():
		return map[string]any{"folder": true}
	case info.Mode()&os.ModeSymlink != 0:
		to, err := os.Readlink(path)
		if err != nil {
			return err.Error()
		}
		return map[string]any{"link": to}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// wantFiles gives want/workspace/ and want/files.json as one.
func (sc *scenario) wantFiles(p place) (map[string]any, error) {
	want := map[string]any{}
	for name, text := range sc.sections {
		if path, ok := strings.CutPrefix(name, "want/workspace/"); ok {
			want[path] = p.fill(text)
			if text == "" {
				want[path] = nil
			}
		}
	}
	if text, ok := sc.sections["want/files.json"]; ok {
		if err := json.Unmarshal([]byte(p.fill(text)), &want); err != nil {
			return nil, fmt.Errorf("want/files.json: %v", err)
		}
	}
	return want, nil
}
