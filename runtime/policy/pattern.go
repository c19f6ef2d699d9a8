package policy

import (
	"strings"
	"unicode/utf8"
)

// breadth says how a pattern errs where the language leaves room: a deny or ask rule
// errs towards matching, an allow rule towards not matching.
type breadth bool

const (
	wide   breadth = true
	narrow breadth = false
)

// maxSteps bounds one match, so that a hostile text against a pattern of many stars
// cannot hold up a decision. A match that runs out of steps errs by its breadth.
const maxSteps = 500_000

// pattern is the compiled text between the parentheses of a rule.
type pattern struct {
	any    bool     // matches everything
	prefix bool     // text is a plain prefix
	text   string   // of a prefix
	globs  []glob   // else one of these matches the whole text
	need   []uint16 // pairs of bytes that every text that matches holds
	breadth
}

// glob is a pattern as a list of parts.
type glob []part

type part struct {
	kind    partKind
	literal string
}

type partKind int

const (
	literal  partKind = iota
	one               // ? : one character, no separator
	anyOne            // ? where nothing is a separator
	run               // * : any run without a separator
	anyRun            // ** : any run
	segments          // **/ in an allow rule: nothing, or any run that ends with /
)

// compile makes a pattern for texts of one class.
func compile(text string, c class, b breadth) pattern {
	p := pattern{breadth: b}
	switch {
	case strings.Trim(text, "*") == "" && text != "":
		p.any = true
	case strings.HasSuffix(text, ":*"):
		p.prefix, p.text = true, strings.TrimSuffix(text, ":*")
		p.need = pairs(p.text)
	default:
		crosses := c == shell || c == whole && b == wide
		p.globs = append(p.globs, parts(text, crosses, b))
		// secrets/** names the folder too, where naming the folder means what is in it.
		if folder, ok := strings.CutSuffix(text, "/**"); ok && (c == folderPath || c == searchPath || c == filePath && b == wide) {
			p.globs = append(p.globs, parts(folder, crosses, b))
		}
		longest := ""
		for _, part := range p.globs[len(p.globs)-1] {
			if len(part.literal) > len(longest) {
				longest = part.literal
			}
		}
		p.need = pairs(longest)
	}
	return p
}

func parts(text string, crosses bool, b breadth) glob {
	var g glob
	var lit strings.Builder
	add := func(k partKind) {
		if lit.Len() > 0 {
			g = append(g, part{literal, lit.String()})
			lit.Reset()
		}
		g = append(g, part{kind: k})
	}
	for i := 0; i < len(text); {
		switch {
		case text[i] == '*' && strings.HasPrefix(text[i:], "**"):
			start := i
			for i < len(text) && text[i] == '*' {
				i++
			}
			slash := i < len(text) && text[i] == '/'
			switch {
			case slash && b == wide:
				i++ // the slash after ** is absorbed
				add(anyRun)
			case slash && !crosses && (start == 0 || text[start-1] == '/'):
				i++
				add(segments)
			default:
				add(anyRun)
			}
		case text[i] == '*':
			i++
			add(map[bool]partKind{true: anyRun, false: run}[crosses])
		case text[i] == '?':
			i++
			add(map[bool]partKind{true: anyOne, false: one}[crosses])
		default:
			lit.WriteByte(text[i])
			i++
		}
	}
	if lit.Len() > 0 {
		g = append(g, part{literal, lit.String()})
	}
	return g
}

// match says whether p matches text.
func (p *pattern) match(text string) bool {
	switch {
	case p.any:
		return true
	case p.prefix:
		return strings.HasPrefix(text, p.text)
	}
	for i := range p.globs {
		if p.globs[i].match(text, p.breadth) {
			return true
		}
	}
	return false
}

func separator(c byte) bool { return c == '/' || c == '\\' }

// match walks parts and text once, and on a mismatch goes back to the last run, then
// to the last anyRun before it. Going back further cannot help: an earlier place for
// what precedes a run leaves that run at least as much room.
func (g glob) match(s string, b breadth) bool {
	type mark struct{ part, at int } // resume after part, whose run ends at
	var near, far mark
	haveNear, haveFar := false, false
	i, pi, steps := 0, 0, 0
	for {
		if steps++; steps > maxSteps {
			return b == wide
		}
		if pi == len(g) {
			if i == len(s) {
				return true
			}
		} else {
			switch p := g[pi]; p.kind {
			case literal:
				if strings.HasPrefix(s[i:], p.literal) {
					i, pi = i+len(p.literal), pi+1
					continue
				}
			case one, anyOne:
				if i < len(s) && (p.kind == anyOne || !separator(s[i])) {
					_, n := utf8.DecodeRuneInString(s[i:])
					i, pi = i+n, pi+1
					continue
				}
			case run:
				near, haveNear = mark{pi, i}, true
				pi++
				continue
			default:
				far, haveFar, haveNear = mark{pi, i}, true, false
				pi++
				continue
			}
		}
		switch {
		case haveNear && near.at < len(s) && !separator(s[near.at]):
			near.at++
			i, pi = near.at, near.part+1
		case haveFar && far.at < len(s):
			haveNear = false
			far.at = g.grow(far.part, far.at, s)
			if far.at < 0 {
				return false
			}
			i, pi = far.at, far.part+1
		default:
			return false
		}
	}
}

// grow gives the next place where the run of an anyRun or segments part may end, after
// at; below 0 if there is none. An anyRun before a literal jumps to its next place.
func (g glob) grow(part, at int, s string) int {
	switch {
	case g[part].kind == segments:
		n := strings.IndexByte(s[at:], '/')
		if n < 0 {
			return -1
		}
		return at + n + 1
	case part+1 < len(g) && g[part+1].kind == literal:
		n := strings.Index(s[at+1:], g[part+1].literal)
		if n < 0 {
			return -1
		}
		return at + 1 + n
	}
	return at + 1
}

// pairSet says which pairs of neighbouring bytes a text may hold. Testing it is far
// cheaper than searching the text, and lets most patterns fall out.
type pairSet [64]uint64

func pairOf(a, b byte) uint16 { return (uint16(a)*37 + uint16(b)*131) & 4095 }

func pairs(text string) []uint16 {
	var found []uint16
	for i := 0; i+1 < len(text) && len(found) < 8; i++ {
		found = append(found, pairOf(text[i], text[i+1]))
	}
	return found
}

func (s *pairSet) add(text string) {
	for i := 0; i+1 < len(text); i++ {
		p := pairOf(text[i], text[i+1])
		s[p>>6] |= 1 << (p & 63)
	}
}

func (s *pairSet) holds(pairs []uint16) bool {
	for _, p := range pairs {
		if s[p>>6]&(1<<(p&63)) == 0 {
			return false
		}
	}
	return true
}
