// Package native builds what tests need in machine code: the shared library, and C
// programs that are linked with it. It runs nothing.
package native

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// SOName is the file name of the library.
const SOName = "liba3s.so.1"

// Root gives the folder of the module, seen from a package two folders below it.
func Root() (string, error) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err == nil {
		_, err = os.Stat(filepath.Join(root, "go.mod"))
	}
	return root, err
}

// Library builds the library in dir, with the name that linking needs beside it.
func Library(root, dir string) error {
	link := "-extldflags '-Wl,--version-script=" + filepath.Join(root, "capi", "a3s.map") + " -Wl,-soname," + SOName + "'"
	cmd := exec.Command("go", "build", "-buildmode=c-shared", "-buildvcs=false", "-ldflags", link, "-o", filepath.Join(dir, SOName), "./capi")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building the library: %v\n%s", err, out)
	}
	return os.Symlink(SOName, filepath.Join(dir, "liba3s.so"))
}

// Program compiles a C program against the header and the library in dir, and puts it
// there too. Warnings are errors.
func Program(root, dir, source string) (string, error) {
	base := filepath.Base(source)
	out := filepath.Join(dir, base[:len(base)-len(filepath.Ext(base))])
	cmd := exec.Command("cc", "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-pedantic", "-Werror", "-g", "-pthread",
		"-I", filepath.Join(root, "include"), source, "-o", out, "-L", dir, "-la3s", "-ldl", "-Wl,-rpath,"+dir)
	if msg, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("compiling %s: %v\n%s", source, err, msg)
	}
	return out, nil
}
