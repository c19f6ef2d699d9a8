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
	prog  *syntax.Prog
	need  need
	texts []finder
}

// scratch is the memory of one goroutine.
type scratch struct {
	lower []byte
	next  []int // where each text is found next; len(data) for nowhere
	dfa   *dfa
	gone  bool // there will be no dfa
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
	if m.prog, err = syntax.Compile(tree.Simplify()); err != nil {
		return nil, fault.New(fault.Invalid, op, "the pattern %.100q is not a regular expression: %v", pattern, err)
	}
	for _, t := range m.need.texts {
		f := newFinder(t)
		if f.common() && !m.need.whole {
			m.texts = nil // looking at every line is as quick
			break
		}
		m.texts = append(m.texts, f)
	}
	return m, nil
}

// lines calls found with the bounds of each matching line, without its line end, until
// it returns false. Now and then it asks alive whether to go on.
func (m *matcher) lines(data []byte, s *scratch, alive func() bool, found func(start, end int) bool) {
	if len(m.texts) == 0 {
		m.each(data, s, alive, found)
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
		if (m.need.whole || m.try(line, s)) && !found(start, start+len(line)) {
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
			if s.next[i] = text.index(hay, pos); s.next[i] < 0 {
				s.next[i] = len(hay)
			}
		}
		first = min(first, s.next[i])
	}
	return first
}

// each tries the expression on every line.
func (m *matcher) each(data []byte, s *scratch, alive func() bool, found func(start, end int) bool) {
	for pos, ask := 0, breath; pos < len(data); {
		if pos > ask {
			if !alive() {
				return
			}
			ask = pos + breath
		}
		at, sure := pos, unknown
		if d := m.dfa(s); d != nil {
			at, sure = d.scan(data, pos)
		}
		if sure == miss {
			return
		}
		start := pos + bytes.LastIndexByte(data[pos:at], '\n') + 1
		end := start + lineEnd(data[start:])
		line := trimCR(data[start:end])
		if (sure == hit || m.slowly(line)) && !found(start, start+len(line)) {
			return
		}
		pos = end + 1
	}
}

// dfa gives the automaton of a goroutine; nil if there is none or it has too many
// states.
func (m *matcher) dfa(s *scratch) *dfa {
	if s.dfa == nil && !s.gone {
		s.dfa = newDFA(m.prog)
		s.gone = s.dfa == nil
	}
	if s.dfa != nil && s.dfa.resets > maxResets {
		s.dfa, s.gone = nil, true
	}
	return s.dfa
}

// try asks the expression itself about a line.
func (m *matcher) try(line []byte, s *scratch) bool {
	// A carriage return at the end would pass for a part of the line end.
	if d := m.dfa(s); d != nil && len(line) > 0 && line[len(line)-1] != '\r' {
		switch _, sure := d.scan(line, 0); sure {
		case hit:
			return true
		case miss:
			return false
		}
	}
	return m.slowly(line)
}

func (m *matcher) slowly(line []byte) bool { return m.re.Match(line[:min(len(line), maxMatch)]) }

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

// lower copies data to buf with its ASCII letters in lower case, sixteen at a time.
func lower(buf, data []byte) []byte {
	if cap(buf) < len(data) {
		buf = make([]byte, len(data), len(data)+len(data)/4)
	}
	buf = buf[:len(data)]
	const ones, high = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+16 <= len(data); i += 16 {
		from, to := data[i:i+16:i+16], buf[i:i+16:i+16]
		x, y := binary.LittleEndian.Uint64(from), binary.LittleEndian.Uint64(from[8:])
		// The high bit of each byte says: from 'A' on, and not beyond 'Z', and ASCII.
		v, w := x&^high, y&^high
		v = (v + (0x80-'A')*ones) &^ (v + (0x7f-'Z')*ones) &^ x & high
		w = (w + (0x80-'A')*ones) &^ (w + (0x7f-'Z')*ones) &^ y & high
		binary.LittleEndian.PutUint64(to, x|v>>2)
		binary.LittleEndian.PutUint64(to[8:], y|w>>2)
	}
	for ; i < len(data); i++ {
		buf[i] = byte(lowerASCII(rune(data[i])))
	}
	return buf
}
