package search

import (
	"bytes"
	"encoding/binary"
	"regexp"
	"regexp/syntax"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

// matcher finds the lines that an expression matches. It may be used by several
// goroutines at once, each with its own scratch.
type matcher struct {
	re    *regexp.Regexp
	need  need
	texts [][]byte
}

// scratch is the memory of one goroutine.
type scratch struct {
	lower []byte
	next  []int // where each text is found next; len(data) for nowhere
}

// breath is how many bytes are searched between two looks at whether to go on.
const breath = 1 << 20

// compile reads an expression in the syntax of RE2.
func compile(pattern string, ignoreCase bool) (*matcher, error) {
	const op = "workspace.grep"
	if len(pattern) > maxPattern {
		return nil, fault.New(fault.Invalid, op, "the pattern has %d bytes; at most %d are allowed", len(pattern), maxPattern)
	}
	flags := syntax.Perl
	if ignoreCase {
		flags |= syntax.FoldCase
	}
	tree, err := syntax.Parse(pattern, flags)
	if err != nil {
		return nil, fault.New(fault.Invalid, op, "the pattern %.100q is not a regular expression: %v", pattern, err)
	}
	full := pattern
	if ignoreCase {
		full = "(?i)" + pattern
	}
	re, err := regexp.Compile(full)
	if err != nil {
		return nil, fault.New(fault.Invalid, op, "the pattern %.100q is not a regular expression: %v", pattern, err)
	}
	m := &matcher{re: re, need: needOf(tree)}
	for _, t := range m.need.texts {
		m.texts = append(m.texts, []byte(t))
	}
	return m, nil
}

// lines calls found with the bounds of each matching line, without its line end, until
// it returns false. Now and then it asks alive whether to go on.
func (m *matcher) lines(data []byte, s *scratch, alive func() bool, found func(start, end int) bool) {
	if len(m.texts) == 0 {
		m.each(data, alive, found)
		return
	}
	hay := data
	if m.need.fold {
		s.lower = lower(s.lower, data)
		hay = s.lower
	}
	s.next = s.next[:0]
	for range m.texts {
		s.next = append(s.next, -1)
	}
	for pos, ask := 0, breath; ; {
		at := m.nearest(hay, s, pos)
		if at == len(data) || at > ask && !alive() {
			return
		}
		if at > ask {
			ask = at + breath
		}
		start := pos + bytes.LastIndexByte(data[pos:at], '\n') + 1
		end := at + lineEnd(data[at:])
		line := trimCR(data[start:end])
		if (m.need.whole || m.try(line)) && !found(start, start+len(line)) {
			return
		}
		if pos = end + 1; pos > len(data) {
			return
		}
	}
}

// nearest finds the first of the texts at or behind pos.
func (m *matcher) nearest(hay []byte, s *scratch, pos int) int {
	first := len(hay)
	for i, text := range m.texts {
		if s.next[i] < pos {
			s.next[i] = len(hay)
			if at := bytes.Index(hay[min(pos, len(hay)):], text); at >= 0 {
				s.next[i] = pos + at
			}
		}
		first = min(first, s.next[i])
	}
	return first
}

// each tries the expression on every line.
func (m *matcher) each(data []byte, alive func() bool, found func(start, end int) bool) {
	for pos, ask := 0, breath; pos < len(data); {
		if pos > ask {
			if !alive() {
				return
			}
			ask = pos + breath
		}
		end := pos + lineEnd(data[pos:])
		line := trimCR(data[pos:end])
		if m.try(line) && !found(pos, pos+len(line)) {
			return
		}
		pos = end + 1
	}
}

// try asks the expression itself.
func (m *matcher) try(line []byte) bool { return m.re.Match(line[:min(len(line), maxMatch)]) }

// lineEnd gives the length of the first line of data.
func lineEnd(data []byte) int {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i
	}
	return len(data)
}

func trimCR(line []byte) []byte {
	if n := len(line); n > 0 && line[n-1] == '\r' {
		return line[:n-1]
	}
	return line
}

// lower copies data to buf with its ASCII letters in lower case, eight at a time.
func lower(buf, data []byte) []byte {
	if cap(buf) < len(data) {
		buf = make([]byte, len(data), len(data)+len(data)/4)
	}
	buf = buf[:len(data)]
	const ones, high = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(data); i += 8 {
		x := binary.LittleEndian.Uint64(data[i:])
		low := x &^ high
		// The high bit of each byte says: from 'A' on, and not beyond 'Z', and ASCII.
		upper := (low + (0x80-'A')*ones) &^ (low + (0x7f-'Z')*ones) &^ x & high
		binary.LittleEndian.PutUint64(buf[i:], x|upper>>2)
	}
	for ; i < len(data); i++ {
		buf[i] = byte(lowerASCII(rune(data[i])))
	}
	return buf
}
