package builtin

import (
	"context"
	_ "embed" // glob.md
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/tool"
	"github.com/a3s-lab/liba3s/runtime/workspace"
)

//go:embed glob.md
var globDoc string

const globParameters = `{"type":"object","additionalProperties":false,"required":["pattern"],"properties":{
"pattern":{"type":"string","minLength":1,"maxLength":4096,"description":"Pattern for the path, such as **/*.go."},
"path":{"type":"string","maxLength":4096,"description":"Folder to look in, relative to the workspace; its root unless given."},
"include_ignored":{"type":"boolean","description":"Find files that .gitignore names too."},
"limit":{"type":"integer","minimum":1,"maximum":1000,"description":"Files of one page; 200 unless given."},
"cursor":{"type":"string","description":"Where to go on, from the answer before."},
"sort":{"type":"string","enum":["backend","path"],"description":"backend takes the order of the workspace; backend unless given."}}}`

type globTool struct{ base }

var globBase = describe("glob", globDoc, globParameters)

func newGlob() tool.Tool { return globTool{globBase} }

type globArgs struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path"`
	Ignored bool   `json:"include_ignored"`
	Sort    string `json:"sort"`
	pageArgs
}

// Effects: it reads the names below the path.
func (globTool) Effects(args json.RawMessage) chat.Effects {
	e := chat.Effects{Read: true, Idempotent: true}
	if a, err := decode[globArgs](args); err == nil {
		e.Paths = []string{orRoot(a.Path)}
	}
	return e
}

// Run finds the files.
func (globTool) Run(ctx context.Context, env tool.Env, args json.RawMessage) (chat.Result, error) {
	a, err := decode[globArgs](args)
	if err != nil {
		return failed("glob", "", err), nil
	}
	if a.Sort == "" {
		a.Sort = "backend"
	}
	dir, err := clean(env, orRoot(a.Path))
	if err != nil {
		return failed("glob", a.Path, err), nil
	}
	s, ok := env.Workspace.(workspace.Searcher)
	if !ok {
		return failed("glob", "", fault.New(fault.Unsupported, "tool.glob", "this workspace cannot be searched")), nil
	}
	limit := searchTime
	if env.Timeout > 0 {
		limit = min(limit, env.Timeout)
	}
	timed, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var denied atomic.Int64 // a workspace may look in several folders at once
	stopped := ""
	allow := func(p string) bool {
		ok := env.MayRead(p)
		if !ok {
			denied.Add(1)
		}
		return ok
	}
	var found []string
	for f, err := range s.Glob(timed, workspace.GlobQuery{Base: dir, Pattern: a.Pattern, Ignored: a.Ignored, Allow: allow}) {
		if err != nil && ctx.Err() == nil && timed.Err() != nil {
			if len(found) == 0 {
				return late("glob", limit), nil
			}
			stopped = "after " + limit.String()
			break
		}
		if err != nil {
			return failed("glob", dir, err), nil
		}
		if len(found) == maxFound {
			stopped = "after " + itoa(maxFound) + " files"
			break
		}
		found = append(found, f.Path)
	}
	if a.Sort == "path" {
		slices.Sort(found)
	}
	return a.answer(found, denied.Load(), stopped), nil
}

func (a globArgs) answer(found []string, denied int64, stopped string) chat.Result {
	p, err := a.page(len(found), "files")
	if err != nil {
		return failed("glob", "", err)
	}
	var b strings.Builder
	for _, f := range found[p.from:p.to] {
		b.WriteString(workspace.Display(f) + "\n")
	}
	if len(found) == 0 {
		fmt.Fprintf(&b, "No file matches %q\n", a.Pattern)
		if !a.Ignored {
			b.WriteString("Files that .gitignore names were left out; to find them too, set include_ignored\n")
		}
	} else {
		fmt.Fprintf(&b, "\n%d of %d file(s) shown\n", p.to-p.from, len(found))
	}
	b.WriteString(p.trailer())
	if denied > 0 {
		fmt.Fprintf(&b, "%d file(s) are hidden by the rules\n", denied)
	}
	if stopped != "" {
		fmt.Fprintf(&b, "The search stopped %s: there may be more; narrow the pattern or the path\n", stopped)
	}
	return chat.Result{Output: b.String(), Metadata: map[string]any{"page": p.metadata(), "sort": a.Sort}}
}
