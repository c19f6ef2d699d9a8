package local

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/workspace"
)

// TestPATH02: the last component is not followed out of the root, whether the file it
// names is there or not; nothing is made or changed outside.
func TestPATH02(t *testing.T) {
	outside, root := t.TempDir(), t.TempDir()
	old := filepath.Join(outside, "v.txt")
	if err := os.WriteFile(old, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"notes.md": old, "draft.txt": filepath.Join(outside, "new.txt")} {
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	w, err := Open(t.Context(), Config{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for _, link := range []string{"notes.md", "draft.txt"} {
		if _, err := w.Write(t.Context(), link, []byte("x"), workspace.Condition{}); fault.KindOf(err) != fault.Denied {
			t.Errorf("write to %s: %v", link, err)
		}
	}
	entries, err := os.ReadDir(outside)
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(old); string(b) != "old" || len(entries) != 1 {
		t.Errorf("outside: %q, %d files", b, len(entries))
	}
}
