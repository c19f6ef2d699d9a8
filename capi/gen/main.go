// Command gen writes the files that are generated from capi/api.json and from the Go
// types of operations, events, records and errors: ./build.sh gen. With -check it
// writes nothing and fails if a file is not as it would be written.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/a3s-lab/liba3s/capi/gen/emit"
)

func main() {
	root := flag.String("root", ".", "root of the repository")
	check := flag.Bool("check", false, "compare only")
	flag.Parse()
	if err := run(*root, *check); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(root string, check bool) error {
	files, err := emit.All(root)
	if err != nil {
		return err
	}
	for _, f := range files {
		path := filepath.Join(root, filepath.FromSlash(f.Path))
		old, err := os.ReadFile(path)
		if err == nil && bytes.Equal(old, f.Data) {
			continue
		}
		if check {
			return fmt.Errorf("%s is stale; run: ./build.sh gen", f.Path)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, f.Data, 0o644); err != nil {
			return err
		}
		fmt.Println("wrote", f.Path)
	}
	return nil
}
