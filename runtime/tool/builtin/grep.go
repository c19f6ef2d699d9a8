package builtin

import (
	"context"
	_ "embed" // grep.md
	"encoding/json"
	"regexp"
	"strconv"
	"time"

	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/tool"
	"github.com/a3s-lab/liba3s/runtime/workspace"
)

const (
	searchTime  = 30 * time.Second // of one search, unless the call's own limit is shorter
	maxContext  = 50
	maxPattern  = 4096
	maxFound    = 100_000 // files
	maxAnchors  = 64
	maxSearched = 100 << 10 // bytes of lines in one answer
	trailerRoom = 2 << 10   // of maxSearched, for what follows the lines
)

//go:embed grep.md
var grepDoc string

const grepParameters = `{"type":"object","additionalProperties":false,"required":["pattern"],"properties":{
"pattern":{"type":"string","minLength":1,"maxLength":4096,"description":"Regular expression to look for in each line."},
"path":{"type":"string","maxLength":4096,"description":"Folder or file to search, relative to the workspace; all of it unless given."},
"glob":{"type":"string","maxLength":4096,"description":"Only files whose name or path matches."},
"context":{"type":"integer","minimum":0,"maximum":50,"description":"Lines to show before and after each match."},
"-i":{"type":"boolean","description":"Take upper and lower case as the same."},
"output_mode":{"type":"string","enum":["content","files_with_matches","count","summary"],"description":"content unless given."},
"include_ignored":{"type":"boolean","description":"Search files that .gitignore names too."},
"limit":{"type":"integer","minimum":1,"maximum":1000,"description":"Files of one page of files_with_matches and count; 200 unless given."},
"cursor":{"type":"string","description":"Where to go on, from the answer before."}}}`

type grepTool struct{ base }

var grepBase = describe("grep", grepDoc, grepParameters)

func newGrep() tool.Tool { return grepTool{grepBase} }

type grepArgs struct {
	Pattern    string `json:"pattern"`
	Path       string `json:"path"`
	Glob       string `json:"glob"`
	Context    *whole `json:"context"`
	IgnoreCase bool   `json:"-i"`
	Mode       string `json:"output_mode"`
	Ignored    bool   `json:"include_ignored"`
	pageArgs
}

func (grepTool) decode(args json.RawMessage) (grepArgs, error) {
	a, err := decode[grepArgs](args)
	if err != nil {
		return a, err
	}
	if a.Mode == "" {
		a.Mode = "content"
	}
	paged := a.Mode == "files_with_matches" || a.Mode == "count"
	_, known := grepModes[a.Mode]
	switch {
	case !known:
		return a, invalid("output_mode %q: use content, files_with_matches, count or summary", a.Mode)
	case a.Pattern == "" || len(a.Pattern) > maxPattern:
		return a, invalid("give a pattern of 1 to %d bytes", maxPattern)
	case !paged && (a.Cursor != "" || a.Limit.or(pageDefault) != pageDefault):
		return a, invalid("limit and cursor belong to files_with_matches and count; narrow the pattern or the path instead")
	}
	if _, err := regexp.Compile(a.Pattern); err != nil {
		return a, invalid("pattern %q is not a regular expression in RE2 syntax: %v", a.Pattern, err)
	}
	return a, nil
}

// Check refuses a pattern that is none.
func (t grepTool) Check(args json.RawMessage) error {
	_, err := t.decode(args)
	return err
}

// Effects: it reads below the path.
func (grepTool) Effects(args json.RawMessage) chat.Effects {
	e := chat.Effects{Read: true, Idempotent: true}
	if a, err := decode[grepArgs](args); err == nil {
		e.Paths = []string{orRoot(a.Path)}
	}
	return e
}

// Run searches.
func (t grepTool) Run(ctx context.Context, env tool.Env, args json.RawMessage) (chat.Result, error) {
	a, err := t.decode(args)
	if err != nil {
		return failed("grep", "", err), nil
	}
	dir, err := clean(env, orRoot(a.Path))
	if err != nil {
		return failed("grep", a.Path, err), nil
	}
	s, ok := env.Workspace.(workspace.Searcher)
	if !ok {
		return failed("grep", "", fault.New(fault.Unsupported, "tool.grep", "this workspace cannot be searched")), nil
	}
	r := report{args: a}
	mode := grepModes[a.Mode]
	limit := searchTime
	if env.Timeout > 0 {
		limit = min(limit, env.Timeout)
	}
	timed, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	r.stats, err = s.Grep(timed, workspace.GrepQuery{
		Base: dir, Pattern: a.Pattern, Glob: a.Glob, IgnoreCase: a.IgnoreCase, Ignored: a.Ignored, Allow: env.MayRead,
		Context: min(max(a.Context.or(0), 0), maxContext) * mode.context, FilesOnly: mode.filesOnly,
	}, func(l workspace.Line) bool { return mode.take(&r, l) })
	switch {
	case err == nil:
	case ctx.Err() == nil && timed.Err() != nil && r.lines > 0:
		r.stopped = "after " + limit.String()
	case ctx.Err() == nil && timed.Err() != nil:
		return late("grep", limit), nil
	default:
		return failed("grep", dir, err), nil
	}
	return mode.answer(&r), nil
}

// late is the result of a search that found nothing in its time.
func late(op string, limit time.Duration) chat.Result {
	r := failed(op, "", fault.New(fault.Timeout, "tool."+op, "nothing found in %v, the search was stopped; narrow the path or the glob", limit))
	r.Error.DurationMS = limit.Milliseconds()
	return r
}

// itoa keeps the lines that build text short.
func itoa[N int | int64](n N) string { return strconv.FormatInt(int64(n), 10) }
