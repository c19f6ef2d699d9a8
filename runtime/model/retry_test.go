package model

import (
	"context"
	"iter"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

// calls is a client whose n-th call gives the n-th sequence, the last one for ever.
type calls struct {
	seqs []iter.Seq2[Chunk, error]
	n    int
}

func (c *calls) Stream(context.Context, Request) iter.Seq2[Chunk, error] {
	s := c.seqs[min(c.n, len(c.seqs)-1)]
	c.n++
	return s
}

func limited(after time.Duration) error {
	e := fault.Of(fault.CodeLLM, "model.stream", "slow down").Retry()
	if after > 0 {
		e.With("retry_after_ms", after.Milliseconds())
	}
	return e
}

func TestRetry(t *testing.T) {
	done := Chunk{Kind: Done}
	text := Chunk{Kind: TextDelta, Text: "a"}
	busy := seq(limited(0))
	ok := seq(nil, text, done)
	const s = time.Second
	tests := []struct {
		name  string
		cfg   RetryConfig
		seqs  []iter.Seq2[Chunk, error]
		calls int
		waits []time.Duration
		kinds []ChunkKind
		err   string
	}{
		{"no failure", RetryConfig{}, []iter.Seq2[Chunk, error]{ok}, 1, nil, []ChunkKind{TextDelta, Done}, ""},
		{"waits double up to the cap", RetryConfig{}, []iter.Seq2[Chunk, error]{busy, busy, busy, busy, busy, busy, busy, ok}, 8,
			[]time.Duration{s, 2 * s, 4 * s, 8 * s, 16 * s, 30 * s, 30 * s}, []ChunkKind{TextDelta, Done}, ""},
		{"ten retries by default", RetryConfig{}, []iter.Seq2[Chunk, error]{busy}, 11,
			[]time.Duration{s, 2 * s, 4 * s, 8 * s, 16 * s, 30 * s, 30 * s, 30 * s, 30 * s, 30 * s}, nil, "LLM error: slow down"},
		{"none", RetryConfig{MaxRetries: -1}, []iter.Seq2[Chunk, error]{busy}, 1, nil, nil, "LLM error: slow down"},
		{"not retryable", RetryConfig{}, []iter.Seq2[Chunk, error]{seq(fault.Of(fault.CodeLLM, "", "no"))}, 1, nil, nil, "LLM error: no"},
		{"never after output", RetryConfig{}, []iter.Seq2[Chunk, error]{seq(limited(0), text)}, 1, nil, []ChunkKind{TextDelta}, "LLM error: slow down"},
		{"an empty cut stream is retried", RetryConfig{}, []iter.Seq2[Chunk, error]{seq(nil), ok}, 2, []time.Duration{s}, []ChunkKind{TextDelta, Done}, ""},
		{"a cut stream with output is incomplete", RetryConfig{}, []iter.Seq2[Chunk, error]{seq(nil, text)}, 1, nil, []ChunkKind{TextDelta}, Incomplete("", "").Error()},
		{"NET-05 Retry-After is a lower bound", RetryConfig{}, []iter.Seq2[Chunk, error]{seq(limited(90 * s)), seq(limited(s / 2)), ok}, 3, []time.Duration{90 * s, 2 * s}, []ChunkKind{TextDelta, Done}, ""},
		{"NET-05 a long wait is surfaced at once", RetryConfig{}, []iter.Seq2[Chunk, error]{seq(limited(301 * s))}, 1, nil, nil, "LLM error: slow down"},
		{"NET-05 the total is capped", RetryConfig{}, []iter.Seq2[Chunk, error]{seq(limited(250 * s))}, 3, []time.Duration{250 * s, 250 * s}, nil, "LLM error: slow down"},
		{"jitter", RetryConfig{Jitter: 0.25, Random: func() float64 { return 0 }}, []iter.Seq2[Chunk, error]{busy, ok}, 2, []time.Duration{s * 3 / 4}, []ChunkKind{TextDelta, Done}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var waits, told []time.Duration
			tt.cfg.Sleep = func(_ context.Context, d time.Duration) error { waits = append(waits, d); return nil }
			tt.cfg.OnRetry = func(n int, d time.Duration, _ *fault.Error) {
				if told = append(told, d); n != len(told) {
					t.Errorf("retry %d is told as %d", len(told), n)
				}
			}
			if tt.cfg.Random == nil {
				tt.cfg.Random = func() float64 { return 0.5 }
			}
			c := &calls{seqs: tt.seqs}
			var kinds []ChunkKind
			got := ""
			for chunk, err := range Retry(c, tt.cfg).Stream(context.Background(), Request{}) {
				if err != nil {
					got = err.Error()
					continue
				}
				kinds = append(kinds, chunk.Kind)
			}
			if c.n != tt.calls || !reflect.DeepEqual(waits, tt.waits) || !reflect.DeepEqual(told, tt.waits) || !reflect.DeepEqual(kinds, tt.kinds) || got != tt.err {
				t.Fatalf("got %d calls, waits %v, chunks %v, error %q", c.n, waits, kinds, got)
			}
		})
	}
}

func TestRetryContext(t *testing.T) {
	t.Run("cancel ends the wait", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			time.AfterFunc(100*time.Millisecond, cancel)
			start := time.Now()
			_, err := Collect(ctx, Retry(&calls{seqs: []iter.Seq2[Chunk, error]{seq(limited(0))}}, RetryConfig{}).Stream(ctx, Request{}), nil)
			if fault.KindOf(err) != fault.Cancelled || time.Since(start) != 100*time.Millisecond {
				t.Fatalf("got %v after %v", err, time.Since(start))
			}
		})
	})
	t.Run("a wait past the deadline is surfaced at once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
			defer cancel()
			start := time.Now()
			_, err := Collect(ctx, Retry(&calls{seqs: []iter.Seq2[Chunk, error]{seq(limited(0))}}, RetryConfig{}).Stream(ctx, Request{}), nil)
			if fault.KindOf(err) != fault.Provider || time.Since(start) != 0 {
				t.Fatalf("got %v after %v", err, time.Since(start))
			}
		})
	})
	t.Run("a reader that leaves is not called again", func(t *testing.T) {
		c := &calls{seqs: []iter.Seq2[Chunk, error]{seq(limited(0), Chunk{Kind: TextDelta, Text: "a"})}}
		for range Retry(c, RetryConfig{}).Stream(context.Background(), Request{}) {
			break
		}
		if c.n != 1 {
			t.Fatalf("%d calls", c.n)
		}
	})
}

// waiting is a client that answers when its ctx ends.
type waiting struct{}

func (waiting) Stream(ctx context.Context, _ Request) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		<-ctx.Done()
		yield(Chunk{}, fault.From("model.stream", ctx.Err()))
	}
}

func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, err := Collect(t.Context(), Timeout(waiting{}, 3*time.Second).Stream(t.Context(), Request{}), nil)
		e := fault.From("", err)
		if e == nil || e.Code != fault.CodeLLM || !e.Retryable || e.Message != "the model did not finish its answer within 3s" {
			t.Fatalf("got %#v", e)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err = Collect(ctx, Timeout(waiting{}, 3*time.Second).Stream(ctx, Request{}), nil); fault.KindOf(err) != fault.Timeout {
			t.Fatalf("got %v", err)
		}
	})
	if c := (waiting{}); Timeout(c, 0) != Client(c) {
		t.Fatal("no limit must not wrap")
	}
}
