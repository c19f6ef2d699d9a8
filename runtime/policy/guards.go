package policy

import (
	"crypto/sha256"
	"encoding/json"
	"sync"
)

// guards watch the calls of one run for a model that is stuck.
type guards struct {
	mu       sync.Mutex
	failures int // calls in a row with unusable arguments
	last     [sha256.Size]byte
	count    int // calls in a row like last
	blocks   int // of those, how many were blocked
}

// repeats counts a call of the model and says whether it is one too many of a kind.
func (g *guards) repeats(name string, args json.RawMessage, threshold int) bool {
	if threshold <= 0 {
		return false
	}
	form, err := canonical(args)
	if err != nil {
		form = args
	}
	sum := sha256.Sum256(append([]byte(name+"\x00"), form...))
	g.mu.Lock()
	defer g.mu.Unlock()
	if sum != g.last {
		g.last, g.count, g.blocks = sum, 0, 0
	}
	g.count++
	if g.count <= threshold {
		return false
	}
	g.blocks++
	return true
}

// blocked gives the length of the row, and whether one of it was blocked before.
func (g *guards) blocked() (count int, again bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.count, g.blocks > 1
}

// unusable counts a call with arguments that cannot be used and gives how many came in
// a row; calls inside other tools are not the model's and count for nothing.
func (g *guards) unusable(fromModel bool) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if fromModel {
		g.failures++
		return g.failures
	}
	return 0
}

// usable ends a row of unusable arguments.
func (g *guards) usable() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.failures = 0
}
