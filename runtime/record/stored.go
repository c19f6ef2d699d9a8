package record

import (
	"bytes"
	"encoding/json"

	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/fault"
)

// escapeKey holds a payload that cannot be laid flat beside "type": one that is not an
// object, or that has a key "type" or this very key. Nothing else is in the object
// then but "type".
const escapeKey = "a3s.payload"

// Flatten gives the form of an event that a snapshot keeps: {"type": ..., fields}.
// Envelope turns it back, byte for byte if the payload had no blanks between tokens.
func Flatten(e *event.Envelope) (StoredEvent, error) {
	if e.Metadata == nil {
		return StoredEvent{}, fault.Of(fault.CodeSerialization, "record.flatten", "event %q has no metadata", e.Type)
	}
	if e.Type == "" {
		return StoredEvent{}, fault.Of(fault.CodeSerialization, "record.flatten", "event %d has no type", e.Metadata.Sequence)
	}
	name, err := marshal(e.Type)
	if err != nil {
		return StoredEvent{}, fault.Of(fault.CodeSerialization, "record.flatten", "event type: %v", err)
	}
	payload := bytes.TrimSpace(e.Payload)
	if len(payload) == 0 {
		payload = []byte("null")
	}
	flat := make([]byte, 0, len(payload)+len(name)+len(escapeKey)+16)
	flat = append(flat, `{"type":`...)
	flat = append(flat, name...)
	lies, err := liesFlat(payload)
	switch {
	case err != nil:
		return StoredEvent{}, fault.Of(fault.CodeSerialization, "record.flatten", "payload of event %q: %v", e.Type, err)
	case !lies:
		flat = append(flat, `,"`+escapeKey+`":`...)
		flat = append(flat, payload...)
		flat = append(flat, '}')
	case len(bytes.TrimSpace(payload[1:len(payload)-1])) == 0:
		flat = append(flat, '}')
	default:
		flat = append(flat, ',')
		flat = append(flat, payload[1:]...)
	}
	return StoredEvent{Sequence: e.Metadata.Sequence, TimestampMS: e.Metadata.TimestampMS, Event: flat}, nil
}

// liesFlat says whether a payload can stand beside "type" without being mistaken.
func liesFlat(payload []byte) (bool, error) {
	if !json.Valid(payload) {
		var v any
		return false, json.Unmarshal(payload, &v)
	}
	if payload[0] != '{' {
		return false, nil
	}
	if !bytes.Contains(payload, []byte(`"type"`)) && !bytes.Contains(payload, []byte(escapeKey)) && !bytes.Contains(payload, []byte(`\u`)) {
		return true, nil
	}
	fields, err := members(payload)
	if err != nil {
		return false, err
	}
	for _, f := range fields {
		if f.key == "type" || f.key == escapeKey {
			return false, nil
		}
	}
	return true, nil
}

// Envelope gives the event as it was told in run run of session session.
func (s StoredEvent) Envelope(run, session string) (event.Envelope, error) {
	fields, err := members(s.Event)
	if err != nil {
		return event.Envelope{}, fault.Of(fault.CodeSerialization, "record.envelope", "event %d of run %q: %v", s.Sequence, run, err)
	}
	env := event.Envelope{Version: event.Version, Metadata: &event.Metadata{
		RunID: run, SessionID: session, Sequence: s.Sequence, TimestampMS: s.TimestampMS,
	}}
	payload := []byte{'{'}
	for _, f := range fields {
		switch {
		case f.key == "type" && env.Type == "":
			if err := json.Unmarshal(f.value, &env.Type); err != nil {
				return event.Envelope{}, fault.Of(fault.CodeSerialization, "record.envelope", "event %d of run %q: type: %v", s.Sequence, run, err)
			}
			continue
		case f.key == escapeKey && len(fields) == 2:
			env.Payload = f.value
			continue
		case len(payload) > 1:
			payload = append(payload, ',')
		}
		payload = append(payload, f.rawKey...)
		payload = append(payload, ':')
		payload = append(payload, f.value...)
	}
	if env.Type == "" {
		return event.Envelope{}, fault.Of(fault.CodeSerialization, "record.envelope", "event %d of run %q has no type", s.Sequence, run)
	}
	if env.Payload == nil {
		env.Payload = append(payload, '}')
	}
	return env, nil
}

// member is one field of an object, in the order and the spelling of the text.
type member struct {
	key    string
	rawKey []byte // with its quotes
	value  []byte // compact
}

// members takes an object apart without touching numbers, escapes or order, which a
// trip through a map would.
func members(b []byte) ([]member, error) {
	var compact bytes.Buffer
	if err := json.Compact(&compact, b); err != nil {
		return nil, err
	}
	b = compact.Bytes()
	if len(b) == 0 || b[0] != '{' {
		return nil, fault.Of(fault.CodeSerialization, "record.members", "not an object")
	}
	var list []member
	for i := 1; i < len(b) && b[i] != '}'; {
		if b[i] == ',' {
			i++
		}
		end := valueEnd(b, i)
		m := member{rawKey: b[i:end:end]}
		if err := json.Unmarshal(m.rawKey, &m.key); err != nil {
			return nil, err
		}
		i = end + 1 // the colon
		end = valueEnd(b, i)
		m.value = b[i:end:end]
		list = append(list, m)
		i = end
	}
	return list, nil
}

// valueEnd gives the index behind the value that starts at b[i]; b is compact, valid JSON.
func valueEnd(b []byte, i int) int {
	depth := 0
	for ; i < len(b); i++ {
		switch b[i] {
		case '"':
			for i++; b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			depth++
			continue
		case '}', ']':
			if depth == 0 {
				return i
			}
			depth--
		case ',', ':':
			if depth == 0 {
				return i
			}
			continue
		default:
			continue
		}
		if depth == 0 {
			return i + 1
		}
	}
	return i
}
