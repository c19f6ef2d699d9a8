package search

import "bytes"

// finder looks for a text by its rarest byte: the standard library looks for the first
// one, and the first letter of a word is seldom a rare letter.
type finder struct {
	text []byte
	off  int // of the rarest byte in text
}

// frequent holds the bytes of source text, the most frequent first. What is not in it
// is rare.
const frequent = " etrnaiosl\tc\ndufpm.()g_h,:/\"=b1x0yvST2kwE{}A-R'IC3P[]DLNO4MF;5*#&678B<>U+9GjzVHq|!WX%?@$KYQ^`~JZ\\\r"

// rank gives a byte's place from rare to frequent.
var rank = func() (r [256]byte) {
	for i, c := range []byte(frequent) {
		r[c] = byte(len(frequent) - i)
	}
	return r
}()

func newFinder(text string) finder {
	f := finder{text: []byte(text)}
	for i := range f.text {
		if rank[text[i]] < rank[text[f.off]] {
			f.off = i
		}
	}
	return f
}

// common says that the text is a single byte that every other line contains.
func (f finder) common() bool { return len(f.text) == 1 && rank[f.text[0]] > byte(len(frequent)/2) }

// index finds the text at or behind from; -1 if there is none.
func (f finder) index(hay []byte, from int) int {
	pos := from + f.off
	for misses := 0; pos < len(hay); {
		i := bytes.IndexByte(hay[pos:], f.text[f.off])
		if i < 0 {
			return -1
		}
		pos += i + 1
		start := pos - 1 - f.off
		if bytes.HasPrefix(hay[start:], f.text) {
			return start
		}
		// The byte is not rare in this text after all.
		if misses++; misses > 16 && misses*32 > pos-from {
			if i = bytes.Index(hay[start+1:], f.text); i < 0 {
				return -1
			}
			return start + 1 + i
		}
	}
	return -1
}
