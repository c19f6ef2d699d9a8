package ignore

import (
	"slices"
	"strings"
)

// rule is one pattern.
type rule struct {
	negated bool
	dirOnly bool
	name    string    // the whole pattern is this name, in any folder
	ext     string    // the whole pattern is "*" and this extension with its dot
	base    bool      // matched against the last element alone
	parts   []segment // one for each element
}

// segment is the pattern of one element of a path.
type segment struct {
	any   bool // "**": any number of elements
	bytes []token
}

type tokenKind int8

const (
	literal tokenKind = iota
	single            // ?
	star              // *
	class             // [...]
	slash
)

type token struct {
	kind tokenKind
	c    byte
	set  *[256]bool
}

// parseLine reads one line; false for comments, blanks and what can never match.
func parseLine(line string) (rule, bool) {
	var r rule
	if strings.HasPrefix(line, "#") {
		return r, false
	}
	line = trimSpaces(line)
	if after, ok := strings.CutPrefix(line, "!"); ok {
		r.negated, line = true, after
	}
	if line == "" {
		return r, false
	}
	if strings.HasSuffix(line, "/") {
		r.dirOnly, line = true, line[:len(line)-1]
	}
	r.base = !strings.Contains(line, "/")
	tokens, ok := tokenize(strings.TrimPrefix(line, "/"))
	if !ok || len(tokens) == 0 {
		return r, false
	}
	r.parts = split(tokens)
	if r.base {
		r.shortcut(tokens)
	}
	return r, true
}

// trimSpaces takes off spaces at the end, but for one that a backslash protects.
func trimSpaces(line string) string {
	end := 0
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case ' ':
			continue
		case '\\':
			i++
		}
		end = min(i+1, len(line))
	}
	return line[:end]
}

// shortcut finds the two common forms.
func (r *rule) shortcut(tokens []token) {
	ext := tokens
	if ext[0].kind == star {
		ext = ext[1:]
	}
	text := make([]byte, 0, len(ext))
	for _, t := range ext {
		if t.kind != literal {
			return
		}
		text = append(text, t.c)
	}
	switch {
	case len(ext) == len(tokens):
		r.name = string(text)
	case len(text) > 1 && text[0] == '.' && !slices.Contains(text[1:], '.'):
		r.ext = string(text)
	}
}

// tokenize splits a pattern; false if it is broken.
func tokenize(p string) ([]token, bool) {
	out := make([]token, 0, len(p))
	for i := 0; i < len(p); i++ {
		switch c := p[i]; c {
		case '*':
			out = append(out, token{kind: star})
		case '?':
			out = append(out, token{kind: single})
		case '/':
			out = append(out, token{kind: slash})
		case '[':
			set, next, ok := parseClass(p, i+1)
			if !ok {
				return nil, false
			}
			out = append(out, token{kind: class, set: set})
			i = next - 1
		case '\\':
			if i++; i == len(p) {
				return nil, false
			}
			if p[i] == '/' {
				out = append(out, token{kind: slash})
				continue
			}
			out = append(out, token{kind: literal, c: p[i]})
		default:
			out = append(out, token{kind: literal, c: c})
		}
	}
	return out, true
}

// split cuts tokens at the slashes. Two or more stars alone between slashes stand for
// any number of elements; elsewhere they are one star.
func split(tokens []token) []segment {
	var out []segment
	for {
		i := slices.IndexFunc(tokens, func(t token) bool { return t.kind == slash })
		part := tokens
		if i >= 0 {
			part = tokens[:i]
		}
		stars := !slices.ContainsFunc(part, func(t token) bool { return t.kind != star })
		out = append(out, segment{any: stars && len(part) >= 2, bytes: part})
		if i < 0 {
			return out
		}
		tokens = tokens[i+1:]
	}
}

// matches asks for a path and its last element.
func (r *rule) matches(path, name string) bool {
	if r.base {
		return r.parts[0].any || matchElement(r.parts[0].bytes, name)
	}
	return matchPath(r.parts, path)
}

// matchPath matches the elements of a path. As in a pattern with stars, going back to
// the last "**" is enough.
func matchPath(parts []segment, path string) bool {
	p, back, retry := 0, -1, ""
	for rest, more := path, true; more; {
		if p < len(parts) && parts[p].any {
			if p == len(parts)-1 {
				return true // there is an element left for it
			}
			p++
			back, retry = p, rest
			continue
		}
		name, after, again := strings.Cut(rest, "/")
		if p < len(parts) && matchElement(parts[p].bytes, name) {
			p++
			rest, more = after, again
			continue
		}
		if back < 0 {
			return false
		}
		var ok bool
		if _, retry, ok = strings.Cut(retry, "/"); !ok {
			return false
		}
		p, rest = back, retry
	}
	return p == len(parts)
}

// matchElement matches bytes, as git does: a "?" is one byte.
func matchElement(tokens []token, s string) bool {
	t, i, back, retry := 0, 0, -1, 0
	for i < len(s) {
		if t < len(tokens) {
			tok := &tokens[t]
			if tok.kind == star {
				t++
				back, retry = t, i
				continue
			}
			if tok.kind == single || tok.kind == literal && tok.c == s[i] || tok.kind == class && tok.set[s[i]] {
				t++
				i++
				continue
			}
		}
		if back < 0 {
			return false
		}
		retry++
		t, i = back, retry
	}
	for t < len(tokens) && tokens[t].kind == star {
		t++
	}
	return t == len(tokens)
}

// parseClass reads a class whose first byte is at i and gives the place behind it.
func parseClass(p string, i int) (set *[256]bool, next int, ok bool) {
	set = new([256]bool)
	negated := false
	if i < len(p) && (p[i] == '!' || p[i] == '^') {
		negated = true
		i++
	}
	prev := -1 // a range may start here
	for first := true; ; first = false {
		if i >= len(p) {
			return nil, 0, false
		}
		c := p[i]
		switch {
		case c == ']' && !first:
			if negated {
				for b := range set {
					set[b] = !set[b]
				}
			}
			return set, i + 1, true
		case c == '-' && prev >= 0 && i+1 < len(p) && p[i+1] != ']':
			i++
			if p[i] == '\\' {
				if i++; i >= len(p) {
					return nil, 0, false
				}
			}
			for b := prev; b <= int(p[i]); b++ {
				set[b] = true
			}
			prev = -1
			i++
			continue
		case c == '[' && i+1 < len(p) && p[i+1] == ':':
			end := strings.IndexByte(p[i+2:], ']')
			if end < 0 {
				return nil, 0, false
			}
			name, closed := strings.CutSuffix(p[i+2:i+2+end], ":")
			if !closed {
				break // an ordinary bracket
			}
			in, known := classes[name]
			if !known {
				return nil, 0, false
			}
			for b := range set {
				set[b] = set[b] || b < 0x80 && in(byte(b))
			}
			i += end + 3
			prev = -1
			continue
		case c == '\\':
			if i++; i >= len(p) {
				return nil, 0, false
			}
			c = p[i]
		}
		set[c] = true
		prev = int(c)
		i++
	}
}

var classes = map[string]func(byte) bool{
	"alnum":  func(c byte) bool { return isLetter(c) || isDigit(c) },
	"alpha":  isLetter,
	"blank":  func(c byte) bool { return c == ' ' || c == '\t' },
	"cntrl":  func(c byte) bool { return c < 0x20 || c == 0x7f },
	"digit":  isDigit,
	"graph":  isGraphic,
	"lower":  func(c byte) bool { return 'a' <= c && c <= 'z' },
	"print":  func(c byte) bool { return c == ' ' || isGraphic(c) },
	"punct":  func(c byte) bool { return isGraphic(c) && !isLetter(c) && !isDigit(c) },
	"space":  func(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' },
	"upper":  func(c byte) bool { return 'A' <= c && c <= 'Z' },
	"xdigit": func(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' },
}

func isLetter(c byte) bool  { return 'a' <= c|0x20 && c|0x20 <= 'z' }
func isDigit(c byte) bool   { return '0' <= c && c <= '9' }
func isGraphic(c byte) bool { return 0x20 < c && c < 0x7f }
