package main

import (
	"math"
	"runtime/debug"

	"github.com/a3s-lab/liba3s/internal/safego"
)

// The Go runtime takes limits from the environment that the host was started in. Those
// were meant for other programs; here they are what the documentation says.
func init() {
	debug.SetGCPercent(100)
	debug.SetMemoryLimit(math.MaxInt64)
	safego.SetSink(func(error) { panics.Add(1) })
}
