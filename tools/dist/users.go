package main

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/a3s-lab/liba3s/tools/dist/archive"
)

// programs are small programs as a user would write them, by language; "all" holds what all of
// them need. Each runs a session and prints the version, the tool that was used and the answer.
//
//go:embed testdata/users
var programs embed.FS

// user installs packages into an empty folder and runs a program with them.
type user struct {
	name string
	try  func(*release) error
}

var users = []user{
	{"used from Python", (*release).usePython},
	{"the Python source package without a library", (*release).useSourcePackage},
	{"used from Node", (*release).useNode},
	{"used from TypeScript", (*release).useTypeScript},
	{"used from Rust", (*release).useRust},
	{"used from Go", (*release).useGo},
	{"used from C", (*release).useC},
}

// place is an empty folder outside of the checkout with the files of a program.
func (r *release) place(language string) (string, error) {
	dir := filepath.Join(r.scratch, "users", language)
	for _, from := range []string{"all", language} {
		tree, err := fs.Sub(programs, "testdata/users/"+from)
		if err != nil {
			return "", err
		}
		err = fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := fs.ReadFile(tree, name)
			if err != nil {
				return err
			}
			to := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
				return err
			}
			return os.WriteFile(to, []byte(strings.ReplaceAll(string(text), "@VERSION@", r.version)), 0o644)
		})
		if err != nil {
			return "", err
		}
	}
	return dir, nil
}

// said checks what a program printed.
func (r *release) said(got string, err error) error {
	if want := r.version + " read: found on line two"; err == nil && got != want {
		return fmt.Errorf("the program printed %q, and should print %q", got, want)
	}
	return err
}

// elsewhere is the environment of a user: this process's, without anything that leads to the
// checkout or changes where libraries are looked for. more is set besides.
func (r *release) elsewhere(more ...string) []string {
	return append(append([]string{clean}, outside(os.Environ(), r.root, r.source)...), more...)
}

// outside takes from an environment what names one of the folders or is about finding things.
func outside(env []string, folders ...string) []string {
	var kept []string
	for _, variable := range env {
		name, value, _ := strings.Cut(variable, "=")
		drop := strings.HasPrefix(name, "A3S_") || strings.HasPrefix(name, "PKG_CONFIG")
		for _, n := range []string{"PYTHONPATH", "PYTHONHOME", "NODE_PATH", "NODE_OPTIONS", "LD_LIBRARY_PATH", "LD_PRELOAD", "CARGO_TARGET_DIR", "GOFLAGS", "GOWORK", "CPATH", "LIBRARY_PATH", "PWD", "OLDPWD"} {
			drop = drop || name == n
		}
		for _, folder := range folders {
			drop = drop || value == folder || strings.Contains(value, folder+"/") || strings.HasSuffix(value, ":"+folder)
		}
		if !drop {
			kept = append(kept, variable)
		}
	}
	return kept
}

// unpacked unpacks a package into dir.
func (r *release) unpacked(name, dir string) error {
	data, err := os.ReadFile(filepath.Join(r.out, name))
	if err != nil {
		return err
	}
	return archive.Unpack(name, data, dir)
}

func (r *release) usePython() error {
	dir, err := r.place("python")
	if err != nil {
		return err
	}
	venv := filepath.Join(dir, "venv")
	if _, err := run(dir, r.elsewhere(), "python3", "-m", "venv", venv); err != nil {
		return err
	}
	python := filepath.Join(venv, "bin", "python")
	if _, err := run(dir, r.elsewhere(), python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", filepath.Join(r.out, r.wheel())); err != nil {
		return err
	}
	return r.said(run(dir, r.elsewhere(), python, "user.py"))
}

// useSourcePackage: it holds no library, and must say where one comes from; given one, it
// makes the same wheel.
func (r *release) useSourcePackage() error {
	dir := filepath.Join(r.scratch, "users", "sdist")
	if err := r.unpacked(r.sdist(), dir); err != nil {
		return err
	}
	python, err := r.hatch()
	if err != nil {
		return err
	}
	inside := filepath.Join(dir, "a3s_code-"+r.version)
	build := []string{"-m", "hatchling", "build", "-t", "wheel", "-d", filepath.Join(dir, "made")}
	if _, err := run(inside, r.elsewhere(r.sourceDate()), python, build...); err == nil || !strings.Contains(err.Error(), "A3S_LIB=") {
		return fmt.Errorf("without a library it should say how to get one, and says: %v", err)
	}
	if _, err := run(inside, r.elsewhere(r.sourceDate(), "A3S_LIB="+r.built(soname)), python, build...); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, "made", r.wheel())); err != nil {
		return fmt.Errorf("with a library it should make %s: %w", r.wheel(), err)
	}
	return nil
}

func (r *release) useNode() error {
	dir, err := r.place("node")
	if err != nil {
		return err
	}
	if _, err := run(dir, r.elsewhere(), "npm", "install", "--offline", "--no-audit", "--no-fund", filepath.Join(r.out, r.npm()), filepath.Join(r.out, r.npmNative())); err != nil {
		return err
	}
	for _, program := range []string{"user.mjs", "user.cjs"} {
		if err := r.said(run(dir, r.elsewhere(), "node", program)); err != nil {
			return fmt.Errorf("%s: %w", program, err)
		}
	}
	return nil
}

// useTypeScript compiles against the declarations of the package that useNode installed, with
// the compiler that the binding is tested with.
func (r *release) useTypeScript() error {
	dir := filepath.Join(r.scratch, "users", "node")
	tools, err := run(r.source, nil, "node", "-p", "const d = require('./bindings/node/package.json').devDependencies; `typescript@${d.typescript} @types/node@${d['@types/node']}`")
	if err != nil {
		return err
	}
	install := append([]string{"install", "--no-save", "--prefer-offline", "--no-audit", "--no-fund"}, strings.Fields(tools)...)
	if _, err := run(dir, r.elsewhere(), "npm", install...); err != nil {
		return err
	}
	_, err = run(dir, r.elsewhere(), "node", "node_modules/typescript/bin/tsc", "-p", ".")
	return err
}

func (r *release) useRust() error {
	dir, err := r.place("rust")
	if err != nil {
		return err
	}
	for _, name := range crates {
		if err := r.unpacked(name+"-"+r.version+".crate", filepath.Join(dir, "crates")); err != nil {
			return err
		}
	}
	if err := r.unpacked(r.archiveName()+".tar.gz", dir); err != nil {
		return err
	}
	lib := "A3S_LIB_DIR=" + filepath.Join(dir, r.archiveName(), "lib")
	// Cargo fetched what the crates need when it packaged them.
	return r.said(run(dir, r.elsewhere(lib), "cargo", "run", "--quiet", "--offline", "--target-dir", r.cargoTarget()))
}

// useGo gets the module from a proxy made of files, into a module cache of its own.
func (r *release) useGo() error {
	dir, err := r.place("go")
	if err != nil {
		return err
	}
	proxy, err := r.proxy(filepath.Join(r.scratch, "proxy"))
	if err != nil {
		return err
	}
	set, err := run(dir, nil, "go", "env", "GOMODCACHE", "GOPROXY")
	if err != nil {
		return err
	}
	have, others, _ := strings.Cut(set, "\n")
	// What the library was built with is at hand; only go.mod files of what it does not link are not.
	env := r.elsewhere("GOPROXY=file://"+proxy+",file://"+filepath.Join(have, "cache", "download")+","+others, "GONOSUMDB=*", "GOFLAGS=-mod=mod -trimpath", "GOMODCACHE="+filepath.Join(r.scratch, "modcache"))
	for _, args := range [][]string{
		{"mod", "init", "example.com/user"},
		{"get", modulePath + "@v" + r.version},
		{"vet", ".", modulePath},
	} {
		if _, err := run(dir, env, "go", args...); err != nil {
			return err
		}
	}
	return r.said(run(dir, env, "go", "run", "."))
}

// proxy lays out the module's zip file as go expects it of a proxy.
func (r *release) proxy(dir string) (string, error) {
	data, err := os.ReadFile(filepath.Join(r.out, r.goModule()))
	if err != nil {
		return "", err
	}
	mod, err := os.ReadFile(filepath.Join(r.source, "go.mod"))
	if err != nil {
		return "", err
	}
	versions := filepath.Join(dir, modulePath, "@v")
	if err := os.MkdirAll(versions, 0o755); err != nil {
		return "", err
	}
	v := r.goVersion().Version
	info := fmt.Sprintf(`{"Version":%q,"Time":%q}`, v, r.at.Format("2006-01-02T15:04:05Z"))
	for name, text := range map[string][]byte{"list": []byte(v + "\n"), v + ".info": []byte(info), v + ".mod": mod, v + ".zip": data} {
		if err := os.WriteFile(filepath.Join(versions, name), text, 0o644); err != nil {
			return "", err
		}
	}
	return dir, nil
}

func (r *release) useC() error {
	dir, err := r.place("c")
	if err != nil {
		return err
	}
	if err := r.unpacked(r.archiveName()+".tar.gz", dir); err != nil {
		return err
	}
	// Anywhere and under any name: nothing in it may depend on where it was unpacked.
	lib := filepath.Join(dir, "moved", "lib")
	if err := os.Rename(filepath.Join(dir, r.archiveName()), filepath.Dir(lib)); err != nil {
		return err
	}
	flags, err := run(dir, r.elsewhere("PKG_CONFIG_PATH="+filepath.Join(lib, "pkgconfig")), "pkg-config", "--cflags", "--libs", "liba3s = "+r.version)
	if err != nil {
		return err
	}
	compile := append([]string{"-std=c11", "-Wall", "-Werror", "user.c", "-o", "user"}, strings.Fields(flags)...)
	if _, err := run(dir, r.elsewhere(), "cc", compile...); err != nil {
		return err
	}
	return r.said(run(dir, r.elsewhere("LD_LIBRARY_PATH="+lib), filepath.Join(dir, "user")))
}
