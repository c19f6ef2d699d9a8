package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	a3s "github.com/a3s-lab/liba3s"
)

// handlers are the functions that package a3s is given for an extension.
func (x *extension) handlers(d *hostDesk) map[string]a3s.Handler {
	all := map[string]a3s.Handler{}
	for op := range x.Answers {
		all[op] = func(ctx context.Context, params json.RawMessage, chunk func(any) error) (any, error) {
			a := x.next(op, d.called(x.key(), op))
			result, wrong, err := a.function(ctx, d, params, chunk)
			if wrong != nil {
				wrong = fmt.Errorf("%s, asked for %s: %w", x.key(), op, wrong)
			}
			d.answered(wrong)
			return result, err
		}
	}
	for op := range x.Calls {
		if all[op] == nil {
			all[op] = func(context.Context, json.RawMessage, func(any) error) (any, error) {
				d.called(x.key(), op)
				d.answered(nil)
				return nil, &a3s.ExtensionError{Type: "Error", Message: "no answer"}
			}
		}
	}
	return all
}

// function answers once; wrong is what the host's side found wrong.
func (a answer) function(ctx context.Context, d *hostDesk, params json.RawMessage, chunk func(any) error) (result any, wrong, err error) {
	for _, line := range a.Does {
		if wrong = d.does(line); wrong != nil {
			return nil, fmt.Errorf("%q: %w", line, wrong), errors.New("a step failed")
		}
	}
	for _, c := range a.Chunks {
		if wrong = chunk(json.RawMessage(large(c))); wrong != nil {
			return nil, wrong, wrong
		}
	}
	if a.Wait {
		wrong = a.withdrawn(ctx)
	}
	if a.Error != nil {
		var f a3s.ExtensionError
		if err := json.Unmarshal(large(a.Error), &f); err != nil {
			return nil, err, err
		}
		return nil, wrong, &f
	}
	body, err := a.body(params)
	return json.RawMessage(large(body)), errors.Join(wrong, err), nil
}

// withdrawn waits until nobody waits for the answer any more, and checks the reason.
func (a answer) withdrawn(ctx context.Context) error {
	select {
	case <-ctx.Done():
	case <-time.After(patience):
		return errors.New("nobody withdrew the request")
	}
	f := asFault(context.Cause(ctx))
	if f == nil || a.Withdrawn != "" && f.Details["reason"] != a.Withdrawn {
		return fmt.Errorf("withdrawn because %v, want %q", context.Cause(ctx), a.Withdrawn)
	}
	return nil
}
