package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/a3s-lab/liba3s"

// file is a Go file that is no test.
type file struct {
	name  string // relative to the module
	pkg   string // of the folder, "." for the root
	lines int
	ast   *ast.File
}

// imports gives the import paths of f with their places.
func (f file) imports() map[string]token.Pos {
	found := map[string]token.Pos{}
	for _, spec := range f.ast.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err == nil {
			found[p] = spec.Pos()
		}
	}
	return found
}

// tree is the module, read once.
type tree struct {
	fset  *token.FileSet
	files []file
}

func readTree(t *testing.T) tree {
	t.Helper()
	root := filepath.FromSlash("../..")
	tr := tree{fset: token.NewFileSet()}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		if d.IsDir() {
			base := d.Name()
			if rel != "." && (strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || slices.Contains([]string{"testdata", "node_modules", "build", "target", "vendor"}, base)) {
				return filepath.SkipDir
			}
			if _, err := os.Stat(filepath.Join(name, "go.mod")); err == nil && rel != "." {
				return filepath.SkipDir // a module of its own, such as tools
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		src, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		parsed, err := parser.ParseFile(tr.fset, filepath.ToSlash(rel), src, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		tr.files = append(tr.files, file{rel, path.Dir(rel), strings.Count(string(src), "\n"), parsed})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(tr.files) < 10 {
		t.Fatalf("found only %d Go files below %s", len(tr.files), root)
	}
	return tr
}

// at gives the place of pos for a message.
func (tr tree) at(pos token.Pos) string {
	p := tr.fset.Position(pos)
	return p.Filename + ":" + strconv.Itoa(p.Line)
}

// fits says whether a name relative to the module is one of a pattern.
func fits(pattern, name string) bool {
	if pattern == anything {
		return true
	}
	if base, ok := strings.CutSuffix(pattern, "/**"); ok {
		return strings.HasPrefix(name, base+"/")
	}
	if base, ok := strings.CutSuffix(pattern, "/*"); ok {
		rest, ok := strings.CutPrefix(name, base+"/")
		return ok && !strings.Contains(rest, "/")
	}
	return pattern == name
}

func floorOf(pkg string) (floor, bool) {
	for _, f := range floors {
		if fits(f.pkg, pkg) {
			return f, true
		}
	}
	return floor{}, false
}

func listed(list []exception, pkg, imports string) bool {
	return slices.ContainsFunc(list, func(e exception) bool { return e.pkg == pkg && e.imports == imports })
}

// in says whether a package lies in one of the folders.
func in(pkg string, folders ...string) bool {
	return slices.ContainsFunc(folders, func(f string) bool { return pkg == f || strings.HasPrefix(pkg, f+"/") })
}
