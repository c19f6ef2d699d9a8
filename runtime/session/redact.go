package session

import (
	"bytes"
	"maps"

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

// withoutSecrets gives the error of a run as it is told.
func withoutSecrets(f *fault.Error, r *policy.Redactor) *fault.Error {
	c := *f
	c.Message = r.String(f.Message)
	c.Details = maps.Clone(f.Details)
	for k, v := range c.Details {
		if s, ok := v.(string); ok {
			c.Details[k] = r.String(s)
		}
	}
	return &c
}
