package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/a3s-lab/liba3s/tools/dist/bom"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// builder is what makes wheels; its version is in the metadata of what it makes.
const builder = "hatchling==1.33.0"

// hatch gives a Python that has the builder, kept over runs.
func (r *release) hatch() (python string, err error) {
	venv := filepath.Join(r.cache, "venv-dist")
	python, mark := filepath.Join(venv, "bin", "python"), filepath.Join(venv, ".made")
	if made, err := os.ReadFile(mark); err == nil && string(made) == builder {
		return python, nil
	}
	if err := os.RemoveAll(venv); err != nil {
		return "", err
	}
	if _, err := run(r.scratch, nil, "python3", "-m", "venv", venv); err != nil {
		return "", fmt.Errorf("a virtual environment cannot be made (Debian: apt-get install python3-venv): %w", err)
	}
	if _, err := run(r.scratch, nil, python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", builder); err != nil {
		return "", err
	}
	return python, os.WriteFile(mark, []byte(builder), 0o644)
}

// wheel and source package of Python.
func (r *release) wheel() string { return "a3s_code-" + r.version + "-" + r.wheelTag() + ".whl" }
func (r *release) sdist() string { return "a3s_code-" + r.version + ".tar.gz" }

func (r *release) makePython() error {
	python, err := r.hatch()
	if err != nil {
		return err
	}
	made := filepath.Join(r.scratch, "python")
	if _, err := run(filepath.Join(r.source, "bindings", "python"), []string{"A3S_LIB=" + r.built(soname), r.sourceDate()},
		python, "-m", "hatchling", "build", "-t", "wheel", "-t", "sdist", "-d", made); err != nil {
		return err
	}
	return r.putFrom(made, r.wheel(), r.sdist())
}

// The two npm packages: what is written in JavaScript, and the addon with the library.
func (r *release) npm() string       { return "a3s-lab-code-" + r.version + ".tgz" }
func (r *release) npmNative() string { return "a3s-lab-code-" + platform() + "-" + r.version + ".tgz" }

func (r *release) makeNode() error {
	binding, native, made := filepath.Join(r.source, "bindings", "node"), filepath.Join(r.scratch, "npm-native"), filepath.Join(r.scratch, "npm")
	if err := os.MkdirAll(made, 0o755); err != nil {
		return err
	}
	if _, err := run(binding, nil, "node", "scripts/pack.js", "--out", native); err != nil {
		return err
	}
	// What says that it runs where the library does must not ask for more.
	addon := filepath.Join(native, "a3s.node")
	if err := bom.Needs(addon); err != nil {
		return err
	}
	if both, err := bom.Glibc(addon, r.built(soname)); err != nil {
		return err
	} else if both != r.glibc {
		return fmt.Errorf("the addon needs glibc %d.%d, and the library only %d.%d", both[0], both[1], r.glibc[0], r.glibc[1])
	}
	if _, err := run(r.scratch, nil, "npm", "pack", "--silent", "--pack-destination", made, native, binding); err != nil {
		return err
	}
	return r.putFrom(made, r.npm(), r.npmNative())
}

// crates are the names of the crates, what is needed first.
var crates = []string{"liba3s-sys", "a3s-code-core"}

// makeCrates lets cargo package the crates; cargo also builds each as it would be downloaded.
func (r *release) makeCrates() error {
	said, err := run(r.scratch, nil, "cargo", "--version")
	if err != nil {
		return err
	}
	if err := packagesTogether(said); err != nil {
		return err
	}
	target := r.cargoTarget()
	args := []string{"package", "--quiet", "--locked", "--target-dir", target}
	for _, name := range crates {
		old, err := filepath.Glob(filepath.Join(target, "package", name+"-*.crate"))
		if err != nil {
			return err
		}
		for _, file := range old {
			os.Remove(file)
		}
		args = append(args, "-p", name)
	}
	if _, err := run(filepath.Join(r.source, "bindings", "rust"), []string{"A3S_LIB_DIR=" + filepath.Dir(r.built(soname))}, "cargo", args...); err != nil {
		return err
	}
	for _, name := range crates {
		file := name + "-" + r.version + ".crate"
		data, err := os.ReadFile(filepath.Join(target, "package", file))
		if err != nil {
			return err
		}
		if err := r.put(file, data); err != nil {
			return err
		}
	}
	return nil
}

// packagesTogether checks what cargo says of itself: before 1.90 it cannot package a crate
// together with one it depends on that is not published yet.
func packagesTogether(said string) error {
	var minor int
	if n, err := fmt.Sscanf(said, "cargo 1.%d.", &minor); n == 1 && err == nil && minor >= 90 {
		return nil
	}
	return fmt.Errorf("crates are packaged by cargo 1.90 or newer, and this is %q; %s", said, cure("cargo"))
}

// cargoTarget keeps what cargo built over runs.
func (r *release) cargoTarget() string { return filepath.Join(r.cache, "rust-dist") }

// goModule is the zip file of the Go module, as a module proxy would give it.
func (r *release) goModule() string { return "liba3s-go-" + r.version + ".zip" }

func (r *release) makeModule() error {
	m := r.goVersion()
	var out bytes.Buffer
	if err := zip.CreateFromVCS(&out, m, r.source, "HEAD", ""); err != nil {
		return err
	}
	if err := r.put(r.goModule(), out.Bytes()); err != nil {
		return err
	}
	checked, err := zip.CheckZip(m, filepath.Join(r.out, r.goModule()))
	if err != nil {
		return err
	}
	return checked.Err()
}

func (r *release) goVersion() module.Version {
	return module.Version{Path: modulePath, Version: "v" + r.version}
}

// sourceDate is the variable that tools of other languages take the time from.
func (r *release) sourceDate() string { return fmt.Sprintf("SOURCE_DATE_EPOCH=%d", r.at.Unix()) }
