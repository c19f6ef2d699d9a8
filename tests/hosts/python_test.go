package hosts

import (
	"fmt"
	"math/rand"
	"strconv"
	"strings"
	"sync"
	"testing"
)

var tools = strings.Repeat("call who {\"n\": 0}\nend\ncall who {\"n\": 1}\nend\ncall who {\"n\": 2}\nend\nsay done\nend\n", 2)

// pythonFolder is folder with tools.acl, whose model calls a tool of the host.
func pythonFolder(t *testing.T) string {
	t.Helper()
	dir := folder(t, strings.Repeat("say well done\nend\n", 50))
	write(t, dir, map[string]string{"tools.acl": fmt.Sprintf(provider, "tools.txt"), "tools.txt": tools})
	return dir
}

// FFI-02: a crash reporter of the host's goes on reporting the host's crashes. Enabled
// before the library is loaded it takes nothing from it; enabled later it takes the
// faults of the library too, until the handlers are repaired.
func TestFaulthandler(t *testing.T) {
	interpreter, program := script(t, "fault.py")
	ends := map[string]struct {
		out      string
		reported bool
	}{
		"before": {"well done\nINTERNAL_ERROR\n3\nopen: {}\n", true},
		"after":  {"well done\n3\nopen: {}\n", true},
		"repair": {"well done\nINTERNAL_ERROR\n3\nopen: {}\n", false},
	}
	for when, want := range ends {
		t.Run(when, func(t *testing.T) {
			dir := pythonFolder(t)
			got := host(t, dir, nil, interpreter, program, dir, when)
			reported := strings.Contains(got.stderr, "Fatal Python error: Segmentation fault") && strings.Contains(got.stderr, "fault.py")
			if got.out != want.out || reported != want.reported || got.status != "signal: segmentation fault" {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

// FFI-01, FFI-10: forked before loading a worker has its own library; forked later it is
// told so at once and ends cleanly; spawned it works.
func TestPreforkingServer(t *testing.T) {
	interpreter, program := script(t, "prefork.py")
	for mode, want := range map[string]string{
		"unloaded": "['well done 0', 'well done 0', 'well done 0']\nwell done {}\n",
		"loaded": "[\"{'FORKED'} 0\", \"{'FORKED'} 0\", \"{'FORKED'} 0\"]\n" +
			"[\"{'FORKED'}\", \"{'FORKED'}\", \"{'FORKED'}\", \"{'FORKED'}\"]\nmaster\nwell done {}\n",
		"busy":  "{\"{'FORKED'} 0\"}\nmaster\nwell done {}\n",
		"spawn": "['well done', 'well done', 'well done', 'well done']\nmaster\nwell done {}\n",
	} {
		t.Run(mode, func(t *testing.T) {
			dir := pythonFolder(t)
			clean(t, dir, want, interpreter, program, dir, mode)
		})
	}
}

// FFI-06: what Python collects is never called again; signals do not get in the way.
func TestCollector(t *testing.T) {
	interpreter, program := script(t, "stress.py")
	dir := pythonFolder(t)
	clean(t, dir, "[] True {}\n", interpreter, program, dir)
}

// An interpreter may end at any instant.
func TestLeaving(t *testing.T) {
	interpreter, program := script(t, "leave.py")
	const runs = 30
	random := rand.New(rand.NewSource(7)) // the same instants every time
	ways := []string{"return", "exit", "raise"}
	var instants [runs]string
	for i := range instants {
		instants[i] = strconv.Itoa(random.Intn(150))
	}
	next := make(chan int)
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			for i := range next {
				dir := pythonFolder(t)
				want := ended{"end\n", "", "exit status 0"}
				if got := host(t, dir, nil, interpreter, program, dir, instants[i], ways[i%len(ways)]); got != want {
					t.Errorf("after %s ms by %s: got %+v", instants[i], ways[i%len(ways)], got)
				}
			}
		})
	}
	for i := range runs {
		next <- i
	}
	close(next)
	all.Wait()
}
