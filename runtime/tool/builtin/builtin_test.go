package builtin

import (
	"reflect"
	"slices"
	"testing"

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
