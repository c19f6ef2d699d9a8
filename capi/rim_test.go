package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a3s-lab/liba3s/internal/tape"
	"github.com/a3s-lab/liba3s/runtime/fault"
)

// fakeCore is a runtime of which a test sees and decides everything.
type fakeCore struct {
	mu     sync.Mutex
	closed []any            // guarded by mu
	told   map[uint64]error // guarded by mu
	tapes  []*tape.Tape     // guarded by mu

	call    func(ctx context.Context, method string) ([]byte, error)
	onClose func(ctx context.Context, on any) error
}

func (f *fakeCore) OpenAgent(_ context.Context, req []byte) (any, error) { return string(req), nil }
func (f *fakeCore) OpenSession(_ context.Context, _ any, req []byte) (any, error) {
	return string(req), nil
}
func (f *fakeCore) StartRun(_ context.Context, _ any, req []byte) (any, error) {
	return string(req), nil
}
func (f *fakeCore) Call(ctx context.Context, _ any, method string, _ []byte) ([]byte, error) {
	return f.call(ctx, method)
}
func (f *fakeCore) Tell(_ any, call uint64, _ []byte, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.told == nil {
		f.told = map[uint64]error{}
	}
	f.told[call] = err
}
func (f *fakeCore) Input(context.Context, any, []byte) error  { return nil }
func (f *fakeCore) Cancel(context.Context, any, string) error { return nil }
func (f *fakeCore) Wait(ctx context.Context, _ any) ([]byte, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
func (f *fakeCore) OpenStream(context.Context, any, []byte) (cursor, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	tp := tape.New("r", 0)
	f.tapes = append(f.tapes, tp)
	c := tape.NewCursor(func(string, int64, int64) []byte { return []byte(`{"type":"gap"}`) })
	c.AddTape(tp, 0, nil)
	c.Last()
	return bubbled{c}, nil
}

// bubbled waits in the time of a synctest bubble, which a wait in the kernel stops.
type bubbled struct{ *tape.Cursor }

func (c bubbled) Wait(timeout time.Duration) (bool, error) {
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		ready, err := c.Cursor.Wait(0)
		if ready || err != nil || timeout >= 0 && time.Since(began) >= timeout {
			return ready, err
		}
	}
}
func (f *fakeCore) Register(context.Context, any, string, []byte) (any, error) { return "reg", nil }
func (f *fakeCore) Chunk(context.Context, any, uint64, []byte) error           { return nil }
func (f *fakeCore) Reply(context.Context, any, uint64, []byte) error           { return nil }
func (f *fakeCore) Close(ctx context.Context, on any) error {
	f.mu.Lock()
	f.closed = append(f.closed, on)
	f.mu.Unlock()
	if f.onClose != nil {
		return f.onClose(ctx, on)
	}
	return nil
}

func (f *fakeCore) closedOnes() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return fmt.Sprint(f.closed)
}

// house is a rim with an agent, a session, a run and a stream of the run.
type house struct {
	*rim
	core                        *fakeCore
	agent, session, run, stream Handle
}

func newHouse(t *testing.T) *house {
	t.Helper()
	h := &house{core: &fakeCore{}}
	h.rim = newRim(h.core)
	var errs [4]error
	h.agent, errs[0] = h.openAgent([]byte("agent"))
	h.session, errs[1] = h.openSession(h.agent, []byte("session"))
	h.run, errs[2] = h.startRun(h.session, []byte("run"))
	h.stream, errs[3] = h.openStream(h.run, nil)
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *house) tape() *tape.Tape { return h.core.tapes[0] }

// gone fails unless nothing is alive.
func (h *house) gone(t *testing.T) {
	t.Helper()
	b, err := h.stats(0)
	if err != nil {
		t.Fatal(err)
	}
	var s stats
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatal(err)
	}
	for k, n := range s.Handles {
		if n != 0 {
			t.Errorf("%d live handles of kind %s", n, k)
		}
	}
	if s.Calls != 0 || s.Closing != 0 {
		t.Errorf("calls %d, closing %d", s.Calls, s.Closing)
	}
}

func kind(t *testing.T, err error, want fault.Kind) {
	t.Helper()
	if got := fault.KindOf(err); got != want {
		t.Errorf("got %q (%v), want %q", got, err, want)
	}
}

func TestCloseCascades(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		if _, err := h.register(h.session, "tool", nil); err != nil {
			t.Fatal(err)
		}
		if st, err := h.close(h.agent, -1, 0); st != fault.OK || err != nil {
			t.Fatalf("got %d, %v", st, err)
		}
		if got, want := h.core.closedOnes(), "[reg session agent]"; got != want {
			t.Errorf("closed %s, want %s", got, want)
		}
		for _, x := range []Handle{h.agent, h.session, h.run, h.stream} {
			_, err := h.close(x, 0, 0)
			kind(t, err, fault.Handle)
		}
		h.gone(t)
	})
}

func TestClosingARunOrAStreamLeavesTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		if _, err := h.close(h.run, -1, 0); err != nil {
			t.Fatal(err)
		}
		if got := h.core.closedOnes(); got != "[]" {
			t.Errorf("closed %s", got)
		}
		_, err := h.rim.stream(h.stream)
		kind(t, err, fault.Handle)
		_, _ = h.close(h.agent, -1, 0)
		h.gone(t)
	})
}

func TestCloseIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		release := make(chan struct{})
		h.core.onClose = func(ctx context.Context, on any) error {
			if on == "session" {
				<-release
			}
			return nil
		}
		began := time.Now()
		_, err := h.close(h.agent, 50, 0)
		kind(t, err, fault.Timeout)
		if d := time.Since(began); d != 50*time.Millisecond {
			t.Errorf("took %v", d)
		}
		if _, closing := h.table.counts(); closing != 1 {
			t.Errorf("closing %d, want 1", closing)
		}
		close(release)
		synctest.Wait()
		h.gone(t)
	})
}

func TestCall(t *testing.T) {
	tests := map[string]struct {
		timeout   int32
		call      func(ctx context.Context, method string) ([]byte, error)
		meanwhile func(h *house)
		want      string
		kind      fault.Kind
	}{
		"result": {call: func(context.Context, string) ([]byte, error) { return []byte("1"), nil }, want: "1"},
		"its own error": {call: func(context.Context, string) ([]byte, error) {
			return nil, fault.New(fault.Busy, "x", "busy")
		}, kind: fault.Busy},
		"past the time-out, acknowledged": {timeout: 10, call: func(ctx context.Context, _ string) ([]byte, error) {
			<-ctx.Done()
			time.Sleep(time.Second) // the operation winds up
			return nil, ctx.Err()
		}, kind: fault.Timeout},
		"done in spite of the time-out": {timeout: 10, call: func(ctx context.Context, _ string) ([]byte, error) {
			<-ctx.Done()
			return []byte("2"), nil
		}, want: "2"},
		"cancelled": {call: block, meanwhile: func(h *house) { _ = h.cancelCall(h.agent, 0) }, kind: fault.Cancelled},
		"closed":    {call: block, meanwhile: func(h *house) { _, _ = h.close(h.session, -1, 0) }, kind: fault.Closed},
		"panic":     {call: func(context.Context, string) ([]byte, error) { panic("x") }, kind: fault.Internal},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHouse(t)
				h.core.call = tt.call
				var got []byte
				var st fault.Status
				finished := make(chan struct{})
				go func() {
					defer close(finished)
					st, _ = guard("a3s_call", func() (err error) {
						got, err = h.call(h.session, "m", nil, tt.timeout)
						return err
					})
				}()
				if tt.meanwhile != nil {
					synctest.Wait()
					tt.meanwhile(h)
				}
				<-finished
				want := fault.Status(0)
				if tt.kind != "" {
					want = tt.kind.Status()
				}
				if string(got) != tt.want || st != want {
					t.Errorf("got %q with %d, want %q with %d", got, st, tt.want, want)
				}
				_, _ = h.close(h.agent, -1, 0)
				h.gone(t)
			})
		})
	}
}

func block(ctx context.Context, _ string) ([]byte, error) { <-ctx.Done(); return nil, ctx.Err() }

func TestStartedCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		h.core.call = func(ctx context.Context, method string) ([]byte, error) {
			switch method {
			case "quick":
				return []byte("{}"), nil
			case "panic":
				panic("x")
			}
			return block(ctx, method)
		}
		quick, _ := h.startCall(h.session, "quick", nil)
		slow, _ := h.startCall(h.session, "slow", nil)
		bad, _ := h.startCall(h.session, "panic", nil)
		if b, err := h.waitCall(h.session, quick, -1); string(b) != "{}" || err != nil {
			t.Errorf("got %s, %v", b, err)
		}
		_, err := h.waitCall(h.session, quick, -1)
		kind(t, err, fault.NotFound)
		_, err = h.waitCall(h.agent, slow, 0)
		kind(t, err, fault.NotFound)
		_, err = h.waitCall(h.session, slow, 0)
		kind(t, err, fault.Timeout)
		_, err = h.waitCall(h.session, bad, -1)
		kind(t, err, fault.Internal)
		if err := h.cancelCall(h.session, slow); err != nil {
			t.Fatal(err)
		}
		_, err = h.waitCall(h.session, slow, -1)
		kind(t, err, fault.Cancelled)
		synctest.Wait()
		kind(t, h.core.told[slow], fault.Cancelled)
		if err, ok := h.core.told[quick]; !ok || err != nil {
			t.Errorf("the end of the call was told as %v, %v", err, ok)
		}
		left, _ := h.startCall(h.session, "slow", nil)
		if left == 0 {
			t.Fatal("no number")
		}
		_, _ = h.close(h.agent, -1, 0)
		h.gone(t)
	})
}

func TestStartedCallsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		h.core.call = func(context.Context, string) ([]byte, error) { return nil, nil }
		for range maxCalls {
			if _, err := h.startCall(h.session, "m", nil); err != nil {
				t.Fatal(err)
			}
		}
		_, err := h.startCall(h.session, "m", nil)
		kind(t, err, fault.Limit)
		_, _ = h.close(h.agent, -1, 0)
		h.gone(t)
	})
}

func TestRunWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		_, err := h.waitRun(h.run, 0)
		kind(t, err, fault.Timeout)
		go func() {
			synctest.Wait()
			_, _ = h.close(h.session, -1, 0)
		}()
		_, err = h.waitRun(h.run, -1)
		kind(t, err, fault.Closed)
		synctest.Wait()
		_, _ = h.close(h.agent, -1, 0)
		h.gone(t)
	})
}

func TestOpenBelowAClosedParent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		p, err := h.table.get(h.agent, agentKind)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = h.close(h.agent, -1, 0)
		// The session came into being while its agent was closed.
		_, err = h.keepHandle(sessionKind, "late", p)
		kind(t, err, fault.Handle)
		if got := h.core.closedOnes(); !strings.Contains(got, "late") {
			t.Errorf("closed %s; the late session is left over", got)
		}
		h.gone(t)
	})
}
