package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/a3s-lab/liba3s/tools/dist/archive"
	"github.com/a3s-lab/liba3s/tools/dist/bom"
)

// built is a file of the source's build folder.
func (r *release) built(name string) string { return filepath.Join(r.source, "build", name) }

// makeLibrary builds the library in two folders, of which both must give the same bytes, and
// learns what is in it.
func (r *release) makeLibrary() error {
	second := filepath.Join(r.scratch, "another", "folder")
	if err := r.clone(second); err != nil {
		return err
	}
	var bytesOf [2][]byte
	for i, dir := range []string{r.source, second} {
		if _, err := run(dir, nil, filepath.Join(dir, "build.sh"), "build"); err != nil {
			return err
		}
		data, err := os.ReadFile(filepath.Join(dir, "build", soname))
		if err != nil {
			return err
		}
		bytesOf[i] = data
	}
	if !bytes.Equal(bytesOf[0], bytesOf[1]) {
		return fmt.Errorf("%s and %s gave different libraries", r.source, second)
	}
	if err := os.RemoveAll(second); err != nil {
		return err
	}
	if err := bom.Needs(r.built(soname)); err != nil {
		return err
	}
	var err error
	if r.glibc, err = bom.Glibc(r.built(soname)); err != nil {
		return err
	}
	return r.findLicences()
}

// findLicences gathers the licences of what is in the library, and puts them beside it.
func (r *release) findLicences() error {
	goVersion, modules, err := bom.Modules(r.built(soname))
	if err != nil {
		return err
	}
	list, err := run(r.source, []string{"CGO_ENABLED=1"}, "go", "list", "-deps", "-json=Dir,ImportPath,Standard,Module", "./capi")
	if err != nil {
		return err
	}
	goroot, err := run(r.source, nil, "go", "env", "GOROOT")
	if err != nil {
		return err
	}
	if r.licences, err = bom.Linked(goVersion, modules, strings.NewReader(list), goroot); err != nil {
		return err
	}
	return os.WriteFile(r.built(thirdParty), []byte(bom.Texts(r.licences)), 0o644)
}

// archiveName is the name of the library's archive without its ending, and its only folder.
func (r *release) archiveName() string { return "liba3s-" + r.version + "-" + platform() }

// makeArchive packs the library with what a C program, or a binding of Rust, needs of it.
func (r *release) makeArchive() error {
	files := map[string]string{ // in the archive: in the source
		"lib/" + soname:                 "build/" + soname,
		"include/a3s.h":                 "include/a3s.h",
		"share/liba3s/a3s.schema.json":  "include/a3s.schema.json",
		"share/liba3s/" + thirdParty:    "build/" + thirdParty,
		"share/liba3s/LICENSE":          "LICENSE",
		"share/liba3s/CHANGELOG.md":     "CHANGELOG.md",
		"README.md":                     "tools/dist/archive.md",
		"lib/pkgconfig/liba3s.pc":       "capi/liba3s.pc.in",
		"share/liba3s/examples/first.c": "examples/c/first_light.c",
	}
	sheet, err := r.bill()
	if err != nil {
		return err
	}
	folder := r.archiveName() + "/"
	entries := []archive.Entry{
		{Name: folder + "lib/liba3s.so", Link: soname},
		{Name: folder + "share/liba3s/liba3s.spdx.json", Data: sheet},
	}
	fill := strings.NewReplacer("@VERSION@", r.version, "@LIBDIR@", "${pcfiledir}/..", "@INCLUDEDIR@", "${pcfiledir}/../../include",
		"@GLIBC@", fmt.Sprintf("%d.%d", r.glibc[0], r.glibc[1]), "@NAME@", r.archiveName())
	for name, from := range files {
		data, err := os.ReadFile(filepath.Join(r.source, from))
		if err != nil {
			return err
		}
		e := archive.Entry{Name: folder + name, Mode: 0o644, Data: data}
		switch name {
		case "lib/" + soname:
			e.Mode = 0o755
		case "README.md", "lib/pkgconfig/liba3s.pc":
			e.Data = []byte(fill.Replace(string(data)))
		}
		entries = append(entries, e)
	}
	for _, l := range r.licences {
		for name, text := range l.Texts {
			entries = append(entries, archive.Entry{Name: folder + "share/liba3s/licenses/" + l.Path + "/" + name, Data: []byte(text)})
		}
	}
	data, err := archive.Tar(entries, r.at)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(r.out, r.archiveName()+".spdx.json"), sheet, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, r.archiveName()+".tar.gz"), data, 0o644)
}

// bill is the bill of materials.
func (r *release) bill() ([]byte, error) {
	data, err := os.ReadFile(r.built(soname))
	if err != nil {
		return nil, err
	}
	return bom.SPDX(bom.Product{
		Name: "liba3s", Version: r.version, SPDX: "MIT", Home: "https://" + modulePath, Commit: r.commit,
		File: "lib/" + soname, Data: data, Made: r.at,
	}, r.licences)
}

const sumsName = "SHA256SUMS"

// makeSums writes the sums of all packages, as sha256sum -c reads them.
func (r *release) makeSums() error {
	names, err := r.packages()
	if err != nil {
		return err
	}
	var sums strings.Builder
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(r.out, name))
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(data), name)
	}
	return os.WriteFile(filepath.Join(r.out, sumsName), []byte(sums.String()), 0o644)
}

// packages are the names of what was made, in order.
func (r *release) packages() ([]string, error) {
	made, err := os.ReadDir(r.out)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range made {
		if e.Name() != sumsName {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// wheelTag is the platform of the wheel: the oldest glibc that the library can be loaded with.
func (r *release) wheelTag() string {
	return fmt.Sprintf("py3-none-manylinux_%d_%d_%s", r.glibc[0], r.glibc[1], machines[runtime.GOARCH].python)
}
