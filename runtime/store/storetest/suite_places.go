package storetest

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/store"
)

func blobs(t *testing.T, open func() store.Store) {
	se, _ := Open(t, open(), "s")
	other, _ := Open(t, open(), "t")
	b := se.Blobs()
	_, err := b.Get(background, "x")
	WantKind(t, err, fault.NotFound)
	big := strings.Repeat("0123456789", 300_000)
	for name, data := range map[string]string{"x": "one", "a-B_c.9": big, "empty": "", strings.Repeat("n", store.MaxBlobName): "long"} {
		for range 2 {
			if err := b.Put(background, name, []byte(data)); err != nil {
				t.Fatal(err)
			}
		}
		got, err := b.Get(background, name)
		if err != nil || string(got) != data {
			t.Fatalf("blob %q: %d bytes, %v", name, len(got), err)
		}
	}
	if err := b.Put(background, "x", []byte("two")); err != nil {
		t.Fatal(err)
	}
	if got, _ := b.Get(background, "x"); string(got) != "one" {
		t.Errorf("a second Put changed the blob to %q", got)
	}
	_, err = other.Blobs().Get(background, "x")
	WantKind(t, err, fault.NotFound)
	for _, name := range []string{"", ".", "..", "a/b", "../x", "a\x00", "é", strings.Repeat("n", store.MaxBlobName+1)} {
		WantKind(t, b.Put(background, name, nil), fault.Invalid)
		_, err := b.Get(background, name)
		WantKind(t, err, fault.Invalid)
		WantKind(t, b.Delete(background, name), fault.Invalid)
	}
	Save(t, se, Snapshot("s", "x"))
	Close(t, se)
	se, _ = Open(t, open(), "s")
	b = se.Blobs()
	if got, err := b.Get(background, "a-B_c.9"); err != nil || string(got) != big {
		t.Errorf("after a save and a close: %d bytes, %v", len(got), err)
	}
	for range 2 {
		if err := b.Delete(background, "x"); err != nil {
			t.Fatal(err)
		}
	}
	_, err = b.Get(background, "x")
	WantKind(t, err, fault.NotFound)
}

func list(t *testing.T, open func() store.Store) {
	s := open()
	wantIDs := func(want ...string) {
		t.Helper()
		got, err := open().List(background)
		if err != nil || len(got) != len(want) || len(want) > 0 && !reflect.DeepEqual(got, want) {
			t.Fatalf("listed %q, %v; want %q", got, err, want)
		}
	}
	wantIDs()
	unsaved, _ := Open(t, s, "b unsaved")
	saved, _ := Open(t, s, "a/saved")
	Open(t, s, "c untouched")
	wantIDs()
	Append(t, unsaved, "x")
	Save(t, saved, Snapshot("a/saved", "x"))
	wantIDs("a/saved", "b unsaved")
	Close(t, unsaved)
	Close(t, saved)
	wantIDs("a/saved", "b unsaved")
}

func remove(t *testing.T, open func() store.Store) {
	s := open()
	if err := s.Delete(background, "nobody"); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"s", "stays"} {
		se, _ := Open(t, s, id)
		Save(t, se, Snapshot(id, "x"))
		Append(t, se, "f")
		if err := se.Blobs().Put(background, "b", []byte("x")); err != nil {
			t.Fatal(err)
		}
		if id == "s" {
			WantKind(t, s.Delete(background, "s"), fault.Busy)
			Close(t, se)
		}
	}
	for range 2 {
		if err := s.Delete(background, "s"); err != nil {
			t.Fatal(err)
		}
	}
	if ids, err := s.List(background); err != nil || !reflect.DeepEqual(ids, []string{"stays"}) {
		t.Errorf("listed %q, %v", ids, err)
	}
	se, kept := Open(t, open(), "s")
	WantSnapshot(t, kept.Snapshot, nil)
	Want(t, kept.Facts)
	_, err := se.Blobs().Get(background, "b")
	WantKind(t, err, fault.NotFound)
}

func emptySession(t *testing.T, open func() store.Store) {
	for range 2 {
		se, kept := Open(t, open(), "s")
		WantSnapshot(t, kept.Snapshot, nil)
		Want(t, kept.Facts)
		if err := se.Flush(background); err != nil {
			t.Fatal(err)
		}
		Close(t, se)
	}
	if ids, err := open().List(background); err != nil || len(ids) != 0 {
		t.Errorf("listed %q, %v", ids, err)
	}
}

func manySmallFacts(t *testing.T, open func() store.Store) {
	se, _ := Open(t, open(), "s")
	const n = 100_000
	group := make([][]byte, 0, 1000)
	for i := range n {
		group = append(group, fmt.Appendf(nil, `{"n":%d}`, i))
		if len(group) == cap(group) {
			if _, err := se.Append(background, group); err != nil {
				t.Fatal(err)
			}
			group = group[:0]
		}
	}
	Close(t, se)
	_, kept := Open(t, open(), "s")
	i := 0
	for b, err := range kept.Facts {
		if want := fmt.Sprintf(`{"n":%d}`, i); err != nil || string(b) != want {
			t.Fatalf("fact %d is %q, %v", i, b, err)
		}
		i++
	}
	if i != n {
		t.Errorf("%d facts", i)
	}
}
