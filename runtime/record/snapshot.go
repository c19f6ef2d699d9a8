package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"unicode/utf8"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

// MaxSnapshot bounds one snapshot document, in bytes.
const MaxSnapshot = 256 << 20

// EncodeSnapshot validates s and gives its document: indented JSON, always valid
// UTF-8, missing lists as empty ones. s is not changed.
func EncodeSnapshot(s *Snapshot) ([]byte, error) {
	if err := s.Validate(s.Session.ID); err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(s.normalised()); err != nil {
		if bad := s.checkRaw(); bad != nil {
			return nil, bad
		}
		return nil, fault.Of(fault.CodeSerialization, "record.encode", "snapshot: %v", err)
	}
	b := buf.Bytes()
	if !utf8.Valid(b) {
		// Only strings inside kept JSON texts can hold such bytes.
		b = bytes.ToValidUTF8(b, []byte("\uFFFD"))
	}
	if len(b) > MaxSnapshot {
		return nil, fault.Of(fault.CodeSerialization, "record.encode",
			"snapshot has %d bytes, the limit is %d; lower the retention limits", len(b), MaxSnapshot).WithKind(fault.Limit)
	}
	return b, nil
}

// DecodeSnapshot reads one snapshot document of at most limit bytes (MaxSnapshot if it
// is 0 or less). Missing lists come back empty. It is not validated against an id.
func DecodeSnapshot(r io.Reader, limit int64) (*Snapshot, error) {
	if limit <= 0 {
		limit = MaxSnapshot
	}
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, fault.New(fault.IO, "record.decode", "read snapshot: %v", err)
	}
	if int64(len(b)) > limit {
		return nil, fault.Of(fault.CodeSerialization, "record.decode", "snapshot is larger than %d bytes", limit).WithKind(fault.Limit)
	}
	return ParseSnapshot(b)
}

// ParseSnapshot is DecodeSnapshot for a document that is in memory. A document with
// the key "schema_version" or "session" is a snapshot; one with neither is the bare
// session that older programs wrote.
func ParseSnapshot(b []byte) (*Snapshot, error) {
	if at := invalidUTF8(b); at >= 0 {
		return nil, fault.Of(fault.CodeSerialization, "record.decode", "snapshot is not UTF-8 at byte %d", at)
	}
	var keys map[string]view
	if err := json.Unmarshal(b, &keys); err != nil {
		return nil, undecodable(err)
	}
	_, versioned := keys["schema_version"]
	_, aggregate := keys["session"]
	s := &Snapshot{SchemaVersion: SchemaVersion}
	var err error
	switch {
	case versioned && aggregate:
		err = json.Unmarshal(b, s)
	case versioned || aggregate:
		return nil, malformed("session", "it has only one of schema_version and session")
	case keys["id"] == nil:
		return nil, malformed("session", "it is neither a snapshot nor a session")
	default:
		err = json.Unmarshal(b, &s.Session)
	}
	if err != nil {
		return nil, undecodable(err)
	}
	s.Normalise()
	return s, s.compactInputs()
}

// compactInputs takes the indentation of the document out of the calls' arguments: they
// are sent to models again as they were.
func (s *Snapshot) compactInputs() error {
	for _, m := range s.Session.Messages {
		for i, b := range m.Content {
			if len(b.Input) == 0 {
				continue
			}
			var c bytes.Buffer
			if err := json.Compact(&c, b.Input); err != nil {
				return undecodable(err)
			}
			m.Content[i].Input = c.Bytes()
		}
	}
	return nil
}

func invalidUTF8(b []byte) int {
	if utf8.Valid(b) {
		return -1
	}
	for i := 0; i < len(b); {
		r, size := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}

// undecodable keeps what encoding/json knows of the place.
func undecodable(err error) error {
	e := fault.Of(fault.CodeSerialization, "record.decode", "snapshot cannot be decoded: %v", err)
	var syntax *json.SyntaxError
	var typ *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return e.With("offset", syntax.Offset)
	case errors.As(err, &typ):
		return e.With("field", typ.Field)
	}
	return e
}
