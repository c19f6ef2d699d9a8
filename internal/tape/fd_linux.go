package tape

import "golang.org/x/sys/unix"

// One eventfd a stream fits select, asyncio, libuv and tokio alike.

func openFD() (int, error) { return unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK) }

func raiseFD(fd int) { _, _ = unix.Write(fd, []byte{1, 0, 0, 0, 0, 0, 0, 0}) }

func drainFD(fd int) {
	var b [8]byte
	_, _ = unix.Read(fd, b[:])
}

func closeFD(fd int) { _ = unix.Close(fd) }
