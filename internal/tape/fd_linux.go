package tape

import (
	"errors"
	"math"
	"time"

	"golang.org/x/sys/unix"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

// One eventfd a stream fits select, asyncio, libuv and tokio alike.

func openFD() (int, error) { return unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK) }

func raiseFD(fd int) { _, _ = unix.Write(fd, []byte{1, 0, 0, 0, 0, 0, 0, 0}) }

func drainFD(fd int) {
	var b [8]byte
	_, _ = unix.Read(fd, b[:])
}

func closeFD(fd int) { _ = unix.Close(fd) }

// waitFD waits until fd is readable, a signal came or the time is up, which alone is false.
func waitFD(fd int, timeout time.Duration) (bool, error) {
	ms := -1
	if timeout >= 0 {
		ms = int(min((timeout+time.Millisecond-1)/time.Millisecond, math.MaxInt32))
	}
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, ms)
	if err != nil && !errors.Is(err, unix.EINTR) {
		return false, fault.New(fault.IO, "stream.next", "poll: %v", err)
	}
	return n > 0 || err != nil, nil
}
