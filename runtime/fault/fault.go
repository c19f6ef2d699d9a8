// Package fault holds the one error shape of libA3S, its kinds, its codes and the
// C status numbers. A kind is decided where the cause is known and never guessed
// again above; text is for people. Floor 0: it imports nothing of this project.
package fault

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
)

// Error is what every fallible operation of libA3S returns, in every language:
// {code, status, kind, op, message, retryable, details}.
type Error struct {
	// Code is the contract's stable string, for programs.
	Code Code
	// Kind is the nature of the failure; it decides the C status.
	Kind Kind
	// Op names the operation that failed, such as "session.save".
	Op string
	// Message says what happened and what to do, for people.
	Message string
	// Retryable says that the same call may succeed later, unchanged.
	Retryable bool
	// Details carries machine-readable extras; "reason", "field", "line" and
	// "column" have the same meaning everywhere.
	Details map[string]any
	// Err is the cause, if there is one. It stays in the process.
	Err error
}

// New returns an error of kind k with the default code of that kind.
func New(k Kind, op, format string, args ...any) *Error {
	return &Error{Code: k.row().code, Kind: k, Op: op, Message: fmt.Sprintf(format, args...), Err: cause(args)}
}

// Of returns an error with code c and the default kind of that code.
func Of(c Code, op, format string, args ...any) *Error {
	return &Error{Code: c, Kind: c.Kind(), Op: op, Message: fmt.Sprintf(format, args...), Err: cause(args)}
}

// cause finds the wrapped error among the arguments of a format.
func cause(args []any) error {
	for _, a := range args {
		if err, ok := a.(error); ok {
			return err
		}
	}
	return nil
}

// With sets one detail and returns e, for chaining at the place of creation.
func (e *Error) With(key string, value any) *Error {
	if e.Details == nil {
		e.Details = map[string]any{}
	}
	e.Details[key] = value
	return e
}

// WithKind replaces the kind, for a code that covers several.
func (e *Error) WithKind(k Kind) *Error { e.Kind = k; return e }

// Retry marks e as retryable.
func (e *Error) Retry() *Error { e.Retryable = true; return e }

// Error gives the message with the prefix of the contract for its code.
func (e *Error) Error() string { return e.Code.row().prefix + e.Message }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is compares codes, so that errors.Is(err, fault.Of(fault.SessionBusy, "", "")) works.
func (e *Error) Is(target error) bool {
	var t *Error
	return errors.As(target, &t) && t.Code == e.Code
}

// Status is the number that the C interface returns for e.
func (e *Error) Status() Status { return e.Kind.row().status }

// wire is the JSON form of an Error.
type wire struct {
	Code      Code           `json:"code"`
	Status    Status         `json:"status"`
	Kind      Kind           `json:"kind"`
	Op        string         `json:"op,omitempty"`
	Message   string         `json:"message"`
	Retryable bool           `json:"retryable"`
	Details   map[string]any `json:"details,omitempty"`
}

// MarshalJSON writes the one shape.
func (e *Error) MarshalJSON() ([]byte, error) {
	return json.Marshal(wire{e.Code, e.Status(), e.Kind, e.Op, e.Error(), e.Retryable, e.Details})
}

// From turns any error into the one shape: an *Error anywhere in the chain as it
// is, a context error as Cancelled or Timeout, anything else as Internal.
func From(op string, err error) *Error {
	var e *Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &e):
		if e.Op == "" {
			c := *e
			c.Details = maps.Clone(e.Details)
			c.Op = op
			return &c
		}
		return e
	case errors.Is(err, context.Canceled):
		return Of(CodeCancelled, op, "cancelled")
	case errors.Is(err, context.DeadlineExceeded):
		return Of(CodeTimeout, op, "deadline exceeded")
	}
	return Of(CodeInternal, op, "%v", err)
}

// Ended gives the error of a context that has ended: its cause if that is an *Error, else
// Cancelled or Timeout, which wraps the context's error and its cause.
func Ended(ctx context.Context, op string) *Error {
	cause := context.Cause(ctx)
	if e := (*Error)(nil); errors.As(cause, &e) {
		return From(op, cause)
	}
	e := From(op, ctx.Err())
	e.Err = errors.Join(ctx.Err(), cause)
	return e
}

// KindOf gives the kind of any error, Internal if it has none.
func KindOf(err error) Kind {
	if e := From("", err); e != nil {
		return e.Kind
	}
	return ""
}

// Reasons tell a binding which native error to raise (details.reason).
const (
	BadValue = "bad_value" // Python ValueError, Node RangeError
	BadType  = "bad_type"  // Python TypeError, Node TypeError
)

// Option refuses a session option: it names the field and says why.
func Option(field, reason, format string, args ...any) *Error {
	e := Of(CodeSessionConfig, "session.open", "'%s': %s", field, fmt.Sprintf(format, args...))
	return e.With("field", field).With("reason", reason)
}
