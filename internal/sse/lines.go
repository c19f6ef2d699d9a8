// Package sse reads the two shapes in which services stream: server-sent events and
// lines of JSON. It owns framing and bounds: whole lines of bytes, so that no letter is
// ever split, and a ceiling that gives a typed error instead of a silent stop. What the
// bytes mean is left to the caller. Floor 1: it imports nothing of this project.
package sse

import (
	"bytes"
	"fmt"
	"io"
)

// DefaultMax is the ceiling for one line or event when none is given.
const DefaultMax = 16 << 20

const (
	firstBuffer = 8 << 10
	// keepBuffer is how large a buffer may stay once it is empty; one huge line must
	// not hold its memory for the rest of the stream.
	keepBuffer = 1 << 20
	// maxEmptyReads guards against a reader that returns neither bytes nor an error.
	maxEmptyReads = 100
)

// TooLongError says that one line or event is larger than the ceiling. The stream
// cannot be read on after it.
type TooLongError struct {
	// Limit is the ceiling in bytes.
	Limit int
}

// Error tells the limit.
func (e *TooLongError) Error() string {
	return fmt.Sprintf("one event of the stream is larger than %d bytes", e.Limit)
}

// Lines reads lines of JSON (NDJSON). It is for one goroutine.
type Lines struct{ in lineReader }

// NewLines reads from r; max bounds one line, 0 is DefaultMax. It does not close r.
func NewLines(r io.Reader, max int) *Lines {
	return &Lines{in: lineReader{r: r, max: ceiling(max)}}
}

// Next gives the next line that is not blank, without its line end. whole is false for
// a last line that lacks its line end: the stream may have been cut inside it. The bytes
// stay valid until the next call. At the end the error is io.EOF; a *TooLongError or
// the reader's own error ends the stream too.
func (l *Lines) Next() (line []byte, whole bool, err error) {
	for {
		line, whole, err = l.in.next()
		if err != nil {
			return nil, false, err
		}
		line = bytes.TrimSpace(line)
		if len(line) > 0 {
			return line, whole, nil
		}
	}
}

// lineReader cuts a byte stream into lines without copying more than it must.
type lineReader struct {
	r   io.Reader
	max int
	// cr makes a lone carriage return a line end, as server-sent events allow.
	cr bool

	buf        []byte
	start, end int // the unread bytes
	seen       int // bytes after start that hold no line end
	skipLF     bool
	err        error // what the reader ended with
}

// next gives one line without its line end. terminated is false for a last line that
// the end of the stream closed.
func (l *lineReader) next() (line []byte, terminated bool, err error) {
	for {
		if l.skipLF && l.start < l.end {
			l.skipLF = false
			if l.buf[l.start] == '\n' {
				l.start++
			}
		}
		if i := l.find(); i >= 0 {
			line = l.buf[l.start : l.start+i]
			l.skipLF = l.buf[l.start+i] == '\r'
			l.start += i + 1
			l.seen = 0
			if len(line) > l.max {
				return nil, false, &TooLongError{l.max}
			}
			return line, true, nil
		}
		if l.end-l.start > l.max {
			return nil, false, &TooLongError{l.max}
		}
		if l.err != nil {
			return l.rest()
		}
		l.fill()
	}
}

// find gives the offset of the next line end after start, or -1.
func (l *lineReader) find() int {
	part := l.buf[l.start+l.seen : l.end]
	i := bytes.IndexByte(part, '\n')
	if l.cr {
		scan := part
		if i >= 0 {
			scan = part[:i]
		}
		if j := bytes.IndexByte(scan, '\r'); j >= 0 {
			i = j
		}
	}
	if i < 0 {
		l.seen = len(part) + l.seen
		return -1
	}
	return l.seen + i
}

// rest gives what stands after the last line end. Only a clean end makes a line of it.
func (l *lineReader) rest() ([]byte, bool, error) {
	if l.err != io.EOF || l.start == l.end {
		return nil, false, l.err
	}
	line := l.buf[l.start:l.end]
	l.start, l.seen = l.end, 0
	return line, false, nil
}

// fill reads at least one byte or sets err.
func (l *lineReader) fill() {
	switch {
	case l.start == l.end:
		l.start, l.end, l.seen = 0, 0, 0
		if l.buf == nil || len(l.buf) > keepBuffer {
			l.buf = make([]byte, firstBuffer)
		}
	case l.end == len(l.buf) && l.start > 0:
		l.end = copy(l.buf, l.buf[l.start:l.end])
		l.start = 0
	}
	if l.end == len(l.buf) {
		// One byte above the ceiling is enough to know that it was passed, and two
		// more let a line of exactly max bytes see its line end.
		size := min(2*len(l.buf), l.max+3)
		if size <= len(l.buf) {
			size = len(l.buf) + 1
		}
		grown := make([]byte, size)
		copy(grown, l.buf[:l.end])
		l.buf = grown
	}
	for range maxEmptyReads {
		n, err := l.r.Read(l.buf[l.end:])
		l.end += max(n, 0)
		if err != nil {
			l.err = err
		}
		if n > 0 || err != nil {
			return
		}
	}
	l.err = io.ErrNoProgress
}

func ceiling(max int) int {
	if max <= 0 {
		return DefaultMax
	}
	return max
}
