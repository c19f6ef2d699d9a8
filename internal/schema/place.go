package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Place names what stands at a byte of a JSON text, such as "history[0].content"; empty for
// the whole, and for a text that is no JSON up to there. It is for messages: people know
// their fields, not the bytes of the text they became.
func Place(text []byte, at int) string {
	d := json.NewDecoder(bytes.NewReader(bytes.ToValidUTF8(text, []byte("?"))))
	d.UseNumber()
	var in []container
	for {
		t, err := d.Token()
		if err != nil {
			return ""
		}
		if d.InputOffset() > int64(at) {
			return path(in)
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			in = append(in, container{list: t == json.Delim('['), next: true})
			continue
		case json.Delim('}'), json.Delim(']'):
			in = in[:len(in)-1]
		}
		if len(in) == 0 {
			return ""
		}
		in[len(in)-1].read(t)
	}
}

// container is an object or a list around the place.
type container struct {
	list bool
	n    int    // items of a list that were read
	key  string // of an object
	next bool   // a key comes next
}

// read takes a key, or the end of a value.
func (c *container) read(t json.Token) {
	if key, ok := t.(string); ok && !c.list && c.next {
		c.key, c.next = key, false
		return
	}
	c.n++
	c.next = true
}

// path is the way to the next token; a key that is at fault itself is not repeated.
func path(in []container) string {
	var b strings.Builder
	for i, c := range in {
		switch {
		case c.list:
			fmt.Fprintf(&b, "[%d]", c.n)
		case c.next && i == len(in)-1:
		case b.Len() == 0:
			b.WriteString(c.key)
		default:
			b.WriteString("." + c.key)
		}
	}
	return b.String()
}
