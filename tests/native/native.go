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

// Library builds the library in dir, with the name that linking needs beside it. The
// tag a3s_test adds the operations that force faults.
func Library(root, dir, tags string) error {
	link := "-extldflags '-Wl,--version-script=" + filepath.Join(root, "capi", "a3s.map") + " -Wl,-soname," + SOName + "'"
	if err := Shared(root, filepath.Join(dir, SOName), "./capi", "-tags", tags, "-ldflags", link); err != nil {
		return err
	}
	return os.Symlink(SOName, filepath.Join(dir, "liba3s.so"))
}

// Shared builds a package of the module as a shared library.
func Shared(root, out, pkg string, flags ...string) error {
	args := append([]string{"build", "-buildmode=c-shared", "-buildvcs=false", "-o", out}, flags...)
	cmd := exec.Command("go", append(args, pkg)...)
	cmd.Dir = root
	if msg, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %v\n%s", pkg, err, msg)
	}
	return nil
}

// Program compiles a C program against the header, with more arguments if it needs them,
// and puts it beside the library in dir. It is linked with the library if it uses it.
// Warnings are errors.
func Program(root, dir, source string, more ...string) (string, error) {
	base := filepath.Base(source)
	out := filepath.Join(dir, base[:len(base)-len(filepath.Ext(base))])
	args := []string{"-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-pedantic", "-Werror", "-g", "-pthread", "-I", filepath.Join(root, "include"), source}
	args = append(args, more...)
	args = append(args, "-o", out, "-L", dir, "-Wl,--as-needed", "-la3s", "-ldl", "-Wl,-rpath,"+dir)
	if msg, err := exec.Command("cc", args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("compiling %s: %v\n%s", source, err, msg)
	}
	return out, nil
}
