package search

import (
	"encoding/binary"
	"regexp/syntax"
	"slices"
	"unicode"
	"unicode/utf8"
)

// dfa decides whether an expression matches in a line, one table look-up for each
// character. Its states are built when they are first met. All characters beyond ASCII
// are one symbol to it; for an expression that tells them apart it gives up on a line
// that has any, and the standard library, some 20 times slower, is asked. One dfa
// belongs to one goroutine.
type dfa struct {
	prog    *syntax.Prog
	classes map[int]*[symbols]bool // of the instructions that consume a character
	uniform bool                   // no class tells characters beyond ASCII apart
	words   bool                   // there are assertions about words
	lead    bool                   // it can match at the start of a line only
	begin   *state
	root    *state // nothing has begun to match; nil if that is no single state
	stay    [256]bool
	states  map[string]*state
	resets  int

	key   []byte // memory of build
	stack []uint32
	seen  []bool
	out   []uint32
}

// The symbols are ASCII and two more.
const (
	other    = 128 // any character beyond ASCII, or a byte that is no character
	lineStop = 129
	symbols  = 130
)

// Bounds of the states.
const (
	maxInsts  = 1000
	maxStates = 1000
	maxResets = 10 // then the expression has too many states to be worth it
)

// state is where the expression can be between two characters.
type state struct {
	final outcome
	first bool // at the start of the line
	word  bool // behind a letter, digit or underscore
	next  [symbols]*state
	at    []uint32 // instructions, before what holds at this place is known
}

// outcome is what a line is known to do.
type outcome int8

const (
	open outcome = iota
	hit
	miss
	unknown // the standard library is to be asked
)

var (
	hitState  = &state{final: hit}
	missState = &state{final: miss}
)

// newDFA gives nil for an expression that is too large.
func newDFA(prog *syntax.Prog) *dfa {
	if len(prog.Inst) > maxInsts {
		return nil
	}
	d := &dfa{prog: prog, classes: map[int]*[symbols]bool{}, seen: make([]bool, len(prog.Inst)), uniform: true}
	lines := false // assertions about lines
	for i := range prog.Inst {
		inst := &prog.Inst[i]
		switch inst.Op {
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			set := new([symbols]bool)
			for c := range other {
				set[c] = inst.MatchRune(rune(c))
			}
			all, none := beyond(inst)
			set[other] = all
			d.uniform = d.uniform && (all || none)
			d.classes[i] = set
		case syntax.InstEmptyWidth:
			const word = syntax.EmptyWordBoundary | syntax.EmptyNoWordBoundary
			d.words = d.words || syntax.EmptyOp(inst.Arg)&word != 0
			lines = lines || syntax.EmptyOp(inst.Arg)&^word != 0
		}
	}
	d.lead = prog.StartCond()&(syntax.EmptyBeginText|syntax.EmptyBeginLine) != 0
	d.reset()
	if !d.words && !lines {
		d.settle()
	}
	return d
}

// beyond says whether an instruction takes all characters beyond ASCII, or none.
func beyond(inst *syntax.Inst) (all, none bool) {
	if inst.Op == syntax.InstRuneAny || inst.Op == syntax.InstRuneAnyNotNL {
		return true, false
	}
	if len(inst.Rune) == 1 {
		r := inst.Rune[0]
		none = r < other
		if syntax.Flags(inst.Arg)&syntax.FoldCase != 0 {
			for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
				none = none && f < other
			}
		}
		return false, none
	}
	last := len(inst.Rune) - 1
	if last < 0 || inst.Rune[last] < other {
		return false, true
	}
	return inst.Rune[last] == unicode.MaxRune && inst.Rune[last-1] <= other, false
}

func (d *dfa) reset() {
	d.states = map[string]*state{}
	d.begin = &state{at: []uint32{uint32(d.prog.Start)}, first: true}
	if d.root != nil {
		d.settle()
	}
}

// settle finds the characters that cannot begin a match. Without assertions the start
// of a line is no other place than any, and runs of them, line ends too, are skipped.
func (d *dfa) settle() {
	d.begin.first = false
	d.root = d.begin
	d.states[string(binary.LittleEndian.AppendUint32(nil, uint32(d.prog.Start)))] = d.root
	d.stay = [256]bool{}
	for c := range other {
		d.stay[c] = d.build(d.root, c) == d.root
	}
	if d.uniform && d.build(d.root, other) == d.root {
		for c := other; c < 256; c++ {
			d.stay[c] = true
		}
	}
	d.stay['\n'] = d.build(d.root, lineStop) == missState
}

// scan looks for the next line that matches, from the start of a line on. It gives a
// place in that line, or in one that the standard library has to look at.
func (d *dfa) scan(data []byte, pos int) (int, outcome) {
	s := d.begin
	for i := pos; i < len(data); {
		if s == d.root {
			for i < len(data) && d.stay[data[i]] {
				i++
			}
			if i == len(data) {
				return i, miss
			}
		}
		c, width := int(data[i]), 1
		switch {
		case c == '\n' || c == '\r' && (i+1 == len(data) || data[i+1] == '\n'):
			c = lineStop
		case c >= other && !d.uniform:
			return i, unknown
		case c >= other:
			_, width = utf8.DecodeRune(data[i:])
			c = other
		}
		n := s.next[c]
		if n == nil {
			if n = d.build(s, c); n == nil {
				return i, unknown
			}
		}
		switch {
		case n.final == hit:
			return i, hit
		case n.final == miss:
			i += lineEnd(data[i:]) + 1
			if i > len(data) {
				return len(data), miss
			}
			s = d.begin
			continue
		}
		s = n
		i += width
	}
	if len(data) == 0 || data[len(data)-1] == '\n' || s.end(d) == miss {
		return len(data), miss
	}
	return len(data) - 1, s.end(d)
}

// end gives what the line does if it ends here.
func (s *state) end(d *dfa) outcome {
	n := s.next[lineStop]
	if n == nil {
		if n = d.build(s, lineStop); n == nil {
			return unknown
		}
	}
	return n.final
}

// build makes the state behind s and a symbol; nil if there are too many.
func (d *dfa) build(s *state, symbol int) *state {
	matched := d.step(s, symbol)
	var n *state
	switch {
	case matched:
		n = hitState
	case symbol == lineStop, d.lead && len(d.out) == 0:
		n = missState
	default:
		if n = d.find(d.words && isWord(symbol)); n == nil {
			return nil
		}
	}
	s.next[symbol] = n
	return n
}

// find gives the state of the instructions in d.out.
func (d *dfa) find(word bool) *state {
	if !d.lead {
		d.out = append(d.out, uint32(d.prog.Start))
	}
	slices.Sort(d.out)
	d.out = slices.Compact(d.out)
	d.key = d.key[:0]
	for _, i := range d.out {
		d.key = binary.LittleEndian.AppendUint32(d.key, i)
	}
	if word {
		d.key = append(d.key, 'w')
	}
	if n := d.states[string(d.key)]; n != nil {
		return n
	}
	if len(d.states) >= maxStates {
		if d.resets++; d.resets > maxResets {
			return nil
		}
		d.reset()
	}
	n := &state{at: slices.Clone(d.out), word: word}
	d.states[string(d.key)] = n
	return n
}

// step follows the instructions of s as far as they go without a byte, now that the
// next symbol is known, and collects in d.out where they go with it. It says whether
// the expression has matched.
func (d *dfa) step(s *state, symbol int) (matched bool) {
	holds := s.conditions(symbol)
	clear(d.seen)
	d.out = d.out[:0]
	d.stack = append(d.stack[:0], s.at...)
	for len(d.stack) > 0 {
		pc := d.stack[len(d.stack)-1]
		d.stack = d.stack[:len(d.stack)-1]
		if d.seen[pc] {
			continue
		}
		d.seen[pc] = true
		inst := &d.prog.Inst[pc]
		switch inst.Op {
		case syntax.InstMatch:
			return true
		case syntax.InstAlt, syntax.InstAltMatch:
			d.stack = append(d.stack, inst.Out, inst.Arg)
		case syntax.InstCapture, syntax.InstNop:
			d.stack = append(d.stack, inst.Out)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(inst.Arg)&^holds == 0 {
				d.stack = append(d.stack, inst.Out)
			}
		case syntax.InstFail:
		default:
			if symbol != lineStop && d.classes[int(pc)][symbol] {
				d.out = append(d.out, inst.Out)
			}
		}
	}
	return false
}

// conditions gives the assertions that hold between s and the next symbol.
func (s *state) conditions(symbol int) (holds syntax.EmptyOp) {
	if s.first {
		holds |= syntax.EmptyBeginLine | syntax.EmptyBeginText
	}
	if symbol == lineStop {
		holds |= syntax.EmptyEndLine | syntax.EmptyEndText
	}
	if s.word != isWord(symbol) {
		return holds | syntax.EmptyWordBoundary
	}
	return holds | syntax.EmptyNoWordBoundary
}

func isWord(symbol int) bool {
	c := byte(symbol)
	return symbol < other && (c == '_' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z')
}
