package tool

import (
	"encoding/json"

	"github.com/a3s-lab/liba3s/internal/schema"
)

// Checker is what a tool implements that demands more of its arguments than its schema
// may say to a model, such as "exactly one of two".
type Checker interface {
	// Check is called with arguments that fit the schema, before anybody is asked about
	// the call. Its error is fault.Invalid with text for the model. It touches nothing.
	Check(args json.RawMessage) error
}

// Validate says whether t can be called with args: bounds, schema, then the tool's own
// Check. An error is fault.Invalid; its message, of at most 4 KiB, is for the model.
func Validate(t Tool, args json.RawMessage) error {
	if err := schema.Validate(t.Spec().Parameters, args); err != nil {
		return err
	}
	if c, ok := t.(Checker); ok {
		return c.Check(args)
	}
	return nil
}
