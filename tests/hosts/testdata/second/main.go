// A Go library that has nothing to do with the one under test, for a process that has
// both.
package main

import "C"

import (
	"runtime"
	"strings"
	"sync"
)

// second_work allocates, collects and recovers on several goroutines, and gives n.
//
//export second_work
func second_work(n C.int) C.int {
	var all sync.WaitGroup
	var mu sync.Mutex
	done := C.int(0)
	for i := range int(n) {
		all.Go(func() {
			defer func() {
				if recover() == nil || len(strings.Repeat("x", i<<8)) != i<<8 {
					return
				}
				mu.Lock()
				done++
				mu.Unlock()
			}()
			var nowhere *[1]int
			nowhere[0] = i
		})
	}
	all.Wait()
	runtime.GC()
	return done
}

func main() {}
