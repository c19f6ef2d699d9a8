// Package ignore answers whether a .gitignore leaves a path out, as git does. It owns
// the language of the patterns and the order in which files of patterns count; finding
// and reading those files, and not descending into what is ignored, is the caller's
// part. Floor 1.
package ignore

import (
	"bytes"
	"strings"
)

// MaxSize is the largest file of patterns a caller should read.
const MaxSize = 1 << 20

// Rules are the patterns of one file, in its order. They do not change.
type Rules struct {
	list []rule
	// Most patterns are a plain name or "*.ext". Their last places in the list, plus 1,
	// are found by a look-up; the rest is tried one by one.
	names, dirNames map[string]int
	exts, dirExts   map[string]int
	other           []int // places, rising
}

// Parse reads the text of a file of patterns. Lines that are no valid pattern match
// nothing, as in git.
func Parse(text []byte) *Rules {
	r := &Rules{names: map[string]int{}, dirNames: map[string]int{}, exts: map[string]int{}, dirExts: map[string]int{}}
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	for line := range strings.SplitSeq(string(text), "\n") {
		if rule, ok := parseLine(strings.TrimSuffix(line, "\r")); ok {
			r.add(rule)
		}
	}
	return r
}

// Empty says that there is no pattern at all.
func (r *Rules) Empty() bool { return r == nil || len(r.list) == 0 }

func (r *Rules) add(p rule) {
	r.list = append(r.list, p)
	place := len(r.list)
	names, exts := r.names, r.exts
	if p.dirOnly {
		names, exts = r.dirNames, r.dirExts
	}
	switch {
	case p.name != "":
		names[p.name] = place
	case p.ext != "":
		exts[p.ext] = place
	default:
		r.other = append(r.other, place-1)
	}
}

// verdict is what a file of patterns says about a path.
type verdict int8

const (
	silent verdict = iota
	ignored
	included
)

// match asks for a path relative to the folder of the file. The last pattern that
// matches decides.
func (r *Rules) match(path string, dir bool) verdict {
	name := path[strings.LastIndexByte(path, '/')+1:]
	last := r.names[name]
	if dir {
		last = max(last, r.dirNames[name])
	}
	if dot := strings.LastIndexByte(name, '.'); dot >= 0 {
		last = max(last, r.exts[name[dot:]])
		if dir {
			last = max(last, r.dirExts[name[dot:]])
		}
	}
	for i := len(r.other) - 1; i >= 0 && r.other[i] >= last; i-- {
		p := &r.list[r.other[i]]
		if (dir || !p.dirOnly) && p.matches(path, name) {
			last = r.other[i] + 1
			break
		}
	}
	switch {
	case last == 0:
		return silent
	case r.list[last-1].negated:
		return included
	}
	return ignored
}

// Stack is the files of patterns that count in a folder: its own, then those of its
// parents, then what was pushed first. The zero of it is nil: nothing is ignored.
type Stack struct {
	below *Stack
	dir   string // "." or the clean path of the folder
	rules *Rules
}

// Push gives the stack with the rules of a folder on top. s is not changed.
func (s *Stack) Push(dir string, r *Rules) *Stack {
	if r.Empty() {
		return s
	}
	return &Stack{below: s, dir: dir, rules: r}
}

// Ignored says whether a clean path is left out. Its parents are not looked at: what
// lies in an ignored folder is ignored whatever the patterns say.
func (s *Stack) Ignored(path string, dir bool) bool {
	for ; s != nil; s = s.below {
		rel := path
		if s.dir != "." {
			rel = path[len(s.dir)+1:]
		}
		switch s.rules.match(rel, dir) {
		case ignored:
			return true
		case included:
			return false
		}
	}
	return false
}
