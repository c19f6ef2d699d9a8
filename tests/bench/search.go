package main

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/a3s-lab/liba3s/runtime/workspace"
	"github.com/a3s-lab/liba3s/runtime/workspace/local"
)

// search measures grep and glob of a local workspace against ripgrep on the same tree,
// both warm. Both must find the same number of lines.
func search(b *bench, t *table) error {
	rg, err := exec.LookPath("rg")
	if err != nil {
		return errors.New("ripgrep is missing; install it (Debian: apt-get install ripgrep)")
	}
	out, err := output(b.ctx, time.Minute, "go", "env", "GOROOT")
	if err != nil {
		return err
	}
	root := filepath.Join(strings.TrimSpace(out), "src")
	w, err := local.Open(b.ctx, local.Config{Root: root})
	if err != nil {
		return err
	}
	defer w.Close()
	version, err := output(b.ctx, time.Minute, rg, "--version")
	if err != nil {
		return err
	}
	version, _, _ = strings.Cut(version, "\n")
	patterns := []struct {
		pattern string
		goal    float64
	}{
		{`unsafe.Pointer`, 1.5},
		{`no such text anywhere in it`, 1.5},
		{`deadlock`, 1.5},
		{`func \(\w+ \*?Reader\) Read`, 2},
		{`(?i)deadlock`, 2},
		{`\b[a-z]{12,}Err\b`, 2},
		{`^func `, 2},
		{`TODO|FIXME`, 2},
	}
	for _, p := range patterns {
		ours := func() (int, error) {
			n := 0
			_, err := w.Grep(b.ctx, workspace.GrepQuery{Base: ".", Pattern: p.pattern}, func(workspace.Line) bool { n++; return true })
			return n, err
		}
		theirs := func() (int, error) { return lines(b, rg, root, "-n", "--", p.pattern, ".") }
		race(t, "grep `"+p.pattern+"`", p.goal, ours, theirs, version)
	}
	ours := func() (int, error) {
		n := 0
		for _, err := range w.Glob(b.ctx, workspace.GlobQuery{Base: ".", Pattern: "**/*_test.go"}) {
			if err != nil {
				return n, err
			}
			n++
		}
		return n, nil
	}
	theirs := func() (int, error) { return lines(b, rg, root, "--files", "-g", "**/*_test.go", ".") }
	race(t, "glob `**/*_test.go`", 0, ours, theirs, version)
	return nil
}

// race runs both by turns, so that noise of the machine meets both, and compares the
// medians of seven.
func race(t *table, name string, most float64, ours, theirs func() (int, error), version string) {
	var mine, other []float64
	for i := range 8 {
		start := time.Now()
		a, err := ours()
		middle := time.Now()
		c, err2 := theirs()
		if err = errors.Join(err, err2); err != nil {
			t.failed(name, err)
			return
		}
		if a != c {
			t.failed(name, fmt.Errorf("we find %d, ripgrep %d", a, c))
			return
		}
		if i > 0 { // the first one warms up
			mine = append(mine, middle.Sub(start).Seconds())
			other = append(other, time.Since(middle).Seconds())
		}
		if i == 7 {
			var g goal
			if most > 0 {
				g = below(most)
			}
			t.add(name, g, times, []float64{median(mine) / median(other)},
				fmt.Sprintf("%s against %s of %s; %d found; median of 7, GOROOT/src, warm", millis(median(mine)), millis(median(other)), version, a))
		}
	}
}

// lines runs ripgrep and counts what it prints; finding nothing is its exit status 1.
func lines(b *bench, rg, dir string, args ...string) (int, error) {
	cmd := exec.CommandContext(b.ctx, rg, append([]string{"--no-config"}, args...)...)
	cmd.Dir = dir
	var bad bytes.Buffer
	n := new(lineCounter)
	cmd.Stdout, cmd.Stderr = n, &bad
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 && bad.Len() == 0 {
		err = nil
	}
	if err != nil {
		return 0, fmt.Errorf("rg: %v: %s", err, bad.String())
	}
	return int(*n), nil
}

type lineCounter int

// Write implements io.Writer.
func (c *lineCounter) Write(b []byte) (int, error) {
	*c += lineCounter(bytes.Count(b, []byte("\n")))
	return len(b), nil
}

// permission takes the decision from the benchmark of package policy.
func permission(b *bench, t *table) error {
	const name = "permission decision, 100 rules, shell command of 10 parts"
	out, err := output(b.ctx, 2*time.Minute, "go", "-C", b.root, "test", "-run", "^$", "-bench", "^BenchmarkDecide$", "-count", "5", "-benchtime", "200ms", "./runtime/policy")
	if err != nil {
		return err
	}
	var all []float64
	for _, m := range regexp.MustCompile(`(?m)^BenchmarkDecide\S*\s+\d+\s+([\d.]+) ns/op`).FindAllStringSubmatch(out, -1) {
		ns, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			return err
		}
		all = append(all, ns/1e9)
	}
	if len(all) == 0 {
		return fmt.Errorf("no figure in %q", out)
	}
	t.add(name, below(50e-6), micros, []float64{median(all)}, "BenchmarkDecide of runtime/policy, median of 5: parse, cut, match")
	return nil
}
