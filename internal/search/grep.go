package search

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"path"
	"runtime"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/a3s-lab/liba3s/internal/safego"
	"github.com/a3s-lab/liba3s/runtime/fault"
)

// Bounds of what is on its way from the workers to the reader. They are the memory of
// a search, whatever it finds.
const (
	maxWorkers = 16
	batchFiles = 32       // files a worker takes at once
	batchQueue = 64       // batches that wait for a worker or the reader
	pieceBytes = 64 << 10 // text of the lines in one piece
	pieceQueue = 2        // pieces of a batch that wait for the reader
	keepBuffer = 1 << 20  // a larger buffer is given back after its file
)

const grepOp = "workspace.grep"

// batch is some files that follow one another. One worker searches them; the reader
// takes the batches in order.
type batch struct {
	files  []string
	pieces chan []Line // closed at the end of the batch
	stats  Stats       // complete when pieces is closed
}

// grepper is one search.
type grepper struct {
	ctx    context.Context
	cancel context.CancelFunc
	tree   Tree
	q      GrepQuery
	match  *matcher
	order  chan *batch // for the reader
	work   chan *batch // for the workers
	all    sync.WaitGroup

	mu  sync.Mutex
	err error // the first failure; guarded by mu
}

// Grep calls hit for every matching line, files in path order, lines in order, on the
// caller's goroutine, until it returns false. When it returns, nothing of it runs on.
func Grep(ctx context.Context, tree Tree, q GrepQuery, hit func(Line) bool) (Stats, error) {
	if err := ctx.Err(); err != nil {
		return Stats{}, fault.From(grepOp, err)
	}
	g := &grepper{tree: tree, q: q, order: make(chan *batch, batchQueue), work: make(chan *batch, batchQueue)}
	base, err := g.prepare()
	if err != nil {
		return Stats{}, err
	}
	g.ctx, g.cancel = context.WithCancel(ctx)
	defer g.cancel()
	walk := &walker{ctx: g.ctx, tree: tree, all: q.Ignored}
	g.start("search.walk", func() error {
		defer close(g.order)
		defer close(g.work)
		return g.feed(walk, base)
	})
	for range min(max(2, runtime.GOMAXPROCS(0)), maxWorkers) {
		g.start("search.grep", g.run)
	}
	stats, stopped := g.read(hit)
	g.cancel()
	g.all.Wait()
	stats.add(walk.stats)
	switch {
	case ctx.Err() != nil:
		return stats, fault.From(grepOp, ctx.Err())
	case stopped || g.err == nil:
		return stats, nil
	}
	return stats, fault.From(grepOp, g.err)
}

// prepare checks the query.
func (g *grepper) prepare() (Info, error) {
	var err error
	if g.match, err = compile(g.q.Pattern, g.q.IgnoreCase); err != nil {
		return Info{}, err
	}
	if g.q.Glob != "" {
		if g.q.Glob, err = checkGlob(grepOp, g.q.Glob); err != nil {
			return Info{}, err
		}
	}
	if g.q.Context < 0 || g.q.Context > maxContext {
		return Info{}, fault.New(fault.Invalid, grepOp, "%d lines of context are asked for; 0 to %d are possible", g.q.Context, maxContext)
	}
	if g.q.FilesOnly {
		g.q.Context = 0
	}
	if err := checkBase(grepOp, g.q.Base); err != nil {
		return Info{}, err
	}
	base, err := look(grepOp, g.tree, g.q.Base)
	if err == nil && !base.Dir && !base.File {
		err = fault.New(fault.Invalid, grepOp, "%q is neither a file nor a directory", g.q.Base).With("path", g.q.Base)
	}
	return base, err
}

// start runs a part of the search on its own goroutine.
func (g *grepper) start(name string, fn func() error) {
	g.all.Add(1)
	safego.Go(name, nil, func() {
		defer g.all.Done()
		if err := safego.Call(name, fn); err != nil {
			g.fail(err)
		}
	})
}

func (g *grepper) fail(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err == nil {
		g.err = err
	}
	g.cancel()
}

// feed walks the tree and hands out batches.
func (g *grepper) feed(w *walker, base Info) error {
	b := newBatch()
	send := func() error {
		for _, to := range []chan *batch{g.order, g.work} {
			select {
			case to <- b:
			case <-g.ctx.Done():
				return g.ctx.Err()
			}
		}
		b = newBatch()
		return nil
	}
	add := func(p string) error {
		if !g.selected(p) {
			return nil
		}
		if b.files = append(b.files, p); len(b.files) < batchFiles {
			return nil
		}
		return send()
	}
	if base.File {
		b.files = append(b.files, g.q.Base)
		return send()
	}
	if err := w.walk(g.q.Base, add); err != nil {
		return err
	}
	return send()
}

func newBatch() *batch {
	return &batch{files: make([]string, 0, batchFiles), pieces: make(chan []Line, pieceQueue)}
}

// selected asks the glob of the query: without a slash it is about names.
func (g *grepper) selected(p string) bool {
	if g.q.Glob == "" {
		return true
	}
	if !strings.Contains(g.q.Glob, "/") {
		return matched(g.q.Glob, path.Base(p))
	}
	return matched(g.q.Glob, below(g.q.Base, p)) || matched(g.q.Glob, p)
}

func matched(glob, p string) bool {
	ok, err := doublestar.Match(glob, p)
	return ok && err == nil // it was validated
}

// read hands the lines to hit. The batch it reads is always one that a worker has or
// gets next, so waiting for it ends.
func (g *grepper) read(hit func(Line) bool) (stats Stats, stopped bool) {
	for b := range g.order {
		for more := true; more; {
			var lines []Line
			select {
			case lines, more = <-b.pieces:
			case <-g.ctx.Done():
				return stats, false
			}
			for _, l := range lines {
				if !hit(l) {
					return stats, true
				}
				if g.ctx.Err() != nil {
					return stats, false
				}
			}
		}
		stats.add(b.stats)
	}
	return stats, false
}

// run is one worker.
func (g *grepper) run() error {
	w := worker{grepper: g}
	for b := range g.work {
		err := w.batch(b)
		close(b.pieces)
		if err != nil {
			return err
		}
	}
	return nil
}

// worker searches files.
type worker struct {
	*grepper
	scratch
	buf   []byte
	lines []Line
	size  int // of the text in lines
}

func (w *worker) batch(b *batch) error {
	for _, p := range b.files {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		if w.q.Allow != nil && !w.q.Allow(p) {
			b.stats.Denied++
			continue
		}
		if err := w.file(p, b); err != nil {
			return err
		}
	}
	return w.flush(b)
}

// file searches one file.
func (w *worker) file(p string, b *batch) error {
	text := true
	data, err := w.tree.ReadFile(p, &w.buf, MaxFile, func(head []byte) bool {
		text = bytes.IndexByte(head, 0) < 0
		return text
	})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil // gone since the folder was read
	case errors.Is(err, ErrTooLarge):
		b.stats.TooLarge++
		return nil
	case err != nil:
		b.stats.Unreadable++
		return nil
	case !text:
		b.stats.Binary++
		return nil
	}
	b.stats.Files++
	b.stats.Bytes += int64(len(data))
	err = w.search(p, data, b)
	if cap(w.buf) > keepBuffer {
		w.buf, w.lower = nil, nil
	}
	return err
}

// search tells the matching lines of a file and the lines around them.
func (w *worker) search(p string, data []byte, b *batch) (err error) {
	t := teller{worker: w, path: p, data: data, batch: b, number: 1}
	alive := func() bool {
		err = w.ctx.Err()
		return err == nil
	}
	w.match.lines(data, &w.scratch, alive, func(start, end int) bool {
		if w.q.Context > 0 {
			t.behind(start)
			t.before(start)
		}
		err = t.tell(start, end, false)
		if err == nil {
			err = t.err
		}
		return err == nil && !w.q.FilesOnly
	})
	if err == nil && w.q.Context > 0 && !w.q.FilesOnly {
		t.behind(len(data))
		err = t.err
	}
	return err
}

// teller goes through one file and knows where it is.
type teller struct {
	*worker
	path   string
	data   []byte
	batch  *batch
	number int // of the line at pos
	pos    int // start of a line
	told   int // start of the first line that was not told
	after  int // lines of context still to tell behind the last match
	err    error
}

// tell adds the line at start.
func (t *teller) tell(start, end int, context bool) error {
	t.number += bytes.Count(t.data[t.pos:start], newline)
	t.pos = start
	t.told = min(start+lineEnd(t.data[start:])+1, len(t.data))
	if !context {
		t.after = t.q.Context
	}
	return t.add(t.batch, Line{Path: t.path, Number: t.number, Text: printable(t.data[start:end]), Context: context})
}

var newline = []byte{'\n'}

// behind tells the lines after the last match, as far as limit.
func (t *teller) behind(limit int) {
	for ; t.after > 0 && t.told < limit && t.err == nil; t.after-- {
		t.context(t.told)
	}
}

// before tells the lines before the match at start.
func (t *teller) before(start int) {
	from := start
	for n := 0; n < t.q.Context && from > t.told; n++ {
		from = max(t.told, bytes.LastIndexByte(t.data[:from-1], '\n')+1)
	}
	for from < start && t.err == nil {
		t.context(from)
		from = t.told
	}
}

func (t *teller) context(start int) {
	end := start + lineEnd(t.data[start:])
	t.err = t.tell(start, start+len(trimCR(t.data[start:end])), true)
}

// printable cuts a line between letters and makes it valid UTF-8.
func printable(line []byte) string {
	if len(line) > MaxLine {
		n := MaxLine
		for n > MaxLine-utf8.UTFMax && !utf8.RuneStart(line[n]) {
			n--
		}
		line = line[:n]
	}
	if utf8.Valid(line) {
		return string(line)
	}
	return strings.ToValidUTF8(string(line), "\ufffd")
}

func (w *worker) add(b *batch, l Line) error {
	w.lines = append(w.lines, l)
	if w.size += len(l.Text) + 64; w.size < pieceBytes {
		return nil
	}
	return w.flush(b)
}

// flush hands the lines to the reader.
func (w *worker) flush(b *batch) error {
	if len(w.lines) == 0 {
		return nil
	}
	lines := w.lines
	w.lines, w.size = nil, 0
	select {
	case b.pieces <- lines:
		return nil
	case <-w.ctx.Done():
		return w.ctx.Err()
	}
}
