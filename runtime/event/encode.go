package event

import (
	"encoding/json"
	"reflect"
	"strconv"
	"unicode/utf8"
)

// Append encodes p in its envelope behind dst. Deltas, nearly all of a run's events,
// are written by hand without allocating; the rest goes through encoding/json.
func Append(dst []byte, p Payload, m Metadata) ([]byte, error) {
	dst = append(dst, `{"version":1,"type":"`...)
	dst = append(dst, p.Type()...)
	dst = append(dst, `","payload":`...)
	dst, err := appendPayload(dst, p)
	if err != nil {
		return nil, err
	}
	dst = append(dst, `,"metadata":{"run_id":`...)
	dst = AppendString(dst, m.RunID)
	dst = append(dst, `,"session_id":`...)
	dst = AppendString(dst, m.SessionID)
	dst = append(dst, `,"sequence":`...)
	dst = strconv.AppendInt(dst, m.Sequence, 10)
	dst = append(dst, `,"timestamp_ms":`...)
	dst = strconv.AppendInt(dst, m.TimestampMS, 10)
	return append(dst, "}}"...), nil
}

// AppendFrame encodes an unnumbered frame behind dst.
func AppendFrame(dst []byte, p Payload) ([]byte, error) {
	dst = append(dst, `{"version":1,"type":"`...)
	dst = append(dst, p.Type()...)
	dst = append(dst, `","payload":`...)
	dst, err := appendPayload(dst, p)
	if err != nil {
		return nil, err
	}
	return append(dst, '}'), nil
}

func appendPayload(dst []byte, p Payload) ([]byte, error) {
	switch e := p.(type) {
	case TextDelta:
		return appendFields(dst, "text", e.Text), nil
	case ReasoningDelta:
		return appendFields(dst, "text", e.Text), nil
	case ToolInputDelta:
		if e.ID == "" {
			return appendFields(dst, "delta", e.Delta), nil
		}
		return appendFields(dst, "id", e.ID, "delta", e.Delta), nil
	case ToolOutputDelta:
		return appendFields(dst, "id", e.ID, "name", e.Name, "delta", e.Delta), nil
	}
	b, err := json.Marshal(p)
	return append(dst, b...), err
}

// appendFields writes an object of string fields given as key, value, key, value.
func appendFields(dst []byte, kv ...string) []byte {
	for i := 0; i < len(kv); i += 2 {
		dst = append(dst, ",{"[btoi(i == 0)])
		dst = append(dst, '"')
		dst = append(dst, kv[i]...)
		dst = append(dst, '"', ':')
		dst = AppendString(dst, kv[i+1])
	}
	return append(dst, '}')
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

const hex = "0123456789abcdef"

// AppendString writes s as a JSON string. Bytes that are not UTF-8 become U+FFFD, so
// that what leaves the library is always valid JSON.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := plain(s); i < len(s); {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c < utf8.RuneSelf {
			dst = append(dst, s[start:i]...)
			switch c {
			case '"', '\\':
				dst = append(dst, '\\', c)
			case '\n':
				dst = append(dst, '\\', 'n')
			case '\r':
				dst = append(dst, '\\', 'r')
			case '\t':
				dst = append(dst, '\\', 't')
			default:
				dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
			}
			start = i + 1
			i = start + plain(s[start:])
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			dst = append(dst, s[start:i]...)
			dst = append(dst, `\ufffd`...)
			i++
			start = i
			continue
		}
		i += size
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

// plain counts bytes at the start of s, by eights, that stand for themselves in JSON.
func plain(s string) int {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(s); i += 8 {
		w := uint64(s[i]) | uint64(s[i+1])<<8 | uint64(s[i+2])<<16 | uint64(s[i+3])<<24 |
			uint64(s[i+4])<<32 | uint64(s[i+5])<<40 | uint64(s[i+6])<<48 | uint64(s[i+7])<<56
		quote, slash := w^ones*'"', w^ones*'\\'
		if (w|(w-ones*0x20)&^w|(quote-ones)&^quote|(slash-ones)&^slash)&tops != 0 {
			break
		}
	}
	return i
}

// Decode gives the payload of a stored event as its Go type, or an Unknown with the
// bytes if the type is not in the catalogue.
func Decode(name string, raw json.RawMessage) (Payload, error) {
	make, ok := decoders[name]
	if !ok {
		return Unknown{Name: name, Raw: raw}, nil
	}
	return make(raw)
}

// Unknown is an event of a newer version.
type Unknown struct {
	Name string
	Raw  json.RawMessage
}

// Type is the wire name.
func (u Unknown) Type() string { return u.Name }

// MarshalJSON gives the payload back as it came.
func (u Unknown) MarshalJSON() ([]byte, error) { return u.Raw, nil }

var decoders = func() map[string]func(json.RawMessage) (Payload, error) {
	m := make(map[string]func(json.RawMessage) (Payload, error), len(Catalogue))
	for _, row := range Catalogue {
		t := reflect.TypeOf(row.Payload)
		m[row.Name] = func(raw json.RawMessage) (Payload, error) {
			v := reflect.New(t)
			err := json.Unmarshal(raw, v.Interface())
			return v.Elem().Interface().(Payload), err
		}
	}
	return m
}()
