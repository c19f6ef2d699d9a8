// Package safego starts every goroutine of libA3S and turns a panic into an error, so
// that no fault of ours can end the host's process. It owns nothing but the recover;
// who waits for a goroutine and who ends it is the caller's part. Floor 1: it imports
// fault.
package safego

import (
	"fmt"
	"runtime/debug"
	"sync/atomic"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

// maxStack bounds the stack that travels in an error's details.
const maxStack = 8 << 10

// sink receives the panics of goroutines that were started without an onPanic.
var sink atomic.Pointer[func(error)]

// SetSink names the receiver of panics that nobody else takes. It can be set once in a
// process: the first call wins and returns true, later ones change nothing and return
// false. The function is called on the goroutine that panicked.
func SetSink(fn func(error)) bool {
	return fn != nil && sink.CompareAndSwap(nil, &fn)
}

// Go runs fn on a new goroutine. A panic in it becomes a *fault.Error of kind Internal
// that is handed to onPanic, on that goroutine; a nil onPanic hands it to the sink, and
// without a sink it is dropped. name says what the goroutine does and is the op of the
// error. Go does not wait.
func Go(name string, onPanic func(error), fn func()) {
	go func() {
		err := Call(name, func() error { fn(); return nil })
		if err != nil {
			report(name, onPanic, err)
		}
	}()
}

// Call runs fn on the caller's goroutine and returns its error, or a *fault.Error of
// kind Internal under op if it panicked.
func Call(op string, fn func() error) (err error) {
	returned := false
	defer func() {
		p := recover()
		switch {
		case p != nil:
			err = panicked(op, p)
		case !returned:
			// Without a panic value only runtime.Goexit gets here. The goroutine ends
			// whatever we return, but the named result must not claim success.
			err = fault.Of(fault.CodeInternal, op, "the goroutine was ended from inside; this is a fault of the library")
		}
	}()
	err = fn()
	returned = true
	return err
}

// report hands err over and survives a receiver that panics in its turn.
func report(name string, onPanic func(error), err error) {
	take := onPanic
	if take == nil {
		if s := sink.Load(); s != nil {
			take = *s
		}
	}
	if take == nil {
		return
	}
	second := Call(name, func() error { take(err); return nil })
	if s := sink.Load(); second != nil && onPanic != nil && s != nil {
		_ = Call(name, func() error { (*s)(second); return nil })
	}
}

// panicked describes a panic. It must be called while the panicking stack is live.
func panicked(op string, p any) error {
	stack := debug.Stack()
	if len(stack) > maxStack {
		stack = stack[:maxStack]
	}
	e := fault.Of(fault.CodeInternal, op, "panic: %s", describe(p)).With("stack", string(stack))
	if cause, ok := p.(error); ok {
		e.Err = cause
	}
	return e
}

// describe prints a panic value whose own Error or String method may panic again; fmt
// recovers from that.
func describe(p any) string { return fmt.Sprintf("%v", p) }
