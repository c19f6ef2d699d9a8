package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// named are the places that name the version. Whatever the pattern finds in a file must be
// the text of VERSION, and it must find something.
var named = []struct {
	file    string
	pattern *regexp.Regexp
	cure    string
}{
	{"CHANGELOG.md", regexp.MustCompile(`\A(?:#[^#].*\n|\n)*## (\S+)`), "the newest section must be of this version"},
	{"include/a3s.h", regexp.MustCompile(`#define A3S_VERSION "(.*)"`), "run: ./build.sh gen"},
	{"bindings/python/a3s_code/_generated.py", regexp.MustCompile(`(?m)^VERSION: Final = "(.*)"`), "run: ./build.sh gen"},
	{"bindings/rust/liba3s-sys/src/generated.rs", regexp.MustCompile(`A3S_VERSION: &str = "(.*)"`), "run: ./build.sh gen"},
	{"bindings/node/package.json", regexp.MustCompile(`"(?:version|@a3s-lab/code-[a-z0-9-]+)": "(.*)"`), "change it there"},
	{"bindings/node/package-lock.json", regexp.MustCompile(`(?m)"@a3s-lab/code(?:-[a-z0-9-]+)?"(?:,\n *"version")?: "(.*)"`), "change it there"},
	{"bindings/rust/Cargo.toml", regexp.MustCompile(`(?m)^version = "(.*)"`), "change it there"},
	{"bindings/rust/a3s-code-core/Cargo.toml", regexp.MustCompile(`(?m)^liba3s-sys = .*version = "=(.*?)"`), "change it there"},
	{"bindings/rust/Cargo.lock", regexp.MustCompile(`name = "(?:liba3s-sys|a3s-code-core)"\nversion = "(.*)"`), "run: cargo update --workspace, in bindings/rust"},
}

// licensed are the folders of packages: each holds the licence, as its language's tools want it.
var licensed = []string{"bindings/python", "bindings/node", "bindings/rust/liba3s-sys", "bindings/rust/a3s-code-core"}

// sameVersions gives the version of the checkout, if every file agrees on it and every
// package has the licence.
func sameVersions(root string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, "VERSION"))
	if err != nil {
		return "", err
	}
	version := strings.TrimSpace(string(text))
	if !regexp.MustCompile(`^\d+\.\d+\.\d+$`).MatchString(version) {
		return "", fmt.Errorf("VERSION is %q, and must be three numbers such as 1.2.3", version)
	}
	for _, n := range named {
		text, err := os.ReadFile(filepath.Join(root, n.file))
		if err != nil {
			return "", err
		}
		found := n.pattern.FindAllSubmatch(text, -1)
		if len(found) == 0 {
			return "", fmt.Errorf("%s names no version (%s)", n.file, n.pattern)
		}
		for _, f := range found {
			if string(f[1]) != version {
				return "", fmt.Errorf("%s says %s and VERSION says %s: %s", n.file, f[1], version, n.cure)
			}
		}
	}
	licence, err := os.ReadFile(filepath.Join(root, "LICENSE"))
	if err != nil {
		return "", err
	}
	for _, dir := range licensed {
		if text, err := os.ReadFile(filepath.Join(root, dir, "LICENSE")); err != nil {
			return "", err
		} else if !bytes.Equal(text, licence) {
			return "", fmt.Errorf("%s/LICENSE is not LICENSE: copy it there", dir)
		}
	}
	return version, nil
}
