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
	// languages is the table of the languages.
	languages matrix
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
	var row [5]string
	row[0], row[4] = name, note
	row[2], row[1], row[3] = g.words(u, figures)
	t.rows = append(t.rows, row)
}

// words gives figures, goals and ratios.
func (g goal) words(u unit, figures []float64) (words, goals, ratios string) {
	var ws, gs, rs []string
	for i, f := range figures {
		ws = append(ws, u(f))
		if i >= len(g.at) {
			continue
		}
		r := f / g.at[i]
		if g.more {
			r = g.at[i] / f
		}
		gs = append(gs, u(g.at[i]))
		rs = append(rs, fmt.Sprintf("%.2f", r))
	}
	if len(gs) == 0 {
		return strings.Join(ws, " / "), "-", "-"
	}
	return strings.Join(ws, " / "), map[bool]string{false: "<= ", true: ">= "}[g.more] + strings.Join(gs, " / "), strings.Join(rs, " / ")
}

// failed adds a row for a measure that could not run.
func (t *table) failed(name string, err error) {
	t.rows = append(t.rows, [5]string{name, "-", "not run", "-", strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "; ")})
}

// lines gives the table as lines of cells, the head first.
func (t *table) lines() [][]string {
	out := [][]string{head[:]}
	for _, r := range t.rows {
		out = append(out, r[:])
	}
	return out
}

func (t *table) text() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s\n%s\n", t.machine, t.took())
	for _, lines := range t.tables() {
		s.WriteString("\n" + columns(lines))
	}
	for _, f := range t.languages.faults {
		s.WriteString("not run: " + f + "\n")
	}
	return s.String()
}

// tables gives those that have rows.
func (t *table) tables() [][][]string {
	var out [][][]string
	if len(t.languages.rows) > 0 {
		out = append(out, append([][]string{t.languages.head()}, t.languages.rows...))
	}
	if len(t.rows) > 0 {
		out = append(out, t.lines())
	}
	return out
}

func columns(lines [][]string) string {
	wide := make([]int, len(lines[0]))
	for _, r := range lines {
		for i, c := range r {
			wide[i] = max(wide[i], utf8.RuneCountInString(c))
		}
	}
	var s strings.Builder
	for _, r := range lines {
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
	fmt.Fprintf(&s, "%s %s\n", t.machine, t.took())
	for _, lines := range t.tables() {
		s.WriteString("\n")
		for i, r := range lines {
			s.WriteString("|")
			for _, c := range r {
				s.WriteString(" " + strings.ReplaceAll(c, "|", `\|`) + " |")
			}
			s.WriteString("\n")
			if i == 0 {
				s.WriteString(strings.Repeat("| --- ", len(r)) + "|\n")
			}
		}
	}
	for _, f := range t.languages.faults {
		fmt.Fprintf(&s, "\nNot run: %s\n", f)
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
func kib(n float64) string    { return fmt.Sprintf("%.1f KiB", n/1024) }
func mb(n float64) string     { return fmt.Sprintf("%.2f MB", n/1e6) }
func mib(n float64) string    { return fmt.Sprintf("%.1f MiB", n/(1<<20)) }
func count(n float64) string  { return fmt.Sprintf("%.0f", n) }
func times(n float64) string  { return fmt.Sprintf("x%.2f", n) }
func share(n float64) string  { return fmt.Sprintf("%.3f %%", n*100) }
func perSec(n float64) string { return fmt.Sprintf("%.2f M/s", n/1e6) }

func nanos(s float64) string {
	if s >= 1e-7 {
		return fmt.Sprintf("%.0f ns", s*1e9)
	}
	return fmt.Sprintf("%.3g ns", s*1e9)
}

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
