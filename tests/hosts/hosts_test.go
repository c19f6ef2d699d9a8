// Package hosts holds what processes do to a library that lives in them: fork, signals,
// crash reporters, other Go runtimes, storms of threads, and many agents side by side.
// The hosts are programs in C, Python and JavaScript; tests/capi and the tests of the bindings
// hold what concerns one function or one language (TestCases says where each case is).
package hosts

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/a3s-lab/liba3s/tests/native"
)

// root of the repository; built is where the library for tests is; python the
// interpreter, empty if there is none.
var root, built, python string

func TestMain(m *testing.M) {
	os.Exit(prepare(m))
}

func prepare(m *testing.M) int {
	var err error
	if root, err = native.Root(); err == nil {
		built, err = os.MkdirTemp("", "a3s-hosts-")
	}
	if err == nil {
		defer os.RemoveAll(built)
		err = native.Library(root, built, "a3s_test")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if out, err := exec.Command("python3", "-c", "import sys; assert sys.version_info >= (3, 10); print(sys.executable)").Output(); err == nil {
		python = strings.TrimSpace(string(out))
	}
	return m.Run()
}

// linked makes a C program that is linked with the library and uses the checks of
// tests/capi; loading makes one that loads it by itself.
func linked(t *testing.T, name string) string {
	t.Helper()
	capi := filepath.Join(root, "tests", "capi", "c")
	return compile(t, name, "-I", capi, filepath.Join(capi, "second.c"))
}

func loading(t *testing.T, name string) string {
	t.Helper()
	return compile(t, name)
}

func compile(t *testing.T, name string, more ...string) string {
	t.Helper()
	program, err := native.Program(root, built, filepath.Join("c", name+".c"), more...)
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// ended is how a program ended.
type ended struct {
	out, stderr, status string
}

// host runs a program for at most a minute. Its environment is more and what Python
// needs, nothing else.
func host(t *testing.T, dir string, more []string, program string, args ...string) ended {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "A3S_LIB=" + built, "PYTHONDONTWRITEBYTECODE=1",
		"PYTHONPATH=" + filepath.Join(root, "bindings", "python") + ":" + filepath.Join(root, "tests", "hosts", "python"),
	}, more...)
	cmd.WaitDelay = time.Second
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	status := "exit status 0"
	if err := cmd.Run(); err != nil {
		status = strings.TrimSuffix(err.Error(), " (core dumped)")
	}
	if ctx.Err() != nil {
		status = "it did not end"
	}
	return ended{out.String(), stderr.String(), status}
}

// clean runs a program that must succeed and print nothing but want.
func clean(t *testing.T, dir, want, program string, args ...string) {
	t.Helper()
	if got, all := host(t, dir, nil, program, args...), (ended{want, "", "exit status 0"}); got != all {
		t.Errorf("got %+v\nwant %+v", got, all)
	}
}

// script gives the interpreter and the path of a Python program.
func script(t *testing.T, name string) (string, string) {
	t.Helper()
	if python == "" {
		t.Fatal("python3 of 3.10 or newer is missing; install it (Debian: apt-get install python3)")
	}
	return python, filepath.Join(root, "tests", "hosts", "python", name)
}

const provider = "default_model = \"script/main\"\nproviders \"script\" {\n  models \"main\" {\n    script = %q\n  }\n}\n"

// folder makes a place for a host: agent.acl, whose model plays turns, ask.acl, whose
// model asks for a command, and a workspace.
func folder(t *testing.T, turns string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, map[string]string{
		"agent.acl":       fmt.Sprintf(provider, "turns.txt"),
		"turns.txt":       turns,
		"ask.acl":         fmt.Sprintf(provider, "ask.txt"),
		"ask.txt":         "call bash {\"command\": \"echo once >> ran\"}\nend\nsay done\nend\n",
		"workspace/a.txt": "one\ntwo\n",
	})
	return dir
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
