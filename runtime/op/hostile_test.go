package op_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/a3s-lab/liba3s/runtime/event"
)

// outcomes gives the results of the calls of one run.
func outcomes(t *testing.T, told []event.Envelope) []event.ToolEnd {
	t.Helper()
	var all []event.ToolEnd
	for _, e := range told {
		if e.Type != "tool_end" {
			continue
		}
		var end event.ToolEnd
		if err := json.Unmarshal(e.Payload, &end); err != nil {
			t.Fatal(err)
		}
		all = append(all, end)
	}
	return all
}

// calls makes a script that makes one call a turn.
func calls(lines ...string) string {
	return "call " + strings.Join(lines, "\nend\ncall ") + "\nend\nsay done"
}

// What a model asks for and must not get: each is a failed result, the run goes on, and
// nothing outside is read or changed.
func TestHostileFiles(t *testing.T) {
	p := scripted(t, calls(
		`read {"file_path":"huge"}`,
		`read {"file_path":"binary"}`,
		`read {"file_path":"../secret"}`,
		`read {"file_path":"`+"/etc/passwd"+`"}`,
		`read {"file_path":"link"}`,
		`read {"file_path":"linked-dir/secret"}`,
		`read {"file_path":"a/../../secret"}`,
		`read {"file_path":"zero"}`,
		`read {"file_path":"pipe"}`,
		`read {"file_path":"dir"}`,
		`read {"file_path":"nul\u0000"}`,
		`write {"file_path":"../new","content":"x"}`,
		`write {"file_path":"dangling","content":"x"}`,
		`write {"file_path":"link","content":"x"}`,
		`write {"file_path":"linked-dir/new","content":"x"}`,
		`write {"file_path":"pipe","content":"x"}`,
		`edit {"file_path":"link","old_string":"secret","new_string":"x"}`,
		`ls {"path":".."}`,
		`ls {"path":"linked-dir"}`,
		`write {"file_path":".git/config","content":"x"}`,
		`write {"file_path":".git/hooks/pre-commit","content":"x"}`,
	))
	p.write("secret", "the secret\n")
	p.write("ws/a/x", "x")
	p.write("ws/dir/x", "x")
	p.write("ws/binary", "a\x00b\x01\xff\xfe")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.WriteFile(p.path("ws/huge"), nil, 0o644))
	must(os.Truncate(p.path("ws/huge"), 10<<30))
	must(os.Symlink(p.path("secret"), p.path("ws/link")))
	must(os.Symlink(p.dir, p.path("ws/linked-dir")))
	must(os.Symlink(p.path("dangling-target"), p.path("ws/dangling")))
	must(os.Symlink("/dev/zero", p.path("ws/zero")))
	must(unix.Mkfifo(p.path("ws/pipe"), 0o644))
	began := time.Now()
	told, err := play(t, p.session(p.agent(), allowAll), "go")
	if err != nil {
		t.Fatal(err)
	}
	if d := time.Since(began); d > 20*time.Second {
		t.Errorf("it took %v", d)
	}
	results := outcomes(t, told)
	if len(results) != 21 {
		t.Fatalf("%d results", len(results))
	}
	for _, r := range results {
		if r.ExitCode == 0 || r.ErrorKind == nil || r.ErrorKind.Type != "invalid_argument" {
			t.Errorf("%s %s: exit %d, %+v, %q", r.Name, r.Args, r.ExitCode, r.ErrorKind, r.Output)
		}
		if strings.Contains(r.Output, "the secret") || strings.Contains(r.Output, "root:") {
			t.Errorf("%s %s told: %s", r.Name, r.Args, r.Output)
		}
	}
	if b, _ := os.ReadFile(p.path("secret")); string(b) != "the secret\n" {
		t.Errorf("the secret is %q", b)
	}
	for _, name := range []string{"new", "dangling-target", "ws/.git/config", "ws/.git/hooks/pre-commit"} {
		if _, err := os.Lstat(p.path(name)); err == nil {
			t.Errorf("%s was made", name)
		}
	}
}

// A search walks past what cannot be read.
func TestHostileFilesInSearches(t *testing.T) {
	p := scripted(t, calls(`grep {"pattern":"the"}`, `glob {"pattern":"**/*"}`, `ls {}`))
	p.write("secret", "the secret\n")
	p.write("ws/plain", "the one\n")
	p.write("ws/binary", "the\x00binary")
	if err := os.WriteFile(p.path("ws/huge"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{os.Truncate(p.path("ws/huge"), 10<<30), os.Symlink(p.path("secret"), p.path("ws/link")), os.Symlink("..", p.path("ws/up")), unix.Mkfifo(p.path("ws/pipe"), 0o644)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	told, err := play(t, p.session(p.agent(), allowAll), "go")
	if err != nil {
		t.Fatal(err)
	}
	if d := time.Since(began); d > 20*time.Second {
		t.Errorf("it took %v", d)
	}
	for i, r := range outcomes(t, told) {
		if r.ExitCode != 0 || strings.Contains(r.Output, "the secret") {
			t.Errorf("%s: %+v", r.Name, r)
		}
		if i == 0 && !strings.Contains(r.Output, "the one") {
			t.Errorf("%s", r.Output)
		}
	}
}

// Names of files are untrusted text: none can pass for another line of an output, move
// the cursor of a terminal or turn the direction of text.
func TestHostileNames(t *testing.T) {
	p := scripted(t, calls(`ls {}`, `glob {"pattern":"**"}`, `grep {"pattern":"needle"}`, `read {"file_path":"evil\n/etc/passwd"}`))
	names := []string{"evil\n/etc/passwd", "esc\x1b[2Jape", "rlo\u202egpj.exe", "cr\rback", "bad\xffutf8", "quote\"'`$(id)"}
	for _, name := range names {
		p.write(filepath.Join("ws", name), "needle\n")
	}
	told, err := play(t, p.session(p.agent(), allowAll), "go")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range outcomes(t, told) {
		if r.ExitCode != 0 {
			t.Errorf("%s: %q", r.Name, r.Output)
		}
		for line := range strings.Lines(r.Output) {
			if strings.HasPrefix(line, "/etc/passwd") {
				t.Errorf("%s: a forged line in %q", r.Name, r.Output)
			}
		}
		for _, bad := range []string{"\x1b", "\u202e", "\r"} {
			if strings.Contains(r.Output, bad) {
				t.Errorf("%s: %q in %q", r.Name, bad, r.Output)
			}
		}
	}
}

// A folder of the path that is swapped for a link between the check and the use leads
// nowhere else.
func TestHostileSwapOfAParent(t *testing.T) {
	const rounds = 45
	var lines []string
	for i := range rounds {
		lines = append(lines, fmt.Sprintf(`write {"file_path":"dir/sub/f%d","content":"x"}`, i))
	}
	p := scripted(t, calls(lines...))
	p.write("outside/sub/keep", "x")
	p.write("ws/dir/sub/keep", "x")
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.Rename(p.path("ws/dir"), p.path("ws/real"))
			_ = os.Symlink(p.path("outside"), p.path("ws/dir"))
			_ = os.Remove(p.path("ws/dir"))
			_ = os.Rename(p.path("ws/real"), p.path("ws/dir"))
		}
	}()
	told, err := play(t, p.session(p.agent(), allowAll), "go")
	close(stop)
	<-done
	if err != nil {
		t.Fatal(err)
	}
	if n := len(outcomes(t, told)); n != rounds {
		t.Errorf("%d results", n)
	}
	found, err := os.ReadDir(p.path("outside/sub"))
	if err != nil || len(found) != 1 {
		t.Errorf("outside: %v, %v", found, err)
	}
}

// Arguments of a million levels, from the model and in what it answers, end as refused
// calls and not as a crash.
func TestHostileDepth(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 1_000_000) + "1" + strings.Repeat("}", 1_000_000)
	p := scripted(t, "say "+deep[:100]+"\ncall ls "+deep+"\nend\nsay done")
	told, err := play(t, p.session(p.agent(), allowAll), "go")
	if err != nil {
		t.Fatal(err)
	}
	if r := outcomes(t, told); len(r) != 1 || r[0].ErrorKind == nil || r[0].ErrorKind.Type != "invalid_argument" {
		t.Errorf("%d results", len(r))
	}
}
