package local

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/a3s-lab/liba3s/runtime/workspace"
)

// patterns are those of the comparison with ripgrep.
var patterns = []struct{ name, pattern string }{
	{"literal", `unsafe.Pointer`},
	{"none", `no such text anywhere`},
	{"method", `func \(\w+ \*?Reader\) Read`},
	{"fold", `(?i)deadlock`},
	{"word", `\b[a-z]{12,}Err\b`},
	{"anchor", `^func `},
	{"either", `TODO|FIXME`},
	{"class", `[0-9]{4}-[0-9]{2}`},
}

func goTree(b *testing.B) *Workspace {
	b.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		b.Fatalf("go env GOROOT: %v", err)
	}
	w, err := Open(ctx, Config{Root: filepath.Join(strings.TrimSpace(string(root)), "src")})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { w.Close() })
	return w
}

func BenchmarkGrep(b *testing.B) {
	for _, p := range patterns {
		b.Run(p.name, func(b *testing.B) {
			w := goTree(b)
			hits := 0
			for b.Loop() {
				hits = 0
				stats, err := w.Grep(ctx, workspace.GrepQuery{Base: ".", Pattern: p.pattern}, func(workspace.Line) bool { hits++; return true })
				if err != nil {
					b.Fatal(err)
				}
				b.SetBytes(stats.Bytes)
			}
			b.ReportMetric(float64(hits), "hits")
		})
	}
}

// BenchmarkRipgrep is the peer, where it is installed.
func BenchmarkRipgrep(b *testing.B) {
	rg, err := exec.LookPath("rg")
	if err != nil {
		b.Fatalf("ripgrep is the peer: %v", err)
	}
	for _, p := range patterns {
		b.Run(p.name, func(b *testing.B) {
			w := goTree(b)
			for b.Loop() {
				cmd := exec.Command(rg, "--no-config", "--no-require-git", "--hidden", "-n", "-e", p.pattern, "--sort=none", "./")
				cmd.Dir = w.Root()
				if out, err := cmd.Output(); err != nil && cmd.ProcessState.ExitCode() != 1 {
					b.Fatalf("%v: %s", err, out)
				}
			}
		})
	}
}

func BenchmarkGlob(b *testing.B) {
	for _, pattern := range []string{"**/*_test.go", "*/*.go", "net/http/*.go"} {
		b.Run(pattern, func(b *testing.B) {
			w := goTree(b)
			n := 0
			for b.Loop() {
				n = 0
				for _, err := range w.Glob(ctx, workspace.GlobQuery{Base: ".", Pattern: pattern}) {
					if err != nil {
						b.Fatal(err)
					}
					n++
				}
			}
			b.ReportMetric(float64(n), "files")
		})
	}
}

func BenchmarkRead(b *testing.B) {
	w := goTree(b)
	for b.Loop() {
		if _, _, err := w.Read(ctx, "net/http/server.go", 1<<20); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkWrite(b *testing.B) {
	w, err := Open(ctx, Config{Root: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer w.Close()
	data := make([]byte, 16<<10)
	for b.Loop() {
		if _, err := w.Write(ctx, "a/b/c/file.txt", data, workspace.Condition{}); err != nil {
			b.Fatal(err)
		}
	}
}
