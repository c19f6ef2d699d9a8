package arch

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// complain reports what a check found.
func complain(t *testing.T, check func(tree) []string) {
	t.Helper()
	for _, c := range check(readTree(t)) {
		t.Error(c)
	}
}

func TestFloors(t *testing.T)     { complain(t, offFloor) }
func TestGoodGuest(t *testing.T)  { complain(t, rudeUses) }
func TestGoroutines(t *testing.T) { complain(t, bareGo) }
func TestComments(t *testing.T)   { complain(t, silent) }

func TestExceptions(t *testing.T) {
	tr := readTree(t)
	for _, e := range exceptions {
		used := slices.ContainsFunc(tr.files, func(f file) bool {
			_, plain := f.imports()[e.imports]
			_, ours := f.imports()[strings.TrimSuffix(module+"/"+e.imports, "/.")]
			return f.pkg == e.pkg && (plain || ours)
		})
		if !used {
			t.Logf("the exception of %s for %s is not used; if that is not about to change, delete it from tests/arch/floors.go", e.pkg, e.imports)
		}
		if e.why == "" {
			t.Errorf("the exception of %s for %s gives no reason", e.pkg, e.imports)
		}
	}
}

// offFloor finds imports outside the table.
func offFloor(tr tree) (found []string) {
	seen := map[string]bool{}
	for _, f := range tr.files {
		fl, ok := floorOf(f.pkg)
		if !ok {
			if !seen[f.pkg] {
				say(&found, "%s: package %s is on no floor; give it a row in tests/arch/floors.go, or move it where it belongs", f.name, f.pkg)
			}
			seen[f.pkg] = true
			continue
		}
		for imported, pos := range f.imports() {
			name, ours := strings.CutPrefix(imported, module)
			name = strings.TrimPrefix(name, "/")
			if ours && name == "" {
				name = "."
			}
			switch {
			case ours && listed(exceptions, f.pkg, name), !ours && listed(exceptions, f.pkg, imported):
			case ours:
				if listed(forbidden, f.pkg, name) || !slices.ContainsFunc(fl.imports, func(p string) bool { return fits(p, name) }) {
					say(&found, "%s: %s (floor %d) may not import %s; it may import %s. Move the code to the floor that may, "+
						"hand the thing in as a value, a function or a small interface, or list an exception with its reason in tests/arch/floors.go",
						tr.at(pos), f.pkg, fl.number, name, strings.Join(fl.imports, ", "))
				}
			case strings.Contains(strings.Split(imported, "/")[0], ".") && !fl.foreign:
				say(&found, "%s: %s may not import the third party %s; wrap it in a package of internal/ or use it in a back-end, "+
					"or list an exception with its reason in tests/arch/floors.go", tr.at(pos), f.pkg, imported)
			}
		}
	}
	return found
}

func say(found *[]string, format string, args ...any) {
	*found = append(*found, fmt.Sprintf(format, args...))
}

// ban is a use of something that a good guest does not touch, or that has one place.
type ban struct {
	pkg, name string // import path and identifier; a * at the end stands for any rest
	cure      string
}

const ambient = "the library reads nothing of the process around it: take the value from the caller (cwd, env and streams come with every open)"
const writes = "the library writes nothing to the host's output: return an error or a log event"

var bans = []ban{
	{"os", "Getenv", ambient}, {"os", "LookupEnv", ambient}, {"os", "Environ", ambient}, {"os", "ExpandEnv", ambient},
	{"os", "Setenv", ambient}, {"os", "Unsetenv", ambient}, {"os", "Clearenv", ambient},
	{"os", "Getwd", ambient}, {"os", "Chdir", ambient}, {"os", "UserHomeDir", ambient}, {"os", "UserCacheDir", ambient}, {"os", "UserConfigDir", ambient},
	{"path/filepath", "Abs", ambient + "; join with the given folder instead"},
	{"os", "Stdout", writes}, {"os", "Stderr", writes}, {"os", "Stdin", ambient},
	{"fmt", "Print*", writes}, {"fmt", "Scan*", ambient},
	{"log", "*", writes}, {"log/slog", "*", writes},
	{"os", "Exit", "the library never ends the host's process: return an error"},
	{"os/signal", "*", "the library changes no signal disposition: take a context from the caller"},
	{"os/exec", "*", "start child processes through internal/proc, which ends whole trees and restores the signal mask"},
	{"os", "StartProcess", "start child processes through internal/proc"},
	{"syscall", "ForkExec", "start child processes through internal/proc"}, {"syscall", "StartProcess", "start child processes through internal/proc"},
	{"net/http", "DefaultClient", "use the client of internal/httpx: the default one reads proxies from the environment"},
	{"net/http", "DefaultTransport", "use the client of internal/httpx: the default one reads proxies from the environment"},
	{"net/http", "ProxyFromEnvironment", "use the proxy of internal/httpx, which comes from the configuration"},
}

// excused are the packages whose task a banned thing is.
var excused = map[string][]string{
	"internal/proc": {"os/exec", "os.StartProcess", "syscall.ForkExec", "syscall.StartProcess"},
}

// rudeUses finds what a library inside somebody's process must not do.
func rudeUses(tr tree) (found []string) {
	for _, f := range tr.files {
		if !in(f.pkg, "runtime", "internal") {
			continue
		}
		names := importNames(f)
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				x, ok := n.X.(*ast.Ident)
				if !ok {
					return true
				}
				for _, b := range bans {
					if names[x.Name] == b.pkg && matches(b.name, n.Sel.Name) && !excuses(f.pkg, b) {
						say(&found, "%s: %s.%s: %s", tr.at(n.Pos()), x.Name, n.Sel.Name, b.cure)
					}
				}
			case *ast.CallExpr:
				if x, ok := n.Fun.(*ast.Ident); ok && (x.Name == "println" || x.Name == "print") {
					say(&found, "%s: %s: %s", tr.at(n.Pos()), x.Name, writes)
				}
			}
			return true
		})
		for imported, pos := range f.imports() {
			if spec := f.ast.Imports[slices.IndexFunc(f.ast.Imports, func(s *ast.ImportSpec) bool { return s.Pos() == pos })]; spec.Name != nil && spec.Name.Name == "." {
				say(&found, "%s: %s is imported with a dot; name it, so that its uses can be seen", tr.at(pos), imported)
			}
		}
	}
	return found
}

func matches(pattern, name string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(name, prefix)
	}
	return pattern == name
}

func excuses(pkg string, b ban) bool {
	return slices.Contains(excused[pkg], b.pkg) || slices.Contains(excused[pkg], b.pkg+"."+b.name)
}

// importNames gives the import path behind every name that f uses for a package.
func importNames(f file) map[string]string {
	names := map[string]string{}
	for _, spec := range f.ast.Imports {
		p := strings.Trim(spec.Path.Value, `"`)
		name := p[strings.LastIndex(p, "/")+1:]
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = p
	}
	return names
}

// bareGo finds goroutines that no recover guards.
func bareGo(tr tree) (found []string) {
	for _, f := range tr.files {
		if f.pkg == "internal/safego" || !(f.pkg == "." || in(f.pkg, "runtime", "internal", "capi")) {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if g, ok := n.(*ast.GoStmt); ok {
				say(&found, "%s: a bare go statement; start it with safego.Go, so that a panic does not end the host's process", tr.at(g.Pos()))
			}
			return true
		})
	}
	return found
}

// silent finds packages and exported symbols without a comment.
func silent(tr tree) (found []string) {
	packages := map[string]bool{}
	for _, f := range tr.files {
		packages[f.pkg] = packages[f.pkg] || f.ast.Doc != nil
	}
	for pkg, has := range packages {
		if !has {
			say(&found, "package %s has no package comment; say in one of its files what it owns, what it leaves to others and its floor", pkg)
		}
	}
	for _, f := range tr.files {
		if f.name != "a3s.go" && !in(f.pkg, "runtime") {
			continue
		}
		for _, decl := range f.ast.Decls {
			for name, pos := range undocumented(decl) {
				say(&found, "%s: %s is exported and has no doc comment; say what it is, and for a method its contract", tr.at(pos), name)
			}
		}
	}
	return found
}

// undocumented gives the exported names of a declaration that have no comment. In a
// group the comment of the group covers constants and variables, not types.
func undocumented(decl ast.Decl) map[string]token.Pos {
	found := map[string]token.Pos{}
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && d.Doc == nil && (d.Recv == nil || exportedReceiver(d.Recv)) {
			found[d.Name.Name] = d.Pos()
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				if s.Name.IsExported() && s.Doc == nil && (d.Doc == nil || d.Lparen.IsValid()) {
					found[s.Name.Name] = s.Pos()
				}
				if i, ok := s.Type.(*ast.InterfaceType); ok && s.Name.IsExported() {
					for _, m := range i.Methods.List {
						if len(m.Names) > 0 && m.Names[0].IsExported() && m.Doc == nil && m.Comment == nil {
							found[s.Name.Name+"."+m.Names[0].Name] = m.Pos()
						}
					}
				}
			case *ast.ValueSpec:
				for _, n := range s.Names {
					if n.IsExported() && s.Doc == nil && s.Comment == nil && d.Doc == nil {
						found[n.Name] = n.Pos()
					}
				}
			}
		}
	}
	return found
}

func exportedReceiver(recv *ast.FieldList) bool {
	exported := true
	ast.Inspect(recv.List[0].Type, func(n ast.Node) bool {
		if x, ok := n.(*ast.Ident); ok {
			exported = x.IsExported()
			return false
		}
		return true
	})
	return exported
}

// TestSizes reports what is large; size is a hint to look, not a fault.
func TestSizes(t *testing.T) {
	tr := readTree(t)
	lines, imports := map[string]int{}, map[string]map[string]bool{}
	for _, f := range tr.files {
		lines[f.pkg] += f.lines
		if f.lines > 400 {
			t.Logf("%s has %d lines (400)", f.name, f.lines)
		}
		if imports[f.pkg] == nil {
			imports[f.pkg] = map[string]bool{}
		}
		for p := range f.imports() {
			if strings.HasPrefix(p, module) {
				imports[f.pkg][p] = true
			}
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if s, ok := n.(*ast.TypeSpec); ok {
				if i, ok := s.Type.(*ast.InterfaceType); ok && i.Methods.NumFields() > 7 {
					t.Logf("%s: interface %s has %d methods (7)", tr.at(s.Pos()), s.Name.Name, i.Methods.NumFields())
				}
			}
			return true
		})
	}
	for pkg, n := range lines {
		if n > 1800 {
			t.Logf("package %s has %d lines (1800)", pkg, n)
		}
		if c := len(imports[pkg]); c > 10 {
			t.Logf("package %s imports %d packages of this project (10)", pkg, c)
		}
	}
}
