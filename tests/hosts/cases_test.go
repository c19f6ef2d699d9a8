package hosts

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCases holds that every known way in which hosts and libraries harm each other has
// its test, or its word in the documents where it is a limit.
func TestCases(t *testing.T) {
	for _, c := range []struct{ id, file, text string }{
		{"FFI-01", "tests/capi/c/fork.c", "FFI-01: in a forked child every function returns at once"},
		{"FFI-01", "tests/hosts/python/prefork.py", "FFI-01"},
		{"FFI-02", "tests/capi/c/crash.c", "FFI-02: a fault of the host's own is the host's"},
		{"FFI-02", "tests/hosts/python/fault.py", "FFI-02"},
		{"FFI-03", "docs/hosts.md", ".NET, Bun, JVM | not tested"},
		{"FFI-03", "tests/capi/c/signals.c", "flags_of(SIGCHLD) & SA_ONSTACK"},
		{"FFI-04", "docs/hosts.md", "musl (Alpine) | cannot be loaded"},
		{"FFI-04", "bindings/python/tests/test_library.py", "def test_musl_is_named"},
		{"FFI-04", "bindings/python/a3s_code/_find.py", "use a glibc based image"},
		{"FFI-05", "tests/capi/c/copy.c", "FFI-05: a copy of the library is a runtime of its own"},
		{"FFI-05", "tests/hosts/c/twolibs.c", "FFI-05"},
		{"FFI-06", "tests/hosts/python/stress.py", "FFI-06"},
		{"FFI-07", "tests/capi/c/calls.c", "FFI-07: a panic becomes an error, in an export and in a goroutine"},
		{"FFI-08", "tests/hosts/python/many.py", "FFI-08"},
		{"FFI-08", "tests/hosts/proxies_test.go", "FFI-08"},
		{"FFI-09", "bindings/node/test/worker.test.mjs", "FFI-09: callbacks reach the worker that registered them"},
		{"FFI-10", "tests/hosts/python/prefork.py", "FFI-10"},
		{"FFI-10", "include/a3s.h", "The library does not survive fork() without exec"},
		{"APRV-03", "tests/hosts/c/late.c", "APRV-03"},
	} {
		b, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(c.file)))
		if err != nil || !strings.Contains(string(b), c.text) {
			t.Errorf("%s: %s does not say %q, %v", c.id, c.file, c.text, err)
		}
	}
}
