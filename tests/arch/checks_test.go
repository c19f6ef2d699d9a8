package arch

import (
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strings"
	"testing"
)

// TestChecks holds the checks to a small tree that breaks every rule.
func TestChecks(t *testing.T) {
	tr := tree{fset: token.NewFileSet()}
	add := func(name, src string) {
		parsed, err := parser.ParseFile(tr.fset, name, src, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		tr.files = append(tr.files, file{name, path.Dir(name), strings.Count(src, "\n"), parsed})
	}
	add("runtime/chat/a.go", `// Package chat is documented.
package chat

import (
	env "os"
	. "strings"
	"fmt"
	"os/signal"
	"example.com/x"
	"github.com/a3s-lab/liba3s/runtime/session"
	"github.com/a3s-lab/liba3s/runtime/fault"
)

type Loud struct{}

// Quiet is documented.
type Quiet interface{ Method() }

func (Loud) Say() { go fmt.Println(env.Getenv("X"), ToUpper("")); signal.Ignore(); println() }

const A, b = 1, 2
`)
	add("runtime/agent/a.go", "package agent\n\nimport _ \"github.com/a3s-lab/liba3s/runtime/op\"\n")
	add("runtime/nowhere/a.go", "// Package nowhere is on no floor.\npackage nowhere\n")
	add("runtime/model/zhipu/a.go", `// Package zhipu may.
package zhipu

import (
	_ "example.com/x"
	_ "github.com/a3s-lab/liba3s/internal/sse"
	_ "github.com/a3s-lab/liba3s/runtime/model/openai"
	_ "github.com/a3s-lab/liba3s/runtime/model/ollama"
	_ "github.com/a3s-lab/liba3s/runtime/store"
)
`)
	tests := []struct {
		name  string
		check func(tree) []string
		want  []string // the beginnings, in any order
	}{
		{"floors", offFloor, []string{
			"runtime/chat/a.go:9: runtime/chat may not import the third party example.com/x",
			"runtime/chat/a.go:10: runtime/chat (floor 1) may not import runtime/session",
			"runtime/agent/a.go:3: runtime/agent (floor 9) may not import runtime/op",
			"runtime/nowhere/a.go: package runtime/nowhere is on no floor",
			"runtime/model/zhipu/a.go:8: runtime/model/zhipu (floor 8) may not import runtime/model/ollama",
			"runtime/model/zhipu/a.go:9: runtime/model/zhipu (floor 8) may not import runtime/store",
		}},
		{"guest", rudeUses, []string{
			"runtime/chat/a.go:6: strings is imported with a dot", "runtime/chat/a.go:19: fmt.Println", "runtime/chat/a.go:19: env.Getenv",
			"runtime/chat/a.go:19: signal.Ignore", "runtime/chat/a.go:19: println",
		}},
		{"goroutines", bareGo, []string{"runtime/chat/a.go:19: a bare go statement"}},
		{"comments", silent, []string{
			"package runtime/agent has no package comment", "runtime/chat/a.go:14: Loud is exported", "runtime/chat/a.go:17: Quiet.Method is exported",
			"runtime/chat/a.go:19: Say is exported", "runtime/chat/a.go:21: A is exported",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := tt.check(tr)
			for _, w := range tt.want {
				i := slices.IndexFunc(got, func(g string) bool { return strings.HasPrefix(g, w) })
				if i < 0 {
					t.Errorf("nobody says %q", w)
					continue
				}
				got = slices.Delete(got, i, i+1)
			}
			if len(got) > 0 {
				t.Errorf("said too much: %q", got)
			}
		})
	}
}
