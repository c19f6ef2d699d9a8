package session

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/policy"
	"github.com/a3s-lab/liba3s/runtime/record"
)

// rememberSettled is how many answered questions are remembered, to tell a late answer
// from a wrong id (case APRV-03).
const rememberSettled = 256

// question is an open question to the host.
type question struct {
	q        policy.Question
	deadline time.Time // zero: never
	answer   chan policy.Answer
	settled  bool // has its one answer, which may still be on its way; guarded by Session.mu
}

// settle gives q its answer; false if it had one. The caller holds Session.mu.
func (q *question) settle(a policy.Answer) bool {
	if q.settled {
		return false
	}
	q.settled = true
	q.answer <- a
	return true
}

// Pending is an open question as a host lists it.
type Pending struct {
	ToolID      string          `json:"tool_id"`
	ToolName    string          `json:"tool_name"`
	Args        json.RawMessage `json:"args"`
	RemainingMS int64           `json:"remaining_ms"` // 0 with a question that waits for ever
}

// Ask implements policy.Asker: it tells confirmation_required and waits.
func (s *Session) Ask(ctx context.Context, q policy.Question) (policy.Answer, error) {
	open := &question{q: q, answer: make(chan policy.Answer, 1)}
	var timeout <-chan time.Time
	if q.Timeout > 0 {
		t := time.NewTimer(q.Timeout)
		defer t.Stop()
		timeout, open.deadline = t.C, time.Now().Add(q.Timeout)
	}
	s.mu.Lock()
	r := s.active
	if r == nil || s.closed {
		s.mu.Unlock()
		return policy.Answer{}, fault.New(fault.Closed, "session.ask", "nobody can be asked: the run is over")
	}
	s.asked[q.Call.ID] = open
	s.mu.Unlock()
	defer s.forget(q.Call.ID)
	if err := r.Write(ctx, record.Fact{Event: s.required(q)}); err != nil {
		return policy.Answer{}, err
	}
	select {
	case a := <-open.answer:
		return a, r.Write(ctx, received(q, a))
	case <-timeout:
		return s.late(ctx, r, open)
	case <-ctx.Done():
		a := policy.Answer{Reason: "cancelled"}
		return a, r.Write(ctx, received(q, a))
	}
}

// late applies the time-out action, unless an answer came in the same moment.
func (s *Session) late(ctx context.Context, r *Run, open *question) (policy.Answer, error) {
	s.forget(open.q.Call.ID) // from here on an answer is stale
	select {
	case a := <-open.answer:
		return a, r.Write(ctx, received(open.q, a))
	default:
	}
	a := policy.Answer{TimedOut: true, Approved: open.q.Action == policy.AutoApprove, Reason: "timed out"}
	taken := "rejected"
	if a.Approved {
		taken = "auto_approved"
	}
	return a, r.Write(ctx, record.Fact{Event: event.ConfirmationTimeout{ToolID: open.q.Call.ID, ActionTaken: taken}})
}

func (s *Session) required(q policy.Question) event.ConfirmationRequired {
	args := s.cfg.Redact.Bytes(q.Call.Args)
	sum := sha256.Sum256(args)
	effects := q.Effects
	return event.ConfirmationRequired{
		ToolID: q.Call.ID, ToolName: q.Call.Name, Args: args, TimeoutMS: q.Timeout.Milliseconds(),
		ArgsSHA256: hex.EncodeToString(sum[:]), Cwd: s.cfg.Data.Config.Workspace, Effects: &effects,
	}
}

func received(q policy.Question, a policy.Answer) record.Fact {
	e := event.ConfirmationReceived{ToolID: q.Call.ID, Approved: a.Approved}
	if a.Reason != "" {
		e.Reason = &a.Reason
	}
	return record.Fact{Event: e}
}

// forget closes a question; the second time it does nothing.
func (s *Session) forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked[id] == nil {
		return
	}
	delete(s.asked, id)
	s.settled = append(s.settled, id)
	if len(s.settled) > rememberSettled {
		s.settled = slices.Delete(s.settled, 0, len(s.settled)-rememberSettled)
	}
}

// AnswerStatus says what an answer to a question met.
type AnswerStatus string

// The statuses of an answer.
const (
	AnswerAccepted AnswerStatus = "accepted"
	AnswerStale    AnswerStatus = "stale"   // answered, timed out or withdrawn before
	AnswerUnknown  AnswerStatus = "unknown" // never asked
)

// Confirm answers a question. Exactly one answer counts.
func (s *Session) Confirm(id string, approved bool, reason string) AnswerStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	open := s.asked[id]
	if open == nil {
		if slices.Contains(s.settled, id) {
			return AnswerStale
		}
		return AnswerUnknown
	}
	if !open.settle(policy.Answer{Approved: approved, Reason: reason}) {
		return AnswerStale
	}
	return AnswerAccepted
}

// Pending lists the open questions, oldest first.
func (s *Session) Pending() []Pending {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []Pending{}
	for id, q := range s.asked {
		if q.settled {
			continue
		}
		p := Pending{ToolID: id, ToolName: q.q.Call.Name, Args: s.cfg.Redact.Bytes(q.q.Call.Args)}
		if !q.deadline.IsZero() {
			p.RemainingMS = max(0, time.Until(q.deadline).Milliseconds())
		}
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b Pending) int { return cmpString(a.ToolID, b.ToolID) })
	return out
}

// CancelConfirmations rejects every open question and counts them.
func (s *Session) CancelConfirmations(reason string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, q := range s.asked {
		if q.settle(policy.Answer{Reason: reason}) {
			n++
		}
	}
	return n
}

func cmpString(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
