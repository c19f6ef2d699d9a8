//go:build race

package conformance

// The race detector makes large answers slow. 20 MB are over the same bounds as 50; the
// library behind c/driver.c is built without it and gets the whole.
func init() {
	patience *= 4
	largest = 20 << 20
}
