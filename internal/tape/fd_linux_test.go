package tape

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

func readable(fd int) bool {
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, _ := unix.Poll(p, 0)
	return n == 1
}

func TestWait(t *testing.T) {
	tp := New("r", 0)
	c := NewCursor(nil)
	c.AddTape(tp, 0, nil)
	ready := func(want bool, timeout time.Duration) {
		t.Helper()
		got, err := c.Wait(timeout)
		if got != want || err != nil {
			t.Errorf("got %v, %v, want %v", got, err, want)
		}
	}
	buf := make([]byte, 16)
	if n, _, err := c.TryNext(1, buf); n != 0 || err != nil {
		t.Fatal(n, err)
	}
	ready(false, 0)
	ready(false, time.Millisecond)
	tp.Append([]byte("1"))
	ready(true, 0)
	ready(true, -1) // until it is read
	if n, _, _ := c.TryNext(1, buf); string(buf[:n]) != "[1]" {
		t.Errorf("%q", buf[:n])
	}
	for _, cause := range []func(){func() { tp.Append([]byte("2")) }, c.Wake, c.Close} {
		if _, _, err := c.TryNext(9, buf); err != nil && fault.KindOf(err) != fault.Woken {
			t.Fatal(err)
		}
		_, _, _ = c.TryNext(9, buf)
		done := make(chan struct{})
		go func() { defer close(done); cause() }()
		for n, err := 0, error(nil); n == 0 && err == nil; { // the last cause may have raised it once more
			if _, err = c.Wait(-1); err == nil {
				n, _, err = c.TryNext(9, buf)
			}
		}
		<-done
	}
	if _, err := c.Wait(-1); fault.KindOf(err) != fault.Closed || c.fd >= 0 {
		t.Errorf("a closed cursor waits: %v, descriptor %d", err, c.fd)
	}
}
