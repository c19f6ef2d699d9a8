// Package search finds files by name and lines by content in any tree that can list and
// read: it owns the walk with its .gitignore rules, the matching, the order and the
// bounds of memory. How a tree is read, and that nothing outside it is, belongs to the
// tree; paths arrive clean. Floor 1: fault, ignore, safego; regexp and doublestar are
// wrapped here.
package search

import (
	"errors"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

// Bounds of a search.
const (
	MaxLine    = 2000     // bytes given of one line
	MaxFile    = 64 << 20 // a larger file is skipped and counted
	maxPattern = 8 << 10  // bytes of a regular expression
	maxGlob    = 1 << 10  // bytes of a glob
	maxBraces  = 10       // alternatives in a glob multiply
	maxContext = 1000     // lines around a match
	HeadSize   = 8 << 10  // bytes looked at for NULs
	maxMatch   = 1 << 20  // bytes of one line that an expression is tried on
)

// Tree is what can be searched. All paths are clean and relative to one root. Its
// methods are called from several goroutines at once; none may follow a link.
type Tree interface {
	// ReadDir gives the entries of a directory in any order. The slice becomes the
	// caller's.
	ReadDir(path string) ([]Entry, error)
	// Stat describes a regular file or a directory.
	Stat(path string) (Info, error)
	// ReadFile gives the content of a regular file. It may read into *buf and replace
	// *buf by a larger one; what it returns is used until the next call with the same
	// buf and not changed. After the first HeadSize bytes it asks keep, and returns what
	// it has if the answer is false. ErrTooLarge if there are more than max bytes;
	// fs.ErrNotExist if there is no such file any more.
	ReadFile(path string, buf *[]byte, max int64, keep func(head []byte) bool) ([]byte, error)
}

// ErrTooLarge is what a Tree says of a file over the limit.
var ErrTooLarge = errors.New("the file is too large to search")

// Entry is one entry of a directory; a link is neither directory nor file.
type Entry struct {
	Name      string
	Dir, File bool
}

// Info describes what is at a path.
type Info struct {
	Entry
	Size     int64
	Modified time.Time
}

// GlobQuery selects files by name. It has the fields of the workspace's query.
type GlobQuery struct {
	Base    string
	Pattern string
	Ignored bool
	Allow   func(path string) bool
}

// GrepQuery selects lines by content. It has the fields of the workspace's query.
type GrepQuery struct {
	Base       string
	Pattern    string
	Glob       string
	IgnoreCase bool
	Context    int
	FilesOnly  bool
	Ignored    bool
	Allow      func(path string) bool
}

// Line is one line of an answer. It has the fields of the workspace's line.
type Line struct {
	Path    string
	Number  int
	Text    string
	Context bool
}

// Stats has the fields of the workspace's statistics.
type Stats struct {
	Files, Bytes                  int64
	Binary, TooLarge, IgnoredDirs int
	Denied                        int
	IgnoredFiles                  int
	Unreadable                    int
}

func (s *Stats) add(o Stats) {
	s.Files += o.Files
	s.Bytes += o.Bytes
	s.Binary += o.Binary
	s.TooLarge += o.TooLarge
	s.IgnoredDirs += o.IgnoredDirs
	s.Denied += o.Denied
	s.IgnoredFiles += o.IgnoredFiles
	s.Unreadable += o.Unreadable
}

// skipped are the names that no search enters, in any case of letters.
func skipped(name string) bool {
	return len(name) == 4 && name[0] == '.' && (strings.EqualFold(name, ".git") || strings.EqualFold(name, ".a3s"))
}

// checkBase refuses a base in what is never searched.
func checkBase(op, base string) error {
	for e := range strings.SplitSeq(base, "/") {
		if skipped(e) {
			return fault.New(fault.Denied, op, "%q is never searched", base).With("path", base)
		}
	}
	return nil
}

// checkGlob gives a usable glob or says what is wrong with it.
func checkGlob(op, glob string) (string, error) {
	bad := func(why string) (string, error) {
		return "", fault.New(fault.Invalid, op, "the glob %.100q %s", glob, why)
	}
	if len(glob) > maxGlob {
		return bad("is too long")
	}
	p := glob
	for strings.HasPrefix(p, "./") {
		p = p[2:]
	}
	switch {
	case p == "":
		return bad("is empty")
	case p[0] == '/':
		return bad("is absolute; give one relative to the folder that is searched")
	case strings.Count(p, "{") > maxBraces:
		return bad("has too many alternatives")
	case !doublestar.ValidatePattern(p):
		return bad("is malformed")
	}
	for e := range strings.SplitSeq(p, "/") {
		if e == ".." {
			return bad("leads outside the folder that is searched")
		}
	}
	return p, nil
}

// below gives path relative to base.
func below(base, path string) string {
	if base == "." {
		return path
	}
	return strings.TrimPrefix(path, base+"/")
}
