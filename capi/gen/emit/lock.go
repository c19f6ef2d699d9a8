package emit

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

// abiLock makes capi/abi.lock. The file may only grow: a line that is there and would
// vanish or change is an error, since programs were built against it.
func (s *source) abiLock() ([]byte, error) {
	lines := s.lockLines()
	have := map[string]bool{}
	for _, l := range lines {
		have[l] = true
	}
	for _, old := range strings.Split(s.lock, "\n") {
		if old == "" || strings.HasPrefix(old, "#") || have[old] {
			continue
		}
		return nil, fmt.Errorf("capi/abi.lock: %q would vanish or change; within a major version nothing is removed and no prototype or number changes: add a new function instead", old)
	}
	w := &writer{}
	w.f("# %s\n# Name and prototype of every function, name and number of every status. This file may only grow.\n", Mark)
	for _, l := range lines {
		w.f("%s\n", l)
	}
	return w.Bytes(), nil
}

func (s *source) lockLines() []string {
	var lines []string
	for _, f := range s.api.Functions() {
		sum := sha256.Sum256([]byte(f.Prototype()))
		lines = append(lines, fmt.Sprintf("function %s %s %s", f.Since, f.Name, hex.EncodeToString(sum[:8])))
	}
	for _, k := range fault.Kinds {
		lines = append(lines, fmt.Sprintf("status %s %d", k.Name, k.Status))
	}
	slices.Sort(lines)
	return lines
}

// sortVersions orders "1.2" before "1.10".
func sortVersions(v []string) {
	key := func(s string) int {
		major, minor, _ := strings.Cut(s, ".")
		a, _ := strconv.Atoi(major)
		b, _ := strconv.Atoi(minor)
		return a<<16 | b
	}
	slices.SortFunc(v, func(a, b string) int { return key(a) - key(b) })
}
