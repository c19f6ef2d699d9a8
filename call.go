package a3s

import (
	"context"
	"encoding/json"

	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/op"
)

// Call runs an operation of the agent or session by its name, such as "session.save", and
// decodes the result into a pointer, or drops it if into is nil. params is anything that
// encodes to a JSON object; nil is an empty one. All operations have a method; this one is
// for programs that get the name from elsewhere. include/a3s.schema.json lists them.
func (o *owner) Call(ctx context.Context, operation string, params, into any) error {
	return call(ctx, o.on, operation, params, into)
}

// Call runs an operation of the run by its name: see the method of Session.
func (r *Run) Call(ctx context.Context, operation string, params, into any) error {
	return call(ctx, r.r, operation, params, into)
}

func call(ctx context.Context, on op.Handle, operation string, params, into any) error {
	if params == nil {
		params = struct{}{}
	}
	b, err := encode(operation, "params", params)
	if err != nil {
		return err
	}
	result, err := op.Call(ctx, on, operation, b)
	if err != nil || into == nil {
		return because(ctx, err)
	}
	if err := json.Unmarshal(result, into); err != nil {
		return fault.Of(fault.CodeInvalidRequest, operation, "the result does not fit into a %T: %v", into, err).With("reason", fault.BadType)
	}
	return nil
}
