package model

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

// Timeout gives a client whose every call must be done within d; 0 or less gives c
// itself. Running out is a retryable LLM_ERROR, unlike the end of the caller's ctx. It
// belongs below Retry, so that each attempt gets its own time.
func Timeout(c Client, d time.Duration) Client {
	if d <= 0 {
		return c
	}
	return &timed{c, d}
}

type timed struct {
	client Client
	limit  time.Duration
}

var errTooLate = errors.New("the model's time is up")

func (t *timed) Stream(ctx context.Context, req Request) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		limited, cancel := context.WithTimeoutCause(ctx, t.limit, errTooLate)
		defer cancel()
		for chunk, err := range t.client.Stream(limited, req) {
			if err != nil && ctx.Err() == nil && context.Cause(limited) == errTooLate {
				err = fault.Of(fault.CodeLLM, "model.stream", "the model did not finish its answer within %v", t.limit).
					With("reason", "timeout").Retry()
			}
			if !yield(chunk, err) || err != nil {
				return
			}
		}
	}
}
