package record

import (
	"bytes"
	"encoding/json"

	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/fault"
)

// Line is one decoded record of a journal. An event is kept as the envelope that was
// told, byte for byte; anything else carries Fact first.
type Line struct {
	Fact    string   `json:"fact,omitempty"` // "message" or "mark"; empty for an event
	Message *Message `json:"message,omitempty"`
	Mark    *Mark    `json:"mark,omitempty"`
	// Event is set instead of the others when Fact is empty.
	Event *event.Envelope `json:"-"`
}

// Encode gives the journal bytes of a fact that is not an event.
func Encode(f Fact) ([]byte, error) {
	switch {
	case f.Message != nil:
		return json.Marshal(Line{Fact: "message", Message: f.Message})
	case f.Mark != nil:
		return json.Marshal(Line{Fact: "mark", Mark: f.Mark})
	}
	return nil, fault.New(fault.Internal, "record.encode", "fact without content")
}

// Decode reads one journal record. Facts of a newer kind come back with their name and
// nothing else, so that an older reader skips what it does not know.
func Decode(b []byte) (Line, error) {
	var l Line
	if l.Event = fastEvent(b); l.Event != nil {
		return l, nil
	}
	if bytes.HasPrefix(b, []byte(`{"version":`)) {
		l.Event = new(event.Envelope)
		if err := json.Unmarshal(b, l.Event); err != nil {
			return l, fault.Of(fault.CodeSerialization, "record.decode", "event: %v", err)
		}
		if l.Event.Version != event.Version || l.Event.Metadata == nil {
			return l, fault.Of(fault.CodeSerialization, "record.decode", "event of version %d or without metadata", l.Event.Version)
		}
		return l, nil
	}
	if err := json.Unmarshal(b, &l); err != nil {
		return l, fault.Of(fault.CodeSerialization, "record.decode", "fact: %v", err)
	}
	if l.Fact == "" {
		return l, fault.Of(fault.CodeSerialization, "record.decode", "record is neither an event nor a fact")
	}
	return l, nil
}
