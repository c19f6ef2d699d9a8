package openai

import (
	"encoding/json"
	"strings"

	api "github.com/sashabaranov/go-openai"
)

// merge turns deltas into new text for services that repeat, in every delta, all that
// they said before. It must not harm the many that do not, whose deltas may begin alike
// by chance ("1", "10"): the first delta is passed on in either case, and as long as
// each delta begins with the whole of the one before, the later ones are held back until
// the pattern is certain or broken.
type merge struct {
	first, last string
	held        []string
	mode        mode
}

type mode uint8

const (
	unknown mode = iota
	increments
	repeats
)

// add gives the new text of a delta, possibly "" while undecided.
func (m *merge) add(delta string) string {
	switch {
	case delta == "" || m.mode == increments:
		return delta
	case m.mode == repeats:
		fresh, ok := strings.CutPrefix(delta, m.last)
		if !ok && strings.HasPrefix(m.last, delta) {
			return "" // an older state, told again
		}
		if !ok {
			m.last += delta
			return delta
		}
		m.last = delta
		return fresh
	case m.last == "":
		m.first, m.last = delta, delta
		return delta
	}
	if len(delta) <= len(m.last) || !strings.HasPrefix(delta, m.last) {
		return m.flush() + delta
	}
	telling := len(m.last) >= 12 && distinct(m.last) >= 4
	m.held = append(m.held, delta)
	m.last = delta
	if telling || len(m.held) >= 2 && len(m.held[0]) >= 4 || len(m.held) >= 4 {
		m.mode, m.held = repeats, nil
		return strings.TrimPrefix(m.last, m.first)
	}
	return ""
}

// flush gives what was held back once nothing more can decide: it was new text.
func (m *merge) flush() string {
	if m.mode != unknown {
		return ""
	}
	m.mode = increments
	text := strings.Join(m.held, "")
	m.held = nil
	return text
}

// distinct counts the different bytes of s; a ruler of dashes repeats by nature.
func distinct(s string) int {
	seen := map[byte]bool{}
	for i := range len(s) {
		seen[s[i]] = true
	}
	return len(seen)
}

// slot is one tool call being received.
type slot struct {
	index    *int
	id, name string
	args     strings.Builder
	text     merge
	started  bool // its ToolStart was yielded
}

// complete says that the arguments are a whole JSON value, so that what follows under
// the same name belongs to another call.
func (s *slot) complete() bool {
	return s.args.Len() > 0 && json.Valid([]byte(s.args.String()))
}

// begins says that args, told under the same name, are those of another call.
func (s *slot) begins(args string) bool {
	return strings.TrimSpace(args) != "" && strings.TrimSpace(args) != strings.TrimSpace(s.args.String()) && s.complete()
}

// input gives the new text of an argument delta.
func (s *slot) input(delta string) string {
	if delta == "" {
		return ""
	}
	// Some services close with the whole arguments once more.
	if strings.TrimSpace(delta) == strings.TrimSpace(s.args.String()) && s.complete() {
		return ""
	}
	fresh := s.text.add(delta)
	s.args.WriteString(fresh)
	return fresh
}

// slots finds the call that a delta belongs to. A missing index is not index 0 (case
// OAI-01): without one a call is known by its id, else by its position.
type slots struct{ all []*slot }

// place gives the call of delta number pos of one chunk, and its slot number.
func (s *slots) place(d api.ToolCall, pos, of int) (*slot, int) {
	if i := s.find(d, pos, of); i >= 0 {
		return s.all[i], i
	}
	n := &slot{index: d.Index, id: d.ID, name: d.Function.Name}
	s.all = append(s.all, n)
	return n, len(s.all) - 1
}

func (s *slots) find(d api.ToolCall, pos, of int) int {
	if d.Index != nil {
		for i := len(s.all) - 1; i >= 0; i-- {
			have := s.all[i]
			if have.index == nil || *have.index != *d.Index {
				continue
			}
			// Some services number every call 0; another id and a name begin another call.
			if d.ID != "" && have.id != "" && d.ID != have.id && d.Function.Name != "" {
				return s.byID(d.ID)
			}
			if d.ID == "" && have.id == "" && d.Function.Name != "" && have.begins(d.Function.Arguments) {
				return -1
			}
			return i
		}
		return -1
	}
	if d.ID != "" {
		i := s.byID(d.ID)
		// An id that is only the tool's name says nothing about a second call of it.
		if i >= 0 && d.ID == d.Function.Name && (of > 1 && pos > 0 || s.all[i].begins(d.Function.Arguments)) {
			return -1
		}
		return i
	}
	last := len(s.all) - 1
	switch {
	case last < 0:
		return -1
	case of > 1 && d.Function.Name == "":
		return min(max(len(s.all)-of, 0)+pos, last)
	case d.Function.Name != "" && (of > 1 || d.Function.Name != s.all[last].name || s.all[last].complete()):
		return -1
	}
	return last
}

func (s *slots) byID(id string) int {
	for i := len(s.all) - 1; i >= 0; i-- {
		if s.all[i].id == id {
			return i
		}
	}
	return -1
}
