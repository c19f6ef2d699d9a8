package sse

import (
	"bytes"
	"io"
)

// Event is one server-sent event that carries data.
type Event struct {
	// Name is the event's type, empty if the service gave none.
	Name string
	// ID is the last event id of the stream.
	ID string
	// Data is the data lines of the event, joined by line feeds. It stays valid until
	// the next call.
	Data []byte
	// Whole is false if the stream ended inside the event: its data may be cut.
	Whole bool
}

// Reader reads server-sent events. It is for one goroutine.
type Reader struct {
	in    lineReader
	max   int
	data  []byte
	id    string
	begun bool
}

// NewReader reads from r; max bounds the data of one event and every line, 0 is
// DefaultMax. It does not close r.
func NewReader(r io.Reader, max int) *Reader {
	return &Reader{in: lineReader{r: r, max: ceiling(max), cr: true}, max: ceiling(max)}
}

// Next gives the next event that has data; comments and blocks without data (a lone
// "retry:") are skipped. At the end the error is io.EOF; a *TooLongError or the
// reader's own error ends the stream too, and what was read of an event is dropped.
func (r *Reader) Next() (Event, error) {
	if cap(r.data) > keepBuffer {
		r.data = nil
	}
	r.data = r.data[:0]
	name, lines := "", 0
	for {
		line, terminated, err := r.in.next()
		if err == io.EOF && lines > 0 {
			return Event{Name: name, ID: r.id, Data: r.data}, nil
		}
		if err != nil {
			return Event{}, err
		}
		line = r.trimBOM(line)
		if len(line) == 0 {
			if lines > 0 {
				return Event{Name: name, ID: r.id, Data: r.data, Whole: true}, nil
			}
			name = ""
			continue
		}
		field, value := split(line)
		switch field {
		case "data":
			if lines > 0 {
				r.data = append(r.data, '\n')
			}
			r.data = append(r.data, value...)
			lines++
			if len(r.data) > r.max {
				return Event{}, &TooLongError{r.max}
			}
		case "event":
			name = string(value)
		case "id":
			if bytes.IndexByte(value, 0) < 0 {
				r.id = string(value)
			}
		}
		if !terminated && lines > 0 {
			return Event{Name: name, ID: r.id, Data: r.data}, nil
		}
	}
}

// trimBOM drops the byte order mark that may open a stream.
func (r *Reader) trimBOM(line []byte) []byte {
	if r.begun {
		return line
	}
	r.begun = true
	return bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
}

// split takes a line apart; a comment has the empty field name.
func split(line []byte) (field string, value []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "data":
		return "data", value
	case "event":
		return "event", value
	case "id":
		return "id", value
	}
	return "", nil
}
