package bom

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
)

// StandardLibrary is the path under which the Go runtime and its packages are listed.
const StandardLibrary = "std"

// pkg is what go list -deps -json tells of a package.
type pkg struct {
	Dir, ImportPath string
	Standard        bool
	Module          *struct {
		Path, Version, Dir string
		Main               bool
		Replace            *struct{ Path, Version, Dir string }
	}
}

// Linked gives the licences of all that is in a library, the Go runtime first. list is what
// go list -deps -json prints of its main package, goroot the folder of Go. It fails if the
// modules of the list are not those that the library says it is made of.
func Linked(goVersion string, modules []Module, list io.Reader, goroot string) ([]Licence, error) {
	folders, roots := map[string][]string{}, map[string]string{}
	for d := json.NewDecoder(list); ; {
		var p pkg
		if err := d.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			return nil, fmt.Errorf("the list of packages: %w", err)
		}
		if p.Standard || p.Module == nil || p.Module.Main {
			continue
		}
		path, version, dir := p.Module.Path, p.Module.Version, p.Module.Dir
		if r := p.Module.Replace; r != nil {
			path, version, dir = r.Path, r.Version, r.Dir
		}
		key := path + " " + version
		folders[key], roots[key] = append(folders[key], p.Dir), dir
	}
	std, err := Gather(Module{Path: StandardLibrary, Version: strings.TrimPrefix(goVersion, "go")}, filepath.Clean(goroot), nil)
	if err != nil {
		return nil, err
	}
	all := []Licence{std}
	for _, m := range modules {
		key := m.Path + " " + m.Version
		if folders[key] == nil {
			return nil, fmt.Errorf("%s is in the library and not among the packages that go list gives: they are of two states of the source", key)
		}
		slices.Sort(folders[key])
		l, err := Gather(m, roots[key], folders[key])
		if err != nil {
			return nil, err
		}
		all = append(all, l)
		delete(folders, key)
	}
	for key := range folders {
		return nil, fmt.Errorf("go list gives packages of %s, which is not in the library: they are of two states of the source", key)
	}
	return all, nil
}
