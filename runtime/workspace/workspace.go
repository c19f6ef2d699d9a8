// Package workspace is the port to a tree of files under one root, and to what only
// some trees can do: run commands, search. Path rules live here, once for all
// back-ends. Floor 2.
package workspace

import (
	"context"
	"io"
	"iter"
	"time"
)

// Workspace is a tree of files under one root. Paths are those of Clean: slash
// separated and relative, "." for the root. A path that leads outside the root, by
// text or through a link, is fault.Denied. Methods may be called concurrently.
type Workspace interface {
	// Root is the absolute path of the root, or a name such as "mem:"; for people and
	// for making absolute paths relative.
	Root() string
	// Stat describes what is at path, following links that stay inside; fault.NotFound
	// if there is nothing.
	Stat(ctx context.Context, path string) (Info, error)
	// Open streams a regular file; the caller closes it. A directory, pipe, socket or
	// device is fault.Invalid and is never waited for.
	Open(ctx context.Context, path string) (io.ReadCloser, Info, error)
	// Read returns a whole regular file of at most max bytes (fault.Limit above) with
	// Info.Version set.
	Read(ctx context.Context, path string, max int64) ([]byte, Info, error)
	// Write replaces the whole file, or leaves it untouched and returns an error. It
	// makes parents, keeps the mode of an existing file, and never follows a link in
	// the last component out of the root. A Condition that does not hold is
	// fault.Conflict with details "expected" and "actual".
	Write(ctx context.Context, path string, data []byte, cond Condition) (Info, error)
	// Remove deletes a file. Removing what is not there succeeds.
	Remove(ctx context.Context, path string) error
	// List yields the entries of dir in name order. Breaking off early is fine.
	List(ctx context.Context, dir string) iter.Seq2[Info, error]
}

// Condition guards a Write.
type Condition struct {
	// Version, if set, is the Info.Version the file must still have.
	Version string
	// Absent demands that there is no file yet.
	Absent bool
}

// Type is what a path holds.
type Type string

// The types; the words are those of the ls tool.
const (
	File  Type = "file"
	Dir   Type = "dir"
	Link  Type = "link"
	Other Type = "unknown"
)

// Info describes a file or directory.
type Info struct {
	Path     string // relative to the root, clean
	Type     Type
	Size     int64
	Modified time.Time
	// Version is a token of the content (modification time, size and hash); only Read
	// and Write fill it.
	Version string
}

// Runner is the capability of a workspace that can run shell commands.
type Runner interface {
	// Run executes a command to its end in the root of the workspace, calling output
	// with what it prints, in order, never concurrently; the bytes are valid during
	// the call only. Cancelling ctx, or Timeout, ends the whole process tree. The
	// error says that the command could not be run at all.
	Run(ctx context.Context, cmd Command, output func([]byte)) (Exit, error)
}

// Command is a shell command.
type Command struct {
	Line    string
	Timeout time.Duration     // 0 for none
	Env     map[string]string // added to the workspace's own scrubbed environment
}

// Exit says how a command ended.
type Exit struct {
	Code      int // -1 if a signal ended it, or nobody knows
	TimedOut  bool
	Cancelled bool
	// Background counts processes that were left behind and have been ended.
	Background int
	// Unknown says that the code is lost: the host process ignores SIGCHLD, or waits for
	// children that are not its own.
	Unknown bool
}

// Searcher is the capability of a workspace that can search itself.
type Searcher interface {
	// Glob yields the files below Base whose path matches Pattern, in path order (that
	// of the bytes of the whole path). Links are neither followed nor yielded.
	Glob(ctx context.Context, q GlobQuery) iter.Seq2[Info, error]
	// Grep calls hit for every matching line, files in path order, lines in order, on
	// the caller's goroutine. It stops when hit returns false. Base may be a file. What
	// was left out is in the statistics, which are filled on an error too.
	Grep(ctx context.Context, q GrepQuery, hit func(Line) bool) (GrepStats, error)
}

// GlobQuery selects files by name.
type GlobQuery struct {
	Base    string // clean path, "." for all
	Pattern string // doublestar pattern relative to Base
	// .git and .a3s are skipped always; what a .gitignore names is too, unless Ignored
	// is set.
	Ignored bool
	// Allow filters paths by the read rules; nil allows all. A search may call it from
	// several goroutines at once.
	Allow func(path string) bool
}

// GrepQuery selects lines by content.
type GrepQuery struct {
	Base       string
	Pattern    string // RE2 syntax
	Glob       string // filter on the file's path or name; empty for all
	IgnoreCase bool
	Context    int  // lines before and after a match
	FilesOnly  bool // one hit per file suffices
	Ignored    bool
	Allow      func(path string) bool
}

// MaxLine is how many bytes of a line a search gives; a longer one is cut.
const MaxLine = 2000

// Line is one line of a grep answer. The strings are the receiver's to keep.
type Line struct {
	Path    string
	Number  int    // from 1
	Text    string // without its line end, valid UTF-8, at most MaxLine bytes
	Context bool   // it only surrounds a match
}

// GrepStats says what a Grep looked at and what it left out (case GREP-01).
type GrepStats struct {
	Files, Bytes                  int64
	Binary, TooLarge, IgnoredDirs int // skipped files and directories
	Denied                        int // files the read rules hide
	IgnoredFiles                  int // files that a .gitignore names
	Unreadable                    int // files and directories the system refused
}
