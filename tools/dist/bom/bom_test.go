package bom

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

const (
	mit    = "MIT License\n\nPermission is hereby granted, free of charge, to any\nperson obtaining a copy of this software"
	bsd2   = "Redistribution and use in source and binary forms, with or without modification"
	bsd3   = bsd2 + "\n   * Neither the name of Google Inc. nor the names of its contributors"
	apache = "                                 Apache License\n                           Version 2.0, January 2004"
)

func TestIdentify(t *testing.T) {
	for _, test := range []struct{ text, want, wrong string }{
		{mit, "MIT", ""},
		{bsd2, "BSD-2-Clause", ""},
		{bsd3, "BSD-3-Clause", ""},
		{apache, "Apache-2.0", ""},
		{"Permission to use, copy, modify, and/or distribute this\n software for any purpose with or without fee", "ISC", ""},
		{mit + "\n\n" + apache, "Apache-2.0 MIT", ""},
		{"GNU General Public License, version 3\n" + mit, "", `it speaks of "GNU General Public"`},
		{"Mozilla Public License Version 2.0", "", `it speaks of "Mozilla Public License"`},
		{"Do what you like.", "", "its words are not known"},
		{"", "", "its words are not known"},
	} {
		got, err := identify(test.text)
		said := ""
		if err != nil {
			said = err.Error()
		}
		if strings.Join(got, " ") != test.want || said != test.wrong {
			t.Errorf("%.40q: %v, %q; want %s, %q", test.text, got, said, test.want, test.wrong)
		}
	}
}

// tree writes files into a new folder.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestGather(t *testing.T) {
	root := tree(t, map[string]string{
		"LICENSE": mit, "NOTICE.txt": "by us", "license.go": "package x", "README.md": "MIT",
		"linked/deep/COPYING": bsd3, "linked/deep/x.go": "", "other/LICENSE": "GNU General Public License",
	})
	m := Module{Path: "example.com/x", Version: "v1.0.0"}
	got, err := Gather(m, root, []string{filepath.Join(root, "linked/deep")})
	if err != nil {
		t.Fatal(err)
	}
	want := Licence{m, "BSD-3-Clause AND MIT", map[string]string{"LICENSE": mit, "NOTICE.txt": "by us", "linked/deep/COPYING": bsd3}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if text := Texts([]Licence{got}); !strings.Contains(text, "example.com/x v1.0.0 (BSD-3-Clause AND MIT)") || strings.Count(text, "Permission is hereby") != 1 || !strings.Contains(text, "by us") {
		t.Errorf("the file of licences is\n%s", text)
	}
	for _, test := range []struct{ dir, want string }{
		{"other", "the licence other/LICENSE of example.com/x v1.0.0: it speaks of"},
		{"..", "a package of example.com/x does not lie in"},
	} {
		if _, err := Gather(m, root, []string{filepath.Join(root, test.dir)}); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %s", test.dir, err, test.want)
		}
	}
	if _, err := Gather(m, tree(t, map[string]string{"x.go": ""}), nil); err == nil || !strings.Contains(err.Error(), "has no licence") {
		t.Errorf("no licence: got %v", err)
	}
}

func TestLinked(t *testing.T) {
	goroot, x := tree(t, map[string]string{"LICENSE": bsd3, "PATENTS": "none"}), tree(t, map[string]string{"LICENSE": mit, "a/a.go": ""})
	entry := func(path, version string) string {
		text, _ := json.Marshal(map[string]any{"Dir": filepath.Join(x, "a"), "ImportPath": path + "/a", "Module": map[string]any{"Path": path, "Version": version, "Dir": x}})
		return string(text)
	}
	list := `{"Dir":"/go/src/fmt","ImportPath":"fmt","Standard":true}` + entry("example.com/x", "v1.0.0") + `{"Dir":"/m","ImportPath":"m","Module":{"Path":"m","Dir":"/m","Main":true}}`
	modules := []Module{{"example.com/x", "v1.0.0", "h1:x"}}
	got, err := Linked("go1.26.8", modules, strings.NewReader(list), goroot)
	if err != nil {
		t.Fatal(err)
	}
	want := []Licence{
		{Module{"std", "1.26.8", ""}, "BSD-3-Clause", map[string]string{"LICENSE": bsd3, "PATENTS": "none"}},
		{modules[0], "MIT", map[string]string{"LICENSE": mit}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	for _, test := range []struct{ name, list, want string }{
		{"missing", `{}`, "example.com/x v1.0.0 is in the library and not among the packages"},
		{"another version", entry("example.com/x", "v1.1.0"), "example.com/x v1.0.0 is in the library and not among"},
		{"too many", list + entry("example.com/y", "v1.0.0"), "go list gives packages of example.com/y v1.0.0, which is not in the library"},
		{"no list", "[", "the list of packages: "},
	} {
		if _, err := Linked("go1.26.8", modules, strings.NewReader(test.list), goroot); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %s", test.name, err, test.want)
		}
	}
}

func TestSPDX(t *testing.T) {
	p := Product{Name: "liba3s", Version: "1.2.3", SPDX: "MIT", Home: "https://example.com/a", Commit: "abc", File: "liba3s.so.1", Data: []byte("x"), Made: time.Unix(0, 0)}
	parts := []Licence{{Module{"example.com/x/v2", "v2.0.0+y", "h1:s"}, "Apache-2.0 AND MIT", nil}}
	text, err := SPDX(p, parts)
	if err != nil {
		t.Fatal(err)
	}
	again, err := SPDX(p, parts)
	if err != nil || string(again) != string(text) {
		t.Errorf("twice, and different (%v)", err)
	}
	var doc document
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Creation.Created != "1970-01-01T00:00:00Z" || doc.Packages[0].Concluded != "MIT AND Apache-2.0" {
		t.Errorf("head: %+v", doc)
	}
	want := spdxPackage{
		ID: "SPDXRef-Package-example.com-x-v2-v2.0.0-y", Name: "example.com/x/v2", Version: "v2.0.0+y", Download: "NOASSERTION", Purpose: "LIBRARY",
		Concluded: "Apache-2.0 AND MIT", Declared: "Apache-2.0 AND MIT", Copyright: "NOASSERTION", Comment: "Content as in go.sum: h1:s",
		Refs: []external{{"PACKAGE-MANAGER", "purl", "pkg:golang/example.com/x/v2@v2.0.0%2By"}},
	}
	if !reflect.DeepEqual(doc.Packages[1:], []spdxPackage{want}) {
		t.Errorf("got  %+v\nwant %+v", doc.Packages[1:], want)
	}
	// Whatever is related must be there.
	ids := map[string]bool{doc.ID: true, doc.Files[0].ID: true}
	for _, p := range doc.Packages {
		ids[p.ID] = true
	}
	for _, r := range doc.Relationships {
		if !ids[r.From] || !ids[r.To] {
			t.Errorf("%v names nothing of the document", r)
		}
	}
}

func TestGlibcVersion(t *testing.T) {
	for text, want := range map[string][2]int{"GLIBC_2.34": {2, 34}, "GLIBC_2.2.5": {2, 2}, "GLIBC_2": {}, "GLIBC_PRIVATE.x": {}, "GCC_3.0": {}, "": {}} {
		if got, ok := glibcVersion(text); got != want || ok != (want != [2]int{}) {
			t.Errorf("%s: got %v, %v", text, got, ok)
		}
	}
}

// TestRunningProgram reads the tests' own program, which is an ELF file built by Go.
func TestRunningProgram(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	goVersion, modules, err := Modules(self)
	if err != nil || !strings.HasPrefix(goVersion, "go1.") || len(modules) != 0 {
		t.Errorf("got %q, %v, %v", goVersion, modules, err)
	}
	if err := Needs(self); err != nil {
		t.Error(err)
	}
	if _, err := Glibc(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a file that is not there has a glibc version")
	}
}
