// Package builtin holds the tools that every session has: read, write, edit, ls, grep,
// glob, bash and artifact_read, one a file, with their words for the model in a .md
// beside them. They work on any workspace through its ports; whether a call may happen
// is decided before, and what is too long for a transcript is cut after. Floor 8.
package builtin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/tool"
	"github.com/a3s-lab/liba3s/runtime/workspace"
)

// Sizes of files in bytes.
const (
	maxFile = 64 << 20 // to read, to append to and to write
	maxEdit = 16 << 20 // to edit, and to be shown as it was before it was overwritten
)

// For gives the tools that ws can support: a workspace that runs nothing has no bash,
// one that cannot search has no grep and no glob.
func For(ws workspace.Workspace) []tool.Tool {
	list := []tool.Tool{newRead(), newWrite(), newEdit(), newLs(), newArtifactRead()}
	if _, ok := ws.(workspace.Searcher); ok {
		list = append(list, newGrep(), newGlob())
	}
	if _, ok := ws.(workspace.Runner); ok {
		list = append(list, newBash())
	}
	return list
}

// base is what all tools here share; one serves all sessions.
type base struct{ spec chat.ToolSpec }

func describe(name, description, parameters string) base {
	return base{chat.ToolSpec{
		Name: name, Description: strings.TrimSpace(description), Parameters: json.RawMessage(parameters),
	}}
}

// Spec is what the model is told.
func (b base) Spec() chat.ToolSpec { return b.spec }

// decode reads arguments into a struct. Unknown keys are refused here too, for callers
// that do not validate.
func decode[T any](args json.RawMessage) (T, error) {
	var v T
	if string(args) == "{}" { // what a tool is asked about by those who have no arguments yet
		return v, nil
	}
	d := json.NewDecoder(bytes.NewReader(args))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		return v, invalid("the arguments cannot be read: %v", err)
	}
	return v, nil
}

// whole is an integer of 0 or more that may be written as 3.0, as JSON Schema has it.
type whole int64

// UnmarshalJSON reads a number without sign and fraction.
func (w *whole) UnmarshalJSON(b []byte) error {
	n, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil {
		var f float64
		if f, err = strconv.ParseFloat(string(b), 64); err == nil && (f != math.Trunc(f) || f > 1<<53) {
			err = strconv.ErrSyntax
		}
		n = int64(f)
	}
	if err != nil || n < 0 {
		return errors.New("not a whole number of 0 or more: " + strconv.Quote(string(b)))
	}
	*w = whole(n)
	return nil
}

// or gives the number, or another when it was left out.
func (w *whole) or(n int) int {
	if w == nil {
		return n
	}
	return int(*w)
}

// invalid says that arguments cannot be used.
func invalid(format string, args ...any) error {
	return fault.New(fault.Invalid, "tool.run", format, args...)
}

// clean gives the workspace path that an argument names.
func clean(env tool.Env, input string) (string, error) {
	return workspace.Clean(env.Workspace.Root(), input)
}

// writable gives the workspace path of a file that may be changed.
func writable(env tool.Env, input string) (string, error) {
	p, err := clean(env, input)
	if err != nil {
		return "", err
	}
	if p == "." {
		return "", invalid("%q is the workspace itself, not a file", input)
	}
	if env.Protected(p) {
		return "", invalid("%q is protected: version control and session data are not changed by tools", workspace.Display(p))
	}
	return p, nil
}

// failed turns what a workspace or the arguments refused into a result: every kind to
// its own type, and what has no type to text alone.
func failed(op, path string, err error) chat.Result {
	e := fault.From(op, err)
	kind := chat.ErrorKind{Message: e.Message}
	switch e.Kind {
	case fault.NotFound:
		kind = chat.ErrorKind{Type: chat.NotFound, Path: path}
	case fault.Conflict:
		kind = chat.ErrorKind{Type: chat.VersionConflict, Path: path}
		kind.Expected, _ = e.Details["expected"].(string)
		kind.Actual, _ = e.Details["actual"].(string)
	case fault.Invalid, fault.Denied, fault.Limit, fault.Exists:
		kind.Type = chat.InvalidArgument
	case fault.Unsupported:
		kind.Type = chat.Unsupported
	case fault.Timeout:
		kind = chat.ErrorKind{Type: chat.TimedOut, Op: op}
	case fault.Cancelled:
		kind = chat.ErrorKind{Type: chat.WasCancelled, Op: op}
	default:
		return chat.Result{Output: e.Message, ExitCode: 1}
	}
	return chat.Fail(kind, e.Message)
}

// text reads a whole file that must be text, with the version it had.
func text(ctx context.Context, env tool.Env, path string, max int64) (string, workspace.Info, error) {
	data, info, err := env.Workspace.Read(ctx, path, max)
	if err != nil {
		return "", info, err
	}
	if bytes.IndexByte(data[:min(len(data), 8<<10)], 0) >= 0 {
		return "", info, invalid("%q is a binary file: it has NUL bytes", workspace.Display(path))
	}
	if !utf8.Valid(data) {
		return "", info, invalid("%q is not text in UTF-8", workspace.Display(path))
	}
	return string(data), info, nil
}

// bom is the byte order mark that some editors put before UTF-8. Tools neither show nor
// lose it.
const bom = "\uFEFF"

// cutAt gives at most n bytes of s, cut at the edge of a character.
func cutAt(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
