package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// The programs of the languages. Each takes a part, a folder with agent.acl and
// workspace/, and a number, and prints lines "name value ...".

// language is a column of the table.
type language string

// The columns.
const (
	inC      language = "C"
	inRust   language = "Rust"
	inNode   language = "Node"
	inPython language = "Python"
	inGo     language = "Go"
)

var languages = []language{inC, inRust, inNode, inPython, inGo}

// play runs a part of a language's program on a script and gives its figures.
func (b *bench) play(l language, part, script string, n int) (map[string][]float64, error) {
	cmd, err := b.command(l, part, script, n)
	if err != nil {
		return nil, err
	}
	out, err := output(b.ctx, 2*time.Minute, cmd[0], cmd[1:]...)
	return figures(out), err
}

// command builds what is needed and gives the command of a part.
func (b *bench) command(l language, part, script string, n int) ([]string, error) {
	dir := filepath.Join(b.dir, string(l)+"-"+part)
	if _, err := scripted(dir, script); err != nil {
		return nil, err
	}
	if _, err := os.Stat(b.library()); err != nil {
		return nil, fmt.Errorf("%w; run ./build.sh build", err)
	}
	program, err := b.program(l)
	if err != nil {
		return nil, err
	}
	number := strconv.Itoa(n)
	switch l {
	case inC:
		return b.commandInC(program, part, dir, number)
	case inGo:
		return []string{program, "child", "go", part, dir, number}, nil
	case inRust:
		return []string{"env", "A3S_LIB_DIR=" + b.library(), program, part, dir, number}, nil
	case inNode:
		addon, err := b.once("pacer for Node", func() (string, error) { return b.nodePacer(program) })
		if err != nil {
			return nil, err
		}
		return []string{"env", "A3S_LIB=" + b.library(), program, "--expose-gc", b.source("node", "bench.js"), part, dir, number, addon}, nil
	}
	args := []string{b.source("python", "bench.py"), part, dir, number}
	if part == "call" || part == "wake" {
		pacer, err := b.once("pacer", func() (string, error) { return b.compile("libpacer.so", "-fPIC", "-shared", "pacer.c") })
		if err != nil {
			return nil, err
		}
		args = append(args, pacer)
	}
	// Compiled modules are kept as an installed package has them.
	env := []string{"env", "-u", "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX=" + filepath.Join(b.dir, "pycache"),
		"PYTHONPATH=" + filepath.Join(b.root, "bindings", "python"), "A3S_LIB=" + b.library(), program}
	return append(env, args...), nil
}

func (b *bench) commandInC(program, part, dir, number string) ([]string, error) {
	if part == "load" { // not linked with the library
		loader, err := b.once("loader", func() (string, error) { return b.compile("load", "load.c") })
		return []string{loader, b.library()}, err
	}
	o := unmerged(options())
	if part == "deliver" {
		unbounded(o)
	}
	agent, err := json.Marshal(map[string]any{"acl_path": filepath.Join(dir, "agent.acl"), "cwd": dir})
	if err != nil {
		return nil, err
	}
	open := map[string]any{"workspace": filepath.Join(dir, "workspace"), "options": o}
	if part == "memory" || part == "first" {
		delete(open, "options")
	}
	session, err := json.Marshal(open)
	if err != nil {
		return nil, err
	}
	cmd := []string{program, part, string(agent), string(session), number}
	if part == "call" {
		empty, err := b.once("empty library", b.emptyLibrary)
		if err != nil {
			return nil, err
		}
		cmd = append(cmd, empty)
	}
	return cmd, nil
}

// program is what runs a language's parts.
func (b *bench) program(l language) (string, error) {
	return b.once(string(l), func() (string, error) {
		switch l {
		case inC:
			return b.compile("bench-c", "bench.c", "host.c", "common.c", "pacer.c")
		case inRust:
			return b.cargo()
		case inNode:
			return b.node()
		case inPython:
			return b.python()
		}
		return os.Executable()
	})
}

// built is what was built, or why it was not.
type built struct {
	path string
	err  error
}

func (b *bench) once(name string, build func() (string, error)) (string, error) {
	if b.made == nil {
		b.made = map[string]built{}
	}
	if _, ok := b.made[name]; !ok {
		path, err := build()
		b.made[name] = built{path, err}
	}
	return b.made[name].path, b.made[name].err
}

// library is the shared library that ./build.sh bench has just built.
func (b *bench) library() string { return filepath.Join(b.root, "build", "liba3s.so.1") }

func (b *bench) source(path ...string) string {
	return filepath.Join(append([]string{b.root, "tests", "bench"}, path...)...)
}

// compile makes a program or library of files of C.
func (b *bench) compile(out string, args ...string) (string, error) {
	path := filepath.Join(b.dir, out)
	cc := []string{"-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-pedantic", "-Werror", "-O2", "-pthread", "-I", filepath.Join(b.root, "include"), "-I", b.source("c"), "-o", path}
	for _, a := range args {
		if strings.HasSuffix(a, ".c") {
			a = b.source("c", a)
		}
		cc = append(cc, a)
	}
	if out != "load" {
		build := filepath.Dir(b.library())
		cc = append(cc, "-L", build, "-la3s", "-Wl,-rpath,"+build)
	}
	_, err := output(b.ctx, time.Minute, "cc", append(cc, "-ldl")...)
	return path, err
}

func (b *bench) emptyLibrary() (string, error) {
	path := filepath.Join(b.dir, "libempty.so")
	_, err := output(b.ctx, 2*time.Minute, "go", "build", "-C", b.root, "-buildmode=c-shared", "-o", path, "./tests/bench/empty")
	return path, err
}

// python is the interpreter itself: a shim of a version manager would be measured too.
func (b *bench) python() (string, error) {
	out, err := output(b.ctx, time.Minute, "python3", "-c", "import sys; print(sys.executable)")
	if err != nil {
		return "", fmt.Errorf("%w; install it (Debian: apt-get install python3)", err)
	}
	return strings.TrimSpace(out), nil
}

// node builds the binding's addon and gives the interpreter.
func (b *bench) node() (string, error) {
	out, err := output(b.ctx, time.Minute, "node", "-p", "process.execPath")
	if err != nil {
		return "", fmt.Errorf("%w; install it (Debian: apt-get install nodejs)", err)
	}
	_, err = output(b.ctx, time.Minute, "node", filepath.Join(b.root, "bindings", "node", "scripts", "build.js"))
	return strings.TrimSpace(out), err
}

// nodePacer compiles the pacer against the headers of this Node.
func (b *bench) nodePacer(node string) (string, error) {
	for _, headers := range []string{os.Getenv("NODE_INCLUDE"), filepath.Join(node, "..", "..", "include", "node"), "/usr/include/node"} {
		if _, err := os.Stat(filepath.Join(headers, "node_api.h")); err == nil {
			return b.compile("pacer.node", "-fPIC", "-shared", "-isystem", headers, filepath.Join("..", "node", "pacer.c"), "pacer.c")
		}
	}
	return "", errors.New("node_api.h was not found; set NODE_INCLUDE, or install Node with its headers")
}

// cargo builds the program of Rust.
func (b *bench) cargo() (string, error) {
	if _, err := exec.LookPath("cargo"); err != nil {
		return "", fmt.Errorf("%w; install Rust", err)
	}
	target := filepath.Join(b.root, "build", "rust-target")
	_, err := output(b.ctx, 5*time.Minute, "cargo", "build", "--quiet", "--release", "--manifest-path", b.source("rust", "Cargo.toml"), "--target-dir", target)
	return filepath.Join(target, "release", "a3s-bench"), err
}
