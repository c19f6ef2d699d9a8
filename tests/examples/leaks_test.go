//go:build valgrind

package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestLeaks runs the programs in C under valgrind: nothing that they were given may be
// left. What its other checks say of the threads of Go is noise. It takes a minute, hence
// the tag; tests/soak/run sets it.
func TestLeaks(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no examples", err)
	}
	lost := regexp.MustCompile(`(definitely|indirectly) lost: 0 bytes`)
	for _, file := range files {
		name := strings.TrimSuffix(file, ".txtar")
		t.Run(name, func(t *testing.T) {
			out := t.TempDir()
			report := filepath.Join(out, "report")
			play(t, file, func(dir string) (*exec.Cmd, error) {
				cmd, err := commandC(place{root, out, dir, name, filepath.Join(root, "examples", "c", name+".c")})
				if err != nil {
					return nil, err
				}
				return exec.Command("valgrind", "--leak-check=full", "--log-file="+report, cmd.Path), nil
			})
			b, err := os.ReadFile(report)
			if err != nil {
				t.Fatal(err)
			}
			if len(lost.FindAll(b, -1)) != 2 {
				t.Errorf("memory is lost:\n%s", b)
			}
		})
	}
}
