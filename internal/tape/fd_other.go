//go:build !linux

package tape

import "errors"

func openFD() (int, error) { return -1, errors.ErrUnsupported }
func raiseFD(int)          {}
func drainFD(int)          {}
func closeFD(int)          {}
