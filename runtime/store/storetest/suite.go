package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/record"
	"github.com/a3s-lab/liba3s/runtime/store"
)

var background = context.Background()

func roundTrip(t *testing.T, open func() store.Store) {
	se, kept := Open(t, open(), "s/é")
	WantSnapshot(t, kept.Snapshot, nil)
	Want(t, kept.Facts)
	Append(t, se, "one")
	Append(t, se, "two", `{"three":"`+strings.Repeat("x", 100_000)+`"}`)
	if err := se.Flush(background); err != nil {
		t.Fatal(err)
	}
	Close(t, se)
	se, kept = Open(t, open(), "s/é")
	WantSnapshot(t, kept.Snapshot, nil)
	Want(t, kept.Facts, "one", "two", `{"three":"`+strings.Repeat("x", 100_000)+`"}`)
	Want(t, kept.Facts, "one", "two", `{"three":"`+strings.Repeat("x", 100_000)+`"}`) // once more
	if kept.Warning != "" {
		t.Errorf("warning %q", kept.Warning)
	}
	Append(t, se, "four")
	Want(t, se.Read(background, record.Pos{}), "one", "two", `{"three":"`+strings.Repeat("x", 100_000)+`"}`, "four")
	Save(t, se, Snapshot("s/é", "saved"))
	Append(t, se, "five")
	Close(t, se)
	_, kept = Open(t, open(), "s/é")
	WantSnapshot(t, kept.Snapshot, Snapshot("s/é", "saved"))
	Want(t, kept.Facts, "five")
}

func groups(t *testing.T, open func() store.Store) {
	se, _ := Open(t, open(), "s")
	var want []string
	for i := range 50 {
		var group []string
		for j := range i % 4 {
			group = append(group, fmt.Sprintf("%d.%d", i, j))
		}
		Append(t, se, group...)
		want = append(want, group...)
		if i%7 == 0 {
			if err := se.Flush(background); err != nil {
				t.Fatal(err)
			}
		}
	}
	Want(t, se.Read(background, record.Pos{}), want...)
}

func refusals(t *testing.T, open func() store.Store) {
	s := open()
	for _, id := range []string{"", "a\x00b", "a\nb", "\xff", strings.Repeat("x", store.MaxID+1)} {
		_, err := s.Open(background, id, "o")
		WantKind(t, err, fault.Invalid)
		WantKind(t, s.Delete(background, id), fault.Invalid)
	}
	se, err := s.Open(background, "s", "o")
	if err != nil {
		t.Fatal(err)
	}
	_, err = se.Append(background, [][]byte{[]byte("early")})
	WantKind(t, err, fault.Internal)
	WantKind(t, se.Save(background, Snapshot("s", "early")), fault.Internal)
	if _, err := se.Load(background); err != nil {
		t.Fatal(err)
	}
	_, err = se.Load(background)
	WantKind(t, err, fault.Internal)
	_, err = se.Append(background, [][]byte{[]byte("a"), {}})
	WantKind(t, err, fault.Invalid)
	Want(t, se.Read(background, record.Pos{}))

	dead, cancel := context.WithCancel(background)
	cancel()
	_, err = s.Open(dead, "t", "o")
	WantKind(t, err, fault.Cancelled)
	_, err = s.List(dead)
	WantKind(t, err, fault.Cancelled)
	WantKind(t, s.Delete(dead, "t"), fault.Cancelled)
	WantKind(t, se.Save(dead, Snapshot("s", "late")), fault.Cancelled)
	// A cancelled run must still be able to write its end.
	if _, err := se.Append(dead, [][]byte{[]byte("end")}); err != nil {
		t.Fatal(err)
	}
	if err := se.Flush(dead); err != nil {
		t.Fatal(err)
	}
	_, err = Collect(se.Read(dead, record.Pos{}))
	WantKind(t, err, fault.Cancelled)

	Close(t, se)
	Close(t, se)
	_, err = se.Load(background)
	WantKind(t, err, fault.Closed)
	_, err = se.Append(background, [][]byte{[]byte("late")})
	WantKind(t, err, fault.Closed)
	WantKind(t, se.Flush(background), fault.Closed)
	WantKind(t, se.Save(background, Snapshot("s", "late")), fault.Closed)
	_, err = Collect(se.Read(background, record.Pos{}))
	WantKind(t, err, fault.Closed)
	WantKind(t, se.Blobs().Put(background, "b", nil), fault.Closed)
	_, err = se.Blobs().Get(background, "b")
	WantKind(t, err, fault.Closed)
	WantKind(t, se.Blobs().Delete(background, "b"), fault.Closed)
}

func generations(t *testing.T, open func() store.Store) {
	se, _ := Open(t, open(), "s")
	var last uint64
	for i := range 5 {
		pos := Append(t, se, fmt.Sprint("fact ", i))
		if pos.Generation <= last {
			t.Fatalf("generation %d after %d", pos.Generation, last)
		}
		last = pos.Generation
		Save(t, se, Snapshot("s", fmt.Sprint("save ", i)))
		_, err := Collect(se.Read(background, pos))
		WantKind(t, err, fault.NotFound)
		Want(t, se.Read(background, record.Pos{}))
		if i%2 == 1 {
			Close(t, se)
			var kept store.Kept
			se, kept = Open(t, open(), "s")
			WantSnapshot(t, kept.Snapshot, Snapshot("s", fmt.Sprint("save ", i)))
			Want(t, kept.Facts)
		}
	}
	// Saving the same thing twice, with and without facts between.
	Save(t, se, Snapshot("s", "same"))
	Append(t, se, "x")
	Save(t, se, Snapshot("s", "same"))
	Save(t, se, Snapshot("s", "same"))
	Append(t, se, "y")
	Close(t, se)
	_, kept := Open(t, open(), "s")
	WantSnapshot(t, kept.Snapshot, Snapshot("s", "same"))
	Want(t, kept.Facts, "y")
}

func readPositions(t *testing.T, open func() store.Store) {
	se, _ := Open(t, open(), "s")
	empty, err := se.Append(background, nil)
	if err != nil {
		t.Fatal(err)
	}
	Want(t, se.Read(background, empty))
	a := Append(t, se, "a")
	b := Append(t, se, "b", "c")
	d := Append(t, se, "d")
	end, err := se.Append(background, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !(a.Offset < b.Offset && b.Offset < d.Offset && d.Offset < end.Offset) {
		t.Fatalf("positions do not rise: %v %v %v %v", a, b, d, end)
	}
	Want(t, se.Read(background, empty), "a", "b", "c", "d")
	Want(t, se.Read(background, record.Pos{}), "a", "b", "c", "d")
	Want(t, se.Read(background, record.Pos{Generation: a.Generation}), "a", "b", "c", "d")
	Want(t, se.Read(background, a), "a", "b", "c", "d")
	Want(t, se.Read(background, b), "b", "c", "d")
	Want(t, se.Read(background, d), "d")
	Want(t, se.Read(background, end))
	for _, pos := range []record.Pos{{Generation: a.Generation, Offset: -1}, {Generation: a.Generation, Offset: end.Offset + 1}} {
		_, err := Collect(se.Read(background, pos))
		WantKind(t, err, fault.Invalid)
	}
	_, err = Collect(se.Read(background, record.Pos{Generation: a.Generation + 9}))
	WantKind(t, err, fault.NotFound)

	// Up to what was appended when the call was made, however late it is ranged over.
	early := se.Read(background, d)
	Append(t, se, "e")
	Want(t, early, "d")
	for b, err := range se.Read(background, record.Pos{}) {
		if err != nil || string(b) != "a" {
			t.Fatalf("%q %v", b, err)
		}
		break
	}
	// Positions stay good over a close.
	Close(t, se)
	se, _ = Open(t, open(), "s")
	Want(t, se.Read(background, b), "b", "c", "d", "e")
}

func readBesideAppend(t *testing.T, open func() store.Store) {
	se, _ := Open(t, open(), "s")
	Append(t, se, "0")
	const n = 400
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for seen := 0; seen < n; {
				all, err := Collect(se.Read(background, record.Pos{}))
				if err != nil {
					t.Error(err)
					return
				}
				if len(all) < seen {
					t.Errorf("read %d facts after %d", len(all), seen)
					return
				}
				for i, f := range all {
					if f != fmt.Sprint(i) {
						t.Errorf("fact %d is %q", i, f)
						return
					}
				}
				seen = len(all)
			}
		})
	}
	for i := 1; i < n; i++ {
		Append(t, se, fmt.Sprint(i))
	}
	wg.Wait()
}

func oneWriter(t *testing.T, open func() store.Store) {
	first, err := open().Open(background, "s", "the first")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, err = open().Open(background, "s", "the second")
		var e *fault.Error
		if !errors.As(err, &e) || e.Code != fault.CodeSessionBusy || e.Details["owner"] != "the first" || !strings.Contains(e.Message, `"the first"`) {
			t.Fatalf("second opener got %v", err)
		}
		WantKind(t, open().Delete(background, "s"), fault.Busy)
	}
	Open(t, open(), "another")
	Close(t, first)
	Open(t, open(), "s")

	// However many try at once, one at a time holds it.
	var wg sync.WaitGroup
	var held sync.Mutex
	for range 8 {
		wg.Go(func() {
			for range 50 {
				se, err := open().Open(background, "many", "o")
				if fault.KindOf(err) == fault.Busy {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if !held.TryLock() {
					t.Error("two hold the session")
					return
				}
				if _, err := se.Load(background); err != nil {
					t.Error(err)
				}
				held.Unlock()
				if err := se.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func saveRefuses(t *testing.T, open func() store.Store) {
	se, _ := Open(t, open(), "s")
	Append(t, se, "a")
	wrong := Snapshot("s", "x")
	wrong.SchemaVersion = 2
	WantKind(t, se.Save(background, wrong), fault.Invalid)
	WantKind(t, se.Save(background, Snapshot("t", "x")), fault.Invalid)
	Append(t, se, "b")
	Close(t, se)
	_, kept := Open(t, open(), "s")
	WantSnapshot(t, kept.Snapshot, nil)
	Want(t, kept.Facts, "a", "b")
}

func nothingShared(t *testing.T, open func() store.Store) {
	s := open()
	se, _ := Open(t, s, "s")
	fact := []byte("abc")
	if _, err := se.Append(background, [][]byte{fact}); err != nil {
		t.Fatal(err)
	}
	copy(fact, "xxx")
	for b, err := range se.Read(background, record.Pos{}) {
		if err != nil {
			t.Fatal(err)
		}
		copy(b, "yyy")
	}
	Want(t, se.Read(background, record.Pos{}), "abc")
	snap := Snapshot("s", "abc")
	Save(t, se, snap)
	snap.Session.Messages[0].Content[0].Text = "xxx"
	blob := []byte("abc")
	if err := se.Blobs().Put(background, "b", blob); err != nil {
		t.Fatal(err)
	}
	copy(blob, "xxx")
	got, err := se.Blobs().Get(background, "b")
	if err != nil {
		t.Fatal(err)
	}
	copy(got, "yyy")
	if got, err := se.Blobs().Get(background, "b"); err != nil || string(got) != "abc" {
		t.Errorf("blob %q %v", got, err)
	}
	for range 2 {
		Close(t, se)
		var kept store.Kept
		se, kept = Open(t, s, "s")
		WantSnapshot(t, kept.Snapshot, Snapshot("s", "abc"))
		kept.Snapshot.Session.Messages[0].Content[0].Text = "yyy"
	}
}
