package file_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/record"
	"github.com/a3s-lab/liba3s/runtime/store/storetest"
)

// SESS-11: what breaks while it is read is told with its place, after the good part.
func TestReadError(t *testing.T) {
	dir := t.TempDir()
	se, _ := storetest.Open(t, openStore(t, dir, nil), sessionID)
	storetest.Append(t, se, "good")
	pos := storetest.Append(t, se, "broken")
	path := filepath.Join(journalDir(dir), "0000000001.log")
	b := read(t, path)
	b[pos.Offset+8] ^= 1
	write(t, path, b)
	got, err := storetest.Collect(se.Read(background, record.Pos{}))
	var e *fault.Error
	if !slices.Equal(got, []string{"good"}) || !errors.As(err, &e) || e.Code != fault.CodeSerialization || e.Details["offset"] != pos.Offset {
		t.Errorf("%q, %v", got, err)
	}
	if err := os.Truncate(path, pos.Offset+3); err != nil {
		t.Fatal(err)
	}
	got, err = storetest.Collect(se.Read(background, record.Pos{}))
	if !slices.Equal(got, []string{"good"}) || fault.KindOf(err) != fault.IO {
		t.Errorf("%q, %v", got, err)
	}
}

// Links and pipes in the place of files cannot make the store wait or wander.
func TestOddFiles(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(journalDir(dir), "lock"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := openStore(t, dir, nil).Open(background, sessionID, "o")
	storetest.WantKind(t, err, fault.IO)

	dir = t.TempDir()
	write(t, filepath.Join(dir, "elsewhere"), []byte("precious"))
	if err := os.MkdirAll(journalDir(dir), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "elsewhere"), filepath.Join(journalDir(dir), "lock")); err != nil {
		t.Fatal(err)
	}
	_, err = openStore(t, dir, nil).Open(background, sessionID, "o")
	storetest.WantKind(t, err, fault.IO)
	if string(read(t, filepath.Join(dir, "elsewhere"))) != "precious" {
		t.Error("the lock was written through a link")
	}

	dir = t.TempDir()
	if err := os.Symlink("/nowhere/at/all", filepath.Join(dir, "v1")); err != nil {
		t.Fatal(err)
	}
	_, err = openStore(t, dir, nil).Open(background, sessionID, "o")
	storetest.WantKind(t, err, fault.IO)
}

// SESS-04: reading a journal needs memory for one fact, not for all.
func TestFlatMemory(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, nil)
	se, _ := storetest.Open(t, s, sessionID)
	const n = 100_000
	group := make([][]byte, 0, 1000)
	for i := range n {
		group = append(group, fmt.Appendf(nil, `{"n":%d,"pad":"%0200d"}`, i, i))
		if len(group) == cap(group) {
			if _, err := se.Append(background, group); err != nil {
				t.Fatal(err)
			}
			group = group[:0]
		}
	}
	storetest.Close(t, se)
	base := heap()
	_, kept := storetest.Open(t, s, sessionID)
	var most uint64
	i := 0
	for _, err := range kept.Facts {
		if err != nil {
			t.Fatal(err)
		}
		if i++; i%20_000 == 0 {
			most = max(most, heap())
		}
	}
	if i != n {
		t.Fatalf("%d facts", i)
	}
	if most > base+2<<20 {
		t.Errorf("the heap grew from %d to %d bytes", base, most)
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

var update = flag.Bool("update", false, "write testdata/v1 anew; only for a new version of the format, beside the old one")

// A store as version 1 wrote it stays readable for ever.
func TestFixtureV1(t *testing.T) {
	const id = "fixture/1"
	if *update {
		s := openStore(t, filepath.Join(mustWd(t), "testdata", "v1"), nil)
		se, _ := storetest.Open(t, s, id)
		storetest.Append(t, se, "before")
		storetest.Save(t, se, storetest.Snapshot(id, "kept"))
		storetest.Append(t, se, `{"version":1,"type":"text_delta","payload":{"text":"é"},"metadata":{"run_id":"r","session_id":"fixture/1","sequence":0,"timestamp_ms":1}}`)
		storetest.Append(t, se, "\x00\x01binary\xff", `{"fact":"mark","mark":{}}`)
		if err := se.Blobs().Put(background, "blob-1", []byte("big text")); err != nil {
			t.Fatal(err)
		}
		storetest.Close(t, se)
	}
	dir := t.TempDir()
	copyTree(t, "testdata/v1", dir)
	s := openStore(t, dir, nil)
	if ids, err := s.List(background); err != nil || !slices.Equal(ids, []string{id}) {
		t.Fatalf("listed %q, %v", ids, err)
	}
	se, kept := storetest.Open(t, s, id)
	if kept.Warning != "" {
		t.Errorf("warning %q", kept.Warning)
	}
	if got := kept.Snapshot.Session.Messages; !reflect.DeepEqual(got, []chat.Message{chat.Say(chat.User, "kept")}) {
		t.Errorf("messages %+v", got)
	}
	storetest.Want(t, kept.Facts,
		`{"version":1,"type":"text_delta","payload":{"text":"é"},"metadata":{"run_id":"r","session_id":"fixture/1","sequence":0,"timestamp_ms":1}}`,
		"\x00\x01binary\xff", `{"fact":"mark","mark":{}}`)
	if b, err := se.Blobs().Get(context.Background(), "blob-1"); err != nil || string(b) != "big text" {
		t.Errorf("blob %q, %v", b, err)
	}
}

func mustWd(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
