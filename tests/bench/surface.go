package main

import (
	"compress/gzip"
	"debug/elf"
	"fmt"
	"io"
	"os"
	"strings"
)

// words is a script whose answer is n words of 20 bytes, each a delta.
func words(n int) string {
	return "say " + strings.Repeat("nineteen-byte-words ", n) + "\nend\n"
}

// load measures the way from a cold Python process to the first session, and what the
// library weighs.
func load(b *bench, t *table) error {
	var whole []float64
	var steps [4][]float64
	var idle float64
	for i := range 16 { // the first one warms the disk and compiles modules
		idleFor := 0
		if i == 15 {
			idleFor = 2
		}
		got, err := b.play(inPython, "load", done(), idleFor)
		if err != nil {
			t.failed("cold Python process to first session", err)
			break
		}
		if i == 0 {
			continue
		}
		whole = append(whole, got["whole"][0])
		for j := range steps {
			steps[j] = append(steps[j], got["parts"][j])
		}
		if idleFor > 0 {
			idle = got["idle_cpu"][0]
		}
	}
	if len(whole) > 0 {
		t.add("cold Python process to first session", below(15e-3), millis, []float64{median(whole)},
			fmt.Sprintf("import %s, load + first call %s, Agent.create %s, session %s; median of 15, the interpreter's own start not counted",
				millis(median(steps[0])), millis(median(steps[1])), millis(median(steps[2])), millis(median(steps[3]))))
		t.add("CPU of an idle session", below(0.001), share, []float64{idle}, "of one core, over 2 s")
	}
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

// produce measures how fast events are made; how fast they are read is in the table of
// the languages.
func produce(b *bench, t *table) error {
	c, err := b.play(inC, "deliver", words(manyEvents), manyEvents)
	if err != nil {
		return err
	}
	t.add("events produced, script to memory", goal{}, nanos, c["produce"], fmt.Sprintf("%d unmerged text deltas of %.0f bytes, 20 of them text; all of it: script, retry, collect, redact, number, encode, fold, tape, and the answer at the end", manyEvents, c["bytes"][0]))
	t.add("events delivered, C raw, next(64) and next(1)", goal{}, perSec, []float64{c["some"][0], c["one"][0]}, "next(256) is in the table of the languages")
	return nil
}

// cycle measures the life of a session with one short run.
func cycle(b *bench, t *table) error {
	const n = 16000
	c, err := b.play(inC, "cycle", words(7), n)
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
