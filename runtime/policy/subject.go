package policy

import (
	"bytes"
	"encoding/json"
	"path"
	"slices"
	"strings"
)

// class says which text of a call a rule's pattern is matched against.
type class int

const (
	whole      class = iota // the whole arguments as JSON
	shell                   // command
	filePath                // file_path, or every path of files
	folderPath              // path, the root if there is none
	searchPath              // where a search looks; deny and ask also see what it looks for
)

var classes = map[string]class{
	"bash": shell,
	"read": filePath, "write": filePath, "edit": filePath, "patch": filePath, "download": filePath,
	"ls":   folderPath,
	"grep": searchPath, "glob": searchPath,
}

func classOf(tool string) class { return classes[strings.ToLower(tool)] }

func (c class) ofPaths() bool { return c == filePath || c == folderPath || c == searchPath }

// subject is what the patterns of a call's tool are matched against.
type subject struct {
	class class
	// wide holds the texts for deny and ask rules: one match suffices.
	wide []string
	// narrow holds the texts for allow rules: every group needs a match, in any of its
	// spellings. With no group no pattern matches.
	narrow [][]string
	// blind says that part of the call could not be looked into, so that a deny rule
	// with a pattern must be taken to match.
	blind bool
	// pairs of all wide texts, filled when they are first needed.
	pairs  pairSet
	filled bool
}

func (s *subject) add(texts ...string) {
	for _, t := range texts {
		if !slices.Contains(s.wide, t) {
			s.wide = append(s.wide, t)
		}
	}
}

// meets says whether the pattern of a deny or ask rule fits the call.
func (s *subject) meets(p *pattern) bool {
	if p.any || s.blind {
		return true
	}
	if !s.filled {
		for _, text := range s.wide {
			s.pairs.add(text)
		}
		s.filled = true
	}
	return s.pairs.holds(p.need) && slices.ContainsFunc(s.wide, p.match)
}

// read makes the subject of a call. Names of arguments are compared without case,
// since a decoder further down may do so too.
func (r *Rules) read(call CallView) subject {
	s := subject{class: classOf(call.Tool)}
	if s.class == whole {
		s.json(call.Args)
		return s
	}
	var args map[string]json.RawMessage
	if json.Unmarshal(call.Args, &args) != nil {
		s.blind = len(bytes.TrimSpace(call.Args)) > 0
		args = nil
	}
	switch s.class {
	case shell:
		commands, readable := texts(args, "command")
		s.blind = s.blind || !readable
		for _, command := range commands {
			s.command(command)
		}
	case filePath:
		paths, readable := texts(args, "file_path")
		more, readableToo := filesOf(args)
		s.blind = s.blind || !readable || !readableToo
		s.paths(r, append(paths, more...))
	case folderPath:
		paths, readable := texts(args, "path")
		s.blind = s.blind || !readable
		s.paths(r, rootIfNone(paths))
	case searchPath:
		s.search(r, call.Tool, args)
	}
	return s
}

func (s *subject) json(args json.RawMessage) {
	raw := string(bytes.TrimSpace(args))
	if raw == "" {
		raw = "{}"
	}
	s.add(raw)
	if c, err := canonical([]byte(raw)); err == nil {
		s.add(string(c))
		s.narrow = [][]string{{string(c)}}
	}
}

func (s *subject) search(r *Rules, tool string, args map[string]json.RawMessage) {
	root := r.root
	bases, readable := texts(args, "path")
	wanted, readableToo := texts(args, "pattern")
	s.blind = !readable || !readableToo
	bases = rootIfNone(bases)
	glob := strings.EqualFold(tool, "glob")
	for _, base := range bases {
		for _, w := range wanted {
			s.add(w, w+" "+base)
			if !glob {
				continue
			}
			// Twice, so that a * of a rule, which is one level, does not allow all depths.
			deep := strings.ReplaceAll(w, "**", "**/**")
			s.add(spellings(root, strings.TrimRight(base, `/\`)+"/"+w)...)
			s.narrow = append(s.narrow, spellings(root, strings.TrimRight(base, `/\`)+"/"+deep))
		}
		if glob {
			s.add(base)
			s.add(spellings(root, base)...)
		}
	}
	if !glob {
		s.paths(r, bases)
	}
}

// paths adds every path: cleaned for allow, cleaned and as written for deny. A path that
// leads through a link counts as the link and as the file it reaches.
func (s *subject) paths(r *Rules, paths []string) {
	for _, p := range paths {
		clean := spellings(r.root, p)
		s.add(clean...)
		s.add(p, strings.TrimSpace(p), slashes(p))
		s.narrow = append(s.narrow, clean)
		if r.resolve == nil {
			continue
		}
		if real, err := r.resolve(p); err == nil && real != clean[0] { // the workspace refuses what it cannot resolve
			reached := spellings(r.root, real)
			s.add(reached...)
			s.narrow = append(s.narrow, reached)
		}
	}
}

// spellings gives the names of one file: relative to the root if it is inside, and
// absolute if the root is known.
func spellings(root, p string) []string {
	clean := cleanPath(root, p)
	if path.IsAbs(clean) || !path.IsAbs(root) {
		return []string{clean}
	}
	return []string{clean, path.Join(root, clean)}
}

func slashes(p string) string { return strings.ReplaceAll(p, `\`, "/") }

// cleanPath gives the path relative to root if it is inside by its text, else an
// absolute one, or one that starts with ".." when the root is not known. It looks at
// no disk: what a link leads to is the workspace's to judge.
func cleanPath(root, p string) string {
	p = path.Clean(slashes(p))
	if !path.IsAbs(root) {
		return p
	}
	if !path.IsAbs(p) {
		if p != ".." && !strings.HasPrefix(p, "../") {
			return p
		}
		p = path.Join(root, p)
	}
	if p == root {
		return "."
	}
	if inside, ok := strings.CutPrefix(p, strings.TrimSuffix(root, "/")+"/"); ok {
		return inside
	}
	return p
}

func rootIfNone(paths []string) []string {
	if len(paths) == 0 {
		return []string{"."}
	}
	for i, p := range paths {
		if strings.TrimSpace(p) == "" {
			paths[i] = "."
		}
	}
	return paths
}

// texts gives the values of every argument called name. Not readable means that one of
// them is no text.
func texts(args map[string]json.RawMessage, name string) (found []string, readable bool) {
	readable = true
	for key, raw := range args {
		if !strings.EqualFold(key, name) {
			continue
		}
		var s *string
		if json.Unmarshal(raw, &s) != nil {
			readable = false
		} else if s != nil {
			found = append(found, *s)
		}
	}
	return found, readable
}

func filesOf(args map[string]json.RawMessage) (paths []string, readable bool) {
	readable = true
	for key, raw := range args {
		if !strings.EqualFold(key, "files") {
			continue
		}
		var files []map[string]json.RawMessage
		if json.Unmarshal(raw, &files) != nil {
			readable = false
			continue
		}
		for _, f := range files {
			found, ok := texts(f, "path")
			paths = append(paths, found...)
			readable = readable && ok
		}
	}
	return paths, readable
}
