//go:build !linux

package tape

import (
	"errors"
	"time"
)

func openFD() (int, error)                    { return -1, errors.ErrUnsupported }
func raiseFD(int)                             {}
func drainFD(int)                             {}
func closeFD(int)                             {}
func waitFD(int, time.Duration) (bool, error) { return false, errors.ErrUnsupported }
