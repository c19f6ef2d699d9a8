package local

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/workspace"
)

func run(t *testing.T, w *Workspace, cmd workspace.Command) (string, workspace.Exit) {
	t.Helper()
	var out bytes.Buffer
	exit, err := w.Run(ctx, cmd, func(p []byte) { out.Write(p) })
	if err != nil {
		t.Fatalf("run %q: %v", cmd.Line, err)
	}
	return out.String(), exit
}

func TestRun(t *testing.T) {
	w := open(t)
	for _, c := range []struct {
		name string
		cmd  workspace.Command
		out  string
		exit workspace.Exit
	}{
		{"root", workspace.Command{Line: "pwd; echo $0"}, w.Root() + "\nbash\n", workspace.Exit{}},
		{"status", workspace.Command{Line: "echo a; echo b >&2; exit 3"}, "a\nb\n", workspace.Exit{Code: 3}},
		{"variable", workspace.Command{Line: "echo $X", Env: map[string]string{"X": "y"}}, "y\n", workspace.Exit{}},
		{"no such program", workspace.Command{Line: "nosuchprogram 2>/dev/null"}, "", workspace.Exit{Code: 127}},
		{"time-out", workspace.Command{Line: "echo a; sleep 600", Timeout: 100 * time.Millisecond}, "a\n", workspace.Exit{Code: -1, TimedOut: true}},
		{"CANC-04 input", workspace.Command{Line: "cat; read x; echo $?"}, "1\n", workspace.Exit{}},
		{"CANC-07 editor", workspace.Command{Line: "$EDITOR x || echo none"}, "none\n", workspace.Exit{}},
		{"CANC-07 overruled", workspace.Command{Line: "echo $GIT_EDITOR", Env: map[string]string{"GIT_EDITOR": "true"}}, "true\n", workspace.Exit{}},
		{"left behind", workspace.Command{Line: "sleep 600 >/dev/null & echo a"}, "a\n", workspace.Exit{Background: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if out, exit := run(t, w, c.cmd); out != c.out || exit != c.exit {
				t.Errorf("%q, %+v; want %q, %+v", out, exit, c.out, c.exit)
			}
		})
	}
	ctx, cancel := context.WithCancel(ctx)
	exit, err := w.Run(ctx, workspace.Command{Line: "echo; sleep 600"}, func([]byte) { cancel() })
	if want := (workspace.Exit{Code: -1, Cancelled: true}); exit != want || err != nil {
		t.Errorf("cancel: %+v, %v", exit, err)
	}
}

// TestTRST01and03 is about what a command can see of the host.
func TestTRST01and03(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "sk-process")
	given := map[string]string{
		"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/home/x", "LANG": "C.UTF-8", "LC_ALL": "C", "TZ": "UTC", "TERM": "dumb", "USER": "x",
		"OPENAI_API_KEY": "sk-given", "AWS_SECRET_ACCESS_KEY": "k", "LD_PRELOAD": "/x.so", "BASH_ENV": "/x", "ENV": "/x",
		"NODE_OPTIONS": "-r x", "PYTHONSTARTUP": "/x", "BASH_FUNC_ls%%": "() { echo; }", "SSH_AUTH_SOCK": "/s", "GITHUB_TOKEN": "t",
	}
	w, err := Open(ctx, Config{Root: t.TempDir(), Env: given})
	must(t, err)
	defer w.Close()
	out, _ := run(t, w, workspace.Command{Line: "/usr/bin/env", Env: map[string]string{"MINE": "1"}})
	var names []string
	for l := range strings.Lines(out) {
		name, _, _ := strings.Cut(l, "=")
		names = append(names, name)
	}
	slices.Sort(names)
	want := []string{"A3S_CALL", "EDITOR", "GIT_EDITOR", "GIT_PAGER", "GIT_TERMINAL_PROMPT", "HOME", "LANG", "LC_ALL", "MINE", "PAGER", "PATH", "PWD", "SHLVL", "TERM", "TZ", "USER", "_"}
	if !slices.Equal(names, want) || strings.Contains(out, "sk-") {
		t.Errorf("variables %q, want %q", names, want)
	}
	for _, name := range []string{"LD_PRELOAD", "LD_LIBRARY_PATH", "BASH_ENV", "ENV", "NODE_OPTIONS", "PYTHONSTARTUP", "PERL5OPT"} {
		_, err := w.Run(ctx, workspace.Command{Line: ":", Env: map[string]string{name: "x"}}, nil)
		kind(t, "run with "+name, err, fault.Denied)
	}
	for _, name := range []string{"", "A=B", "A\x00"} {
		_, err := w.Run(ctx, workspace.Command{Line: ":", Env: map[string]string{name: "x"}}, nil)
		kind(t, "run with a bad name", err, fault.Invalid)
	}
	empty, err := Open(ctx, Config{Root: t.TempDir()})
	must(t, err)
	defer empty.Close()
	if out, _ := run(t, empty, workspace.Command{Line: "echo $PATH"}); out != defaultPath+"\n" {
		t.Errorf("the default PATH is %q", out)
	}
}

func TestShell(t *testing.T) {
	bin, root := t.TempDir(), t.TempDir()
	must(t, os.Symlink("/bin/sh", filepath.Join(bin, "sh")))
	must(t, os.WriteFile(filepath.Join(root, "bash"), []byte("#!/bin/sh\necho evil\n"), 0o755))
	for path, want := range map[string]string{bin: "sh\n", ".:" + bin: "sh\n"} {
		w, err := Open(ctx, Config{Root: root, Env: map[string]string{"PATH": path}})
		must(t, err)
		if out, _ := run(t, w, workspace.Command{Line: "echo $0"}); out != want {
			t.Errorf("PATH %q: %q, want %q", path, out, want)
		}
		w.Close()
	}
	w, err := Open(ctx, Config{Root: root, Env: map[string]string{"PATH": "/no/such"}})
	must(t, err)
	defer w.Close()
	_, err = w.Run(ctx, workspace.Command{Line: ":"}, nil)
	kind(t, "no shell", err, fault.Unsupported)
}
