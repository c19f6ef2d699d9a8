package file

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// syncData makes the content of f survive a power loss. It leaves out times, which
// would cost a second write of the disk for every flush.
func syncData(f *os.File) error {
	for {
		err := unix.Fdatasync(int(f.Fd()))
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
