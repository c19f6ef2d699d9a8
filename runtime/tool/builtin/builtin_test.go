package builtin

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/a3s-lab/liba3s/runtime/tool"
	"github.com/a3s-lab/liba3s/runtime/workspace"
)

func TestFor(t *testing.T) {
	plain := newFiles(nil)
	for _, c := range []struct {
		name string
		ws   workspace.Workspace
		want []string
	}{
		{"files only", plain, []string{"artifact_read", "edit", "ls", "read", "write"}},
		{"with search", &searching{files: plain}, []string{"artifact_read", "edit", "glob", "grep", "ls", "read", "write"}},
		{"with commands", running{files: plain}, []string{"artifact_read", "bash", "edit", "ls", "read", "write"}},
	} {
		r, err := tool.NewRegistry(For(c.ws)...)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Names(); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		checked, _ := tool.NewRegistry()
		for _, b := range For(c.ws) {
			if err := checked.Add(b); err != nil { // as a tool of the host, which is checked
				t.Errorf("%s: %v", c.name, err)
			}
		}
		for _, s := range r.Specs() {
			if len(s.Description) < 60 {
				t.Errorf("%s says too little: %q", s.Name, s.Description)
			}
		}
		if !slices.IsSorted(r.Names()) {
			t.Error("not sorted")
		}
	}
}

func TestWhole(t *testing.T) {
	for _, c := range []struct {
		text string
		want whole
		ok   bool
	}{
		{"0", 0, true}, {"7", 7, true}, {"7.0", 7, true}, {"7e2", 700, true}, {"-0", 0, true}, {"9223372036854775807", 9223372036854775807, true},
		{"7.5", 0, false}, {"-1", 0, false}, {"-1.0", 0, false}, {"1e300", 0, false}, {`"7"`, 0, false}, {"true", 0, false}, {"[]", 0, false},
	} {
		var w whole
		err := json.Unmarshal([]byte(c.text), &w)
		if (err == nil) != c.ok || w != c.want {
			t.Errorf("%s: %d, %v", c.text, w, err)
		}
	}
}

// FuzzArguments: whatever a model writes, with or without validation, a tool answers
// with a result.
func FuzzArguments(f *testing.F) {
	for _, s := range []string{
		`{"file_path":"f","offset":-1,"limit":0}`, `{"files":[{"path":"f","limit":0},{"path":"g"}],"max_output_bytes":0}`,
		`{"file_path":"f","content":"x","mode":"append","expected_offset":-1}`, `{"file_path":"f","old_string":"a","new_string":"b","max_replacements":0}`,
		`{"path":"","limit":-5,"cursor":"-1"}`, `{"pattern":"a|b","context":-3,"output_mode":"count"}`, `{"command":"x","timeout":-1}`,
		`{"uri":"a3s://x","offset":3,"limit":0}`, `{"FILE_PATH":"f"}`, `[]`, `null`, `{"file_path":null}`, `{"files":[null]}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, args string) {
		ws := struct {
			*searching
			workspace.Runner
		}{
			&searching{files: newFiles(map[string]string{"f": "a\nb\n", "g": "é\r\n"}), lines: hits, found: []string{"f"}},
			running{run: func(_ context.Context, _ workspace.Command, output func([]byte)) (workspace.Exit, error) {
				output([]byte("out\xff"))
				return workspace.Exit{}, nil
			}},
		}
		e, _ := env(ws)
		e.Artifact = func(context.Context, string) (string, error) { return "a€b", nil }
		for _, tl := range For(ws) {
			tl.Effects(json.RawMessage(args))
			valid := tool.Validate(tl, json.RawMessage(args)) == nil
			r, err := tl.Run(t.Context(), e, json.RawMessage(args))
			switch {
			case err != nil:
				t.Errorf("%s: %v", tl.Spec().Name, err)
			case !utf8.ValidString(r.Output) && utf8.ValidString(args):
				t.Errorf("%s: output %q", tl.Spec().Name, r.Output)
			case valid && strings.HasPrefix(r.Output, "the arguments cannot be read") && !strings.Contains(r.Output, "whole number"):
				t.Errorf("%s: schema and reader do not agree on %s: %s", tl.Spec().Name, args, r.Output)
			}
		}
	})
}
