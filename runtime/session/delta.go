package session

import (
	"context"
	"time"

	"github.com/a3s-lab/liba3s/internal/safego"
	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/record"
)

const (
	mergeFor   = 10 * time.Millisecond // how long a delta may wait for its neighbours (S1)
	mergeBytes = 4 << 10               // and how many bytes they may be (S1)
)

// delta is a row of neighbouring pieces of one stream that become one event.
type delta struct {
	run   *runLog
	key   deltaKey
	text  []byte
	timer *time.Timer
}

// deltaKey says which pieces may be joined (S4).
type deltaKey struct{ kind, id, name string }

func keyOf(p event.Payload) (deltaKey, string) {
	switch e := p.(type) {
	case event.TextDelta:
		return deltaKey{kind: e.Type()}, e.Text
	case event.ReasoningDelta:
		return deltaKey{kind: e.Type()}, e.Text
	case event.ToolInputDelta:
		return deltaKey{kind: e.Type(), id: e.ID}, e.Delta
	case event.ToolOutputDelta:
		return deltaKey{kind: e.Type(), id: e.ID, name: e.Name}, e.Delta
	}
	return deltaKey{}, ""
}

// ofTool says that the pieces are a tool's, which may come beside those of others.
func (k deltaKey) ofTool() bool { return k.kind == event.ToolOutputDelta{}.Type() }

func (k deltaKey) payload(text string) event.Payload {
	switch k.kind {
	case event.TextDelta{}.Type():
		return event.TextDelta{Text: text}
	case event.ReasoningDelta{}.Type():
		return event.ReasoningDelta{Text: text}
	case event.ToolInputDelta{}.Type():
		return event.ToolInputDelta{ID: k.id, Delta: text}
	}
	return event.ToolOutputDelta{ID: k.id, Name: k.name, Delta: text}
}

// push hands in a piece of a stream.
func (s *sequencer) push(ctx context.Context, r *runLog, p event.Payload) error {
	key, text := keyOf(p)
	if key.kind == "" {
		return fault.New(fault.Internal, "session.delta", "%s is not a delta", p.Type())
	}
	s.room(ctx, r)
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.terminal != nil {
		return r.isOver()
	}
	if s.delta != nil && (s.delta.key != key || s.delta.run != r) {
		if err := s.flushDelta(ctx); err != nil {
			return err
		}
	}
	if err := s.release(ctx, r, func(k deltaKey) bool { return k != key && !k.ofTool() }); err != nil {
		return err
	}
	whole := text
	if s.redact != nil {
		text = r.held(key, s.redact).Push(text)
	}
	if text == "" {
		return nil
	}
	if !s.merge {
		if text != whole {
			p = key.payload(text)
		}
		return s.write(ctx, r, false, record.Fact{Event: p})
	}
	if s.delta == nil {
		d := &delta{run: r, key: key}
		d.timer = time.AfterFunc(mergeFor, func() { s.expire(d) })
		s.delta = d
	}
	s.delta.text = append(s.delta.text, text...)
	if len(s.delta.text) >= mergeBytes {
		return s.flushDelta(ctx)
	}
	return nil
}

// expire writes a delta that has waited long enough. A failure shows up at the run's
// next fact, which begins with the same delta.
func (s *sequencer) expire(d *delta) {
	_ = safego.Call("session.merge", func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.delta != d {
			return nil
		}
		return s.flushDelta(context.Background())
	})
}

// flushDelta writes the merged delta, which stays if that fails. s.mu is held.
func (s *sequencer) flushDelta(ctx context.Context) error {
	d := s.delta
	if d == nil {
		return nil
	}
	d.timer.Stop()
	if err := s.write(ctx, d.run, false, record.Fact{Event: d.key.payload(string(d.text))}); err != nil {
		return err
	}
	s.delta = nil
	return nil
}

// release tells the ends of streams that might have been the beginning of a secret:
// those of the model once anything else follows, those of a tool at its end.
func (s *sequencer) release(ctx context.Context, r *runLog, over func(deltaKey) bool) error {
	for _, h := range r.takeHeld(over) {
		if text := h.stream.Flush(); text != "" {
			if err := s.write(ctx, r, false, record.Fact{Event: h.key.payload(text)}); err != nil {
				return err
			}
		}
	}
	return nil
}

// over says which streams end with a group of facts.
func over(facts []record.Fact) func(deltaKey) bool {
	ended := map[string]bool{}
	last := false
	for _, f := range facts {
		switch e := f.Event.(type) {
		case event.ToolEnd:
			ended[e.ID] = true
		case event.AgentEnd, event.Error:
			last = true
		}
	}
	return func(k deltaKey) bool {
		return last || !k.ofTool() || ended[k.id]
	}
}
