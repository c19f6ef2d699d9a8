//go:build valgrind

package capi

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// TestLeaks runs the programs under valgrind. What its other checks say of the threads
// of Go is noise; memory that nothing points to any more is not. The programs of forks
// and signals are not run: valgrind handles both in ways of its own. It takes a minute,
// hence the tag; tests/soak/run sets it.
func TestLeaks(t *testing.T) {
	lost := regexp.MustCompile(`definitely lost: ([\d,]+) bytes`)
	for _, name := range []string{"leak", "library", "handles", "requests", "streams", "callbacks", "calls", "hosts"} {
		t.Run(name, func(t *testing.T) {
			report := filepath.Join(t.TempDir(), "report")
			run(t, "valgrind", "--leak-check=full", "--log-file="+report, compile(t, "C11", name), folder(t))
			b, err := os.ReadFile(report)
			if err != nil {
				t.Fatal(err)
			}
			found := lost.FindSubmatch(b)
			if found == nil {
				t.Fatalf("no count of lost bytes in the report:\n%s", b[max(0, len(b)-2000):])
			}
			if leaks := string(found[1]) != "0"; leaks != (name == "leak") {
				where, _ := exec.Command("grep", "-A12", "definitely lost in", report).Output()
				t.Errorf("%s bytes are lost\n%s", found[1], where)
			}
		})
	}
}
