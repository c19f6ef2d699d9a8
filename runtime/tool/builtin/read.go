package builtin

import (
	"context"
	_ "embed" // read.md
	"encoding/json"
	"fmt"
	"strings"

	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/tool"
	"github.com/a3s-lab/liba3s/runtime/workspace"
)

const (
	maxLines = 2000 // of one file in one answer
	maxLine  = 2000 // bytes of one line
)

//go:embed read.md
var readDoc string

const readParameters = `{"type":"object","additionalProperties":false,"properties":{
"file_path":{"type":"string","minLength":1,"maxLength":4096,"description":"File to read, relative to the workspace. Give this or files."},
"offset":{"type":"integer","minimum":0,"description":"Lines to skip at the start of file_path; 0 unless given."},
"limit":{"type":"integer","minimum":1,"maximum":2000,"description":"Lines of file_path to show; 2000 unless given."},
"files":{"type":"array","minItems":1,"maxItems":32,"description":"Several files to read, instead of file_path.","items":{
 "type":"object","additionalProperties":false,"required":["path"],"properties":{
 "path":{"type":"string","minLength":1,"maxLength":4096},
 "offset":{"type":"integer","minimum":0},
 "limit":{"type":"integer","minimum":1,"maximum":2000}}}},
"max_output_bytes":{"type":"integer","minimum":1024,"maximum":98304,"description":"Size of the whole answer to files; 65536 unless given."}}}`

type readTool struct{ base }

var readBase = describe("read", readDoc, readParameters)

func newRead() tool.Tool { return readTool{readBase} }

type readArgs struct {
	FilePath string     `json:"file_path"`
	Offset   *whole     `json:"offset"`
	Limit    *whole     `json:"limit"`
	Files    []readFile `json:"files"`
	MaxBytes *whole     `json:"max_output_bytes"`
}

type readFile struct {
	Path   string `json:"path"`
	Offset *whole `json:"offset"`
	Limit  *whole `json:"limit"`
}

func (readTool) decode(args json.RawMessage) (readArgs, error) {
	a, err := decode[readArgs](args)
	switch {
	case err != nil:
		return a, err
	case (a.FilePath == "") == (len(a.Files) == 0):
		return a, invalid("give either file_path or files")
	case len(a.Files) > 0 && (a.Offset != nil || a.Limit != nil):
		return a, invalid("offset and limit belong to file_path; for files give them per file")
	case len(a.Files) == 0 && a.MaxBytes != nil:
		return a, invalid("max_output_bytes belongs to files")
	case len(a.Files) > 32:
		return a, invalid("%d files, at most 32 are read at once", len(a.Files))
	}
	return a, nil
}

// Check refuses what the flat schema for the model lets through.
func (t readTool) Check(args json.RawMessage) error {
	_, err := t.decode(args)
	return err
}

// Effects: it reads the files named.
func (t readTool) Effects(args json.RawMessage) chat.Effects {
	e := chat.Effects{Read: true, Idempotent: true}
	a, err := decode[readArgs](args)
	if err != nil {
		return e
	}
	if a.FilePath != "" {
		e.Paths = append(e.Paths, a.FilePath)
	}
	for _, f := range a.Files {
		e.Paths = append(e.Paths, f.Path)
	}
	return e
}

// Run reads one file, or several within a budget.
func (t readTool) Run(ctx context.Context, env tool.Env, args json.RawMessage) (chat.Result, error) {
	a, err := t.decode(args)
	if err != nil {
		return failed("read", "", err), nil
	}
	if len(a.Files) > 0 {
		return readBatch(ctx, env, a), nil
	}
	return readOne(ctx, env, a), nil
}

func readOne(ctx context.Context, env tool.Env, a readArgs) chat.Result {
	want := a.Limit.or(maxLines)
	p, err := readPage(ctx, env, a.FilePath, a.Offset.or(0), min(max(want, 1), maxLines), 1<<30)
	if err != nil {
		return failed("read", p.path, err)
	}
	var b strings.Builder
	for _, l := range p.lines {
		b.WriteString(l)
	}
	b.WriteString(p.trailer())
	var next any
	if p.more() {
		next = p.next()
	}
	return chat.Result{Output: b.String(), Metadata: map[string]any{
		"source_anchors": []string{p.path},
		"range": map[string]any{
			"offset": p.offset, "requested_limit": want, "applied_limit": min(max(want, 1), maxLines),
			"returned_lines": len(p.lines), "next_offset": next, "eof": !p.more(), "total_lines": p.total,
			"limit_clamped": want > maxLines || want < 1, "output_bytes": b.Len(),
		},
	}}
}

// page is a part of a file, its lines ready to be shown.
type page struct {
	path   string
	lines  []string
	offset int
	total  int // lines of the file
	cut    int // lines too long to be shown whole
	short  bool
}

func (p page) next() int  { return p.offset + len(p.lines) }
func (p page) more() bool { return p.next() < p.total }

// trailer says what the lines do not show; empty when they show everything.
func (p page) trailer() string {
	var notes []string
	switch {
	case p.more():
		notes = append(notes, fmt.Sprintf("(lines %d-%d of %d; continue with offset=%d)", p.offset+1, p.next(), p.total, p.next()))
	case len(p.lines) == 0:
		return fmt.Sprintf("(end of file: %s has %d lines)\n", workspace.Display(p.path), p.total)
	}
	if p.cut > 0 {
		notes = append(notes, fmt.Sprintf("(%d lines were cut to %d bytes)", p.cut, maxLine))
	}
	if len(notes) == 0 {
		return ""
	}
	return "\n" + strings.Join(notes, "\n") + "\n"
}

// readPage reads limit lines from line offset on, numbered from 1, but stops after the
// line that goes over maxBytes; short says that it did.
func readPage(ctx context.Context, env tool.Env, input string, offset, limit, maxBytes int) (page, error) {
	path, err := clean(env, input)
	if err != nil {
		return page{path: input}, err
	}
	p := page{path: path, offset: offset}
	content, _, err := text(ctx, env, path, maxFile)
	if err != nil {
		return p, err
	}
	content = strings.TrimPrefix(content, bom)
	size := 0
	for line := range strings.Lines(content) {
		p.total++
		if p.total <= offset || len(p.lines) == limit || p.short {
			continue
		}
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		if len(line) > maxLine {
			line = cutAt(line, maxLine)
			p.cut++
		}
		p.lines = append(p.lines, fmt.Sprintf("%6d\t%s\n", p.total, line))
		size += len(p.lines[len(p.lines)-1])
		p.short = size > maxBytes
	}
	if offset > p.total {
		return p, invalid("offset %d is beyond the end: %s has %d lines", offset, workspace.Display(path), p.total)
	}
	return p, nil
}
