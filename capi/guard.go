package main

import (
	"encoding/json"

	"github.com/a3s-lab/liba3s/internal/safego"
	"github.com/a3s-lab/liba3s/runtime/fault"
)

// guard runs the body of an export. No panic leaves it: an unknown one becomes an
// internal error. It gives the status, and the error object for the thread's slot.
func guard(op string, fn func() error) (fault.Status, []byte) {
	err := safego.Call(op, fn)
	if err == nil {
		return fault.OK, nil
	}
	return report(op, err)
}

// report gives the status and the error object of err.
func report(op string, err error) (fault.Status, []byte) {
	e := fault.From(op, err)
	b, bad := json.Marshal(e)
	if bad != nil {
		// Details that do not encode are dropped; the rest is text and numbers.
		plain := *e
		plain.Details = nil
		b, _ = json.Marshal(&plain)
	}
	return e.Status(), b
}
