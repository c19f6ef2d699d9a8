package tape

import "golang.org/x/sys/unix"

func readable(fd int) bool {
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, _ := unix.Poll(p, 0)
	return n == 1
}
