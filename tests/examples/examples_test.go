// Package examples runs the programs that newcomers copy: one behaviour a txtar file, the
// same in every language. The head of a file says what the program does, its sections are
// the files of a new working directory, want/stdout is exactly what it prints, and
// want/workspace/PATH what it leaves behind (empty: nothing). A program takes no
// arguments, ends with status 0 and is silent on stderr.
package examples

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"
)

const patience = 60 * time.Second // of one program

func TestExamples(t *testing.T) {
	files, err := filepath.Glob("*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no examples", err)
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "build", "liba3s.so.1")); err != nil {
		t.Fatalf("%v; run: ./build.sh build", err)
	}
	for _, l := range languages {
		t.Run(l.name, func(t *testing.T) {
			if _, err := exec.LookPath(l.tool); err != nil {
				t.Fatalf("%s is missing; install it to run examples/%s", l.tool, l.name)
			}
			out := t.TempDir()
			if l.build != nil {
				if err := l.build(root, out); err != nil {
					t.Fatal(err)
				}
			}
			for _, file := range files {
				name := strings.TrimSuffix(file, ".txtar")
				t.Run(name, func(t *testing.T) {
					source := l.source(root, name)
					if _, err := os.Stat(source); err != nil {
						t.Fatalf("the example is missing: %v", err)
					}
					play(t, file, func(dir string) (*exec.Cmd, error) { return l.command(place{root, out, dir, name, source}) })
				})
			}
		})
	}
}

// play runs a program in a new folder and compares what it says and leaves.
func play(t *testing.T, file string, command func(dir string) (*exec.Cmd, error)) {
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, f := range archive.Files {
		if name, ok := strings.CutPrefix(f.Name, "want/"); ok {
			want[name] = string(f.Data)
			continue
		}
		write(t, filepath.Join(dir, f.Name), f.Data)
	}
	if err := os.MkdirAll(filepath.Join(dir, "workspace"), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd, err := command(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = dir, &out, &errs, time.Second
	timer := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	if err := cmd.Run(); err != nil || errs.Len() > 0 {
		t.Errorf("%v\n%s", err, errs.String())
	}
	if out.String() != want["stdout"] {
		t.Errorf("it printed\n%s\nand should have printed\n%s", out.String(), want["stdout"])
	}
	for name, text := range want {
		if name == "stdout" {
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil && (text != "" || !os.IsNotExist(err)) || string(b) != text {
			t.Errorf("%s holds %q (%v), want %q", name, b, err, text)
		}
	}
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}
