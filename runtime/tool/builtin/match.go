package builtin

import (
	"sort"
	"strings"
	"unicode/utf8"
)

// folded is a text with differences taken out that an edit should not trip over, and
// the way back to the places of the original.
type folded struct {
	text  string
	folds []fold
}

// fold says that the character at at (in the folded text) stands for removed bytes
// more than itself, all up to it counted.
type fold struct{ at, removed int }

// lines takes CRLF for LF.
func lines(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

// foldText takes CRLF for LF; with typographic also quotes, dashes and spaces for the
// plain ones.
func foldText(s string, typographic bool) folded {
	if !typographic && !hasCRLF(s) {
		return folded{text: s}
	}
	var f folded
	var b strings.Builder
	b.Grow(len(s))
	removed := 0
	for i := 0; i < len(s); {
		if s[i] == '\r' && i+1 < len(s) && s[i+1] == '\n' {
			removed++
			f.folds = append(f.folds, fold{b.Len(), removed})
			b.WriteByte('\n')
			i += 2
			continue
		}
		if s[i] < utf8.RuneSelf || !typographic {
			b.WriteByte(s[i])
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if c := plain(r); c != 0 {
			removed += n - 1
			f.folds = append(f.folds, fold{b.Len(), removed})
			b.WriteByte(c)
		} else {
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	f.text = b.String()
	return f
}

// plain gives the character that a typographic one stands for, 0 for others.
func plain(r rune) byte {
	switch {
	case r >= 0x2018 && r <= 0x201B, r == 0x2032:
		return '\''
	case r >= 0x201C && r <= 0x201F, r == 0x2033:
		return '"'
	case r >= 0x2010 && r <= 0x2015, r == 0x2212:
		return '-'
	case r == 0xA0, r >= 0x2000 && r <= 0x200A, r == 0x202F, r == 0x205F, r == 0x3000:
		return ' '
	}
	return 0
}

// origin gives the place in the original for a place in the folded text.
func (f folded) origin(p int) int {
	i := sort.Search(len(f.folds), func(i int) bool { return f.folds[i].at >= p })
	if i == 0 {
		return p
	}
	return p + f.folds[i-1].removed
}

// span is a place of the original text.
type span struct{ from, to int }

// match is where an old string was found.
type match struct {
	old         folded
	spans       []span // do not overlap
	overlap     bool   // there is another reading, which overlaps one of them
	typographic bool
}

// find looks for old as it is, but for line endings; if it is nowhere, with typographic
// characters taken for plain ones.
func find(text, old string) match {
	start := 0
	if strings.HasPrefix(text, bom) {
		start = len(bom) // never part of a match
		old = strings.TrimPrefix(old, bom)
	}
	if old == "" {
		return match{}
	}
	if m := search(text[start:], old, false, start); len(m.spans) > 0 {
		return m
	}
	return search(text[start:], old, true, start)
}

func search(text, old string, typographic bool, start int) match {
	in, m := foldText(text, typographic), match{old: foldText(old, typographic), typographic: typographic}
	want := m.old.text
	for at := 0; ; {
		i := strings.Index(in.text[at:], want)
		if i < 0 {
			return m
		}
		from := at + i
		at = from + len(want)
		m.spans = append(m.spans, span{start + in.origin(from), start + in.origin(at)})
		if next := from + 1; !m.overlap && next < len(in.text) {
			again := strings.Index(in.text[next:min(len(in.text), at+len(want)-1)], want)
			m.overlap = again >= 0 && next+again < at
		}
	}
}

// replace puts with in the place of every span. What old and with begin and end with
// alike keeps the bytes of the file; the rest gets the line endings around it.
func (m match) replace(text, with string) (string, error) {
	with = strings.TrimPrefix(with, bom)
	now := foldText(with, m.typographic)
	head := commonPrefix(m.old.text, now.text)
	tail := commonSuffix(m.old.text[head:], now.text[head:])
	raw := with[now.origin(head):now.origin(len(now.text)-tail)]
	middle := lines(raw)
	grow := len(middle) + strings.Count(middle, "\n") - (len(m.old.text) - head - tail)
	if len(text)+len(m.spans)*grow > maxFile {
		return "", invalid("the file would grow over %d bytes; nothing written", maxFile)
	}
	var b strings.Builder
	pos := 0
	for _, s := range m.spans {
		b.WriteString(text[pos:s.from])
		found := text[s.from:s.to]
		in := foldText(found, m.typographic)
		b.WriteString(found[:in.origin(head)])
		switch breaks(text, s) {
		case "":
			b.WriteString(raw)
		case "\n":
			b.WriteString(middle)
		default:
			b.WriteString(strings.ReplaceAll(middle, "\n", "\r\n"))
		}
		b.WriteString(found[in.origin(len(in.text)-tail):])
		pos = s.to
	}
	b.WriteString(text[pos:])
	return b.String(), nil
}

// breaks gives the line ending at a place: the first one in it or after it, else the
// last one before, empty if the text has none.
func breaks(text string, s span) string {
	at := strings.IndexByte(text[s.from:], '\n')
	if at >= 0 {
		at += s.from
	} else if at = strings.LastIndexByte(text[:s.from], '\n'); at < 0 {
		return ""
	}
	if at > 0 && text[at-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// commonPrefix and commonSuffix count the bytes that a and b share, in whole characters.
func commonPrefix(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	for n > 0 && (n < len(a) && !utf8.RuneStart(a[n]) || n < len(b) && !utf8.RuneStart(b[n])) {
		n--
	}
	return n
}

func commonSuffix(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	for n > 0 && !utf8.RuneStart(a[len(a)-n]) {
		n--
	}
	return n
}
