package acl

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

type tokenKind int

const (
	tEOF tokenKind = iota
	tNewline
	tIdent
	tString
	tNumber
	tPunct // one of { } [ ] ( ) = : , and +=
)

type token struct {
	kind   tokenKind
	text   string // identifier, decoded string, or punctuation
	number float64
	span   Span
}

// String names the token for a message.
func (t token) String() string {
	switch t.kind {
	case tEOF:
		return "end of document"
	case tNewline:
		return "end of line"
	case tIdent:
		return fmt.Sprintf("name %q", clip(t.text))
	case tString:
		return fmt.Sprintf("string %q", clip(t.text))
	case tNumber:
		return "number " + strconv.FormatFloat(t.number, 'g', -1, 64)
	}
	return fmt.Sprintf("%q", t.text)
}

func clip(s string) string {
	const most = 40
	if len(s) <= most {
		return s
	}
	n := most
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "..."
}

// lexer is a value, so that the parser can look ahead by copying it.
type lexer struct {
	src          []byte
	off          int
	line, column int
	limits       Limits
	warnings     []Warning
	quiet        bool // while looking ahead
}

func (l *lexer) pos() Pos { return Pos{l.line, l.column, l.off} }

func (l *lexer) warn(at Pos, format string, args ...any) {
	if !l.quiet && len(l.warnings) < maxWarnings {
		l.warnings = append(l.warnings, Warning{fmt.Sprintf(format, args...), at})
	}
}

// check refuses what no token may hold, once, before the first token.
func (l *lexer) check() *fault.Error {
	if len(l.src) > l.limits.MaxDocumentBytes {
		return failAt(l.pos(), DocumentBytesLimit, "the document has %d bytes; the limit is %d", len(l.src), l.limits.MaxDocumentBytes)
	}
	if bytes.HasPrefix(l.src, []byte("\ufeff")) {
		l.off = len("\ufeff")
	}
	first := l.off
	for l.off < len(l.src) {
		r, n := utf8.DecodeRune(l.src[l.off:])
		if r == utf8.RuneError && n == 1 {
			return failAt(l.pos(), UnexpectedToken, "the document is not valid UTF-8")
		}
		if r == 0 {
			return failAt(l.pos(), UnexpectedToken, "the document holds a NUL byte")
		}
		l.step(r, n)
	}
	l.off, l.line, l.column = first, 1, 1
	return nil
}

// step moves over one rune.
func (l *lexer) step(r rune, n int) {
	l.off += n
	if r == '\n' {
		l.line, l.column = l.line+1, 1
		return
	}
	l.column++
}

func (l *lexer) peek() (rune, int) {
	if l.off >= len(l.src) {
		return -1, 0
	}
	return utf8.DecodeRune(l.src[l.off:])
}

func (l *lexer) next() (token, *fault.Error) {
	for {
		start := l.pos()
		r, n := l.peek()
		switch {
		case n == 0:
			return token{kind: tEOF, span: Span{start, start}}, nil
		case r == '\n' || r == '\r':
			l.step(r, n)
			return token{kind: tNewline, span: Span{start, l.pos()}}, nil
		case r == ' ' || r == '\t':
			l.step(r, n)
		case r == '#' || r == '/':
			l.comment(r)
		case r == '"' || r == '\'':
			return l.str(r)
		case r == '_' || unicode.IsLetter(r):
			return l.ident()
		case r >= '0' && r <= '9' || r == '-' && l.digitAt(l.off+1):
			return l.num()
		case strings.ContainsRune("{}[]()=:,", r):
			l.step(r, n)
			return token{kind: tPunct, text: string(r), span: Span{start, l.pos()}}, nil
		case r == '+' && l.off+1 < len(l.src) && l.src[l.off+1] == '=':
			l.step(r, 1)
			l.step('=', 1)
			return token{kind: tPunct, text: "+=", span: Span{start, l.pos()}}, nil
		default:
			l.step(r, n)
			l.warn(start, "character %q is ignored; put text in quotes", r)
		}
	}
}

func (l *lexer) digitAt(i int) bool {
	return i < len(l.src) && l.src[i] >= '0' && l.src[i] <= '9'
}

func (l *lexer) comment(first rune) {
	if first == '/' && !bytes.HasPrefix(l.src[l.off:], []byte("//")) {
		l.warn(l.pos(), "a single / starts a comment; put a path in quotes")
	}
	for {
		r, n := l.peek()
		if n == 0 || r == '\n' || r == '\r' {
			return
		}
		l.step(r, n)
	}
}

func (l *lexer) bounded(start Pos) *fault.Error {
	if l.off-start.Offset > l.limits.MaxTokenBytes {
		return failAt(start, TokenBytesLimit, "a token has more than %d bytes", l.limits.MaxTokenBytes)
	}
	return nil
}

func (l *lexer) ident() (token, *fault.Error) {
	start := l.pos()
	for {
		r, n := l.peek()
		if n == 0 || r != '_' && !unicode.IsLetter(r) && !unicode.IsNumber(r) {
			break
		}
		l.step(r, n)
	}
	if err := l.bounded(start); err != nil {
		return token{}, err
	}
	return token{kind: tIdent, text: string(l.src[start.Offset:l.off]), span: Span{start, l.pos()}}, nil
}

func (l *lexer) num() (token, *fault.Error) {
	start := l.pos()
	digits := func() {
		for l.digitAt(l.off) {
			l.step('0', 1)
		}
	}
	is := func(set string) bool { return l.off < len(l.src) && strings.IndexByte(set, l.src[l.off]) >= 0 }
	if is("-") {
		l.step('-', 1)
	}
	digits()
	if is(".") {
		l.step('.', 1)
		digits()
	}
	if is("eE") {
		l.step('e', 1)
		if is("+-") {
			l.step('+', 1)
		}
		digits()
	}
	if err := l.bounded(start); err != nil {
		return token{}, err
	}
	text := string(l.src[start.Offset:l.off])
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return token{}, failAt(start, UnexpectedToken, "%q is not a number", clip(text))
	}
	return token{kind: tNumber, number: f, span: Span{start, l.pos()}}, nil
}

// escapes of a double-quoted string; a single-quoted one knows \' alone.
var escapes = map[rune]rune{'n': '\n', 'r': '\r', 't': '\t', '\\': '\\', '"': '"'}

func (l *lexer) str(quote rune) (token, *fault.Error) {
	start := l.pos()
	l.step(quote, 1)
	var text strings.Builder
	for {
		r, n := l.peek()
		if n == 0 || r == '\n' || r == '\r' {
			l.warn(start, "the string has no closing quote on its line")
			break
		}
		l.step(r, n)
		if r == quote {
			break
		}
		if r != '\\' {
			text.WriteRune(r)
			continue
		}
		e, n := l.peek()
		plain, known := escapes[e]
		if quote == '\'' {
			plain, known = '\'', e == '\''
		}
		switch {
		case n == 0 || e == '\n' || e == '\r':
			text.WriteRune('\\')
		case known:
			l.step(e, n)
			text.WriteRune(plain)
		default:
			l.step(e, n)
			text.WriteRune('\\')
			text.WriteRune(e)
		}
	}
	if err := l.bounded(start); err != nil {
		return token{}, err
	}
	return token{kind: tString, text: text.String(), span: Span{start, l.pos()}}, nil
}
