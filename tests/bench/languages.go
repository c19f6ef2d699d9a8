package main

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// The table of the languages, side by side. Every program measures the same things in the
// same way; what a row holds is a figure of one name in all of them.

// The sizes that the goals are for.
const (
	manyEvents = 200_000
	perSession = 2_000 // of 100 sessions
	wakes      = 1_000
	hostRuns   = 20 // of 50 calls
	sessions   = 1_000
)

// pace is a script of two runs with one call whose output a thread of the host hands in.
func pace() string { return strings.Repeat("call pace {}\nend\n"+done(), 2) }

func done() string { return "say done\nend\n" }

// part is a piece of the programs, with its rows.
type part struct {
	name   string
	script func() string // made when it is played: the children of this program do without
	n      int
	rows   []row
}

// row is a line of the table.
type row struct {
	name   string
	figure string // as the programs call it
	only50 bool   // p99 of rounds says nothing
	unit   unit
	goals  map[language]goal
	absent map[language]string // why a language has none
	how    string
}

const (
	noParser = "no parser"
	noGap    = "nothing between"
	noThread = "would stop the loop"
	noLoop   = "no event loop"
)

// all gives several languages one goal.
func all(g goal, ls ...language) map[language]goal {
	m := map[language]goal{}
	for _, l := range ls {
		m[l] = g
	}
	return m
}

// and adds the goal of further languages.
func and(m map[language]goal, g goal, ls ...language) map[language]goal {
	maps.Copy(m, all(g, ls...))
	return m
}

var native = []language{inC, inRust}

var parts = map[string][]part{
	"call": {{"call", done, 20_000, []row{
		{"a call into Go", "stream_wake", true, nanos, and(and(all(below(70e-9), native...), below(100e-9), inNode), below(350e-9), inPython), map[language]string{inGo: noGap},
			"a3s_stream_wake through the binding: it looks up a handle and sets a flag; p50 of 51 rounds of 20,000"},
		{"floor: an empty function", "empty", true, nanos, nil, map[language]string{inRust: "as C", inGo: noGap}, "what such a call costs at least. C: a function of an empty Go library; Node: N-API, Python: ctypes PyDLL, both a function of C that takes a handle and gives a status"},
		{"floor: a call that stays outside Go", "abi_version", true, nanos, nil, map[language]string{inGo: noGap}, "a3s_abi_version through the binding"},
		{"operation session.info", "session_info", true, micros, nil, nil, "by name, JSON text out; Go: a struct"},
	}}},
	"deliver": {{"deliver", func() string { return words(manyEvents) }, manyEvents, []row{
		{"events, raw", "raw", false, perSec, and(all(above(8e6), native...), above(6e6), inPython), nil, "a run that has ended; batches of 256 into one buffer; Python: a bytes object each, Node: a string each, Go: the cursor under package a3s"},
		{"events, parsed, iterator", "sync", false, perSec, and(all(above(1.5e6), inRust), above(0.6e6), inPython), map[language]string{inC: noParser, inNode: noThread}, "type and text of each are read"},
		{"events, parsed, async", "async", false, perSec, and(and(all(above(1.5e6), inRust), above(0.8e6), inNode), above(0.5e6), inPython), map[language]string{inC: noParser, inGo: noLoop}, "the same in an event loop: tokio, for await, async for"},
		{"floor: JSON parser alone", "floor", false, perSec, nil, map[language]string{inC: noParser}, "the raw reading, and serde_json into nothing, JSON.parse, json.loads, json.Unmarshal on each batch"},
	}}, {"many", func() string { return words(perSession) }, perSession, []row{
		{"events, parsed, 100 sessions", "many", false, perSec, all(above(0.4e6), inPython), map[language]string{inC: noParser}, "2,000 of each, read at once in one loop; Go: a goroutine each"},
	}}},
	"wake": {{"wake", pace, wakes, []row{
		{"wake, blocking", "sync", false, micros, and(all(below(30e-6, 200e-6), native...), below(70e-6, 400e-6), inPython), map[language]string{inNode: noThread}, "p50 / p99 of 1,000 at 1,000 a second: another thread hands in a piece of tool output, until the event is in the loop's body"},
		{"wake, async", "async", false, micros, and(and(all(below(30e-6, 200e-6), inRust), below(80e-6, 300e-6), inNode), below(70e-6, 400e-6), inPython), map[language]string{inC: noLoop, inGo: noLoop}, "the same in an event loop"},
		{"wake, bare, blocking", "bare_sync", false, micros, and(all(below(30e-6, 200e-6), native...), below(70e-6, 400e-6), inPython), map[language]string{inNode: noThread, inGo: noGap}, "a3s_stream_wake on another thread, until the reader has A3S_E_WOKEN: one thread wakes one, as in the measurement that the goals come from"},
		{"wake, bare, async", "bare_async", false, micros, and(and(all(below(30e-6, 200e-6), inRust), below(80e-6, 300e-6), inNode), below(70e-6, 400e-6), inPython), map[language]string{inC: noLoop, inGo: noLoop}, "the same in an event loop"},
		{"floor: a socket, blocking", "floor_sync", false, micros, nil, map[language]string{inNode: noThread}, "a thread writes to a socketpair, the other one waits as for events; Go: a channel"},
		{"floor: a socket, async", "floor_async", false, micros, nil, map[language]string{inC: noLoop, inGo: noLoop}, "the same in an event loop"},
	}}},
	"host": {{"host", func() string { return ticks(50) }, hostRuns, []row{
		{"host request, blocking tool", "sync", false, micros, nil, nil, "p50 / p99 of 980 turns: from one call of a tool of the host that answers at once to the next; reply, result, a turn of the run, request. Go: no frames"},
		{"host request, async tool", "async", false, micros, nil, map[language]string{inC: noLoop, inGo: noLoop}, "the same, tool and run in an event loop"},
	}}},
	"memory": {{"memory", done, sessions, []row{
		{"memory per session", "fresh", false, kib, all(below(64<<10), languages...), nil, "RSS of 1,000 further sessions / 1,000; objects of the language included"},
		{"the same after a short run each", "used", false, kib, all(below(64<<10), languages...), nil, "the run's events stay readable"},
	}}},
}

// matrix is the answer of all languages.
type matrix struct {
	rows   [][]string
	faults []string
}

func (m *matrix) head() []string {
	h := []string{"measure"}
	for _, l := range languages {
		h = append(h, string(l))
	}
	return append(h, "how")
}

// compare runs the parts of a measure in every language.
func compare(b *bench, t *table, name string) error {
	for _, p := range parts[name] {
		got, bad := map[language]map[string][]float64{}, map[language]error{}
		for _, l := range b.languages {
			if !slices.ContainsFunc(p.rows, func(r row) bool { return r.absent[l] == "" }) {
				continue
			}
			start := time.Now()
			got[l], bad[l] = b.play(l, p.name, p.script(), p.n)
			fmt.Fprintf(os.Stderr, "bench:   %s, %.1f s\n", l, time.Since(start).Seconds())
		}
		t.compared(b, p.name, p.rows, got, bad)
	}
	return nil
}

// compared adds the rows of a part.
func (t *table) compared(b *bench, name string, rows []row, got map[language]map[string][]float64, bad map[language]error) {
	for _, l := range b.languages {
		if bad[l] != nil {
			t.languages.faults = append(t.languages.faults, fmt.Sprintf("%s, %s: %s", name, l, strings.ReplaceAll(strings.TrimSpace(bad[l].Error()), "\n", "; ")))
		}
	}
	for _, r := range rows {
		line := []string{r.name}
		for _, l := range languages {
			line = append(line, cell(r, l, b, got[l], bad[l]))
		}
		t.languages.rows = append(t.languages.rows, append(line, r.how))
	}
}

// cell is a figure with its goal and ratio, or why there is none.
func cell(r row, l language, b *bench, got map[string][]float64, bad error) string {
	switch v, ok := got[r.figure]; {
	case r.absent[l] != "":
		return r.absent[l]
	case !slices.Contains(b.languages, l):
		return "not asked"
	case bad != nil:
		return "not run"
	case !ok:
		return "-"
	default:
		if r.only50 {
			v = v[:1]
		}
		words, goals, ratios := r.goals[l].words(r.unit, v)
		if goals == "-" {
			return words
		}
		return fmt.Sprintf("%s (%s: %s)", words, goals, ratios)
	}
}

// first measures how long a process takes to the first event of a run, everything
// included, and what an empty process takes.
func first(b *bench, t *table) error {
	const times = 15
	got, bad := map[language]map[string][]float64{}, map[language]error{}
	for _, l := range b.languages {
		cmd, err := b.command(l, "first", done(), 0)
		if err != nil {
			bad[l] = err
			continue
		}
		var took, bare []float64
		for i := range times + 1 { // the first one warms the disk and compiles modules
			s, err := b.untilLine(cmd)
			if err != nil {
				bad[l] = err
				break
			}
			empty, err := timed(1, func() error { return exec.Command("env", b.nothing(l)...).Run() })
			if err != nil {
				bad[l] = err
				break
			}
			if i > 0 {
				took, bare = append(took, s), append(bare, empty...)
			}
		}
		got[l] = map[string][]float64{"first": {median(took)}, "bare": {median(bare)}}
	}
	t.compared(b, "first", []row{
		{"process start to first event", "first", false, millis, nil, nil, "from fork to the line that the program prints at the first event of an offline run: interpreter, load, agent, session, run; median of 15"},
		{"floor: an empty program", "bare", false, millis, nil, nil, "true, node -e 0, python -c 0, to its end"},
	}, got, bad)
	return nil
}

// nothing is a program of a language that does nothing.
func (b *bench) nothing(l language) []string {
	switch l {
	case inNode:
		node, _ := b.program(l)
		return []string{node, "-e", "0"}
	case inPython:
		python, _ := b.program(l)
		return []string{python, "-c", "0"}
	}
	return []string{"true"}
}

// untilLine gives the time from a program's start to its first line.
func (b *bench) untilLine(cmd []string) (float64, error) {
	c := exec.CommandContext(b.ctx, cmd[0], cmd[1:]...)
	out, err := c.StdoutPipe()
	if err != nil {
		return 0, err
	}
	start := time.Now()
	if err := c.Start(); err != nil {
		return 0, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	took := time.Since(start).Seconds()
	if err == nil && line != "first\n" {
		err = fmt.Errorf("%s printed %q", filepath.Base(cmd[0]), line)
	}
	return took, errors.Join(err, c.Wait())
}

// loads measures what loading the library takes in a process of each language.
func loads(b *bench, t *table) error {
	const times = 15
	got, bad := map[language]map[string][]float64{}, map[language]error{}
	var hosts []language
	for _, l := range b.languages {
		if l == inGo {
			continue
		}
		hosts = append(hosts, l)
		var took, rss, threads []float64
		for i := range times + 1 {
			f, err := b.play(l, "load", done(), 0)
			if err != nil {
				bad[l] = err
				break
			}
			if i > 0 {
				took, rss, threads = append(took, f["load"][0]), append(rss, f["loaded"][0]), append(threads, f["loaded"][1])
			}
		}
		got[l] = map[string][]float64{"load": {median(took)}, "rss": {median(rss)}, "threads": {median(threads)}}
	}
	part := map[language]string{inGo: "part of the program"}
	t.compared(b, "load", []row{
		{"dlopen + first call", "load", false, millis, all(below(6e-3), hosts...), part, "a fresh process, the binding itself loaded before; first call is a3s_stats; median of 15"},
		{"RSS after load", "rss", false, mb, all(below(16e6), hosts...), part, "what the process grew by"},
		{"threads after load", "threads", false, count, all(below(6), hosts...), part, "what was added to those of the process"},
	}, got, bad)
	return nil
}
