package main

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestEpoch(t *testing.T) {
	if got, err := epoch("/nowhere", "", "1795987259"); err != nil || !got.Equal(time.Unix(1795987259, 0)) {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := epoch("/nowhere", "", "today"); err == nil || !strings.Contains(err.Error(), `SOURCE_DATE_EPOCH is "today"`) {
		t.Errorf("got %v", err)
	}
	root := t.TempDir()
	for _, args := range [][]string{
		{"init", "--quiet"},
		{"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "--quiet", "--allow-empty", "-m", "a"},
	} {
		if _, err := run(root, []string{"GIT_COMMITTER_DATE=@1700000000 +0200"}, "git", args...); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := epoch(root, "HEAD", ""); err != nil || got.Unix() != 1700000000 {
		t.Errorf("the time of the commit: got %v, %v", got, err)
	}
}

// TestVersions: the places of this checkout agree; in a copy, one after the other says
// something else.
func TestVersions(t *testing.T) {
	version, err := os.ReadFile("../../VERSION")
	if err != nil {
		t.Fatal(err)
	}
	now := strings.TrimSpace(string(version))
	files := []string{"VERSION", "LICENSE"}
	for _, n := range named {
		files = append(files, n.file)
	}
	for _, dir := range licensed {
		files = append(files, dir+"/LICENSE")
	}
	root := t.TempDir()
	write := func(file string, text []byte) {
		path := filepath.Join(root, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, text, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	texts := map[string][]byte{}
	for _, file := range files {
		if texts[file], err = os.ReadFile(filepath.Join("../..", file)); err != nil {
			t.Fatal(err)
		}
		write(file, texts[file])
	}
	if got, err := sameVersions(root); err != nil || got != now {
		t.Fatalf("got %q, %v", got, err)
	}
	fails := func(file string, text []byte, want string) {
		t.Helper()
		write(file, text)
		if _, err := sameVersions(root); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", file, err, want)
		}
		write(file, texts[file])
	}
	for _, n := range named {
		places := n.pattern.FindAllSubmatchIndex(texts[n.file], -1)
		for _, p := range places {
			text := string(texts[n.file])
			fails(n.file, []byte(text[:p[2]]+"9.9.9"+text[p[3]:]), n.file+" says 9.9.9 and VERSION says "+now)
		}
		fails(n.file, []byte("nothing\n"), n.file+" names no version")
	}
	fails("VERSION", []byte("next\n"), `VERSION is "next"`)
	fails("bindings/node/LICENSE", []byte("mine\n"), "bindings/node/LICENSE is not LICENSE")
	// Both packages of npm and both crates are among the places.
	for file, count := range map[string]int{"bindings/node/package.json": 2, "bindings/node/package-lock.json": 3, "bindings/rust/Cargo.lock": 2} {
		for _, n := range named {
			if n.file == file && len(n.pattern.FindAll(texts[file], -1)) != count {
				t.Errorf("%s: %d places name the version, and should be %d", file, len(n.pattern.FindAll(texts[file], -1)), count)
			}
		}
	}
}

func TestOutside(t *testing.T) {
	got := outside([]string{
		"PATH=/usr/bin:/bin", "HOME=/home/me", "HTTPS_PROXY=http://proxy:1", "A3S_LIB=/usr/lib", "PYTHONPATH=/x", "PWD=/tmp",
		"MINE=/src/a", "LIST=/usr:/src/a", "DEEP=/src/a/build", "NEAR=/src/ab", "npm_config_cache=/x", "PKG_CONFIG_PATH=/x", "GOFLAGS=-mod=mod", "EMPTY=",
	}, "/src/a")
	want := []string{"PATH=/usr/bin:/bin", "HOME=/home/me", "HTTPS_PROXY=http://proxy:1", "NEAR=/src/ab", "npm_config_cache=/x", "EMPTY="}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestRun(t *testing.T) {
	if got, err := run(t.TempDir(), []string{clean, "A=b"}, "/usr/bin/env"); err != nil || got != "A=b" {
		t.Errorf("a clean environment: got %q, %v", got, err)
	}
	if _, err := run(t.TempDir(), nil, "no-such-program"); err == nil || err.Error() != "no-such-program is missing; install it" {
		t.Errorf("a missing program: got %v", err)
	}
	_, err := run(t.TempDir(), nil, "sh", "-c", "echo told; echo why >&2; exit 3")
	if err == nil || !regexp.MustCompile(`(?s)exit status 3\n.*told.*why`).MatchString(err.Error()) {
		t.Errorf("a failing program: got %v", err)
	}
}

func TestPackagesTogether(t *testing.T) {
	for said, want := range map[string]bool{"cargo 1.95.0 (f2d3ce0bd 2026-03-21)": true, "cargo 1.90.0": true, "cargo 1.89.1": false, "cargo": false, "": false} {
		if err := packagesTogether(said); (err == nil) != want {
			t.Errorf("%q: got %v", said, err)
		}
	}
}

// TestPrograms: every language has a program, which embed finds.
func TestPrograms(t *testing.T) {
	r := &release{scratch: t.TempDir(), version: "1.2.3"}
	for language, file := range map[string]string{"c": "user.c", "go": "main.go", "node": "user.mjs", "python": "user.py", "rust": "Cargo.toml"} {
		dir, err := r.place(language)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{file, "agent.acl", "turns.txt", "workspace/notes.txt"} {
			if text, err := os.ReadFile(filepath.Join(dir, name)); err != nil || strings.Contains(string(text), "@VERSION@") {
				t.Errorf("%s: %s: %v", language, name, err)
			}
		}
	}
	if err := r.said("1.2.3 read: found on line two", nil); err != nil {
		t.Error(err)
	}
	if err := r.said("1.2.4 read: found on line two", nil); err == nil {
		t.Error("another version is not noticed")
	}
}

func TestSizes(t *testing.T) {
	r := &release{source: t.TempDir(), out: t.TempDir()}
	if err := errors.Join(os.MkdirAll(filepath.Join(r.source, "build"), 0o755), os.WriteFile(r.built(soname), make([]byte, 17*megabyte), 0o644)); err != nil {
		t.Fatal(err)
	}
	var told strings.Builder
	if err := r.checkSizes(&told); err == nil || err.Error() != "too large: "+soname {
		t.Errorf("got %v", err)
	}
	if !strings.Contains(told.String(), "17.00 MB of 16") {
		t.Errorf("got %s", told.String())
	}
}
