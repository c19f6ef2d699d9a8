package safego

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestCall(t *testing.T) {
	plain := errors.New("plain")
	tests := []struct {
		name string
		fn   func() error
		want string // "" none
		is   error
	}{
		{"success", func() error { return nil }, "", nil},
		{"an error passes through", func() error { return plain }, "plain", plain},
		{"a panic with a text", func() error { panic("boom") }, "Internal error: panic: boom", nil},
		{"a panic with an error keeps the cause", func() error { panic(plain) }, "Internal error: panic: plain", plain},
		{"a panic with nil", func() error { panic(nil) }, "Internal error: panic: panic called with nil argument", nil},
		{"a runtime error", func() error { m := none(); m["a"] = 1; return nil }, "Internal error: panic: assignment to entry in nil map", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := Call("test.call", tt.fn)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != tt.want && !(strings.Contains(tt.want, "nil argument") && strings.HasPrefix(got, tt.want)) {
				t.Fatalf("got %q, want %q", got, tt.want)
			}
			if tt.is != nil && !errors.Is(err, tt.is) {
				t.Fatalf("%v does not lead to %v", err, tt.is)
			}
			if strings.HasPrefix(tt.want, "Internal") {
				e := fault.From("", err)
				stack, _ := e.Details["stack"].(string)
				if e.Kind != fault.Internal || e.Op != "test.call" || stack == "" || len(stack) > maxStack {
					t.Fatalf("kind %q, op %q, stack of %d bytes", e.Kind, e.Op, len(stack))
				}
			}
		})
	}
}

func TestGo(t *testing.T) {
	t.Run("a panic reaches onPanic", func(t *testing.T) {
		got := make(chan error, 1)
		Go("worker", func(err error) { got <- err }, func() { panic("boom") })
		if err := <-got; fault.KindOf(err) != fault.Internal || err.Error() != "Internal error: panic: boom" {
			t.Fatalf("got %v", err)
		}
	})
	t.Run("Goexit ends the goroutine quietly", func(t *testing.T) {
		done := make(chan struct{})
		Go("worker", nil, func() { defer close(done); runtime.Goexit() })
		<-done
	})
	t.Run("without onPanic the sink gets it, and only the first sink counts", func(t *testing.T) {
		got := make(chan error, 1)
		if !SetSink(func(err error) { got <- err }) {
			t.Fatal("the first sink was refused")
		}
		defer sink.Store(nil)
		if SetSink(func(error) {}) {
			t.Fatal("a second sink was accepted")
		}
		if SetSink(nil) {
			t.Fatal("a nil sink was accepted")
		}
		Go("worker", nil, func() { panic("boom") })
		if err := <-got; err.Error() != "Internal error: panic: boom" {
			t.Fatalf("got %v", err)
		}
		Go("worker", func(error) { panic("again") }, func() { panic("boom") })
		if err := <-got; err.Error() != "Internal error: panic: again" {
			t.Fatalf("got %v", err)
		}
	})
	t.Run("without anybody it is dropped", func(t *testing.T) {
		done := make(chan struct{})
		Go("worker", nil, func() { defer close(done); panic("boom") })
		<-done
	})
}

// none gives a map that cannot be written to.
func none() map[string]int { return nil }
