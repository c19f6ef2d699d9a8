package capi

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func TestPrograms(t *testing.T) {
	for _, name := range []string{"library", "handles", "requests", "streams", "callbacks", "calls", "fork", "signals", "hosts"} {
		for language := range languages {
			t.Run(name+"/"+language, func(t *testing.T) {
				if out := run(t, compile(t, language, name), folder(t)); out != "" {
					t.Errorf("the library or the program printed %q", out)
				}
			})
		}
	}
}

func TestTwoCopiesOfTheLibrary(t *testing.T) {
	lib, err := os.ReadFile(filepath.Join(built, "liba3s.so.1"))
	if err != nil {
		t.Fatal(err)
	}
	second := filepath.Join(t.TempDir(), "liba3s-copy.so.1")
	if err := os.WriteFile(second, lib, 0o755); err != nil {
		t.Fatal(err)
	}
	run(t, compile(t, "C11", "copy"), folder(t), second)
}

// FFI-02: the library does not claim a fault of the host as its own.
func TestFaultOfTheHost(t *testing.T) {
	program := compile(t, "C11", "crash")
	for name, want := range map[string]string{"none": "signal: segmentation fault", "handler": "exit status 42"} {
		t.Run(name, func(t *testing.T) {
			out, err := exec.Command(program, t.TempDir(), name).CombinedOutput()
			got := fmt.Sprint(err)
			if strings.TrimSuffix(got, " (core dumped)") != want || len(out) > 0 {
				t.Errorf("got %s, want %s; printed %q", got, want, out)
			}
		})
	}
}

// The example compiles by the line in its head, and answers a question.
func TestExample(t *testing.T) {
	dir := folder(t)
	config := filepath.Join(dir, "offline.acl")
	if err := os.WriteFile(config, []byte("default_model = \"offline/search\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "first_light")
	cc := exec.Command("cc", "-std=c11", "-Wall", "-Wextra", "-pedantic", "-Werror", "-I", filepath.Join(root, "include"),
		filepath.Join(root, "examples", "c", "first_light.c"), "-L", built, "-la3s", "-Wl,-rpath,"+built, "-o", program)
	if msg, err := cc.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, msg)
	}
	out := run(t, program, config, filepath.Join(dir, "workspace"), "Where is two?")
	for _, want := range []string{`"agent_start"`, `"agent_end"`, "a.txt:2"} {
		if !strings.Contains(out, want) {
			t.Errorf("%s is missing in %s", want, out)
		}
	}
}

// TestSlope opens and closes many sessions and agents: nothing may grow with them.
func TestSlope(t *testing.T) {
	out := run(t, compile(t, "C11", "slope"), folder(t), strconv.Itoa(*cycles))
	t.Log(out)
	before, after := measures(t, out, "before"), measures(t, out, "after")
	if allowed := 1024 * max(1, *cycles/10000); after["rss_kb"]-before["rss_kb"] > allowed {
		t.Errorf("resident memory grew by %d KiB in %d cycles, allowed are %d", after["rss_kb"]-before["rss_kb"], *cycles, allowed)
	}
	for _, what := range []string{"fds", "goroutines"} {
		if after[what] > before[what] {
			t.Errorf("%s: %d before, %d after", what, before[what], after[what])
		}
	}
	// The Go runtime may start one more thread for a blocked call; it does not grow.
	if after["threads"] > before["threads"]+2 {
		t.Errorf("threads: %d before, %d after", before["threads"], after["threads"])
	}
}

func measures(t *testing.T, out, when string) map[string]int {
	t.Helper()
	line := regexp.MustCompile(`(?m)^` + when + ` (.*)$`).FindStringSubmatch(out)
	if line == nil {
		t.Fatalf("no line %q in %q", when, out)
	}
	got := map[string]int{}
	for _, m := range regexp.MustCompile(`(\w+)=(\d+)`).FindAllStringSubmatch(line[1], -1) {
		if _, err := fmt.Sscan(m[2], new(int)); err != nil {
			t.Fatal(err)
		}
		n, _ := strconv.Atoi(m[2])
		got[m[1]] = n
	}
	return got
}
