package policy

import (
	"slices"
	"strings"
	"unsafe"
)

// Redacted stands where a secret stood.
const Redacted = "[REDACTED]"

// minSecret keeps short words, which every text holds, from being taken for secrets.
const minSecret = 6

// Redactor replaces exact known secrets: as they are, and as they look inside JSON
// text with any escapes, up to three encodings deep. JSON stays valid: an escape is
// replaced whole or not at all. It does not change and may be used concurrently; a nil
// one replaces nothing.
type Redactor struct {
	first   [256]bool       // which bytes a secret may start with
	starts  [1 << 10]uint64 // which three bytes a secret may start with
	buckets map[[minSecret]byte][]string
	short   map[string]bool // beginnings of fewer than minSecret bytes
	longest int
}

// NewRedactor makes a Redactor. Secrets of fewer than 6 bytes are left alone; of one
// with blanks or line ends around it both forms count.
func NewRedactor(secrets []string) *Redactor {
	r := &Redactor{buckets: map[[minSecret]byte][]string{}, short: map[string]bool{}}
	for _, s := range secrets {
		r.add(s)
		r.add(strings.TrimSpace(s))
	}
	if r.longest == 0 {
		return nil
	}
	return r
}

func (r *Redactor) add(s string) {
	if len(s) < minSecret {
		return
	}
	key := [minSecret]byte([]byte(s[:minSecret]))
	if slices.Contains(r.buckets[key], s) {
		return
	}
	r.buckets[key] = append(r.buckets[key], s)
	r.first[s[0]] = true
	h := startOf(s)
	r.starts[h>>6] |= 1 << (h & 63)
	for n := 1; n < minSecret; n++ {
		r.short[s[:n]] = true
	}
	r.longest = max(r.longest, len(s))
}

func startOf(s string) uint16 {
	return (uint16(s[0]) ^ uint16(s[1])<<4 ^ uint16(s[2])<<8 ^ uint16(s[2])>>4)
}

// at gives the secrets that share their first bytes with s.
func (r *Redactor) at(s string) []string {
	h := startOf(s)
	if r.starts[h>>6]&(1<<(h&63)) == 0 {
		return nil
	}
	return r.buckets[[minSecret]byte([]byte(s[:minSecret]))]
}

// String gives s without secrets; s itself if it holds none.
func (r *Redactor) String(s string) string {
	if r == nil || len(s) < minSecret {
		return s
	}
	found, _ := r.scan(s, true)
	if len(found) == 0 {
		return s
	}
	var out strings.Builder
	from := 0
	for _, f := range found {
		out.WriteString(s[from:f.from])
		out.WriteString(Redacted)
		from = f.to
	}
	out.WriteString(s[from:])
	return out.String()
}

// Bytes gives b without secrets; b itself if it holds none. It never writes to b.
func (r *Redactor) Bytes(b []byte) []byte {
	if r == nil || len(b) < minSecret {
		return b
	}
	// The text is read during this call only, in which nobody may write to b.
	s := unsafe.String(unsafe.SliceData(b), len(b))
	if found, _ := r.scan(s, true); len(found) == 0 {
		return b
	}
	return []byte(r.String(s))
}

// Stream redacts a text that comes in pieces: what could be the beginning of a secret
// is held back until it is decided. All pieces together give what String gives for the
// whole. It is for one goroutine.
type Stream struct {
	r    *Redactor
	held string
	told int // bytes at the start of held that a told replacement covers
}

// Stream starts a stream.
func (r *Redactor) Stream() *Stream { return &Stream{r: r} }

// Push takes the next piece and gives what can be told now.
func (s *Stream) Push(text string) string {
	if s.r == nil {
		return text
	}
	return s.next(text, false)
}

// Flush gives the rest; the stream can be used for another text then.
func (s *Stream) Flush() string {
	if s.r == nil {
		return ""
	}
	return s.next("", true)
}

func (s *Stream) next(text string, final bool) string {
	text = s.held + text
	found, cut := s.r.scan(text, final)
	if len(found) == 0 && s.told == 0 {
		s.held = text[cut:]
		return text[:cut]
	}
	var out strings.Builder
	// A replacement that was told may have ended inside an escape.
	var ls levels
	ls.read(text, final)
	from := ls.up(s.told)
	inside := s.told > 0
	for _, f := range found {
		if f.from >= cut && !(inside && f.from < from) {
			break
		}
		if !inside || f.from >= from {
			out.WriteString(text[from:f.from])
			out.WriteString(Redacted)
		}
		from, inside = max(from, f.to), true
	}
	if from < cut {
		out.WriteString(text[from:cut])
	}
	s.held, s.told = text[cut:], max(0, from-cut)
	return out.String()
}

// stretch is a piece of a text.
type stretch struct{ from, to int }

// scan gives the stretches that secrets take up, in order and apart from each other,
// and the place up to which nothing that follows the text can change them.
func (r *Redactor) scan(text string, final bool) (found []stretch, cut int) {
	var ls levels
	ls.read(text, final)
	cut = len(text)
	for i := range ls.made {
		l := &ls.all[i]
		cut = min(cut, l.pending)
		found = r.search(l, found)
		if !final {
			cut = min(cut, r.partial(l, len(text)))
		}
	}
	cut = ls.down(cut)
	if len(found) == 0 {
		return nil, cut
	}
	for i, f := range found {
		found[i] = stretch{ls.down(f.from), ls.up(f.to)}
	}
	slices.SortFunc(found, func(a, b stretch) int { return a.from - b.from })
	merged := found[:1]
	for _, f := range found[1:] {
		if last := &merged[len(merged)-1]; f.from < last.to {
			last.to = max(last.to, f.to)
		} else {
			merged = append(merged, f)
		}
	}
	return merged, cut
}

// search adds the stretches of all secrets in one level.
func (r *Redactor) search(l *level, found []stretch) []stretch {
	for i := 0; i+minSecret <= len(l.text); i++ {
		if !r.first[l.text[i]] {
			continue
		}
		for _, secret := range r.at(l.text[i:]) {
			if strings.HasPrefix(l.text[i:], secret) {
				found = append(found, stretch{l.start(i), l.end(i + len(secret) - 1)})
			}
		}
	}
	return found
}

// partial gives the place where the beginning of a secret starts that the text ends
// with; end, its length, if it ends with none.
func (r *Redactor) partial(l *level, end int) int {
	n := len(l.text)
	for i := max(0, n-r.longest+1); i < n; i++ {
		if !r.first[l.text[i]] {
			continue
		}
		tail := l.text[i:]
		if len(tail) < minSecret {
			if r.short[tail] {
				return l.start(i)
			}
			continue
		}
		for _, secret := range r.at(tail) {
			if len(secret) > len(tail) && strings.HasPrefix(secret, tail) {
				return l.start(i)
			}
		}
	}
	return end
}
