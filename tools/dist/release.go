package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/a3s-lab/liba3s/tools/dist/archive"
	"github.com/a3s-lab/liba3s/tools/dist/bom"
)

// release is what is being made.
type release struct {
	root    string // the checkout
	scratch string // a folder outside of it, gone at the end
	source  string // a clone of the commit in scratch: what is not committed is in no package
	out     string // where the packages go
	cache   string // where tools of other languages keep what they built, over runs
	version string
	commit  string
	at      time.Time // of every entry of every archive

	// Known once the library is built.
	licences []bom.Licence
	glibc    [2]int
}

const (
	soname     = "liba3s.so.1"
	modulePath = "github.com/a3s-lab/liba3s"
	// thirdParty is the file of other people's licences in packages that hold the library.
	thirdParty = "THIRD_PARTY_LICENSES.txt"
)

// newRelease clones the commit that root is at and empties build/dist.
func newRelease(root, scratch string) (*release, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	if _, ok := machines[runtime.GOARCH]; runtime.GOOS != "linux" || !ok {
		return nil, fmt.Errorf("packages are made on Linux on x86-64 and ARM64 only, and this is %s/%s", runtime.GOOS, runtime.GOARCH)
	}
	r := &release{root: root, scratch: scratch, source: filepath.Join(scratch, "source"), out: filepath.Join(root, "build", "dist"), cache: filepath.Join(root, "build")}
	if r.commit, err = run(root, nil, "git", "rev-parse", "--verify", "HEAD"); err != nil {
		return nil, fmt.Errorf("packages are made from a commit: %w", err)
	}
	if changed, err := run(root, nil, "git", "status", "--porcelain", "--untracked-files=no"); err != nil {
		return nil, err
	} else if changed != "" {
		fmt.Fprintf(os.Stderr, "note: there are changes that are not committed; they are in no package\n")
	}
	if r.at, err = epoch(root, r.commit, os.Getenv("SOURCE_DATE_EPOCH")); err != nil {
		return nil, err
	}
	if err := r.clone(r.source); err != nil {
		return nil, err
	}
	if r.version, err = sameVersions(r.source); err != nil {
		return nil, err
	}
	if err := os.RemoveAll(r.out); err != nil {
		return nil, err
	}
	return r, os.MkdirAll(r.out, 0o755)
}

// clone makes a copy of the commit in dir.
func (r *release) clone(dir string) error {
	if _, err := run(r.root, nil, "git", "clone", "--quiet", "--shared", "--no-checkout", r.root, dir); err != nil {
		return err
	}
	_, err := run(dir, nil, "git", "checkout", "--quiet", "--detach", r.commit)
	return err
}

// epoch is SOURCE_DATE_EPOCH if that is set, else the time of the commit.
func epoch(root, commit, set string) (time.Time, error) {
	if set == "" {
		text, err := run(root, nil, "git", "show", "--no-patch", "--format=%ct", commit)
		if err != nil {
			return time.Time{}, err
		}
		set = text
	}
	seconds, err := strconv.ParseInt(set, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH is %q, and must be seconds since 1970", set)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// The words of npm, Python and ELF for a machine, by Go's.
var machines = map[string]struct{ node, python string }{
	"amd64": {"x64", "x86_64"},
	"arm64": {"arm64", "aarch64"},
}

// platform is the name of this platform in the names of files.
func platform() string { return "linux-" + machines[runtime.GOARCH].node + "-gnu" }

// put writes a package, settled by the rules of package archive.
func (r *release) put(name string, data []byte) error {
	data, err := archive.Settle(name, data, r.at)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, name), data, 0o644)
}

// putFrom is put for files that another program made in dir; all must be there, and no other.
func (r *release) putFrom(dir string, names ...string) error {
	made, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var found []string
	for _, e := range made {
		if !e.IsDir() {
			found = append(found, e.Name())
		}
	}
	if strings.Join(found, " ") != strings.Join(names, " ") {
		return fmt.Errorf("%s were made, and should be %s", found, names)
	}
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		if err := r.put(name, data); err != nil {
			return err
		}
	}
	return nil
}

// run runs a program in dir and gives what it prints, without the last line end. env is what
// it sees besides this process's environment, or instead of it if it begins with clean.
func run(dir string, env []string, program string, args ...string) (string, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return "", fmt.Errorf("%s is missing; %s", program, cure(program))
	}
	cmd := exec.Command(path, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	if len(env) > 0 && env[0] == clean {
		cmd.Env = env[1:]
	}
	var out, wrong bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &wrong
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", program, strings.Join(args, " "), err, bytes.TrimSpace(append(out.Bytes(), wrong.Bytes()...)))
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}

// clean as the first variable of run's env says that there are no others.
const clean = "clean"

// cure says how to get a program.
func cure(program string) string {
	words := map[string]string{
		"go": "install the version that go.mod names", "cargo": "install Rust 1.90 or newer", "node": "install Node 20 or newer",
		"npm": "install it with Node", "pkg-config": "install it (Debian: apt-get install pkg-config)", "cc": "install it (Debian: apt-get install gcc)",
		"python3": "install Python 3.10 or newer (Debian: apt-get install python3 python3-venv)", "git": "install it (Debian: apt-get install git)",
	}
	if words[program] == "" {
		return "install it"
	}
	return words[program]
}

// removeAll removes also what the Go module cache made read-only.
func removeAll(dir string) {
	filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			os.Chmod(path, 0o755)
		}
		return nil
	})
	os.RemoveAll(dir)
}
