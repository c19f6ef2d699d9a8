package hosts

import (
	"path/filepath"
	"testing"

	"github.com/a3s-lab/liba3s/tests/native"
)

const turn = "think looking around\nsay well \nsay done\nend\n"

func TestHandlersOlderThanTheLibrary(t *testing.T) {
	dir := folder(t, turn)
	clean(t, dir, "", loading(t, "early"), dir, filepath.Join(built, native.SOName))
}

// FFI-05: two Go libraries in one process.
func TestTwoGoLibraries(t *testing.T) {
	program, other := loading(t, "twolibs"), filepath.Join(t.TempDir(), "libsecond.so")
	if err := native.Shared(root, other, "./tests/hosts/testdata/second"); err != nil {
		t.Fatal(err)
	}
	for _, when := range []string{"before", "after"} {
		t.Run(when, func(t *testing.T) {
			dir := folder(t, turn)
			clean(t, dir, "", program, dir, filepath.Join(built, native.SOName), other, when)
		})
	}
}

func TestThousandThreads(t *testing.T) {
	dir := folder(t, turn)
	clean(t, dir, "", linked(t, "storm"), dir)
}

// A host that starts children all the time, with a handler of SIGCHLD.
func TestHostWithChildren(t *testing.T) {
	program := linked(t, "spawn")
	for _, when := range []string{"before", "after"} {
		t.Run(when, func(t *testing.T) {
			dir := folder(t, turn)
			clean(t, dir, "", program, dir, when)
		})
	}
}

// APRV-03: an answer that comes while its run is being cancelled.
func TestLateAnswers(t *testing.T) {
	dir := folder(t, turn)
	clean(t, dir, "", linked(t, "late"), dir)
}
