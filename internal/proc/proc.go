// Package proc starts every child process of libA3S and ends it together with all that
// it started. It owns sessions and groups, the signal mask, the pipe, the time limits
// and the search for descendants; which command may run, in which environment, and
// whether in a sandbox is for the callers. Linux. Floor 1: fault, safego.
//
// A call's processes are found by their session and group, by their parents, by a mark
// in their environment, and by the pipe they hold. One that leaves its session, loses
// its parent, clears its environment and closes its output all together is not found;
// only a process namespace would hold it. Signals that the host ignores stay ignored in
// a child, as exec has it; SIGPIPE is none of them once Go's runtime is in the process.
package proc

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"github.com/a3s-lab/liba3s/internal/safego"
	"github.com/a3s-lab/liba3s/runtime/fault"
)

// Spec says what to start.
type Spec struct {
	// Path is the program, absolute; Args are its arguments, Args[0] its name.
	Path string
	Args []string
	// Dir is the working directory, absolute.
	Dir string
	// Env is the whole environment, "NAME=value" each. Only the mark is added.
	Env []string
	// Timeout ends the tree; 0 for none. Start does not use it.
	Timeout time.Duration
	// Grace is how long the tree has between SIGTERM and SIGKILL; 0 for 200 ms.
	Grace time.Duration
}

// Result says how a process ended.
type Result struct {
	Code       int // exit status; -1 if a signal ended it or nobody knows
	Unknown    bool
	TimedOut   bool
	Cancelled  bool
	Background int // processes left behind by one that ended by itself; ended by us
}

const (
	defaultGrace = 200 * time.Millisecond
	// drain is how long output is read after the process has ended while something it
	// left behind holds the pipe.
	drain = 500 * time.Millisecond
	// settle bounds the reading of what is left in the pipe when the tree is gone.
	settle = 100 * time.Millisecond
	// buffer is the size of the pieces of output.
	buffer = 32 << 10
)

func (s Spec) grace() time.Duration {
	if s.Grace > 0 {
		return s.Grace
	}
	return defaultGrace
}

// Run starts a process without input, hands what it and its descendants print to
// output (both streams as they come, one call at a time, the bytes for the call only),
// and returns when the whole tree is gone. A slow output slows the process down;
// nothing is kept. Cancelling ctx and the time-out end the tree. The error says that
// the process could not be started, or that output panicked.
func Run(ctx context.Context, spec Spec, output func([]byte)) (Result, error) {
	if ctx.Err() != nil {
		return stopped(ctx, Result{Code: -1}), nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return Result{}, pipeError(err)
	}
	defer r.Close()
	t, err := start(spec, nil, w, w)
	w.Close()
	if err != nil {
		return Result{}, err
	}
	p := pump(r, output)
	res, err := t.follow(ctx, spec, p)
	r.SetReadDeadline(time.Now().Add(settle)) // what cannot have a deadline ends with the tree
	<-p.done
	code, known := t.reap()
	res.Code, res.Unknown = code, !known
	if err == nil && p.err != nil {
		err = p.err
	}
	return res, err
}

// follow waits for the end of t in one of its four ways and clears up.
func (t *tree) follow(ctx context.Context, spec Spec, p *pumping) (Result, error) {
	var limit <-chan time.Time
	if spec.Timeout > 0 {
		timer := time.NewTimer(spec.Timeout)
		defer timer.Stop()
		limit = timer.C
	}
	var res Result
	select {
	case <-t.exited:
		t.linger(ctx, limit, p)
		res.Background = t.end(spec.grace())
		return res, nil
	case <-ctx.Done():
		res = stopped(ctx, res)
	case <-limit:
		res.TimedOut = true
	case <-p.failed:
	}
	t.end(spec.grace())
	return res, nil
}

// linger gives what was left behind a moment to finish its output.
func (t *tree) linger(ctx context.Context, limit <-chan time.Time, p *pumping) {
	timer := time.NewTimer(drain)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
	case <-limit:
	case <-ctx.Done():
	}
}

func stopped(ctx context.Context, r Result) Result {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		r.TimedOut = true
	} else {
		r.Cancelled = true
	}
	return r
}

// pumping reads the pipe of a process.
type pumping struct {
	done   chan struct{} // closed at the end of the output
	failed chan struct{} // closed if output panicked
	err    error         // set before both are closed
}

func pump(r *os.File, output func([]byte)) *pumping {
	p := &pumping{done: make(chan struct{}), failed: make(chan struct{})}
	safego.Go("proc.output", nil, func() {
		defer close(p.done)
		p.err = safego.Call("proc.output", func() error {
			buf := make([]byte, buffer)
			for {
				n, err := r.Read(buf)
				if n > 0 && output != nil {
					output(buf[:n])
				}
				if err != nil {
					return nil // the end, or the deadline that stands for it
				}
			}
		})
		if p.err != nil {
			close(p.failed)
		}
	})
	return p
}

// Child is a running process with its pipes: a server that is spoken to.
type Child struct {
	// Stdin, Stdout and Stderr are the process's; Stop closes them.
	Stdin  io.WriteCloser
	Stdout io.ReadCloser
	Stderr io.ReadCloser

	tree  *tree
	grace time.Duration
	stop  chan struct{} // holds one token: the right to stop
	res   Result        // set once stop is closed
}

// Start starts a process to talk to. Whoever starts it calls Stop, also when it has
// ended by itself.
func Start(spec Spec) (*Child, error) {
	var ends [6]*os.File
	closeAll := func(files ...*os.File) {
		for _, f := range files {
			if f != nil {
				f.Close()
			}
		}
	}
	for i := 0; i < len(ends); i += 2 {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(ends[:]...)
			return nil, pipeError(err)
		}
		ends[i], ends[i+1] = r, w
	}
	t, err := start(spec, ends[0], ends[3], ends[5])
	closeAll(ends[0], ends[3], ends[5])
	if err != nil {
		closeAll(ends[1], ends[2], ends[4])
		return nil, err
	}
	c := &Child{Stdin: ends[1], Stdout: ends[2], Stderr: ends[4], tree: t, grace: spec.grace(), stop: make(chan struct{}, 1)}
	c.stop <- struct{}{}
	return c, nil
}

// Done is closed when the process itself has ended.
func (c *Child) Done() <-chan struct{} { return c.tree.exited }

// Stop ends the process and its descendants, closes the pipes and says how it ended.
// Closing the input is the first request to end. It may be called again and from
// several goroutines; all wait for the end.
func (c *Child) Stop() Result {
	if _, first := <-c.stop; !first {
		return c.res
	}
	defer close(c.stop)
	c.Stdin.Close()
	c.tree.end(c.grace)
	c.Stdout.Close()
	c.Stderr.Close()
	code, known := c.tree.reap()
	c.res = Result{Code: code, Unknown: !known}
	return c.res
}

func pipeError(err error) error {
	return fault.New(fault.IO, "proc.start", "cannot make a pipe: %v", err).Retry()
}
