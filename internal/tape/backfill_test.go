package tape

import (
	"context"
	"encoding/json"
	"testing"
)

func TestTrimmedItemsComeFromBackfillOrAsGap(t *testing.T) {
	tp := New("r", 0)
	for n := range int64(100) {
		tp.Append(item(n))
	}
	tp.Trim(60)
	stopped := 0
	fill := func(_ context.Context, from int64) (func() (int64, []byte, error), func()) {
		n := from
		return func() (int64, []byte, error) { n++; return n - 1, item(n - 1), nil }, func() { stopped++ }
	}
	c := NewCursor(gap)
	c.AddTape(tp, 10, fill)
	got := drain(t, c, 16, 256)
	if len(got) != 90 || got[0]["n"] != 10.0 || got[89]["n"] != 99.0 || stopped != 1 {
		t.Fatalf("%d items, first %v, stopped %d", len(got), got[0], stopped)
	}
	c.Close()

	// The backfill begins late and ends early: a gap before it, and one behind it.
	part := func(_ context.Context, _ int64) (func() (int64, []byte, error), func()) {
		n := int64(20)
		return func() (int64, []byte, error) {
			if n == 30 {
				return 0, nil, nil
			}
			n++
			return n - 1, item(n - 1), nil
		}, func() {}
	}
	for _, size := range []int{2, 40, 256} {
		c = NewCursor(gap)
		c.AddTape(tp, 10, part)
		got = drain(t, c, 16, size)
		if len(got) != 52 || got[0]["to"] != 20.0 || got[1]["n"] != 20.0 || got[10]["n"] != 29.0 || got[11]["from"] != 30.0 || got[11]["to"] != 60.0 || got[12]["n"] != 60.0 {
			t.Fatalf("size %d: %d items: %v", size, len(got), got)
		}
		c.Close()
	}

	c = NewCursor(gap)
	c.AddTape(tp, 10, nil)
	got = drain(t, c, 16, 256)
	if len(got) != 41 || got[0]["gap"] != "r" || got[0]["from"] != 10.0 || got[0]["to"] != 60.0 || got[1]["n"] != 60.0 {
		t.Fatalf("%d items, first %v", len(got), got[0])
	}
	c.Close()
	if first, next, bytes := tp.Bounds(); first != 60 || next != 100 || bytes != 40*int64(len(item(60))) {
		t.Fatalf("bounds %d %d %d", first, next, bytes)
	}
}

// A backfill ends where its source ended when it was opened; a reader that lags on sees
// what came later all the same.
func TestBackfillThatEndedEarlyIsOpenedAgain(t *testing.T) {
	tp := New("r", 0)
	add := func(upTo int64) {
		for _, next, _ := tp.Bounds(); next < upTo; next++ {
			tp.Append(item(next))
		}
	}
	fill := func(_ context.Context, from int64) (func() (int64, []byte, error), func()) {
		n, end := from, int64(0)
		_, end, _ = tp.Bounds()
		return func() (int64, []byte, error) {
			if n == end {
				return 0, nil, nil
			}
			n++
			return n - 1, item(n - 1), nil
		}, func() {}
	}
	c := NewCursor(gap)
	defer c.Close()
	c.AddTape(tp, 0, fill)
	add(20)
	tp.Trim(15)
	buf := make([]byte, 30) // three items
	var got []map[string]any
	read := func() {
		n, _, err := c.Next(t.Context(), 2, buf)
		if err != nil {
			t.Fatal(err)
		}
		var batch []map[string]any
		if err := json.Unmarshal(buf[:n], &batch); err != nil {
			t.Fatal(err)
		}
		got = append(got, batch...)
	}
	read()
	add(60)
	tp.Trim(50)
	for len(got) < 60 {
		read()
	}
	for i, m := range got {
		if m["n"] != float64(i) {
			t.Fatalf("item %d is %v", i, m)
		}
	}
}

// Who looks without waiting never waits for a backfill, and is told when it is read; a
// cursor that is closed meanwhile ends it.
func TestLookingDoesNotWaitForABackfill(t *testing.T) {
	for _, closed := range []bool{false, true} {
		tp := New("r", 0)
		for n := range int64(20) {
			tp.Append(item(n))
		}
		tp.Trim(10)
		asked, answer, stopped := make(chan struct{}), make(chan struct{}), make(chan struct{})
		fill := func(ctx context.Context, n int64) (func() (int64, []byte, error), func()) {
			close(asked)
			return func() (int64, []byte, error) {
				select {
				case <-answer:
				case <-ctx.Done():
					return 0, nil, ctx.Err()
				}
				n++
				return n - 1, item(n - 1), nil
			}, func() { close(stopped) }
		}
		c := NewCursor(gap)
		c.AddTape(tp, 5, fill)
		for range 3 { // the first look begins, the others find it under way
			if n, _, err := c.TryNext(16, make([]byte, 256)); n != 0 || err != nil {
				t.Fatal(n, err)
			}
		}
		<-asked
		if closed {
			c.Close()
			<-stopped
			continue
		}
		close(answer)
		got := drain(t, c, 16, 256)
		<-stopped
		if len(got) != 15 || got[0]["n"] != 5.0 || got[14]["n"] != 19.0 {
			t.Fatalf("%d items: %v", len(got), got)
		}
		c.Close()
	}
}

// A backfill that breaks is a gap.
func TestABrokenBackfillIsAGap(t *testing.T) {
	tp := New("r", 0)
	for n := range int64(20) {
		tp.Append(item(n))
	}
	tp.Trim(10)
	c := NewCursor(gap)
	defer c.Close()
	c.AddTape(tp, 5, func(context.Context, int64) (func() (int64, []byte, error), func()) { panic("broken") })
	got := drain(t, c, 16, 256)
	if len(got) != 11 || got[0]["from"] != 5.0 || got[0]["to"] != 10.0 {
		t.Fatalf("%d items: %v", len(got), got)
	}
}

// After a save the journal begins behind what memory still holds: that is no gap.
func TestBackfillBeyondMemoryHidesNothing(t *testing.T) {
	tp := New("r", 0)
	for n := range int64(20) {
		tp.Append(item(n))
	}
	tp.Trim(10)
	fill := func(context.Context, int64) (func() (int64, []byte, error), func()) {
		n := int64(15)
		return func() (int64, []byte, error) { n++; return n - 1, item(n - 1), nil }, func() {}
	}
	c := NewCursor(gap)
	defer c.Close()
	c.AddTape(tp, 5, fill)
	got := drain(t, c, 16, 256)
	if len(got) != 11 || got[0]["from"] != 5.0 || got[0]["to"] != 10.0 || got[1]["n"] != 10.0 || got[10]["n"] != 19.0 {
		t.Fatalf("%d items: %v", len(got), got)
	}
}
