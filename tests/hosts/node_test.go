package hosts

import (
	"math/rand"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

// A Node program may end at any instant, and so may a worker of it. The fixed moments are
// in bindings/node/test/programs.test.mjs and worker.test.mjs.
func TestNodeLeaving(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatal("node is missing; install Node 20 or newer")
	}
	binding := filepath.Join(root, "bindings", "node")
	if out, err := exec.Command(node, filepath.Join(binding, "scripts", "build.js")).CombinedOutput(); err != nil {
		t.Fatalf("the addon is not built: %v\n%s", err, out)
	}
	program := filepath.Join(root, "tests", "hosts", "node", "leave.mjs")
	random := rand.New(rand.NewSource(11)) // the same instants every time
	for i := range 24 {
		way, ms := []string{"exit", "terminate"}[i%2], strconv.Itoa(random.Intn(200))
		dir := pythonFolder(t)
		got := host(t, dir, []string{"A3S_PACKAGE=" + filepath.Join(binding, "lib", "index.js")}, node, program, dir, ms, way)
		if want := (ended{"end\n", "", "exit status 0"}); got != want {
			t.Errorf("%s after %s ms: got %+v", way, ms, got)
		}
	}
}
