package session

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/policy"
	"github.com/a3s-lab/liba3s/runtime/record"
)

// asTold gives a fact as its redacted line has it: memory holds no secret that the
// journal does not, and a load folds the same. The redactor keeps lines decodable.
func asTold(line []byte, f record.Fact) record.Fact {
	l, err := record.Decode(bytes.Clone(line))
	if err != nil {
		return f
	}
	if l.Event == nil {
		return record.Fact{Message: l.Message, Mark: l.Mark}
	}
	if p, err := event.Decode(l.Event.Type, l.Event.Payload); err == nil {
		f.Event = p
	}
	return f
}

// withoutSecrets gives the error of a run as it is told. Details that cannot be told are
// left out.
func withoutSecrets(f *fault.Error, r *policy.Redactor) *fault.Error {
	c := *f
	c.Message = r.String(f.Message)
	details, err := cleanedValue(f.Details, r)
	if err != nil {
		details = nil
	}
	c.Details = details
	return &c
}

// cleaned gives messages without secrets.
func cleaned(messages []chat.Message, r *policy.Redactor) ([]chat.Message, error) {
	out := slices.Clone(messages)
	if r == nil {
		return out, nil
	}
	for i := range out {
		var err error
		if out[i], err = cleanedValue(out[i], r); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// cleanedValue gives v without the secrets in its JSON form; v itself if it has none.
func cleanedValue[T any](v T, r *policy.Redactor) (T, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return v, fault.Of(fault.CodeSerialization, "session.redact", "%v", err)
	}
	clean := r.Bytes(b)
	if len(clean) == 0 || &clean[0] == &b[0] {
		return v, nil
	}
	var out T
	if err := json.Unmarshal(clean, &out); err != nil {
		return out, fault.Of(fault.CodeSerialization, "session.redact", "%v", err)
	}
	return out, nil
}
