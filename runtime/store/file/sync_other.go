//go:build !linux

package file

import "os"

// syncData makes the content of f survive a power loss.
func syncData(f *os.File) error { return f.Sync() }
