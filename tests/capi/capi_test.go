// Package capi holds the tests of the C surface: C programs, compiled as C11 and as
// C++17 against the built library, and the comparison of what the library exports with
// what the header and its description say.
package capi

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var cycles = flag.Int("cycles", 10000, "open and close cycles of TestSlope")

// root of the repository; built is where the library for tests is.
var root, built string

func TestMain(m *testing.M) {
	os.Exit(prepare(m))
}

func prepare(m *testing.M) int {
	flag.Parse()
	var err error
	if root, err = filepath.Abs("../.."); err == nil {
		built, err = os.MkdirTemp("", "a3s-capi-")
	}
	if err == nil {
		defer os.RemoveAll(built)
		err = build()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "building the library for tests:", err)
		return 1
	}
	return m.Run()
}

// build makes the library with the operations that force faults.
func build() error {
	lib := filepath.Join(built, "liba3s.so.1")
	link := "-extldflags '-Wl,--version-script=" + filepath.Join(root, "capi", "a3s.map") + " -Wl,-soname,liba3s.so.1'"
	cmd := exec.Command("go", "build", "-buildmode=c-shared", "-buildvcs=false", "-tags", "a3s_test", "-ldflags", link, "-o", lib, "./capi")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%v\n%s", err, out)
	}
	return os.Symlink("liba3s.so.1", filepath.Join(built, "liba3s.so"))
}

// languages are the compilers a host may use.
var languages = map[string][]string{
	"C11":   {"cc", "-std=c11", "-D_GNU_SOURCE", "-x", "c"},
	"C++17": {"c++", "-std=c++17", "-D_GNU_SOURCE", "-x", "c++"},
}

// compile makes a program of two translation units.
func compile(t *testing.T, language, name string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), name)
	args := languages[language]
	args = append(args[1:len(args):len(args)], "-Wall", "-Wextra", "-pedantic", "-Werror", "-g", "-pthread",
		"-I", filepath.Join(root, "include"), "-I", "c",
		filepath.Join("c", name+".c"), filepath.Join("c", "second.c"),
		"-o", out, "-L", built, "-la3s", "-ldl", "-Wl,-rpath,"+built)
	if msg, err := exec.Command(languages[language][0], args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, msg)
	}
	return out
}

const turn = "think looking around\nsay well \nsay done\nend\n"

// folder makes what the programs work with: configurations, scripts, a workspace.
func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	agent := func(script string) string {
		return "default_model = \"script/main\"\nproviders \"script\" {\n  models \"main\" {\n    script = \"" + script + "\"\n  }\n}\n"
	}
	for name, text := range map[string]string{
		"agent.acl":       agent("turns.txt"),
		"long.acl":        agent("long.txt"),
		"slow.acl":        agent("slow.txt"),
		"host.acl":        agent("host.txt"),
		"ask.acl":         agent("ask.txt"),
		"warns.acl":       agent("turns.txt") + "no_such_key = 1\n",
		"turns.txt":       strings.Repeat(turn, 4),
		"long.txt":        strings.Repeat(turn, 4000), // for hosts that run until they have seen enough
		"host.txt":        "call shout {\"text\": \"hello\"}\nend\nsay done\nend\n",
		"ask.txt":         "call bash {\"command\": \"echo asked for\"}\nend\nsay done\nend\n",
		"slow.txt":        "say beginning\nwait 60000\nsay done\nend\n",
		"workspace/a.txt": "one\ntwo\n",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// run runs a program that must succeed and gives what it printed.
func run(t *testing.T, program string, args ...string) string {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "GOTRACEBACK=all")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", filepath.Base(program), strings.Join(args, " "), err, out)
	}
	return string(out)
}
