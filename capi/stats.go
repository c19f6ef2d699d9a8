package main

import (
	"encoding/json"
	"runtime"
	"runtime/metrics"
	"sync/atomic"
)

// stats is the result of a3s_stats.
type stats struct {
	Handles   map[string]int `json:"handles"`
	Calls     int            `json:"calls"`
	Callbacks int            `json:"callbacks"` // subscriptions whose free_ud was not called yet
	Closing   int            `json:"closing"`   // closes whose clean-up goes on
	Process   *process       `json:"process,omitempty"`
}

// process is what concerns the whole library.
type process struct {
	Goroutines int    `json:"goroutines"`
	HeapBytes  uint64 `json:"heap_bytes"`
	Panics     int64  `json:"panics"` // caught in the background; each is a fault of libA3S
}

// panics counts faults in goroutines that nobody waited for.
var panics atomic.Int64

// subscriptions counts those whose free_ud was not called yet.
var subscriptions atomic.Int64

// stats counts what lives below h, or everything for 0.
func (r *rim) stats(h Handle) ([]byte, error) {
	s := stats{Handles: map[string]int{}}
	for k := agentKind; k < kinds; k++ {
		s.Handles[kindNames[k]] = 0
	}
	if h == 0 {
		live, closing := r.table.counts()
		for k := agentKind; k < kinds; k++ {
			s.Handles[kindNames[k]] = live[k]
		}
		s.Closing, s.Callbacks = closing, int(subscriptions.Load())
		for _, a := range r.table.agents() {
			s.Calls += r.countCalls(a)
		}
		s.Process = &process{Goroutines: runtime.NumGoroutine(), HeapBytes: heapBytes(), Panics: panics.Load()}
		return json.Marshal(s)
	}
	e, err := r.table.get(h, agentKind, sessionKind, runKind, streamKind, registrationKind)
	if err != nil {
		return nil, err
	}
	for _, b := range r.table.below(e) {
		s.Handles[kindNames[b.kind]]++
		if st, ok := b.value.(*stream); ok && st.subscribed.Load() {
			s.Callbacks++
		}
	}
	s.Calls = r.countCalls(e)
	return json.Marshal(s)
}

func (r *rim) countCalls(e *entry) (n int) {
	for _, b := range r.table.below(e) {
		n += b.calls.count()
	}
	return n
}

// heapBytes reads one number; runtime.ReadMemStats would stop the world.
func heapBytes() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
