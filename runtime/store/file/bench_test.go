package file_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/a3s-lab/liba3s/runtime/record"
	"github.com/a3s-lab/liba3s/runtime/store/storetest"
)

// event is a record of n bytes.
func event(n int) []byte {
	head := `{"version":1,"type":"text_delta","payload":{"text":"`
	tail := `"},"metadata":{"run_id":"run-0190a3f0-0000-7000-8000-000000000000","session_id":"session-0190a3f0-0000-7000-8000-000000000000","sequence":1234,"timestamp_ms":1700000000000}}`
	return []byte(head + strings.Repeat("x", max(0, n-len(head)-len(tail))) + tail)
}

func BenchmarkAppend(b *testing.B) {
	for _, flushed := range []bool{false, true} {
		b.Run(fmt.Sprintf("237B/flush=%v", flushed), func(b *testing.B) {
			se, _ := storetest.Open(b, openStore(b, b.TempDir(), nil), sessionID)
			group := [][]byte{event(237)}
			b.SetBytes(int64(len(group[0])))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := se.Append(background, group); err != nil {
					b.Fatal(err)
				}
				if flushed {
					if err := se.Flush(background); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// An action is the intent of a call and, later, its outcome: two appends.
func BenchmarkAction(b *testing.B) {
	se, _ := storetest.Open(b, openStore(b, b.TempDir(), nil), sessionID)
	intent, outcome := [][]byte{event(500), event(300)}, [][]byte{event(2000)}
	for b.Loop() {
		for _, group := range [][][]byte{intent, outcome} {
			if _, err := se.Append(background, group); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func fill(b *testing.B, dir string, facts, size int) {
	se, _ := storetest.Open(b, openStore(b, dir, nil), sessionID)
	group := make([][]byte, 0, 100)
	for i := range facts {
		if group = append(group, event(size)); len(group) == cap(group) || i == facts-1 {
			if _, err := se.Append(background, group); err != nil {
				b.Fatal(err)
			}
			group = group[:0]
		}
	}
	storetest.Close(b, se)
}

// Replay reads a journal that is open, recover opens it first, which checks it, and
// decodes every record.
func BenchmarkReplay(b *testing.B) {
	const n = 1000
	dir := b.TempDir()
	fill(b, dir, n, 4300)
	b.Run("replay/1000x4.3KB", func(b *testing.B) {
		se, _ := storetest.Open(b, openStore(b, dir, nil), sessionID)
		defer se.Close()
		b.SetBytes(n * 4300)
		for b.Loop() {
			got := 0
			for _, err := range se.Read(background, record.Pos{}) {
				if err != nil {
					b.Fatal(err)
				}
				got++
			}
			if got != n {
				b.Fatal(got)
			}
		}
	})
	b.Run("recover/1000x4.3KB", func(b *testing.B) {
		s := openStore(b, dir, nil)
		b.SetBytes(n * 4300)
		for b.Loop() {
			se, kept := storetest.Open(b, s, sessionID)
			for fact, err := range kept.Facts {
				if err == nil {
					_, err = record.Decode(fact)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
			storetest.Close(b, se)
		}
	})
}

var soak = flag.Bool("soak", false, "also resume a journal of 1 GB")

// Resume of a big journal: the peak of the heap must not follow its size.
func BenchmarkResume(b *testing.B) {
	sizes := []int{64}
	if *soak {
		sizes = append(sizes, 1024)
	}
	for _, mb := range sizes {
		b.Run(fmt.Sprintf("%dMB", mb), func(b *testing.B) {
			const size = 4300
			facts := mb << 20 / size
			dir := b.TempDir()
			fill(b, dir, facts, size)
			base := heap()
			var most uint64
			s := openStore(b, dir, nil)
			var took time.Duration
			for b.Loop() {
				start := time.Now()
				se, kept := storetest.Open(b, s, sessionID)
				i := 0
				for _, err := range kept.Facts {
					if err != nil {
						b.Fatal(err)
					}
					if i++; i%(facts/8) == 0 {
						b.StopTimer()
						pause := time.Now()
						most = max(most, heap())
						took -= time.Since(pause)
						b.StartTimer()
					}
				}
				storetest.Close(b, se)
				took += time.Since(start)
			}
			b.ReportMetric(float64(max(most, base)-base)/(1<<20), "MB-heap")
			b.ReportMetric(float64(mb)*float64(b.N)/took.Seconds(), "MB/s")
			if err := os.RemoveAll(dir); err != nil {
				b.Fatal(err)
			}
		})
	}
}
