package tape

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

func gap(label string, from, to int64) []byte {
	return fmt.Appendf(nil, `{"gap":%q,"from":%d,"to":%d}`, label, from, to)
}

func item(n int64) []byte { return fmt.Appendf(nil, `{"n":%d}`, n) }

// drain reads everything there is now, decoded.
func drain(t *testing.T, c *Cursor, limit, size int) []map[string]any {
	t.Helper()
	var all []map[string]any
	buf := make([]byte, size)
	for {
		n, needed, err := c.TryNext(limit, buf)
		if errors.Is(err, fault.New(fault.Buffer, "", "")) {
			buf = make([]byte, needed)
			continue
		}
		if n == 0 && reading(c) {
			<-c.wake
			continue
		}
		if n == 0 {
			return all
		}
		var batch []map[string]any
		if err := json.Unmarshal(buf[:n], &batch); err != nil {
			t.Fatalf("batch %q: %v", buf[:n], err)
		}
		if len(batch) > limit {
			t.Fatalf("%d items, limit %d", len(batch), limit)
		}
		all = append(all, batch...)
	}
}

// reading says that a backfill is being read, or was since the last look.
func reading(c *Cursor) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.parts) > 0 && (c.parts[0].loading || len(c.parts[0].loaded) > 0)
}

func TestCursorReadsEverythingOnceInOrder(t *testing.T) {
	for _, size := range []int{2, 20, 64, 1 << 16} {
		for _, limit := range []int{1, 7, 256} {
			tp := New("r", 0)
			c := NewCursor(gap)
			c.AddFrame([]byte(`{"n":-1}`), 0)
			c.AddTape(tp, 0, nil)
			c.Last()
			for n := range int64(500) {
				tp.Append(item(n))
			}
			tp.End()
			got := drain(t, c, limit, size)
			if len(got) != 501 {
				t.Fatalf("size %d limit %d: %d items", size, limit, len(got))
			}
			for i, m := range got {
				if m["n"] != float64(i-1) {
					t.Fatalf("size %d limit %d: item %d is %v", size, limit, i, m)
				}
			}
			if _, _, err := c.TryNext(1, make([]byte, 64)); fault.KindOf(err) != fault.End {
				t.Fatalf("after the end: %v", err)
			}
			c.Close()
		}
	}
}

func TestBlockedReaderIsWokenClosedAndCancelled(t *testing.T) {
	cases := []struct {
		name string
		do   func(c *Cursor, cancel func())
		want fault.Kind
	}{
		{"wake", func(c *Cursor, _ func()) { c.Wake() }, fault.Woken},
		{"close", func(c *Cursor, _ func()) { c.Close() }, fault.Closed},
		{"cancel", func(_ *Cursor, cancel func()) { cancel() }, fault.Cancelled},
		{"end", func(c *Cursor, _ func()) { c.Last() }, fault.End},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			c := NewCursor(gap)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() {
				_, _, err := c.Next(ctx, 1, make([]byte, 64))
				done <- err
			}()
			tc.do(c, cancel)
			if err := <-done; fault.KindOf(err) != tc.want {
				t.Fatalf("%v", err)
			}
			cancel()
			c.Close()
		})
	}
}

// Who closes a stream is no second reader: its reader hears that it is closed.
func TestClosedWhileItIsLookedAt(t *testing.T) {
	c := NewCursor(gap)
	c.read.Lock() // as Close does, when it has said that the stream is closed
	c.closed = true
	if _, _, err := c.TryNext(1, make([]byte, 64)); fault.KindOf(err) != fault.Closed {
		t.Errorf("while it is closed: %v", err)
	}
	c.closed = false
	if _, _, err := c.TryNext(1, make([]byte, 64)); fault.KindOf(err) != fault.Busy {
		t.Errorf("while it is read: %v", err)
	}
	c.read.Unlock()
	c.Close()
}

func TestManyReadersWhileWriting(t *testing.T) {
	tp := New("r", 0)
	var wg sync.WaitGroup
	for range 8 {
		c := NewCursor(gap)
		c.AddTape(tp, 0, nil)
		c.Last()
		if _, err := c.FD(); err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			defer c.Close()
			want := int64(0)
			buf := make([]byte, 1<<12)
			for {
				n, _, err := c.Next(t.Context(), 1+rand.IntN(64), buf)
				if fault.KindOf(err) == fault.End {
					if want != 5000 {
						t.Errorf("ended at %d", want)
					}
					return
				}
				var batch []struct{ N int64 }
				if err := json.Unmarshal(buf[:n], &batch); err != nil {
					t.Errorf("%q: %v", buf[:n], err)
					return
				}
				for _, b := range batch {
					if b.N != want {
						t.Errorf("got %d, want %d", b.N, want)
						return
					}
					want++
				}
			}
		})
	}
	for n := range int64(5000) {
		tp.Append(item(n))
	}
	tp.End()
	wg.Wait()
}

func TestFDIsReadableExactlyWhileSomethingIsPending(t *testing.T) {
	tp := New("r", 0)
	c := NewCursor(gap)
	defer c.Close()
	c.AddTape(tp, 0, nil)
	tp.Append(item(0))
	fd, err := c.FD()
	if err != nil {
		t.Fatal(err)
	}
	check := func(want bool) {
		t.Helper()
		if got := readable(fd); got != want {
			t.Fatalf("readable %v, want %v", got, want)
		}
	}
	check(true)
	drain(t, c, 10, 64)
	check(false)
	tp.Append(item(1))
	check(true)
	drain(t, c, 10, 64)
	check(false)
	c.Last()
	tp.End()
	check(true)
}

func TestBehindSaysWhoLagsAndWhenItMoves(t *testing.T) {
	tp := New("r", 0)
	tp.Append(item(0), item(1), item(2), item(3))
	if low, _ := tp.Behind(); low != 4 {
		t.Fatalf("without a cursor: %d", low)
	}
	c, lost := NewCursor(gap), NewCursor(gap)
	defer lost.Close()
	lost.AddTape(tp, 0, nil)
	tp.Trim(1)
	c.AddTape(tp, 1, nil)
	low, moved := tp.Behind()
	if low != 1 {
		t.Fatalf("%d, want that of the one that lost nothing", low)
	}
	drain(t, c, 10, 64)
	select {
	case <-moved:
	case <-time.After(5 * time.Second):
		t.Fatal("not told")
	}
	if low, _ = tp.Behind(); low != 4 {
		t.Fatalf("after reading: %d", low)
	}
	c.Close()
}

func BenchmarkDrain(b *testing.B) {
	tp := New("r", 0)
	it := fmt.Appendf(nil, "%0237d", 0)
	for range 1 << 14 {
		tp.Append(it)
	}
	buf := make([]byte, 128<<10)
	b.ReportAllocs()
	n := 0
	for n < b.N {
		c := NewCursor(gap)
		c.AddTape(tp, 0, nil)
		for {
			w, _, _ := c.TryNext(256, buf)
			if w == 0 {
				break
			}
			n += (w - 1) / 238
		}
		c.Close()
	}
}

// Readers and a writer that trims run against each other: whatever is not told is told
// as a gap, in order, and nothing breaks.
func TestReadersWhileTrimming(t *testing.T) {
	tp := New("r", 0)
	var wg sync.WaitGroup
	for range 4 {
		c := NewCursor(gap)
		c.AddTape(tp, 0, nil)
		c.Last()
		wg.Go(func() {
			defer c.Close()
			want, buf := 0.0, make([]byte, 256)
			for {
				n, _, err := c.Next(t.Context(), 8, buf)
				if fault.KindOf(err) == fault.End {
					if want != 20000 {
						t.Errorf("ended at %v", want)
					}
					return
				}
				var batch []map[string]any
				if err := json.Unmarshal(buf[:n], &batch); err != nil {
					t.Errorf("batch %q: %v", buf[:n], err)
					return
				}
				for _, m := range batch {
					at, isGap := m["from"].(float64)
					if !isGap {
						at = m["n"].(float64)
					}
					if at != want {
						t.Errorf("at %v, want %v: %v", at, want, m)
						return
					}
					if want++; isGap {
						want = m["to"].(float64)
					}
				}
			}
		})
	}
	for n := range int64(20000) {
		tp.Append(item(n))
		tp.Trim(n - 3)
	}
	tp.End()
	wg.Wait()
}

// The reader asks where the tape stands and then copies; a trim may come between.
func TestFillOfATrimmedItemCopiesNothing(t *testing.T) {
	tp := New("r", 0)
	for n := range int64(500) {
		tp.Append(item(n))
	}
	tp.Trim(400)
	if w, pos, needed := tp.fill(make([]byte, 256), 1, 10, 5); w != 1 || pos != 10 || needed != 0 {
		t.Fatalf("end %d, position %d, needed %d", w, pos, needed)
	}
}

// What is trimmed is used again, and neither a reader that lags nor one that follows
// notices.
func TestTrimmedMemoryIsUsedAgain(t *testing.T) {
	tp := New("r", 0)
	c := NewCursor(gap)
	defer c.Close()
	c.AddTape(tp, 0, nil)
	c.Last()
	filled := func(n int64, size int) []byte { return fmt.Appendf(nil, `{"n":%d,"x":"%0*d"}`, n, size, 0) }
	read := int64(0)
	for n := range int64(400) {
		size := 1000
		if n%97 == 0 {
			size = 80 << 10 // more than a chunk
		}
		tp.Append(filled(n, size))
		if n >= 100 {
			tp.Trim(n - 100)
		}
		if n%50 == 49 {
			for _, m := range drain(t, c, 256, 1<<20) {
				if m["n"] != float64(read) {
					t.Fatalf("item %d is %v", read, m["n"])
				}
				read++
			}
		}
	}
	if allocs := testing.AllocsPerRun(100, func() {
		_, next, _ := tp.Bounds()
		tp.Append(make([]byte, 4<<10))
		tp.Trim(next - 100)
	}); allocs > 1 { // the item itself
		t.Errorf("%v allocations an item", allocs)
	}
}
