// Package op is the table of operations: what a host can ask of an agent, a session or
// a run by name, with JSON in and out. Every binding reaches the library through it,
// and their types are generated from it. It decides nothing. Floor 10.
package op

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/a3s-lab/liba3s/runtime/agent"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/session"
)

// Handle is what an operation works on: *agent.Agent, *session.Session or *session.Run.
type Handle any

// The objects operations work on.
const (
	OnAgent   = "agent"
	OnSession = "session"
	OnRun     = "run"
)

// Op is one operation.
type Op struct {
	// Name, such as "session.save".
	Name string
	// On is the object: "agent", "session" or "run".
	On string
	// Doc says what it does, in one or two sentences.
	Doc string
	// Params and Result are zero values of the Go types that the JSON has.
	Params, Result any
	// Blocking says that it may wait: a binding must not call it on an event loop.
	Blocking bool

	call func(ctx context.Context, h Handle, params []byte) (any, error)
}

// None is the parameter or result type of an operation that has none.
type None struct{}

// define makes an operation of a typed function.
func define[H, P, R any](name, doc string, blocking bool, fn func(ctx context.Context, h H, p P) (R, error)) Op {
	var p P
	var r R
	o := Op{Name: name, On: strings.Split(name, ".")[0], Doc: doc, Params: p, Result: r, Blocking: blocking}
	o.call = func(ctx context.Context, h Handle, params []byte) (any, error) {
		on, ok := h.(H)
		if !ok {
			return nil, fault.New(fault.Handle, name, "%s belongs to a %s, not to a %s", name, o.On, kindOf(h))
		}
		var p P
		if err := Decode(name, params, &p); err != nil {
			return nil, err
		}
		return fn(ctx, on, p)
	}
	return o
}

func kindOf(h Handle) string {
	switch h.(type) {
	case *agent.Agent:
		return OnAgent
	case *session.Session:
		return OnSession
	case *session.Run:
		return OnRun
	}
	return fmt.Sprintf("%T", h)
}

// Table gives all operations, sorted by name.
func Table() []Op {
	all := slices.Concat(agentOps, sessionOps, runOps)
	slices.SortFunc(all, func(a, b Op) int { return strings.Compare(a.Name, b.Name) })
	return all
}

var byName = func() map[string]Op {
	m := map[string]Op{}
	for _, o := range Table() {
		m[o.Name] = o
	}
	return m
}()

// Call runs the operation called method on h. params and result are JSON; no params are
// an empty object.
func Call(ctx context.Context, h Handle, method string, params []byte) ([]byte, error) {
	o, ok := byName[method]
	if !ok {
		return nil, fault.Of(fault.CodeInvalidRequest, "call", "there is no operation %q", method).With("field", "method").With("reason", fault.BadValue)
	}
	v, err := o.call(ctx, h, params)
	if err != nil {
		return nil, fault.From(method, err)
	}
	if a, ok := v.(appender); ok {
		return a.appendJSON(nil), nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fault.Of(fault.CodeInternal, method, "the result cannot be encoded: %v", err)
	}
	return b, nil
}

// Decode reads a request within the bounds of the public contract: valid UTF-8, no NUL,
// at most 64 levels and 64 MiB, and no unknown names.
func Decode(op string, b []byte, into any) error {
	if len(bytes.TrimSpace(b)) == 0 {
		b = []byte("{}")
	}
	bad := func(format string, args ...any) *fault.Error {
		return fault.Of(fault.CodeInvalidRequest, op, format, args...).With("reason", fault.BadValue)
	}
	if err := CheckRequest(op, b); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil && d.More() {
		err = errors.New("text after the JSON value")
	}
	var t *json.UnmarshalTypeError
	switch {
	case err == nil:
		return required(op, into)
	case errors.As(err, &t):
		return bad("%s", fault.Misfit(orWhole(t.Field), t)).With("field", t.Field).With("reason", fault.BadType)
	case strings.HasPrefix(err.Error(), "json: unknown field "):
		name := strings.Trim(strings.TrimPrefix(err.Error(), "json: unknown field "), `"`)
		return bad("unknown field %q", name).With("field", name)
	}
	return bad("%v", err)
}

func orWhole(field string) string {
	if field == "" {
		return "the request"
	}
	return field
}

// required refuses a request that leaves out a string, or what is a pointer, without omitempty.
func required(op string, v any) error {
	s := reflect.ValueOf(v).Elem()
	if s.Kind() != reflect.Struct {
		return nil
	}
	for i := range s.NumField() {
		name, opts, _ := strings.Cut(s.Type().Field(i).Tag.Get("json"), ",")
		if k := s.Field(i).Kind(); (k == reflect.String || k == reflect.Pointer) && !strings.Contains(opts, "omitempty") && s.Field(i).IsZero() {
			return fault.Of(fault.CodeInvalidRequest, op, "%s is missing", name).With("field", name).With("reason", fault.BadValue)
		}
	}
	return nil
}

// appender is a result whose parts are JSON already. encoding/json would look at every
// byte of them again.
type appender interface{ appendJSON(dst []byte) []byte }
