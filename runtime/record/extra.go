package record

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// The four types below keep what they do not know in Extra, so that a snapshot of
// another version comes out of a load and a save whole. The plain twins have the
// fields without the methods.
type (
	plainSnapshot Snapshot
	plainSession  SessionData
	plainConfig   SessionConfig
	plainRun      RunSnapshot
)

var (
	snapshotKeys = keysOf(reflect.TypeFor[Snapshot]())
	sessionKeys  = keysOf(reflect.TypeFor[SessionData](), "todos")
	configKeys   = keysOf(reflect.TypeFor[SessionConfig]())
	runKeys      = keysOf(reflect.TypeFor[RunSnapshot]())
)

// MarshalJSON writes the known fields and then Extra.
func (s Snapshot) MarshalJSON() ([]byte, error) { return withExtra(plainSnapshot(s), s.Extra) }

// UnmarshalJSON keeps unknown fields in Extra.
func (s *Snapshot) UnmarshalJSON(b []byte) (err error) {
	var p plainSnapshot
	if err = json.Unmarshal(b, &p); err != nil {
		return err
	}
	*s = Snapshot(p)
	s.Extra, err = unknown(b, snapshotKeys)
	return err
}

// MarshalJSON writes the known fields and then Extra.
func (s SessionData) MarshalJSON() ([]byte, error) { return withExtra(plainSession(s), s.Extra) }

// UnmarshalJSON keeps unknown fields in Extra and reads "todos", the old name of tasks.
func (s *SessionData) UnmarshalJSON(b []byte) (err error) {
	var p struct {
		*plainSession
		Todos []json.RawMessage `json:"todos"`
	}
	p.plainSession = new(plainSession)
	if err = json.Unmarshal(b, &p); err != nil {
		return err
	}
	*s = SessionData(*p.plainSession)
	if s.Tasks == nil {
		s.Tasks = p.Todos
	}
	s.Extra, err = unknown(b, sessionKeys)
	return err
}

// MarshalJSON writes the known fields and then Extra.
func (c SessionConfig) MarshalJSON() ([]byte, error) { return withExtra(plainConfig(c), c.Extra) }

// UnmarshalJSON keeps unknown fields in Extra.
func (c *SessionConfig) UnmarshalJSON(b []byte) (err error) {
	var p plainConfig
	if err = json.Unmarshal(b, &p); err != nil {
		return err
	}
	*c = SessionConfig(p)
	c.Extra, err = unknown(b, configKeys)
	return err
}

// MarshalJSON writes the known fields and then Extra.
func (r RunSnapshot) MarshalJSON() ([]byte, error) { return withExtra(plainRun(r), r.Extra) }

// UnmarshalJSON keeps unknown fields in Extra.
func (r *RunSnapshot) UnmarshalJSON(b []byte) (err error) {
	var p plainRun
	if err = json.Unmarshal(b, &p); err != nil {
		return err
	}
	*r = RunSnapshot(p)
	r.Extra, err = unknown(b, runKeys)
	return err
}

// keysOf lists the JSON keys of a struct in lower case, since encoding/json matches
// them without regard to case, and embedded structs with it.
func keysOf(t reflect.Type, more ...string) map[string]bool {
	keys := map[string]bool{}
	for _, k := range more {
		keys[k] = true
	}
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			keys[strings.ToLower(name)] = true
		}
	}
	return keys
}

// view is a piece of the document being decoded; it is copied only if it is kept, so
// that looking for unknown fields costs no memory.
type view []byte

func (v *view) UnmarshalJSON(b []byte) error { *v = b; return nil }

// unknown gives the fields of the object b that are not among keys, nil if none.
func unknown(b []byte, keys map[string]bool) (map[string]json.RawMessage, error) {
	var all map[string]view
	if err := json.Unmarshal(b, &all); err != nil {
		return nil, err
	}
	var extra map[string]json.RawMessage
	for k, v := range all {
		if keys[strings.ToLower(k)] {
			continue
		}
		if extra == nil {
			extra = map[string]json.RawMessage{}
		}
		// A null never reaches the view's method.
		extra[k] = append(json.RawMessage(nil), v...)
		if v == nil {
			extra[k] = json.RawMessage("null")
		}
	}
	return extra, nil
}

// withExtra encodes the struct plain and puts extra behind its fields, in name order.
func withExtra(plain any, extra map[string]json.RawMessage) ([]byte, error) {
	b, err := marshal(plain)
	if err != nil || len(extra) == 0 {
		return b, err
	}
	b = b[:len(b)-1]
	for _, k := range slices.Sorted(maps.Keys(extra)) {
		key, err := marshal(k)
		if err != nil {
			return nil, err
		}
		b = append(b, ',')
		b = append(b, key...)
		b = append(b, ':')
		b = append(b, extra[k]...)
	}
	return append(b, '}'), nil
}

// marshal is json.Marshal without the escaping of <, > and &, which would change the
// bytes of kept events.
func marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(buf.Bytes(), "\n"), nil
}
