package model

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

// RetryConfig says how often and how long to wait. The zero value is the default.
type RetryConfig struct {
	// MaxRetries is how many calls may follow the first; 0 is 10, below 0 is none.
	MaxRetries int
	// Base is the first wait, doubled each time; 0 is 1 s.
	Base time.Duration
	// Cap bounds a wait of ours before the jitter; 0 is 30 s.
	Cap time.Duration
	// MaxWait bounds one wait that the service asks for; 0 is 300 s.
	MaxWait time.Duration
	// MaxTotal bounds the sum of all waits of one call; 0 is 600 s.
	MaxTotal time.Duration
	// Jitter is the share by which a wait of ours varies up and down; 0 is 0.25, below 0
	// is none.
	Jitter float64
	// Sleep waits for d or until ctx ends, and then returns its error. Nil uses a timer.
	Sleep func(ctx context.Context, d time.Duration) error
	// Random gives numbers in [0, 1) for the jitter. Nil uses the process's generator.
	Random func() float64
	// OnRetry, if not nil, is told before each wait: the number of the coming retry from
	// 1, the wait, and the failure behind it.
	OnRetry func(retry int, wait time.Duration, cause *fault.Error)
}

// Retry gives a client that calls c again after a retryable failure, as long as nothing
// of the answer was yielded: text is never told twice. After the first chunk a failure
// is passed on, and the run decides whether to start the turn anew. A Retry-After of the
// service is a lower bound for the wait; one above MaxWait, or past the deadline of ctx,
// is passed on at once instead of being waited for, and so is a failure once MaxTotal
// is used up. Cancelling ctx ends a wait.
func Retry(c Client, cfg RetryConfig) Client {
	setDefault(&cfg.MaxRetries, 10)
	setDefault(&cfg.Base, time.Second)
	setDefault(&cfg.Cap, 30*time.Second)
	setDefault(&cfg.MaxWait, 300*time.Second)
	setDefault(&cfg.MaxTotal, 600*time.Second)
	setDefault(&cfg.Jitter, 0.25)
	if cfg.Sleep == nil {
		cfg.Sleep = sleep
	}
	if cfg.Random == nil {
		cfg.Random = rand.Float64
	}
	return &retrying{c, cfg}
}

func setDefault[T int | time.Duration | float64](v *T, d T) {
	if *v == 0 {
		*v = d
	}
}

type retrying struct {
	client Client
	cfg    RetryConfig
}

func (r *retrying) Stream(ctx context.Context, req Request) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		var waited time.Duration
		for retry := 1; ; retry++ {
			begun, left, err := r.once(ctx, req, yield)
			if left || err == nil {
				return
			}
			wait, ok := r.wait(ctx, retry, waited, err)
			if begun || !ok {
				yield(Chunk{}, err)
				return
			}
			if r.cfg.OnRetry != nil {
				r.cfg.OnRetry(retry, wait, err)
			}
			if cancelled := r.cfg.Sleep(ctx, wait); cancelled != nil {
				yield(Chunk{}, fault.From("model.retry", cancelled))
				return
			}
			waited += wait
		}
	}
}

// once makes one call. begun says that something was yielded, left that the reader is
// gone; err is the failure, nil after a whole answer.
func (r *retrying) once(ctx context.Context, req Request, yield func(Chunk, error) bool) (begun, left bool, err *fault.Error) {
	for chunk, err := range r.client.Stream(ctx, req) {
		if err != nil {
			return begun, false, fault.From("model.stream", err)
		}
		begun = true
		if !yield(chunk, nil) {
			return begun, true, nil
		}
		if chunk.Kind == Done {
			return begun, false, nil
		}
	}
	if ctx.Err() != nil {
		return begun, false, fault.From("model.stream", ctx.Err())
	}
	return begun, false, Incomplete("model.stream", "")
}

// wait says how long to wait before the given retry, and whether it makes sense.
func (r *retrying) wait(ctx context.Context, retry int, waited time.Duration, err *fault.Error) (time.Duration, bool) {
	if !err.Retryable || retry > r.cfg.MaxRetries || ctx.Err() != nil {
		return 0, false
	}
	wait := r.cfg.Cap
	if shift := retry - 1; shift < 30 {
		wait = min(r.cfg.Base<<shift, r.cfg.Cap)
	}
	if r.cfg.Jitter > 0 {
		wait += time.Duration(float64(wait) * r.cfg.Jitter * (2*r.cfg.Random() - 1))
	}
	wait = max(wait, RetryAfter(err))
	if wait > r.cfg.MaxWait || waited+wait > r.cfg.MaxTotal {
		return 0, false
	}
	if end, ok := ctx.Deadline(); ok && time.Until(end) < wait {
		return 0, false
	}
	return wait, true
}

// RetryAfter gives how long the service behind err asked to wait, 0 if it did not say.
func RetryAfter(err error) time.Duration {
	var e *fault.Error
	if !errors.As(err, &e) {
		return 0
	}
	const top = 1000 * time.Hour
	switch ms := e.Details["retry_after_ms"].(type) {
	case int64:
		return clamp(float64(ms), top)
	case int:
		return clamp(float64(ms), top)
	case float64: // an error that came through JSON
		return clamp(ms, top)
	}
	return 0
}

func clamp(ms float64, top time.Duration) time.Duration {
	if ms <= 0 {
		return 0
	}
	return time.Duration(min(ms, float64(top.Milliseconds()))) * time.Millisecond
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
