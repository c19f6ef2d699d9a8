package host

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

// Extension is what every description of an extension begins with.
type Extension struct {
	// Name of the extension, unique in its kind.
	Name string `json:"name"`
	// TimeoutMS bounds one request; 0 is the kind's own deadline.
	TimeoutMS int64 `json:"timeout_ms,omitempty"`
}

// maxTimeout bounds timeout_ms: a day.
const maxTimeout = 24 * time.Hour

// isName says that a text is 1 to 64 of the characters A-Z a-z 0-9 _ . : -, of which the
// last three do not begin it.
func isName(s string) bool {
	odd := func(r rune) bool {
		return r >= utf8.RuneSelf || !strings.ContainsRune("_.:-", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}
	return len(s) > 0 && len(s) <= 64 && !strings.ContainsRune(".:-", rune(s[0])) && strings.IndexFunc(s, odd) < 0
}

// Extends gives the common part of a description; every description embeds it.
func (e Extension) Extends() Extension { return e }

// Check refuses a description that nothing can be called by.
func (e Extension) Check() error {
	if !isName(e.Name) {
		return fault.New(fault.Invalid, "host.register", "name %q: use 1 to 64 of the characters A-Z a-z 0-9 _ . : -", Cut(e.Name, 80)).With("field", "name").With("reason", fault.BadValue)
	}
	if e.TimeoutMS < 0 || e.TimeoutMS > maxTimeout.Milliseconds() {
		return fault.New(fault.Invalid, "host.register", "timeout_ms must be from 0 to %d, got %d", maxTimeout.Milliseconds(), e.TimeoutMS).With("field", "timeout_ms").With("reason", fault.BadValue)
	}
	return nil
}

// Deadline is the extension's own, or d.
func (e Extension) Deadline(d time.Duration) time.Duration {
	if e.TimeoutMS > 0 {
		return time.Duration(e.TimeoutMS) * time.Millisecond
	}
	return d
}

// Line is the way to one extension: the desk and what a request must say of it. Its
// methods may be called concurrently.
type Line struct {
	desk       *Desk
	kind, name string
	deadline   time.Duration
	to         Sender
	ended      atomic.Bool
}

// To has s hear the requests of this line instead of the desk's sender; nil is the desk's.
// It is called before the first request.
func (l *Line) To(s Sender) { l.to = s }

// NewLine makes a line whose requests wait for deadline.
func NewLine(d *Desk, kind, name string, deadline time.Duration) *Line {
	return &Line{desk: d, kind: kind, name: name, deadline: deadline}
}

// Name of the extension.
func (l *Line) Name() string { return l.name }

// Deadline of a request.
func (l *Line) Deadline() time.Duration { return l.deadline }

// End refuses further requests, since the host took the extension back, and withdraws
// those that wait.
func (l *Line) End() {
	l.ended.Store(true)
	l.desk.finish(func(w *waiting) bool { return w.line == l }, ending{l.gone(), "cancelled"})
}

func (l *Line) gone() error {
	return fault.New(fault.Unsupported, "host."+l.kind, "the host took its %s %q back", l.kind, l.name).With("reason", "host_gone")
}

// Question is one use of a line.
type Question struct {
	Op        string
	Params    any // encodes to JSON
	SessionID string
	Deadline  time.Duration // 0 is the line's
	Lasting   bool          // see Request
	Max       int           // bytes of the result; 0 is DefaultResult
	// Chunk, if not nil, gets progress in order on the caller's goroutine. An error from
	// it withdraws the question and is what Ask returns.
	Chunk func(json.RawMessage) error
}

// Ask puts a question and decodes its result strictly. What the host reports, and what it
// says that cannot be read, is a *Failure; see Desk.Ask for the rest.
func (l *Line) Ask(ctx context.Context, q Question, into any) error {
	params, err := json.Marshal(q.Params)
	if err != nil {
		return fault.New(fault.Internal, "host."+l.kind, "%s %q: the request cannot be encoded: %v", l.kind, l.name, err)
	}
	if q.Deadline <= 0 {
		q.Deadline = l.deadline
	}
	if q.Max <= 0 {
		q.Max = DefaultResult
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var broken error
	chunk := func(c json.RawMessage) {
		if q.Chunk == nil || broken != nil {
			return
		}
		if broken = q.Chunk(c); broken != nil {
			cancel(broken)
		}
	}
	r := Request{Kind: l.kind, Name: l.name, Op: q.Op, Params: params, SessionID: q.SessionID, Deadline: q.Deadline, Lasting: q.Lasting, Max: q.Max, To: l.to, line: l}
	reply, err := l.desk.Ask(ctx, r, chunk)
	switch {
	case broken != nil:
		return broken
	case err != nil:
		return err
	}
	return Strict(reply, q.Max, into)
}

// Explain tells a failure of a line from the library's own: f is what the host reported,
// nil if it did not answer.
func Explain(err error) (f *Failure) {
	errors.As(err, &f)
	return f
}

// Gone says that nobody is there to answer, now or later.
func Gone(err error) bool {
	var e *fault.Error
	return errors.As(err, &e) && e.Details["reason"] == "host_gone"
}
