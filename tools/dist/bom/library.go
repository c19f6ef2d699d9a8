// Package bom tells what a library consists of: the modules in it, their licences, and what it
// needs of the system it is loaded into.
package bom

import (
	"debug/buildinfo"
	"debug/elf"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Module is a Go module that is part of a library.
type Module struct {
	Path, Version string
	Sum           string // h1: of its content, as in go.sum
}

// Modules gives the version of Go that built a library and the modules in it, by path.
func Modules(file string) (goVersion string, modules []Module, err error) {
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return "", nil, err
	}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		modules = append(modules, Module{m.Path, m.Version, m.Sum})
	}
	slices.SortFunc(modules, func(a, b Module) int { return strings.Compare(a.Path, b.Path) })
	return info.GoVersion, modules, nil
}

// Glibc gives the oldest glibc that all the files can be loaded with, as {2, 34}: the newest
// version any of them asks for.
func Glibc(files ...string) (newest [2]int, err error) {
	for _, name := range files {
		f, err := elf.Open(name)
		if err != nil {
			return newest, fmt.Errorf("%s: %w", name, err)
		}
		symbols, err := f.ImportedSymbols()
		f.Close()
		if err != nil {
			return newest, fmt.Errorf("%s: %w", name, err)
		}
		for _, s := range symbols {
			if v, ok := glibcVersion(s.Version); ok && (v[0] > newest[0] || v[0] == newest[0] && v[1] > newest[1]) {
				newest = v
			}
		}
	}
	if newest == [2]int{} {
		return newest, fmt.Errorf("%s: no symbol of glibc is asked for: is it the library?", strings.Join(files, ", "))
	}
	return newest, nil
}

// glibcVersion reads the version of a symbol, such as GLIBC_2.34 or GLIBC_2.2.5.
func glibcVersion(text string) (v [2]int, ok bool) {
	text, ok = strings.CutPrefix(text, "GLIBC_")
	parts := strings.SplitN(text, ".", 3)
	if !ok || len(parts) < 2 {
		return v, false
	}
	for i := range v {
		n, err := strconv.Atoi(parts[i])
		if err != nil {
			return v, false
		}
		v[i] = n
	}
	return v, true
}

// systemLibraries are those that every glibc Linux has and that wheels may ask for.
var systemLibraries = []string{"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}

// Needs checks that a file asks for no library but those that every glibc Linux has.
func Needs(file string) error {
	f, err := elf.Open(file)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	defer f.Close()
	needed, err := f.ImportedLibraries()
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	for _, name := range needed {
		if !slices.Contains(systemLibraries, name) {
			return fmt.Errorf("%s needs %s, which not every system has", file, name)
		}
	}
	return nil
}
