package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

func (h *house) put(t *testing.T, n ...int) {
	t.Helper()
	for _, i := range n {
		h.tape().Append([]byte(fmt.Sprint(i)))
	}
}

func TestNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		s, err := h.rim.stream(h.stream)
		if err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 64)
		read := func(timeout int32, events uint32, buf []byte) string {
			n, needed, err := s.next(timeout, events, buf)
			if err != nil {
				return fmt.Sprintf("%s %d", fault.KindOf(err), needed)
			}
			return string(buf[:n])
		}
		want := func(got, want string) {
			t.Helper()
			if got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
		want(read(0, 0, buf), "")
		began := time.Now()
		want(read(20, 0, buf), "")
		if d := time.Since(began); d != 20*time.Millisecond {
			t.Errorf("waited %v", d)
		}
		h.put(t, 1, 2, 3)
		want(read(0, 2, buf), "[1,2]")
		want(read(0, 2, buf), "[3]")
		h.tape().Append([]byte(`"` + strings.Repeat("x", 100) + `"`))
		want(read(-1, 0, buf), "buffer 104")
		want(read(-1, 0, make([]byte, 104)), `["`+strings.Repeat("x", 100)+`"]`)
		s.cursor.Wake()
		want(read(-1, 0, buf), "woken 0")
		go func() {
			synctest.Wait()
			if _, _, err := s.next(0, 0, make([]byte, 64)); fault.KindOf(err) != fault.Busy {
				t.Errorf("a second reader got %v", err)
			}
			h.put(t, 4)
		}()
		want(read(-1, 0, buf), "[4]")
		h.tape().End()
		want(read(-1, 0, buf), "end 0")
		_, _ = h.close(h.agent, -1, 0)
		h.gone(t)
	})
}

// noFD is a stream in a process without a descriptor to spare.
type noFD struct{ cursor }

func (noFD) Wait(time.Duration) (bool, error) { return false, errors.New("too many open files") }

func TestNextWithoutADescriptor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		s, _ := h.rim.stream(h.stream)
		s.cursor = noFD{s.cursor}
		buf := make([]byte, 64)
		if n, _, err := s.next(20, 0, buf); n != 0 || err != nil {
			t.Errorf("nothing came, and next gave %d, %v", n, err)
		}
		go func() {
			synctest.Wait()
			h.put(t, 1)
		}()
		if n, _, err := s.next(-1, 0, buf); string(buf[:n]) != "[1]" || err != nil {
			t.Errorf("got %q, %v", buf[:n], err)
		}
		_, _ = h.close(h.agent, -1, 0)
		h.gone(t)
	})
}

func TestNextEndsWhenTheStreamIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		s, _ := h.rim.stream(h.stream)
		go func() {
			synctest.Wait()
			if _, err := h.close(h.stream, -1, 0); err != nil {
				t.Error(err)
			}
		}()
		_, _, err := s.next(-1, 0, make([]byte, 64))
		kind(t, err, fault.Closed)
		synctest.Wait()
		_, _ = h.close(h.agent, -1, 0)
		h.gone(t)
	})
}

// listener gathers what a subscription delivers.
type listener struct {
	batches []string
	ended   int
	during  func()
}

func (l *listener) subscription(batch uint32, delay time.Duration) subscription {
	return subscription{batch: batch, delay: delay, deliver: func(b []byte) {
		if l.ended > 0 {
			panic("an event after the end")
		}
		l.batches = append(l.batches, string(b))
		if l.during != nil {
			l.during()
		}
	}, finish: func() { l.ended++ }}
}

func (l *listener) numbers(t *testing.T) (all []int) {
	t.Helper()
	for _, b := range l.batches {
		var n []int
		if err := json.Unmarshal([]byte(b), &n); err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		all = append(all, n...)
	}
	return all
}

func TestSubscribe(t *testing.T) {
	tests := map[string]struct {
		batch uint32
		delay time.Duration
		want  []string
	}{
		"at once":             {0, 0, []string{"[1]", "[2,3]"}},
		"small batches":       {1, 0, []string{"[1]", "[2]", "[3]"}},
		"gathered":            {0, time.Second, []string{"[1,2,3]"}},
		"gathered, but small": {2, time.Second, []string{"[1,2]", "[3]"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHouse(t)
				s, _ := h.rim.stream(h.stream)
				var l listener
				if err := s.subscribe(l.subscription(tt.batch, tt.delay)); err != nil {
					t.Fatal(err)
				}
				_, _, err := s.next(0, 0, make([]byte, 64))
				kind(t, err, fault.Busy)
				kind(t, s.subscribe(l.subscription(1, 0)), fault.Busy)
				h.put(t, 1)
				synctest.Wait()
				h.tape().Append([]byte("2"), []byte("3"))
				time.Sleep(5 * time.Second)
				h.tape().End()
				synctest.Wait()
				if !slices.Equal(l.batches, tt.want) || l.ended != 1 {
					t.Errorf("got %v, ended %d times, want %v", l.batches, l.ended, tt.want)
				}
				_, _ = h.close(h.agent, -1, 0)
				h.gone(t)
			})
		})
	}
}

func TestSubscriptionOfALargeEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		s, _ := h.rim.stream(h.stream)
		var l listener
		_ = s.subscribe(l.subscription(0, time.Millisecond))
		large := `"` + strings.Repeat("x", 3*fullBuffer) + `"`
		h.tape().Append([]byte(large))
		s.cursor.Wake()
		synctest.Wait()
		h.tape().End()
		time.Sleep(time.Second)
		synctest.Wait()
		if len(l.batches) != 1 || l.batches[0] != "["+large+"]" || l.ended != 1 {
			t.Errorf("got %d batches, ended %d times", len(l.batches), l.ended)
		}
		_, _ = h.close(h.agent, -1, 0)
		h.gone(t)
	})
}

// Closing a parent lets a subscriber see the end; nothing comes after close returned.
func TestCloseReadsSubscriptionsToTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		s, _ := h.rim.stream(h.stream)
		var l listener
		_ = s.subscribe(l.subscription(0, 0))
		h.core.onClose = func(_ context.Context, on any) error {
			if on == "session" {
				h.put(t, 7)
				h.tape().End()
			}
			return nil
		}
		if _, err := h.close(h.agent, -1, 0); err != nil {
			t.Fatal(err)
		}
		if got := l.numbers(t); !slices.Equal(got, []int{7}) || l.ended != 1 {
			t.Errorf("got %v, ended %d times", got, l.ended)
		}
		h.gone(t)
	})
}

func TestCloseFromInsideACallback(t *testing.T) {
	for name, what := range map[string]func(*house) Handle{
		"the stream":  func(h *house) Handle { return h.stream },
		"the session": func(h *house) Handle { return h.session },
		"the agent":   func(h *house) Handle { return h.agent },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHouse(t)
				s, _ := h.rim.stream(h.stream)
				var l listener
				l.during = func() {
					st, err := h.close(what(h), -1, h.stream)
					if st != fault.Pending || err != nil {
						t.Errorf("got %d, %v", st, err)
					}
					h.put(t, 8)
				}
				_ = s.subscribe(l.subscription(1, 0))
				h.put(t, 7)
				synctest.Wait()
				if got := l.numbers(t); !slices.Equal(got, []int{7}) || l.ended != 1 {
					t.Errorf("got %v, ended %d times", got, l.ended)
				}
				_, _ = h.close(h.agent, -1, 0)
				synctest.Wait()
				h.gone(t)
			})
		})
	}
}

func TestACallbackThatDoesNotReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		s, _ := h.rim.stream(h.stream)
		release := make(chan struct{})
		var l listener
		l.during = func() { <-release }
		_ = s.subscribe(l.subscription(1, 0))
		h.put(t, 7)
		synctest.Wait()
		_, err := h.close(h.agent, 100, 0)
		kind(t, err, fault.Timeout)
		if got := h.core.closedOnes(); got != "[session agent]" {
			t.Errorf("closed %s; the callback held up the clean-up", got)
		}
		close(release)
		synctest.Wait()
		if l.ended != 1 {
			t.Errorf("ended %d times", l.ended)
		}
		h.gone(t)
	})
}
