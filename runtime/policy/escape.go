package policy

import (
	"sort"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// level is a text with none, one or more layers of JSON escapes taken away, and where
// each of its bytes comes from in the source. Text that is no JSON loses nothing by
// it: a level is only searched, never told.
type level struct {
	text string
	// starts gives for every byte the place in the source where its character starts,
	// and behind the last one where it ends; nil if text is the source.
	starts []int
	// pending is the place in the source where an escape starts that the end of the
	// text cuts off.
	pending int
}

func (l *level) start(i int) int {
	if l.starts == nil {
		return i
	}
	return l.starts[i]
}

func (l *level) end(i int) int {
	if l.starts == nil {
		return i + 1
	}
	j := i + 1
	for l.starts[j] == l.starts[i] && j+1 < len(l.starts) {
		j++
	}
	return l.starts[j]
}

// maxLevels is the source and what three decodings make of it.
const maxLevels = 4

// levels is the source and its decodings, as long as there is something to decode.
type levels struct {
	all  [maxLevels]level
	made int
}

func (ls *levels) read(source string, final bool) {
	ls.all[0] = level{text: source, pending: len(source)}
	ls.made = 1
	for ls.made < maxLevels {
		last := &ls.all[ls.made-1]
		if strings.IndexByte(last.text, '\\') < 0 {
			return
		}
		ls.all[ls.made] = last.decode(len(source), final)
		ls.made++
	}
}

// decode takes one layer of escapes away; end is the length of the source.
func (l *level) decode(end int, final bool) level {
	out := level{pending: end}
	text := make([]byte, 0, len(l.text))
	out.starts = make([]int, 0, len(l.text)+1)
	for i := 0; i < len(l.text); {
		plain := strings.IndexByte(l.text[i:], '\\')
		if plain < 0 {
			plain = len(l.text) - i
		}
		text = append(text, l.text[i:i+plain]...)
		for range plain {
			out.starts = append(out.starts, l.start(i))
			i++
		}
		if i == len(l.text) {
			break
		}
		at, had := l.start(i), len(text)
		more, width, whole := unescape(text, l.text[i:], final)
		if !whole {
			end, out.pending = at, at
			break
		}
		text = more
		for range len(text) - had {
			out.starts = append(out.starts, at)
		}
		i += width
	}
	if l.starts != nil {
		end = min(end, l.starts[len(l.text)])
	}
	out.text, out.starts = string(text), append(out.starts, end)
	return out
}

var simple = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// unescape appends to text what the escape that s starts with stands for. Not whole
// means that more text is needed to tell. What is no escape is a plain backslash.
func unescape(text []byte, s string, final bool) (out []byte, width int, whole bool) {
	if len(s) == 1 {
		return append(text, '\\'), 1, final
	}
	if c := simple[s[1]]; c != 0 {
		return append(text, c), 2, true
	}
	if s[1] != 'u' {
		return append(text, '\\'), 1, true
	}
	first, known, whole := unit(s)
	if !known {
		return append(text, '\\'), 1, whole || final
	}
	if utf16.IsSurrogate(first) {
		second, known, whole := unit(s[6:])
		if !whole && !final {
			return text, 0, false
		}
		if pair := utf16.DecodeRune(first, second); known && pair != utf8.RuneError {
			return utf8.AppendRune(text, pair), 12, true
		}
		first = utf8.RuneError
	}
	return utf8.AppendRune(text, first), 6, true
}

// unit reads \uXXXX. Known says that s starts with one, whole that more text would not
// change that.
func unit(s string) (r rune, known, whole bool) {
	const form = `\u`
	for i := range min(6, len(s)) {
		if i < len(form) && s[i] != form[i] || i >= len(form) && strings.IndexByte("0123456789abcdefABCDEF", s[i]) < 0 {
			return 0, false, true
		}
	}
	if len(s) < 6 {
		return 0, false, false
	}
	n, err := strconv.ParseUint(s[2:6], 16, 32)
	return rune(n), err == nil, true
}

// down gives the last place at or before p that is inside no escape of any level.
func (ls *levels) down(p int) int {
	for i := 1; i < ls.made; {
		if from, _ := ls.all[i].around(p); from < p {
			p, i = from, 1
		} else {
			i++
		}
	}
	return p
}

// up gives the first place at or after p that is inside no escape of any level.
func (ls *levels) up(p int) int {
	for i := 1; i < ls.made; {
		if _, to := ls.all[i].around(p); to > p {
			p, i = to, 1
		} else {
			i++
		}
	}
	return p
}

// around gives the character of l that p is inside of; p alone if it is inside none,
// and behind the last one, where it is not known yet what belongs together.
func (l *level) around(p int) (from, to int) {
	n := sort.SearchInts(l.starts, p)
	if n == 0 || n == len(l.starts) || l.starts[n] == p {
		return p, p
	}
	return l.starts[n-1], l.starts[n]
}
