package a3s

import (
	"context"
	"encoding/json"
	"maps"
	"sync"
	"time"

	"github.com/a3s-lab/liba3s/internal/safego"
	"github.com/a3s-lab/liba3s/runtime/agent"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/host"
	"github.com/a3s-lab/liba3s/runtime/op"
)

// Handler answers one operation of an extension. It runs on a goroutine of its own, beside
// other requests, and may use the library: the same session too, unless it belongs to the
// store of that session.
//
// ctx ends when nobody waits for the answer any more: the run was cancelled, the session
// closed, the time was up. context.Cause then gives a *Error with the detail "reason"
// ("cancelled", "timeout"). HostRequestFrom says what is asked.
//
// params and the result have the JSON of the operation; a json.RawMessage is passed on as
// it is. chunk tells a piece of the answer, for operations that have pieces; it waits
// while the asker is far behind, and its error says that nobody listens any more.
//
// An error is told as a failure with the name of its type and its text, and a panic as
// one of type "panic": see ExtensionError. Nothing that a handler does ends the program.
type Handler func(ctx context.Context, params json.RawMessage, chunk func(any) error) (any, error)

// Registration is something that your program supplies.
type Registration struct{ r *agent.Registration }

// Close takes it back: requests under way are withdrawn, new ones fail at once. A second
// Close does nothing. Without it the registration ends with its session or agent.
func (r *Registration) Close() error { return r.r.Close() }

// RegisterExtension supplies a part of the runtime, of any kind. With an agent it serves
// all sessions: those that open afterwards and, unless the kind is early, those that are
// open. With a session it serves that one alone; early kinds are refused there.
//
// docs/extensions.md lists the kinds with the fields of spec, the operations, and what
// becomes of a request without an answer. handlers has a function for each operation that
// is asked; one without a function fails with a message that says so. The typed
// registrations, such as RegisterTool, do the same with Go types.
//
// The error is a *Error: UNSUPPORTED_OPERATION for a kind that is not built,
// ALREADY_EXISTS for a name that is taken, INVALID_REQUEST for a spec that makes no sense,
// SESSION_CLOSED.
func (o *owner) RegisterExtension(ctx context.Context, kind string, spec any, handlers map[string]Handler) (*Registration, error) {
	if err := over(ctx, "host.register"); err != nil {
		return nil, err
	}
	b, err := encode("host.register", "spec", spec)
	if err != nil {
		return nil, err
	}
	for name, h := range handlers {
		if h == nil {
			return nil, fault.Of(fault.CodeInvalidRequest, "host.register", "the function for operation %q of a %s is nil", name, kind).With("field", "handlers").With("reason", fault.BadValue)
		}
	}
	r, err := op.HostSupply(ctx, o.on, kind, b, &supplied{agent: o.agent, handlers: maps.Clone(handlers), open: map[uint64]context.CancelCauseFunc{}})
	if err != nil {
		return nil, err
	}
	return &Registration{r}, nil
}

// supplied answers the requests of one extension. It is the other side of the desk.
type supplied struct {
	agent    *agent.Agent
	handlers map[string]Handler

	mu   sync.Mutex
	open map[uint64]context.CancelCauseFunc // guarded by mu
}

var _ host.Sender = (*supplied)(nil)

// Request implements host.Sender.
func (s *supplied) Request(r host.Request) error {
	ctx, cancel := context.WithCancelCause(context.Background())
	s.mu.Lock()
	s.open[r.ID] = cancel
	s.mu.Unlock()
	asked := HostRequest{Kind: r.Kind, Name: r.Name, Operation: r.Op, SessionID: r.SessionID, Deadline: time.Now().Add(r.Deadline)}
	safego.Go("a3s."+r.Kind, nil, func() { s.serve(asking{ctx, asked}, r) })
	return nil
}

// Cancel implements host.Sender.
func (s *supplied) Cancel(id uint64, reason string) {
	code := fault.CodeCancelled
	if reason == "timeout" {
		code = fault.CodeTimeout
	}
	s.end(id, fault.Of(code, "host.request", "nobody waits for the answer any more: %s", reason).With("reason", reason))
}

func (s *supplied) end(id uint64, cause error) {
	s.mu.Lock()
	cancel := s.open[id]
	delete(s.open, id)
	s.mu.Unlock()
	if cancel != nil {
		cancel(cause)
	}
}

// serve has a request answered. The answer is given in a deferred call, since a handler
// may end its goroutine.
func (s *supplied) serve(ctx asking, r host.Request) {
	var result any
	err := error(&host.Failure{Type: "Error", Message: "the goroutine of the handler was ended"})
	defer func() {
		s.answer(r, result, err)
		s.end(r.ID, context.Canceled)
	}()
	h := s.handlers[r.Op]
	if h == nil {
		err = &host.Failure{Type: "Error", Message: "no function answers operation " + r.Op + " of " + r.Kind + " " + r.Name, Kind: string(fault.Unsupported)}
		return
	}
	chunk := func(piece any) error {
		b, err := json.Marshal(piece)
		if err != nil {
			return fault.Of(fault.CodeInvalidRequest, "host.chunk", "the piece cannot be encoded: %v", err)
		}
		return s.agent.Chunk(r.ID, b)
	}
	err = called(func() (err error) {
		result, err = h(ctx, r.Params, chunk)
		return err
	})
}

// answer gives the one answer. One that cannot be told must not leave the asker waiting.
func (s *supplied) answer(r host.Request, result any, err error) {
	var b []byte
	bad := called(func() (bad error) { // methods of the host's types make its words
		b, bad = reply(result, err)
		return bad
	})
	if bad == nil {
		bad = s.agent.Reply(r.ID, b)
	}
	switch fault.KindOf(bad) {
	case "", fault.NotFound: // taken, or too late
		return
	}
	b, bad = reply(nil, &host.Failure{Type: "InvalidReply", Message: fault.From("host.reply", bad).Message})
	if bad == nil {
		_ = s.agent.Reply(r.ID, b) // it may be withdrawn by now
	}
}

func reply(result any, err error) ([]byte, error) {
	if err != nil {
		return json.Marshal(host.Reply{Error: failure(err)})
	}
	raw, ok := result.(json.RawMessage)
	if !ok {
		if raw, err = json.Marshal(result); err != nil {
			return nil, err
		}
	}
	if len(raw) == 0 {
		raw = json.RawMessage("null")
	}
	return append(append([]byte(`{"result":`), raw...), '}'), nil
}

// HostRequest says what an extension is asked.
type HostRequest struct {
	// Kind and Name are those of the registration.
	Kind, Name string
	// Operation of the kind, such as "call".
	Operation string
	// SessionID names the session that asks; empty if none does.
	SessionID string
	// Deadline is when the answer comes too late.
	Deadline time.Time
}

// HostRequestFrom gives the request that a handler, or any function or object that was
// registered, is answering; false for another context.
func HostRequestFrom(ctx context.Context) (HostRequest, bool) {
	r, ok := ctx.Value(requestKey{}).(HostRequest)
	return r, ok
}

type requestKey struct{}

// asking is the context of a handler. It tells the deadline, but the desk ends it: what a
// handler answers at the last moment must not count as its own failure.
type asking struct {
	context.Context
	request HostRequest
}

func (a asking) Deadline() (time.Time, bool) { return a.request.Deadline, true }

func (a asking) Value(key any) any {
	if key == (requestKey{}) {
		return a.request
	}
	return a.Context.Value(key)
}
