package main

import (
	"compress/gzip"
	"debug/elf"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// The goals of these measures are for events of the real envelope.
const (
	manyEvents = 200_000
	perSession = 2_000 // of 100 sessions
	wakes      = 1_500
)

// library is the shared library that ./build.sh bench has just built.
func (b *bench) library() string { return filepath.Join(b.root, "build", "liba3s.so.1") }

// cProgram compiles the C part once.
func (b *bench) cProgram() (program, pacer string, err error) {
	build := filepath.Join(b.root, "build")
	program, pacer = filepath.Join(b.dir, "bench-c"), filepath.Join(b.dir, "libpacer.so")
	if _, err := os.Stat(program); err == nil {
		return program, pacer, nil
	}
	if _, err := os.Stat(b.library()); err != nil {
		return "", "", fmt.Errorf("%w; run ./build.sh build", err)
	}
	src := filepath.Join(b.root, "tests", "bench", "c")
	common := []string{"-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-pedantic", "-Werror", "-O2", "-pthread", "-I", filepath.Join(b.root, "include")}
	link := []string{"-L", build, "-la3s", "-Wl,-rpath," + build}
	for _, args := range [][]string{
		{"-fPIC", "-shared", filepath.Join(src, "pacer.c"), "-o", pacer},
		{filepath.Join(src, "bench.c"), filepath.Join(src, "pacer.c"), "-o", program},
	} {
		all := append(append(append([]string{}, common...), args...), link...)
		if _, err := output(b.ctx, time.Minute, "cc", all...); err != nil {
			return "", "", err
		}
	}
	return program, pacer, nil
}

// inC runs a part of the C program on a script.
func (b *bench) inC(what, script string, n int, events bool) (map[string][]float64, error) {
	program, _, err := b.cProgram()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(b.dir, "c-"+what)
	acl, err := scripted(dir, script)
	if err != nil {
		return nil, err
	}
	o := unmerged(options())
	if events {
		unbounded(o)
	}
	agent, err := json.Marshal(map[string]any{"acl_path": acl, "cwd": dir})
	if err != nil {
		return nil, err
	}
	session, err := json.Marshal(map[string]any{"workspace": filepath.Join(dir, "workspace"), "options": o})
	if err != nil {
		return nil, err
	}
	out, err := output(b.ctx, 2*time.Minute, program, what, string(agent), string(session), fmt.Sprint(n))
	return figures(out), err
}

// inPython runs a part of the Python program on a script.
func (b *bench) inPython(what, script string, n int, args ...string) (map[string][]float64, error) {
	python, err := b.python()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(b.dir, "python-"+what)
	if _, err := scripted(dir, script); err != nil {
		return nil, err
	}
	// Compiled modules are kept as an installed package has them.
	env := []string{"env", "-u", "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX=" + filepath.Join(b.dir, "pycache"), "PYTHONPATH=" + filepath.Join(b.root, "bindings", "python"), "A3S_LIB=" + b.library(),
		python, filepath.Join(b.root, "tests", "bench", "python", "bench.py"), what, dir, fmt.Sprint(n)}
	out, err := output(b.ctx, 2*time.Minute, env[0], append(env[1:], args...)...)
	return figures(out), err
}

// python is the interpreter itself: a shim of a version manager would be measured too.
func (b *bench) python() (string, error) {
	out, err := output(b.ctx, time.Minute, "python3", "-c", "import sys; print(sys.executable)")
	if err != nil {
		return "", fmt.Errorf("%w; install it (Debian: apt-get install python3)", err)
	}
	return strings.TrimSpace(out), nil
}

// words is a script whose answer is n words of 20 bytes, each a delta.
func words(n int) string {
	return "say " + strings.Repeat("nineteen-byte-words ", n) + "\nend\n"
}

// load measures the way from a cold process to the first session, and what the library
// weighs.
func load(b *bench, t *table) error {
	const script = "say done\nend\n"
	if _, err := b.inPython("load", script, 0); err != nil { // compiles the modules, warms the disk
		return err
	}
	var whole, first, rss, threads []float64
	var parts [4][]float64
	var idleCPU float64
	for i := range 15 {
		idleFor := 0
		if i == 14 {
			idleFor = 2
		}
		got, err := b.inPython("load", script, idleFor)
		if err != nil {
			return err
		}
		whole = append(whole, got["whole"][0])
		first = append(first, got["parts"][1])
		for j := range parts {
			parts[j] = append(parts[j], got["parts"][j])
		}
		rss, threads = append(rss, got["loaded"][0]), append(threads, got["loaded"][1])
		if idleFor > 0 {
			idleCPU = got["idle_cpu"][0]
		}
	}
	base, err := b.inPython("bare", script, 0)
	if err != nil {
		return err
	}
	t.add("cold Python process to first session", below(15e-3), millis, []float64{median(whole)},
		fmt.Sprintf("import %s, load + first call %s, Agent.create %s, session %s; median of 15, the interpreter's own start not counted",
			millis(median(parts[0])), millis(median(parts[1])), millis(median(parts[2])), millis(median(parts[3]))))
	t.add("dlopen + first call", below(6e-3), millis, []float64{median(first)}, "from Python, with the lookup of every function; median of 15")
	t.add("RSS after load", below(24e6), mb, []float64{median(rss) - base["bare"][0]}, fmt.Sprintf("above the interpreter's %s; binding included", mb(base["bare"][0])))
	t.add("threads after load", below(6), count, []float64{median(threads)}, "of the whole process")
	t.add("CPU of an idle session", below(0.001), share, []float64{idleCPU}, "of one core, over 2 s")
	return sizes(b, t)
}

// sizes weighs the library.
func sizes(b *bench, t *table) error {
	f, err := os.Open(b.library())
	if err != nil {
		return err
	}
	defer f.Close()
	var packed counter
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return err
	}
	n, err := io.Copy(z, f)
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		return err
	}
	note := "stripped"
	if e, err := elf.Open(b.library()); err == nil {
		if e.Section(".symtab") != nil {
			note = "not stripped"
		}
		e.Close()
	}
	t.add("size of liba3s.so.1", below(24e6), mb, []float64{float64(n)}, note)
	t.add("the same, gzip -9", below(9e6), mb, []float64{float64(packed)}, "")
	return nil
}

type counter int

// Write implements io.Writer.
func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// deliver measures how fast events reach a reader: those of a finished run, all kept in
// memory.
func deliver(b *bench, t *table) error {
	c, err := b.inC("deliver", words(manyEvents), manyEvents, true)
	if err != nil {
		t.failed("events delivered to C", err)
	} else {
		bytes := c["bytes"][0]
		t.add("events produced, script to memory", goal{}, nanos, c["produce"], fmt.Sprintf("%d unmerged text deltas; all of it: script, retry, collect, redact, number, encode, fold, tape, and the answer at the end", manyEvents))
		t.add("events delivered, C raw, next(256)", above(8e6), perSec, c["rate256"], fmt.Sprintf("%.0f bytes an event (20 of text), 128 KiB buffer; %.2f GB/s; median of 9", bytes, c["rate256"][0]*bytes/1e9))
		t.add("events delivered, C raw, next(64) and next(1)", goal{}, perSec, []float64{c["rate64"][0], c["rate1"][0]}, "")
	}
	p, err := b.inPython("deliver", words(manyEvents), manyEvents)
	if err != nil {
		t.failed("events delivered to Python", err)
	} else {
		t.add("events delivered, Python raw bytes", above(6e6), perSec, p["raw"], "ctypes next(256) and a bytes object a batch; median of 5")
		t.add("events delivered, Python for", above(0.6e6), perSec, p["sync"], "AgentEvent objects with text; payload and metadata are decoded when asked for; median of 5")
		t.add("events delivered, Python async for", above(0.5e6), perSec, p["async"], "the same; median of 5")
	}
	p, err = b.inPython("many", words(perSession), perSession)
	if err != nil {
		t.failed("events delivered to Python, 100 sessions", err)
	} else {
		t.add("events delivered, Python async for, 100 sessions", above(0.4e6), perSec, p["many"], fmt.Sprintf("one loop, %d events each; median of 5", perSession))
	}
	return nil
}

// calls measures what crossing into the library costs.
func calls(b *bench, t *table) error {
	c, err := b.inC("call", "say done\nend\n", 20_000, false)
	if err != nil {
		t.failed("call from C", err)
	} else {
		t.add("C: a3s_abi_version", goal{}, nanos, c["abi_version"], "p50 / p99 of 51 rounds; the shim answers, Go is not entered")
		t.add("C: a3s_stream_wake", below(70e-9), nanos, c["stream_wake"][:1], "the cheapest call into Go that looks a handle up")
		t.add("C: a3s_stream_next, nothing there", goal{}, nanos, c["stream_next"], "timeout 0")
		t.add("C: session.info", goal{}, micros, c["session_info"], "an operation by name, JSON out, buffer freed")
	}
	p, err := b.inPython("call", "say done\nend\n", 20_000)
	if err != nil {
		t.failed("call from Python", err)
		return nil
	}
	t.add("Python: a3s_abi_version", goal{}, nanos, p["abi_version"], "ctypes PyDLL")
	t.add("Python: a3s_stream_wake", below(350e-9), nanos, p["stream_wake"][:1], "ctypes PyDLL, one argument")
	t.add("Python: session.info", goal{}, micros, p["session_info"], "bytes out")
	return nil
}

// wake measures how long an event that the host causes on one thread takes to another
// one that waits.
func wake(b *bench, t *table) error {
	const script = "call pace {}\nend\nsay done\nend\n"
	const note = "p50 / p99 of 1,500 at 1,000 a second: a C thread hands in tool output (a3s_host_chunk); desk, tool, sequencer, stream, reader"
	c, err := b.inC("wake", script, wakes, false)
	if err != nil {
		t.failed("wake latency, C", err)
	} else {
		t.add("wake latency, C next, bare", below(30e-6, 200e-6), micros, c["wake"], "p50 / p99 of 1,500 at 1,000 a second: a3s_stream_wake on one thread to A3S_E_WOKEN on another")
		t.add("wake latency, C next, event", below(30e-6, 200e-6), micros, c["event"], note)
	}
	_, pacer, err := b.cProgram()
	if err != nil {
		return err
	}
	p, err := b.inPython("wake", strings.Repeat(script, 2), wakes, pacer)
	if err != nil {
		t.failed("wake latency, Python", err)
		return nil
	}
	t.add("wake latency, Python for, event", below(70e-6, 400e-6), micros, p["sync"], "the same")
	t.add("wake latency, Python async for, event", below(70e-6, 400e-6), micros, p["async"], "the same")
	return nil
}

// cycle measures the life of a session with one short run.
func cycle(b *bench, t *table) error {
	const n = 16000
	c, err := b.inC("cycle", words(7), n, false)
	if err != nil {
		return err
	}
	p, rss := c["parts"], c["rss"]
	t.add("session open + run of 10 events + close, C", below(50e-6), micros, c["cycle"][:1],
		fmt.Sprintf("p99 %s; open %s, run %s, close %s on average", micros(c["cycle"][1]), micros(p[0]), micros(p[1]), micros(p[2])))
	t.add("RSS growth of 10,000 such cycles", below(1e6), mb, []float64{(rss[2] - rss[1]) * 10000 / (n * 2 / 5)},
		fmt.Sprintf("from the last %d of %d; %s after them", n/2, n, mb(rss[2])))
	return nil
}
