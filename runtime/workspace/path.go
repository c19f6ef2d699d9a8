package workspace

import (
	"path"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

// MaxPath is the longest path in bytes that Clean accepts.
const MaxPath = 4096

// Clean gives the one normal form of a path that all back-ends use: slash separated,
// relative to root, without ".", ".." or empty elements; "." is the root itself. An
// absolute path is taken if it lies below root, compared element by element. What
// leads out of root is fault.Denied; what cannot name a file in every back-end (a
// drive letter, a UNC name, NUL, invalid UTF-8, over MaxPath bytes) is fault.Invalid.
//
// Clean looks at the text alone. That a link does not lead outside is for the back-end
// to see when it opens the path.
func Clean(root, input string) (string, error) {
	if len(input) > MaxPath {
		return "", fault.New(fault.Invalid, op, "the path is %d bytes long; at most %d are allowed", len(input), MaxPath)
	}
	if strings.IndexByte(input, 0) >= 0 {
		return "", fault.New(fault.Invalid, op, "the path %q contains a NUL byte", input)
	}
	if !utf8.ValidString(input) {
		return "", fault.New(fault.Invalid, op, "the path %q is not valid UTF-8", input)
	}
	p := strings.ReplaceAll(input, `\`, "/")
	if strings.HasPrefix(p, "//") {
		return "", fault.New(fault.Invalid, op, "the path %q is a network name; give a path relative to the workspace", input)
	}
	if path.IsAbs(p) {
		below, ok := strip(root, path.Clean(p))
		if !ok {
			return "", fault.New(fault.Denied, op, "the path %q is outside the workspace; give a path relative to its root", input)
		}
		p = below
	}
	p = path.Clean(p)
	if p == ".." || strings.HasPrefix(p, "../") {
		return "", fault.New(fault.Denied, op, "the path %q leads outside the workspace; give a path relative to its root", input)
	}
	if hasDrive(p) {
		return "", fault.New(fault.Invalid, op, "the path %q starts with a drive letter; give a path relative to the workspace", input)
	}
	return p, nil
}

const op = "workspace.path"

// strip takes root off the absolute path p.
func strip(root, p string) (string, bool) {
	if !path.IsAbs(root) {
		return "", false
	}
	root = path.Clean(root)
	if !Within(root, p) {
		return "", false
	}
	return "." + strings.TrimPrefix(p, strings.TrimSuffix(root, "/")), true
}

// Within says whether the clean path p is dir or lies below it, compared by elements:
// "/tmp/project-other" is not within "/tmp/project". Both are relative or both absolute.
func Within(dir, p string) bool {
	if dir == "." || dir == p {
		return true
	}
	return strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/")
}

func hasDrive(p string) bool {
	if len(p) < 2 || p[1] != ':' {
		return false
	}
	c := p[0] | 0x20
	return 'a' <= c && c <= 'z'
}

// Display makes a path safe to show to people and models: control characters, line
// breaks, escape sequences, invisible and direction-changing characters, backslashes
// and invalid UTF-8 appear as Go escapes. Ordinary names stay as they are.
func Display(p string) string {
	if !strings.ContainsFunc(p, hidden) {
		return p
	}
	var b strings.Builder
	for len(p) > 0 {
		r, n := utf8.DecodeRuneInString(p)
		switch {
		case r == utf8.RuneError && n == 1:
			b.WriteString(`\x`)
			b.WriteString(strconv.FormatUint(uint64(p[0])|0x100, 16)[1:])
		case !hidden(r):
			b.WriteString(p[:n])
		default:
			q := strconv.QuoteRune(r)
			b.WriteString(q[1 : len(q)-1])
		}
		p = p[n:]
	}
	return b.String()
}

// hidden counts U+FFFD too, since that is what an invalid byte decodes to.
func hidden(r rune) bool {
	return r == '\\' || r == utf8.RuneError || !unicode.IsPrint(r)
}

// Skipped says whether an entry of this name is left out of every search: the
// directories of the version control and of libA3S, in any case of letters.
func Skipped(name string) bool {
	if len(name) < 4 {
		return false
	}
	// Some file systems drop trailing dots and spaces and cut at a colon, so that
	// ".git." or ".git::x" would reach the same directory.
	name, _, _ = strings.Cut(name, ":")
	name = strings.TrimRight(name, ". ")
	return strings.EqualFold(name, ".git") || strings.EqualFold(name, ".a3s")
}

// Protected says whether a clean path is one that no tool may change: ".git" and
// ".a3s" at any depth and all below them.
func Protected(p string) bool {
	for name := range strings.SplitSeq(p, "/") {
		if Skipped(name) {
			return true
		}
	}
	return false
}
