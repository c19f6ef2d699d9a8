// Package generation holds that a new operation, event, option or kind of host extension
// is a Go type, a line of a table and ./build.sh gen: it adds one of each to a copy of the
// repository and uses them from all five languages.
package generation

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/a3s-lab/liba3s/tests/native"
)

// lines are what is added to files that are there: behind the first place where the
// anchor stands.
var lines = []struct{ file, anchor, added string }{
	{"runtime/agent/kinds.go", "var hostKinds = []HostKind{\n", "\tprobeKind,\n"},
	{"runtime/op/ops.go", "var agentOps = []Op{\n", "\tdefine(\"agent.probe\", \"Ask a probe of the host.\", true, probe),\n"},
	{"runtime/event/catalogue.go", "var Catalogue = []Row{\n", "\t{\"probe_seen\", ProbeSeen{}},\n"},
	{"runtime/agent/options.go", "type Options struct {\n", "\t// ProbeDepth is how deep probes look.\n\tProbeDepth *int `json:\"probe_depth,omitempty\"`\n"},
	{"runtime/agent/options.go", "var OptionTable = []Option{\n", "\t{\"probe_depth\", \"integer\", \"none\", Works, \"how deep probes look\", nil},\n"},
}

// methods are what a person writes for a new operation in a language with methods: they
// name the generated table and types.
var methods = []struct{ file, anchor, added string }{
	{
		"bindings/node/lib/agent.js", "  // --- the end ---\n",
		"  async probe(params) { return this.#desk.call(this.#handle, 'agent.probe', params, this); }\n",
	},
	{
		"bindings/rust/a3s-code-core/src/agent.rs", "impl Agent {\n",
		"    /// Asks a probe.\n    pub fn probe(&self, name: &str, word: &str) -> Call<serde_json::Value> {\n" +
			"        self.call(ops::AGENT_PROBE, &serde_json::json!({ \"name\": name, \"word\": word }), wire::decode)\n    }\n\n",
	},
}

// hosts are the programs that use it, and where they lie in the copy.
var hosts = map[string]string{
	"go/main.go": "probe/main.go",
	"probe.c":    "probe/c/probe.c",
	"probe.py":   "probe/probe.py",
	"probe.mjs":  "bindings/node/probe.mjs",
	"probe.ts":   "bindings/node/test/types/probe.ts",
	"probe.rs":   "bindings/rust/a3s-code-core/examples/probe.rs",
}

// place is the copy. It lies in build/, always at the same path, so that compilers find
// what they made before.
type place struct {
	t          *testing.T
	root, copy string
}

func TestAddedEverywhere(t *testing.T) {
	root, err := native.Root()
	if err != nil {
		t.Fatal(err)
	}
	p := &place{t, root, filepath.Join(root, "build", "generation")}
	p.fill()
	p.must(p.copy, "go", "run", "./capi/gen")
	p.must(p.copy, "go", "run", "./capi/gen", "-check")
	if err := native.Library(p.copy, filepath.Join(p.copy, "build"), ""); err != nil {
		t.Fatal(err)
	}
	t.Run("schema", p.schema)
	t.Run("Go", func(t *testing.T) { p.says(t, "go saw hello\n", p.copy, "go", "run", "./probe") })
	t.Run("C", p.inC)
	t.Run("Python", func(t *testing.T) { p.says(t, "Python saw hello\n", p.copy, "python3", "probe/probe.py") })
	t.Run("Node", p.inNode)
	t.Run("Rust", p.inRust)
}

// fill makes the copy, with everything that is added.
func (p *place) fill() {
	p.t.Helper()
	// What was compiled stays: the rest must be as the repository is.
	if err := os.RemoveAll(p.copy); err != nil {
		p.t.Fatal(err)
	}
	list := exec.Command("git", "ls-files", "-z")
	list.Dir = p.root
	files, err := list.Output()
	if err != nil {
		p.t.Fatal("git ls-files:", err)
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(files), "\x00"), "\x00") {
		b, err := os.ReadFile(filepath.Join(p.root, name))
		if os.IsNotExist(err) {
			continue // deleted, not yet committed
		}
		if err != nil {
			p.t.Fatal(err)
		}
		p.put(name, b)
	}
	core := os.DirFS("testdata/core")
	if err := os.CopyFS(p.copy, core); err != nil {
		p.t.Fatal(err)
	}
	for from, to := range hosts {
		b, err := os.ReadFile(filepath.Join("testdata", "hosts", from))
		if err != nil {
			p.t.Fatal(err)
		}
		p.put(to, b)
	}
	for _, l := range append(lines, methods...) {
		b, err := os.ReadFile(filepath.Join(p.copy, l.file))
		if err != nil {
			p.t.Fatal(err)
		}
		before, after, ok := strings.Cut(string(b), l.anchor)
		if !ok {
			p.t.Fatalf("%s has no %q: this test must say where else a line is added", l.file, l.anchor)
		}
		p.put(l.file, []byte(before+l.anchor+l.added+after))
	}
	if err := os.MkdirAll(filepath.Join(p.copy, "build"), 0o755); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) put(name string, b []byte) {
	path := filepath.Join(p.copy, name)
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, b, 0o755)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// run runs a program in a folder and gives what it prints.
func (p *place) run(dir, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 9*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	build := filepath.Join(p.copy, "build")
	cmd.Env = append(os.Environ(), "GODEBUG=", "A3S_LIB="+build, "A3S_LIB_DIR="+build, "LD_LIBRARY_PATH="+build, "PYTHONDONTWRITEBYTECODE=1",
		"PYTHONPATH="+filepath.Join(p.copy, "bindings", "python"), "CARGO_TARGET_DIR="+filepath.Join(p.root, "build", "rust-target"))
	var out, told bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &told
	err := cmd.Run()
	if err != nil {
		return out.String() + told.String(), err
	}
	return out.String(), nil
}

func (p *place) must(dir, program string, args ...string) {
	p.t.Helper()
	if out, err := p.run(dir, program, args...); err != nil {
		p.t.Fatalf("%s %v: %v\n%s", program, args, err, out)
	}
}

func (p *place) says(t *testing.T, want, dir, program string, args ...string) {
	t.Helper()
	if got, err := p.run(dir, program, args...); err != nil || got != want {
		t.Errorf("%s %v: got %q, %v; want %q", program, args, got, err, want)
	}
}

// schema looks for everything in what C programs and documents are made from.
func (p *place) schema(t *testing.T) {
	for file, words := range map[string][]string{
		"include/a3s.schema.json": {`"agent.probe"`, `"probe_seen"`, `"probe_depth"`, `"AgentProbeQuestion"`},
		"docs/extensions.md":      {"| [probe](#probe) | look |"},
		"docs/options.md":         {"probe_depth"},
	} {
		b, err := os.ReadFile(filepath.Join(p.copy, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range words {
			if !bytes.Contains(b, []byte(w)) {
				t.Errorf("%s does not have %s", file, w)
			}
		}
	}
}

func (p *place) inC(t *testing.T) {
	program, err := native.Program(p.copy, filepath.Join(p.copy, "build"), filepath.Join(p.copy, "probe", "c", "probe.c"))
	if err != nil {
		t.Fatal(err)
	}
	p.says(t, "{\"seen\":\"C saw hello\"}\n", p.copy, program)
}

func (p *place) inNode(t *testing.T) {
	modules := filepath.Join(p.root, "bindings", "node", "node_modules")
	if _, err := exec.LookPath("node"); err != nil {
		t.Fatal("node is missing; install Node 20 or newer")
	}
	dir := filepath.Join(p.copy, "bindings", "node")
	if _, err := os.Stat(filepath.Join(modules, "typescript")); err != nil { // the binding's own tests did not run yet
		if out, err := p.run(dir, "npm", "install", "--no-save", "--omit=optional", "--no-audit", "--no-fund", "--loglevel=error"); err != nil {
			t.Fatalf("the development tools of bindings/node cannot be installed: %v\n%s", err, out)
		}
	} else if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	// Not the whole project: its exhaustive switch over events must miss the new one.
	p.says(t, "", dir, "node_modules/.bin/tsc", "--noEmit", "--strict", "--exactOptionalPropertyTypes", "--module", "nodenext", "--moduleResolution", "nodenext",
		"--target", "es2022", "--lib", "es2022,esnext.disposable", "--types", "node", "test/types/probe.ts")
	if out, err := p.run(dir, "node", "scripts/build.js"); err != nil {
		t.Fatal(err, out)
	}
	p.says(t, "Node saw hello\n", dir, "node", "probe.mjs")
}

func (p *place) inRust(t *testing.T) {
	if _, err := exec.LookPath("cargo"); err != nil {
		t.Fatal("cargo is missing; install Rust 1.85 or newer")
	}
	p.says(t, "Rust saw hello\n", filepath.Join(p.copy, "bindings", "rust"), "cargo", "run", "--quiet", "-p", "a3s-code-core", "--example", "probe")
}
