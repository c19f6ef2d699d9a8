package capi

import (
	"debug/elf"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/a3s-lab/liba3s/capi/gen/api"
)

// What the library exports is what the header declares is what the description says.
func TestSymbols(t *testing.T) {
	described, err := api.Load(filepath.Join(root, "capi", "api.json"))
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	decls := map[string]string{}
	for _, f := range described.Functions() {
		want = append(want, f.Name)
		decls[f.Name] = f.Decl()
	}
	slices.Sort(want)

	header, err := os.ReadFile(filepath.Join(root, "include", "a3s.h"))
	if err != nil {
		t.Fatal(err)
	}
	code := regexp.MustCompile(`(?s)/\*.*?\*/`).ReplaceAllString(string(header), "")
	var declared []string
	for _, m := range regexp.MustCompile(`(?m)^[^#\n]*?\b(a3s_\w+)\([^;]*\);$`).FindAllStringSubmatch(code, -1) {
		if strings.HasPrefix(m[0], "typedef") {
			continue
		}
		declared = append(declared, m[1])
		if got := strings.TrimSuffix(m[0], ";"); got != decls[m[1]] {
			t.Errorf("the header declares %q, the description says %q", got, decls[m[1]])
		}
	}
	slices.Sort(declared)
	if !slices.Equal(declared, want) {
		t.Errorf("the header declares\n%v, described are\n%v", declared, want)
	}

	exported, versions := exports(t)
	if !slices.Equal(exported, want) {
		t.Errorf("the library exports\n%v, described are\n%v", exported, want)
	}
	if !slices.Equal(versions, []string{"A3S_1.0"}) {
		t.Errorf("symbol versions %v", versions)
	}
}

// exports gives the dynamic symbols the library defines, and their versions.
func exports(t *testing.T) (names, versions []string) {
	t.Helper()
	f, err := elf.Open(filepath.Join(built, "liba3s.so.1"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if so, err := f.DynString(elf.DT_SONAME); err != nil || !slices.Equal(so, []string{"liba3s.so.1"}) {
		t.Errorf("soname %v, %v", so, err)
	}
	symbols, err := f.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range symbols {
		if s.Section == elf.SHN_UNDEF || s.Section == elf.SHN_ABS {
			continue
		}
		names = append(names, s.Name)
		versions = append(versions, s.Version)
	}
	slices.Sort(names)
	slices.Sort(versions)
	return names, slices.Compact(versions)
}
