package bom

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Licence is the licence of a part of the library.
type Licence struct {
	Module
	SPDX  string            // such as "MIT" or "Apache-2.0 AND MIT"
	Texts map[string]string // by name relative to the module
}

// family is a licence we may link, and the words that only it has.
type family struct {
	spdx  string
	words *regexp.Regexp
}

// What is not here is refused: somebody must look at it first.
var families = []family{
	{"Apache-2.0", regexp.MustCompile(`Apache License,? Version 2\.0`)},
	{"MIT", regexp.MustCompile(`Permission is hereby granted, free of charge, to any person obtaining a copy`)},
	{"BSD-3-Clause", regexp.MustCompile(`Redistribution and use in source and binary forms.*Neither the names? of`)},
	{"BSD-2-Clause", regexp.MustCompile(`Redistribution and use in source and binary forms`)},
	{"ISC", regexp.MustCompile(`Permission to use, copy, modify, and(/or)? distribute this software for any purpose with or without fee`)},
}

// strange are words of licences that ask more of a program than to name its authors.
var strange = regexp.MustCompile(`(?i)GNU (Lesser |Affero )?General Public|Mozilla Public License|Server Side Public|Business Source|non-?commercial`)

var spaces = regexp.MustCompile(`\s+`)

// identify gives the licences that a text grants, by their SPDX names.
func identify(text string) ([]string, error) {
	text = spaces.ReplaceAllString(text, " ")
	if word := strange.FindString(text); word != "" {
		return nil, fmt.Errorf("it speaks of %q", word)
	}
	var found []string
	for _, f := range families {
		if f.words.MatchString(text) && !(f.spdx == "BSD-2-Clause" && slices.Contains(found, "BSD-3-Clause")) {
			found = append(found, f.spdx)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("its words are not known")
	}
	return found, nil
}

var (
	licenceName = regexp.MustCompile(`(?i)^(licen[cs]e|copying|unlicense)([.-].*)?$`)
	noticeName  = regexp.MustCompile(`(?i)^(notice|patents|copyright)([.-].*)?$`)
)

// Gather reads the licences of a module that lies in root, of which the packages in the
// folders are linked: those of the folders and of all above them, up to root.
func Gather(m Module, root string, folders []string) (Licence, error) {
	l := Licence{Module: m, Texts: map[string]string{}}
	var names []string
	seen := map[string]bool{}
	for _, dir := range append([]string{root}, folders...) {
		for ; !seen[dir]; dir = filepath.Dir(dir) {
			seen[dir] = true
			found, err := l.read(root, dir)
			if err != nil {
				return l, err
			}
			names = append(names, found...)
			if dir == root {
				break
			}
			if dir == filepath.Dir(dir) {
				return l, fmt.Errorf("a package of %s does not lie in %s", m.Path, root)
			}
		}
	}
	if len(names) == 0 {
		return l, fmt.Errorf("%s %s has no licence in %s: it may not be linked", m.Path, m.Version, root)
	}
	slices.Sort(names)
	l.SPDX = strings.Join(slices.Compact(names), " AND ")
	return l, nil
}

// read takes the licences and notices that lie in dir.
func (l *Licence) read(root, dir string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		licence := licenceName.MatchString(e.Name())
		if !e.Type().IsRegular() || strings.HasSuffix(e.Name(), ".go") || !licence && !noticeName.MatchString(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		rel, err := filepath.Rel(root, filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		l.Texts[filepath.ToSlash(rel)] = string(text)
		if !licence {
			continue
		}
		found, err := identify(string(text))
		if err != nil {
			return nil, fmt.Errorf("the licence %s of %s %s: %w; look whether it may be linked, and if so add it in tools/dist/bom/licence.go", rel, l.Path, l.Version, err)
		}
		names = append(names, found...)
	}
	return names, nil
}

// Texts is one file with all licences, for packages that hold the library.
func Texts(licences []Licence) string {
	var out strings.Builder
	out.WriteString("liba3s.so.1 contains the software below. Its own licence is in LICENSE.\n")
	for _, l := range licences {
		fmt.Fprintf(&out, "\n%s\n%s %s (%s)\n", strings.Repeat("=", 78), l.Path, l.Version, l.SPDX)
		for _, name := range l.names() {
			fmt.Fprintf(&out, "%s\n%s\n\n%s\n", strings.Repeat("-", 78), name, strings.TrimSpace(l.Texts[name]))
		}
	}
	return out.String()
}

func (l Licence) names() []string {
	var names []string
	for name := range l.Texts {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
