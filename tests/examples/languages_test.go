package examples

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// language says how the programs of a language are made and run.
type language struct {
	name, tool string
	// file is where the program is, below examples/; %s is its name.
	file string
	// build makes all programs before the first is run; nil: there is nothing to make.
	build func(root, out string) error
	// command makes the one program if build did not, and says how it is run.
	command func(place) (*exec.Cmd, error)
}

// place is where one program is run: the repository, the folder of what was built, its
// working directory, its name and source.
type place struct{ root, out, dir, name, source string }

func (l language) source(root, name string) string {
	return filepath.Join(root, "examples", fmt.Sprintf(l.file, name))
}

var languages = []language{
	{"go", "go", "go/%s/main.go", buildGo, func(p place) (*exec.Cmd, error) { return exec.Command(filepath.Join(p.out, p.name)), nil }},
	{"c", "cc", "c/%s.c", nil, commandC},
	{"python", "python3", "python/%s.py", nil, commandPython},
	{"node", "node", "node/%s.mjs", buildNode, commandNode},
	{"rust", "cargo", "rust/%s.rs", buildRust, func(p place) (*exec.Cmd, error) {
		return exec.Command(filepath.Join(p.root, "build", "rust-target", "debug", p.name)), nil
	}},
}

// quiet runs a step of a build; its words are told if it fails.
func quiet(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %v\n%s", cmd, err, out)
	}
	return nil
}

func buildGo(root, out string) error {
	cmd := exec.Command("go", "build", "-o", out+string(filepath.Separator), "./examples/go/...")
	cmd.Dir = root
	return quiet(cmd)
}

func commandC(p place) (*exec.Cmd, error) {
	program, lib := filepath.Join(p.out, p.name), filepath.Join(p.root, "build")
	err := quiet(exec.Command("cc", "-std=c11", "-Wall", "-Wextra", "-pedantic", "-Werror", "-pthread", "-I", filepath.Join(p.root, "include"),
		p.source, "-L", lib, "-la3s", "-Wl,-rpath,"+lib, "-o", program))
	return exec.Command(program), err
}

func commandPython(p place) (*exec.Cmd, error) {
	cmd := exec.Command("python3", p.source)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+filepath.Join(p.root, "bindings", "python"), "PYTHONDONTWRITEBYTECODE=1")
	return cmd, nil
}

// buildNode compiles the addon.
func buildNode(root, _ string) error {
	return quiet(exec.Command("node", filepath.Join(root, "bindings", "node", "scripts", "build.js")))
}

// commandNode lays the program beside an installed package, as in a project that uses it:
// it can import '@a3s-lab/code'.
func commandNode(p place) (*exec.Cmd, error) {
	text, err := os.ReadFile(p.source)
	if err != nil {
		return nil, err
	}
	program, scope := filepath.Join(p.dir, filepath.Base(p.source)), filepath.Join(p.dir, "node_modules", "@a3s-lab")
	if err := os.WriteFile(program, text, 0o644); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(scope, 0o755); err != nil {
		return nil, err
	}
	return exec.Command("node", program), os.Symlink(filepath.Join(p.root, "bindings", "node"), filepath.Join(scope, "code"))
}

func buildRust(root, _ string) error {
	cmd := exec.Command("cargo", "build", "--quiet", "-p", "a3s-examples", "--bins")
	cmd.Dir = filepath.Join(root, "bindings", "rust") // its .cargo/config.toml says where to build to
	return quiet(cmd)
}
