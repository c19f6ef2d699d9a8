package main

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"
)

// table is the one answer.
type table struct {
	machine string
	began   time.Time
	rows    [][5]string
}

var head = [5]string{"measure", "goal", "figure", "ratio", "note"}

// unit turns a figure into words.
type unit func(float64) string

// goal is what a figure is held against; zero for none. The ratio is above 1 where the
// goal is missed, whether more or less is better.
type goal struct {
	at   []float64 // p50, p99
	more bool      // more is better
}

func below(at ...float64) goal { return goal{at: at} }
func above(at float64) goal    { return goal{at: []float64{at}, more: true} }

// add adds a row. figures are p50 and p99, or one.
func (t *table) add(name string, g goal, u unit, figures []float64, note string) {
	row := [5]string{name, "-", "", "-", note}
	var words, goals, ratios []string
	for i, f := range figures {
		words = append(words, u(f))
		if i >= len(g.at) {
			continue
		}
		r := f / g.at[i]
		if g.more {
			r = g.at[i] / f
		}
		goals = append(goals, u(g.at[i]))
		ratios = append(ratios, fmt.Sprintf("%.2f", r))
	}
	row[2] = strings.Join(words, " / ")
	if len(goals) > 0 {
		row[1] = map[bool]string{false: "<= ", true: ">= "}[g.more] + strings.Join(goals, " / ")
		row[3] = strings.Join(ratios, " / ")
	}
	t.rows = append(t.rows, row)
}

// failed adds a row for a measure that could not run.
func (t *table) failed(name string, err error) {
	t.rows = append(t.rows, [5]string{name, "-", "not run", "-", strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "; ")})
}

func (t *table) text() string {
	var wide [5]int
	for _, r := range append([][5]string{head}, t.rows...) {
		for i, c := range r {
			wide[i] = max(wide[i], utf8.RuneCountInString(c))
		}
	}
	var s strings.Builder
	fmt.Fprintf(&s, "%s\n%s\n\n", t.machine, t.took())
	for _, r := range append([][5]string{head}, t.rows...) {
		var line strings.Builder
		for i, c := range r {
			line.WriteString(c + strings.Repeat(" ", wide[i]-utf8.RuneCountInString(c)+2))
		}
		s.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return s.String()
}

func (t *table) markdown() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s %s\n\n", t.machine, t.took())
	for i, r := range append([][5]string{head}, t.rows...) {
		for j := range r {
			r[j] = strings.ReplaceAll(r[j], "|", `\|`)
		}
		fmt.Fprintf(&s, "| %s |\n", strings.Join(r[:], " | "))
		if i == 0 {
			s.WriteString("| --- | --- | --- | --- | --- |\n")
		}
	}
	return s.String()
}

func (t *table) took() string {
	return fmt.Sprintf("Took %.0f s; load average afterwards %s.", time.Since(t.began).Seconds(), load1())
}

// machine says where the figures come from, and how busy it was.
func machine() string {
	var u syscall.Utsname
	_ = syscall.Uname(&u) // an empty name says as much
	var kernel []byte
	for _, c := range u.Release {
		if c == 0 {
			break
		}
		kernel = append(kernel, byte(c))
	}
	return fmt.Sprintf("%s: %d cores (%s), %s %s/%s, kernel %s, load average before %s.",
		time.Now().UTC().Format(time.DateOnly), runtime.NumCPU(), cpu(), runtime.Version(), runtime.GOOS, runtime.GOARCH, kernel, load1())
}

func cpu() string {
	b, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(b)) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == "model name" {
			return strings.TrimSpace(v)
		}
	}
	return "unknown processor"
}

func load1() string {
	b, _ := os.ReadFile("/proc/loadavg")
	one, _, _ := strings.Cut(string(b), " ")
	return one
}

// The units. Times are in seconds, sizes in bytes.

func micros(s float64) string { return fmt.Sprintf("%.4g us", s*1e6) }
func millis(s float64) string { return fmt.Sprintf("%.3g ms", s*1e3) }
func nanos(s float64) string  { return fmt.Sprintf("%.3g ns", s*1e9) }
func kib(n float64) string    { return fmt.Sprintf("%.1f KiB", n/1024) }
func mb(n float64) string     { return fmt.Sprintf("%.2f MB", n/1e6) }
func mib(n float64) string    { return fmt.Sprintf("%.1f MiB", n/(1<<20)) }
func count(n float64) string  { return fmt.Sprintf("%.0f", n) }
func times(n float64) string  { return fmt.Sprintf("x%.2f", n) }
func share(n float64) string  { return fmt.Sprintf("%.3f %%", n*100) }
func perSec(n float64) string { return fmt.Sprintf("%.2f M/s", n/1e6) }

// quantiles gives p50 and p99.
func quantiles(v []float64) []float64 { return []float64{quantile(v, 0.5), quantile(v, 0.99)} }

func median(v []float64) float64 { return quantile(v, 0.5) }

func quantile(v []float64, q float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	s := slices.Sorted(slices.Values(v))
	return s[min(int(q*float64(len(s))), len(s)-1)]
}

// timed gives the seconds fn took, once for each of n calls.
func timed(n int, fn func() error) ([]float64, error) {
	out := make([]float64, 0, n)
	for range n {
		start := time.Now()
		if err := fn(); err != nil {
			return nil, err
		}
		out = append(out, time.Since(start).Seconds())
	}
	return out, nil
}
