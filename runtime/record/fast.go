package record

import (
	"bytes"
	"strconv"

	"github.com/a3s-lab/liba3s/runtime/event"
)

var (
	eventHead = []byte(`{"version":1,"type":"`)
	eventMid  = []byte(`","payload":`)
	eventMeta = []byte(`,"metadata":{"run_id":"`)
	eventSess = []byte(`","session_id":"`)
	eventSeq  = []byte(`","sequence":`)
	eventTime = []byte(`,"timestamp_ms":`)
)

// fastEvent decodes an event that is spelled exactly as event.Append spells it, whose
// names need no unescaping; nearly all of a journal is. It is here because a resume
// reads every record: encoding/json looks at each byte five times, this once. What it
// does not take, and what is not valid, is left to encoding/json.
func fastEvent(b []byte) *event.Envelope {
	rest, ok := bytes.CutPrefix(b, eventHead)
	if !ok {
		return nil
	}
	name, rest, ok := bytes.Cut(rest, eventMid)
	if !ok || !plain(name) {
		return nil
	}
	// The last one is the envelope's own: inside a string its quotes would be escaped,
	// and an object inside the payload comes before.
	i := bytes.LastIndex(rest, eventMeta)
	if i < 0 {
		return nil
	}
	payload, rest := rest[:i], rest[i+len(eventMeta):]
	run, rest, ok1 := bytes.Cut(rest, eventSess)
	session, rest, ok2 := bytes.Cut(rest, eventSeq)
	seq, rest, ok3 := bytes.Cut(rest, eventTime)
	at, ok4 := bytes.CutSuffix(rest, []byte("}}"))
	if !ok1 || !ok2 || !ok3 || !ok4 || !plain(run) || !plain(session) {
		return nil
	}
	sequence, ok1 := number(seq)
	ms, ok2 := number(at)
	if !ok1 || !ok2 || !validJSON(payload) {
		return nil
	}
	return &event.Envelope{Version: event.Version, Type: string(name), Payload: bytes.Clone(bytes.TrimSpace(payload)), Metadata: &event.Metadata{
		RunID: string(run), SessionID: string(session), Sequence: sequence, TimestampMS: ms,
	}}
}

// plain says that a JSON string means what it says: printable ASCII without escapes.
func plain(b []byte) bool {
	for _, c := range b {
		if c < 0x20 || c >= 0x7f || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// number reads a JSON integer.
func number(b []byte) (int64, bool) {
	digits := bytes.TrimPrefix(b, []byte("-"))
	if len(digits) == 0 || digits[0] < '0' || digits[0] > '9' || digits[0] == '0' && len(digits) > 1 {
		return 0, false
	}
	n, err := strconv.ParseInt(string(b), 10, 64)
	return n, err == nil
}
