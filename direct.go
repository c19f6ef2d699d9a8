package a3s

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

// Tool runs a tool for you, beside any run: rules and questions are skipped, limits and
// time-outs are not. args is anything that encodes to a JSON object; nil is an empty one.
// A failing tool, and one that does not exist, is a result with an exit code.
func (s *Session) Tool(ctx context.Context, name string, args any) (ToolResult, error) {
	if args == nil {
		args = struct{}{}
	}
	b, err := encode("session.tool", "args", args)
	if err != nil {
		return ToolResult{}, err
	}
	return s.s.Tool(ctx, name, b)
}

// ReadFile gives the text of a file with the numbers of its lines, as the tool read shows
// it: at most 2000 lines. A failure is a *Error with code TOOL_ERROR.
func (s *Session) ReadFile(ctx context.Context, path string) (string, error) {
	return s.output(ctx, "read", map[string]any{"file_path": path})
}

// ReadLines is ReadFile of at most limit lines behind the first offset ones.
func (s *Session) ReadLines(ctx context.Context, path string, offset, limit int) (string, error) {
	return s.output(ctx, "read", map[string]any{"file_path": path, "offset": offset, "limit": limit})
}

// WriteFile replaces a file with the tool write; folders are made.
func (s *Session) WriteFile(ctx context.Context, path, content string) (ToolResult, error) {
	return s.Tool(ctx, "write", map[string]any{"file_path": path, "content": content})
}

// EditFile replaces the one passage old of a file, or with all every one, with the tool
// edit.
func (s *Session) EditFile(ctx context.Context, path, old, replacement string, all bool) (ToolResult, error) {
	return s.Tool(ctx, "edit", map[string]any{"file_path": path, "old_string": old, "new_string": replacement, "replace_all": all})
}

// Ls lists a folder with the tool ls.
func (s *Session) Ls(ctx context.Context, path string) (ToolResult, error) {
	return s.Tool(ctx, "ls", map[string]any{"path": path})
}

// Grep gives the lines that a regular expression (RE2) matches, as the tool grep shows
// them. A failure is a *Error with code TOOL_ERROR.
func (s *Session) Grep(ctx context.Context, pattern string) (string, error) {
	return s.output(ctx, "grep", map[string]any{"pattern": pattern})
}

// Bash gives the output of a shell command, run by the tool bash. A failure to run it is
// a *Error with code TOOL_ERROR; the exit code of the command itself is in the result of
// Tool alone.
func (s *Session) Bash(ctx context.Context, command string) (string, error) {
	r, err := s.Tool(ctx, "bash", map[string]any{"command": command})
	if err == nil && r.ExitCode != 0 && r.Metadata["exit_code"] == nil {
		err = failed(r)
	}
	return r.Output, err
}

// Glob gives all paths that a pattern such as "**/*.go" matches, page after page. A
// failure is a *Error with code TOOL_ERROR.
func (s *Session) Glob(ctx context.Context, pattern string) ([]string, error) {
	paths := []string{}
	args := map[string]any{"pattern": pattern, "limit": 1000}
	for {
		r, err := s.checked(ctx, "glob", args)
		if err != nil {
			return nil, err
		}
		var meta struct {
			Page struct {
				Returned int     `json:"returned_items"`
				Next     *string `json:"next_cursor"`
			} `json:"page"`
		}
		b, err := json.Marshal(r.Metadata)
		if err == nil {
			err = json.Unmarshal(b, &meta)
		}
		if err != nil {
			return nil, fault.Of(fault.CodeInternal, "tool.glob", "its metadata cannot be read: %v", err)
		}
		lines := strings.Split(r.Output, "\n")
		paths = append(paths, lines[:min(meta.Page.Returned, len(lines))]...)
		if meta.Page.Next == nil || *meta.Page.Next == "" {
			return paths, nil
		}
		args["cursor"] = *meta.Page.Next
	}
}

func (s *Session) output(ctx context.Context, name string, args any) (string, error) {
	r, err := s.checked(ctx, name, args)
	return r.Output, err
}

// checked is Tool for those whose failure is an error.
func (s *Session) checked(ctx context.Context, name string, args any) (ToolResult, error) {
	r, err := s.Tool(ctx, name, args)
	if err == nil && r.ExitCode != 0 {
		return ToolResult{}, failed(r)
	}
	return r, err
}

func failed(r ToolResult) error {
	e := fault.Of(fault.CodeTool, "tool."+r.Name, "%s: %s", r.Name, r.Output).With("exit_code", r.ExitCode)
	if r.ErrorKind != nil {
		e.With("error_kind", *r.ErrorKind)
	}
	return e
}
