package builtin

import (
	"context"
	_ "embed" // edit.md
	"encoding/json"
	"fmt"
	"strings"

	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/tool"
	"github.com/a3s-lab/liba3s/runtime/workspace"
)

//go:embed edit.md
var editDoc string

const editParameters = `{"type":"object","additionalProperties":false,"required":["file_path","old_string","new_string"],"properties":{
"file_path":{"type":"string","minLength":1,"maxLength":4096,"description":"File to change, relative to the workspace."},
"old_string":{"type":"string","minLength":1,"description":"Text to replace, as it is in the file."},
"new_string":{"type":"string","description":"Text to put in its place; empty to delete."},
"replace_all":{"type":"boolean","description":"Replace every occurrence; false unless given."},
"dry_run":{"type":"boolean","description":"Write nothing; false unless given."},
"max_replacements":{"type":"integer","minimum":1,"description":"Write nothing if there are more."},
"expected_replacements":{"type":"integer","minimum":1,"description":"Write nothing if there is another number."}}}`

type editTool struct{ base }

var editBase = describe("edit", editDoc, editParameters)

func newEdit() tool.Tool { return editTool{editBase} }

type editArgs struct {
	FilePath   string `json:"file_path"`
	Old        string `json:"old_string"`
	New        string `json:"new_string"`
	ReplaceAll bool   `json:"replace_all"`
	DryRun     bool   `json:"dry_run"`
	Max        *whole `json:"max_replacements"`
	Expected   *whole `json:"expected_replacements"`
}

func (editTool) decode(args json.RawMessage) (editArgs, error) {
	a, err := decode[editArgs](args)
	switch {
	case err != nil:
		return a, err
	case a.FilePath == "":
		return a, invalid("file_path is missing")
	case a.Old == "":
		return a, invalid("old_string is empty; use write to make a file or replace a whole one")
	case lines(a.Old) == lines(a.New):
		return a, invalid("old_string and new_string are the same; edit keeps the line endings of the file")
	}
	return a, nil
}

// Check refuses an edit that cannot change anything.
func (t editTool) Check(args json.RawMessage) error {
	_, err := t.decode(args)
	return err
}

// Effects: it changes the file named; a dry run reads it.
func (t editTool) Effects(args json.RawMessage) chat.Effects {
	a, err := decode[editArgs](args)
	switch {
	case err != nil:
		return chat.Effects{Read: true, Write: true}
	case a.DryRun:
		return chat.Effects{Read: true, Idempotent: true, Paths: []string{a.FilePath}}
	}
	return chat.Effects{Read: true, Write: true, Paths: []string{a.FilePath}}
}

// Run replaces the text, if the file is still as it was read.
func (t editTool) Run(ctx context.Context, env tool.Env, args json.RawMessage) (chat.Result, error) {
	a, err := t.decode(args)
	if err != nil {
		return failed("edit", "", err), nil
	}
	p, err := writable(env, a.FilePath)
	if err != nil {
		return failed("edit", a.FilePath, err), nil
	}
	before, info, err := text(ctx, env, p, maxEdit)
	if err != nil {
		return failed("edit", p, err), nil
	}
	m := find(before, a.Old)
	if err := m.usable(before, a, p); err != nil {
		r := failed("edit", p, err)
		r.Metadata = a.metadata(p, m)
		return r, nil
	}
	after, err := m.replace(before, a.New)
	if err != nil {
		return failed("edit", p, err), nil
	}
	meta := a.metadata(p, m)
	meta["before"], meta["after"] = before, after
	out := fmt.Sprintf("Replaced %d occurrence(s) in %s", len(m.spans), workspace.Display(p))
	if a.DryRun {
		out = fmt.Sprintf("Dry run: %d occurrence(s) would be replaced in %s; nothing was written", len(m.spans), workspace.Display(p))
	} else if err := put(ctx, env, p, after, info.Version); err != nil {
		return stale("edit", p, err), nil
	}
	if m.typographic {
		out += ". It matched only with plain quotes, dashes and spaces taken for typographic ones; outside the changed part the file's own characters were kept"
		meta["typographic_match"] = true
	}
	return chat.Result{Output: out, Metadata: meta}, nil
}

// put writes a text and sees that it arrived whole.
func put(ctx context.Context, env tool.Env, p, content, version string) error {
	info, err := env.Workspace.Write(ctx, p, []byte(content), workspace.Condition{Version: version})
	if err == nil && info.Size != int64(len(content)) {
		return fault.New(fault.IO, "tool.edit", "%s has %d bytes after writing %d; read it before doing anything else", workspace.Display(p), info.Size, len(content))
	}
	return err
}

func (a editArgs) metadata(p string, m match) map[string]any {
	meta := map[string]any{
		"file_path": p, "dry_run": a.DryRun, "replacement_count": len(m.spans),
		"expected_replacements": nil, "max_replacements": nil,
	}
	if a.Expected != nil {
		meta["expected_replacements"] = a.Expected.or(0)
	}
	if a.Max != nil {
		meta["max_replacements"] = a.Max.or(0)
	}
	return meta
}

// usable says why a match must not be used; nil if it may.
func (m match) usable(before string, a editArgs, p string) error {
	n := len(m.spans)
	switch {
	case n == 0:
		return invalid("old_string is not in %s; nothing written.%s", workspace.Display(p), nearest(before, a.Old))
	case !a.ReplaceAll && (n > 1 || m.overlap):
		return invalid("old_string is in %s more than once (%s); nothing written. Add lines around it to make it unique, or set replace_all", workspace.Display(p), m.where(before))
	case a.Expected != nil && a.Expected.or(0) != n:
		return invalid("%d replacements expected, %d found in %s; nothing written", a.Expected.or(0), n, workspace.Display(p))
	case a.Max != nil && n > a.Max.or(0):
		return invalid("at most %d replacements allowed, %d found in %s; nothing written", a.Max.or(0), n, workspace.Display(p))
	}
	return nil
}

// where names the first lines of a match.
func (m match) where(before string) string {
	const few = 5
	var at []string
	line, pos := 1, 0
	for _, s := range m.spans[:min(len(m.spans), few)] {
		line += strings.Count(before[pos:s.from], "\n")
		pos = s.from
		at = append(at, fmt.Sprint(line))
	}
	if m.overlap && len(m.spans) == 1 {
		return "overlapping itself at line " + at[0]
	}
	if len(m.spans) > few {
		at = append(at, "...")
	}
	return fmt.Sprintf("%d times: lines %s", len(m.spans), strings.Join(at, ", "))
}
