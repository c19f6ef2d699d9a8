package builtin

import (
	"bytes"
	"context"
	_ "embed" // write.md
	"encoding/json"
	"fmt"
	"strings"

	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/tool"
	"github.com/a3s-lab/liba3s/runtime/workspace"
)

//go:embed write.md
var writeDoc string

const writeParameters = `{"type":"object","additionalProperties":false,"required":["file_path","content"],"properties":{
"file_path":{"type":"string","minLength":1,"maxLength":4096,"description":"File to write, relative to the workspace."},
"content":{"type":"string","description":"The whole new text, or the text to append."},
"mode":{"type":"string","enum":["overwrite","append"],"description":"overwrite unless given."},
"expected_offset":{"type":"integer","minimum":0,"description":"With append: the present size of the file in bytes."}}}`

type writeTool struct{ base }

var writeBase = describe("write", writeDoc, writeParameters)

func newWrite() tool.Tool { return writeTool{writeBase} }

type writeArgs struct {
	FilePath string `json:"file_path"`
	Content  string `json:"content"`
	Mode     string `json:"mode"`
	Offset   *whole `json:"expected_offset"`
}

func (writeTool) decode(args json.RawMessage) (writeArgs, error) {
	a, err := decode[writeArgs](args)
	switch {
	case err != nil:
		return a, err
	case a.FilePath == "":
		return a, invalid("file_path is missing")
	case a.Mode == "append" && a.Offset == nil:
		return a, invalid("append needs expected_offset, the present size of the file in bytes")
	case a.Mode != "append" && a.Offset.or(0) != 0:
		return a, invalid("expected_offset belongs to append; leave it out to replace the whole file")
	case a.Mode != "" && a.Mode != "append" && a.Mode != "overwrite":
		return a, invalid("mode %q: use overwrite or append", a.Mode)
	}
	return a, nil
}

// Check refuses an offset without append and the other way round.
func (t writeTool) Check(args json.RawMessage) error {
	_, err := t.decode(args)
	return err
}

// Effects: it changes the file named.
func (t writeTool) Effects(args json.RawMessage) chat.Effects {
	e := chat.Effects{Write: true, Idempotent: true}
	if a, err := decode[writeArgs](args); err == nil {
		e.Paths = []string{a.FilePath}
	}
	return e
}

// Run replaces or extends the file.
func (t writeTool) Run(ctx context.Context, env tool.Env, args json.RawMessage) (chat.Result, error) {
	a, err := t.decode(args)
	if err != nil {
		return failed("write", "", err), nil
	}
	p, err := writable(env, a.FilePath)
	if err != nil {
		return failed("write", a.FilePath, err), nil
	}
	if a.Mode == "append" {
		return extend(ctx, env, p, a), nil
	}
	return overwrite(ctx, env, p, a.Content), nil
}

func overwrite(ctx context.Context, env tool.Env, p, content string) chat.Result {
	meta := map[string]any{"file_path": p, "created": false, "after": content}
	var cond workspace.Condition
	var notes []string
	old, info, err := env.Workspace.Read(ctx, p, maxEdit)
	switch fault.KindOf(err) {
	case "":
		cond.Version = info.Version
		meta["before"] = strings.ToValidUTF8(string(old), "\uFFFD")
		if bytes.HasPrefix(old, []byte(bom)) && !strings.HasPrefix(content, bom) {
			content = bom + content
			meta["after"] = content
			notes = append(notes, "its byte order mark was kept")
		}
		if hasCRLF(string(old)) && strings.Contains(content, "\n") && !hasCRLF(content) {
			notes = append(notes, "its line endings changed from CRLF to LF")
		}
	case fault.NotFound:
		cond.Absent = true
		meta["created"] = true
	case fault.Limit:
		notes = append(notes, "its old content was too large to be shown")
	default:
		return failed("write", p, err)
	}
	if _, err := env.Workspace.Write(ctx, p, []byte(content), cond); err != nil {
		return stale("write", p, err)
	}
	out := fmt.Sprintf("Wrote %d bytes (%d lines) to %s", len(content), countLines(content), workspace.Display(p))
	for _, n := range notes {
		out += "; " + n
	}
	return chat.Result{Output: out, Metadata: meta}
}

func extend(ctx context.Context, env tool.Env, p string, a writeArgs) chat.Result {
	var cond workspace.Condition
	old, info, err := env.Workspace.Read(ctx, p, maxFile)
	switch fault.KindOf(err) {
	case "":
		cond.Version = info.Version
	case fault.NotFound:
		cond.Absent = true
	default:
		return failed("write", p, err)
	}
	offset := a.Offset.or(0)
	meta := map[string]any{
		"file_path": p, "mode": "append", "offset": offset, "appended_bytes": len(a.Content),
		"resulting_size": len(old), "already_applied": false,
	}
	if offset+len(a.Content) == len(old) && len(a.Content) > 0 && string(old[offset:]) == a.Content {
		meta["already_applied"] = true
		return chat.Result{Output: fmt.Sprintf("%s already ends with these %d bytes; nothing written", workspace.Display(p), len(a.Content)), Metadata: meta}
	}
	if offset != len(old) {
		r := failed("write", p, invalid("expected_offset is %d but %s has %d bytes; nothing written", offset, workspace.Display(p), len(old)))
		meta["appended_bytes"] = 0
		r.Metadata = meta
		return r
	}
	if offset+len(a.Content) > maxFile {
		return failed("write", p, invalid("%s would grow over %d bytes; nothing written", workspace.Display(p), maxFile))
	}
	if _, err := env.Workspace.Write(ctx, p, append(old, a.Content...), cond); err != nil {
		return stale("write", p, err)
	}
	meta["resulting_size"] = offset + len(a.Content)
	return chat.Result{
		Output:   fmt.Sprintf("Appended %d bytes to %s, which has %d bytes now", len(a.Content), workspace.Display(p), offset+len(a.Content)),
		Metadata: meta,
	}
}

// stale is failed with advice for a file that changed under our hands.
func stale(op, p string, err error) chat.Result {
	r := failed(op, p, err)
	if fault.KindOf(err) == fault.Conflict {
		r.Output = fmt.Sprintf("%s changed while it was being worked on; nothing written. Read it again, then repeat the call if it still makes sense", workspace.Display(p))
	}
	return r
}

func hasCRLF(s string) bool { return strings.Contains(s, "\r\n") }

// countLines counts as people do: a final line break starts no line.
func countLines(s string) int {
	n := strings.Count(s, "\n")
	if s != "" && !strings.HasSuffix(s, "\n") {
		n++
	}
	return n
}
