//go:build race

package conformance

// The race detector makes large answers slow.
func init() { patience *= 4 }
