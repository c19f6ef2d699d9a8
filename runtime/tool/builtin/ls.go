package builtin

import (
	"context"
	_ "embed" // ls.md
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/tool"
	"github.com/a3s-lab/liba3s/runtime/workspace"
)

// maxEntries is how many entries of a folder are looked at.
const maxEntries = 100_000

//go:embed ls.md
var lsDoc string

const lsParameters = `{"type":"object","additionalProperties":false,"properties":{
"path":{"type":"string","maxLength":4096,"description":"Folder, relative to the workspace; its root unless given."},
"limit":{"type":"integer","minimum":1,"maximum":1000,"description":"Entries of one page; 200 unless given."},
"cursor":{"type":"string","description":"Where to go on, from the answer before."}}}`

type lsTool struct{ base }

var lsBase = describe("ls", lsDoc, lsParameters)

func newLs() tool.Tool { return lsTool{lsBase} }

type lsArgs struct {
	Path string `json:"path"`
	pageArgs
}

// Effects: it reads the folder.
func (lsTool) Effects(args json.RawMessage) chat.Effects {
	e := chat.Effects{Read: true, Idempotent: true}
	if a, err := decode[lsArgs](args); err == nil {
		e.Paths = []string{orRoot(a.Path)}
	}
	return e
}

// Run lists the folder.
func (lsTool) Run(ctx context.Context, env tool.Env, args json.RawMessage) (chat.Result, error) {
	a, err := decode[lsArgs](args)
	if err != nil {
		return failed("ls", "", err), nil
	}
	dir, err := clean(env, orRoot(a.Path))
	if err != nil {
		return failed("ls", a.Path, err), nil
	}
	var entries []workspace.Info
	more := false
	for e, err := range env.Workspace.List(ctx, dir) {
		if err != nil {
			return failed("ls", dir, err), nil
		}
		if more = len(entries) == maxEntries; more {
			break
		}
		entries = append(entries, e)
	}
	slices.SortStableFunc(entries, byKindAndName)
	p, err := a.page(len(entries), "entries")
	if err != nil {
		return failed("ls", dir, err), nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Directory: %s\n\n", workspace.Display(dir))
	for _, e := range entries[p.from:p.to] {
		b.WriteString(entryLine(e))
	}
	if len(entries) == 0 {
		b.WriteString("(empty)\n")
	} else {
		fmt.Fprintf(&b, "\n%d of %d entries\n", p.to-p.from, len(entries))
	}
	if more {
		fmt.Fprintf(&b, "The folder has more than %d entries; only these were looked at\n", maxEntries)
	}
	b.WriteString(p.trailer())
	return chat.Result{Output: b.String(), Metadata: map[string]any{"page": p.metadata()}}, nil
}

func byKindAndName(a, b workspace.Info) int {
	if (a.Type == workspace.Dir) != (b.Type == workspace.Dir) {
		if a.Type == workspace.Dir {
			return -1
		}
		return 1
	}
	x, y := path.Base(a.Path), path.Base(b.Path)
	if c := strings.Compare(strings.ToLower(x), strings.ToLower(y)); c != 0 {
		return c
	}
	return strings.Compare(x, y)
}

func entryLine(e workspace.Info) string {
	name, size := workspace.Display(path.Base(e.Path)), "-"
	switch e.Type {
	case workspace.Dir:
		name += "/"
	case workspace.File:
		size = humanSize(e.Size)
	}
	return fmt.Sprintf("%-6s %8s  %s\n", e.Type, size, name)
}

func humanSize(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%dB", n)
	}
	f := float64(n)
	for _, unit := range []string{"KB", "MB"} {
		if f /= 1024; f < 1024 {
			return fmt.Sprintf("%.1f%s", f, unit)
		}
	}
	return fmt.Sprintf("%.1fGB", f/1024)
}

// orRoot is the path, or the root when it was left out.
func orRoot(p string) string {
	if p == "" {
		return "."
	}
	return p
}
