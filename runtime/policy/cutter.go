package policy

import "strings"

// piece is one simple command of a shell text, as far as the text shows it.
type piece struct {
	raw   string
	words []string // without quotes, escapes and redirects
}

// cutter cuts a shell text at its separators. It knows quotes, escapes, substitutions
// and redirects, and nothing of what words mean: expansions, aliases and globs stay as
// they are written.
type cutter struct {
	text   string
	pieces []piece
	// control says that the text is more than one simple command without redirects.
	control bool
	// unclosed says that a quote or a substitution has no end.
	unclosed bool
	// overflow says that there are too many pieces to keep.
	overflow bool

	at     int
	frames []*frame
	lines  []string // of here-documents
	here   []string // delimiters of here-documents that start at the next line
}

// frame is the piece being read; substitutions stack.
type frame struct {
	closing byte // ')' or '`', 0 at the outside
	double  bool // inside double quotes
	start   int
	words   []string
	word    strings.Builder
	ref     string // the word so far, as long as it is a piece of the text
	inWord  bool
	skip    bool // the word being read is the target of a redirect
	here    bool // ... and the delimiter of a here-document
}

func (f *frame) put(c byte) {
	f.word.WriteString(f.ref)
	f.ref = ""
	f.word.WriteByte(c)
	f.inWord = true
}

// take gives the word read so far and forgets it.
func (f *frame) take() string {
	w := f.ref
	if f.word.Len() > 0 {
		f.word.WriteString(f.ref)
		w = f.word.String()
		f.word.Reset()
	}
	f.ref = ""
	return w
}

func (c *cutter) top() *frame { return c.frames[len(c.frames)-1] }

func (c *cutter) endWord() {
	f := c.top()
	if !f.inWord {
		return
	}
	switch w := f.take(); {
	case f.here:
		c.here = append(c.here, w)
	case !f.skip:
		f.words = append(f.words, w)
	}
	f.skip, f.here, f.inWord = false, false, false
}

// endPiece closes the piece of the top frame at the current place and starts the next
// one behind width bytes.
func (c *cutter) endPiece(width int) {
	f := c.top()
	c.endWord()
	f.skip, f.here = false, false
	switch {
	case len(c.pieces) > maxPieces:
		c.overflow = true
	case len(f.words) > 0:
		c.pieces = append(c.pieces, piece{c.text[f.start:c.at], f.words})
	}
	f.words = nil
	c.at += width
	f.start = c.at
}

func (c *cutter) push(closing byte, width int) {
	c.control = true
	c.top().inWord = true
	c.at += width
	c.frames = append(c.frames, &frame{closing: closing, start: c.at})
}

func (c *cutter) pop(width int) {
	c.endPiece(width)
	c.frames = c.frames[:len(c.frames)-1]
}

func (c *cutter) has(s string) bool { return strings.HasPrefix(c.text[c.at:], s) }

func (c *cutter) run() {
	c.frames = []*frame{{}}
	for c.at < len(c.text) {
		if len(c.frames) > maxPieces {
			c.overflow = true
			break
		}
		if c.top().double {
			c.inDouble()
		} else {
			c.outside()
		}
	}
	c.unclosed = c.unclosed || len(c.frames) > 1 || c.top().double
	c.control = c.control || c.unclosed
	c.at = len(c.text)
	for {
		c.endPiece(0)
		if len(c.frames) == 1 {
			return
		}
		c.frames = c.frames[:len(c.frames)-1]
	}
}

// substitution enters or leaves $(...) and `...`, which live inside double quotes too.
func (c *cutter) substitution() bool {
	switch {
	case c.has("$("):
		c.push(')', 2)
	case c.has("`"):
		c.control = true
		if f := c.top(); f.closing == '`' {
			c.pop(1)
		} else {
			c.push('`', 1)
		}
	default:
		return false
	}
	return true
}

// special marks the bytes that may mean something.
var special = func() (t [256]bool) {
	for _, b := range []byte("\\'\"$` \t#<>&|;()\n\r") {
		t[b] = true
	}
	return t
}()

// plain takes the bytes up to the next special one.
func (c *cutter) plain(f *frame) {
	start := c.at
	for c.at < len(c.text) && !special[c.text[c.at]] {
		c.at++
	}
	if f.ref != "" || f.word.Len() > 0 {
		f.word.WriteString(f.ref)
		f.word.WriteString(c.text[start:c.at])
		f.ref = ""
	} else {
		f.ref = c.text[start:c.at]
	}
	f.inWord = true
}

func (c *cutter) inDouble() {
	f, b := c.top(), c.text[c.at]
	switch {
	case !special[b]:
		c.plain(f)
	case b == '"':
		f.double = false
		c.at++
	case b == '\\' && c.at+1 < len(c.text):
		if n := c.text[c.at+1]; strings.IndexByte("\"\\$`\n", n) >= 0 {
			if n == '\n' {
				c.control = true
			} else {
				f.put(n)
			}
			c.at += 2
			return
		}
		f.put(b)
		c.at++
	case c.substitution():
	default:
		f.put(b)
		c.at++
	}
}

func (c *cutter) outside() {
	f, b := c.top(), c.text[c.at]
	switch {
	case !special[b]:
		c.plain(f)
	case b == '\\':
		if c.at+1 < len(c.text) {
			if n := c.text[c.at+1]; n == '\n' {
				c.control = true
			} else {
				f.put(n)
			}
		}
		c.at = min(c.at+2, len(c.text))
	case b == '\'' || c.has("$'"):
		c.single(b == '$')
	case b == '"' || c.has(`$"`):
		f.inWord, f.double = true, true
		c.at += strings.IndexByte(c.text[c.at:], '"') + 1
	case b == ' ' || b == '\t':
		c.endWord()
		c.at++
	case b == '#' && !f.inWord:
		c.at += len(line(c.text[c.at:]))
	case c.has("<(") || c.has(">("):
		f.skip = false
		c.push(')', 2)
	case b == '<' || b == '>' || c.has("&>"):
		c.redirect()
	case c.substitution():
	case b == ')' && f.closing == ')':
		c.pop(1)
	case b == '(':
		c.endPiece(0)
		c.push(')', 1)
		c.frames[len(c.frames)-2].inWord = false
	case strings.IndexByte(";&|\n\r)", b) >= 0:
		c.control = true
		c.endPiece(1)
		if b == '\n' {
			c.documents()
		}
	default:
		f.put(b)
		c.at++
	}
}

// single reads a single-quoted text; in $'...' a backslash escapes.
func (c *cutter) single(escapes bool) {
	f := c.top()
	f.inWord = true
	c.at++
	if escapes {
		c.at++
	}
	for ; c.at < len(c.text); c.at++ {
		b := c.text[c.at]
		if b == '\'' {
			c.at++
			return
		}
		if escapes && b == '\\' && c.at+1 < len(c.text) {
			c.control = true // what it spells is not looked into
			c.at++
			b = c.text[c.at]
		}
		f.put(b)
	}
	c.unclosed = true
}

var operators = []string{"<<<", "<<-", "<<", "<&", "<>", "<", "&>>", "&>", ">>", ">&", ">|", ">"}

// redirect steps over the operator; its target is the next word.
func (c *cutter) redirect() {
	c.control = true
	f := c.top()
	if f.word.Len() == 0 && strings.Trim(f.ref, "0123456789") == "" {
		f.ref, f.inWord = "", false // the 2 of 2>file
	}
	c.endWord()
	for _, op := range operators {
		if c.has(op) {
			c.at += len(op)
			f.skip, f.here = true, op == "<<" || op == "<<-"
			return
		}
	}
}

// documents reads the here-documents that start at the current line. Every line of
// one is taken for a command of its own: a shell may be reading it.
func (c *cutter) documents() {
	here := c.here
	c.here = nil
	for _, delimiter := range here {
		for c.at < len(c.text) {
			l := line(c.text[c.at:])
			c.at = min(c.at+len(l)+1, len(c.text))
			if strings.TrimLeft(l, "\t") == delimiter {
				break
			}
			c.lines = append(c.lines, l)
		}
	}
	c.top().start = c.at
}

// line gives the first line of s without its end.
func line(s string) string {
	l, _, _ := strings.Cut(s, "\n")
	return l
}
