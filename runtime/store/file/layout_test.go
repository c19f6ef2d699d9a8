package file_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/record"
	"github.com/a3s-lab/liba3s/runtime/store/file"
	"github.com/a3s-lab/liba3s/runtime/store/storetest"
)

func tree(t testing.TB, dir string) map[string]fs.FileMode {
	t.Helper()
	all := map[string]fs.FileMode{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		rel, _ := filepath.Rel(dir, path)
		all[rel] = info.Mode()
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return all
}

func TestFilesAndModes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "store")
	s := openStore(t, dir, nil)
	if got := tree(t, dir); len(got) != 0 {
		t.Fatalf("opening the store made %v", got)
	}
	se, _ := storetest.Open(t, s, sessionID)
	d, f := fs.ModeDir|0o700, fs.FileMode(0o600)
	want := map[string]fs.FileMode{".": d, "v1": d, "v1/journal": d, "v1/journal/id_cw": d, "v1/journal/id_cw/lock": f}
	if got := tree(t, dir); !reflect.DeepEqual(got, want) {
		t.Fatalf("opening a session made %v", got)
	}
	storetest.Close(t, se)
	if got := tree(t, filepath.Dir(dir)); len(got) != 0 {
		t.Fatalf("closing an untouched session left %v", got)
	}
	se, _ = storetest.Open(t, s, sessionID)
	storetest.Save(t, se, storetest.Snapshot(sessionID, "x"))
	storetest.Append(t, se, "x")
	if err := se.Blobs().Put(background, "b", nil); err != nil {
		t.Fatal(err)
	}
	want["v1/journal/id_cw/0000000001.log"], want["v1/sessions"], want["v1/sessions/id_cw.json"] = f, d, f
	want["v1/blobs"], want["v1/blobs/id_cw"], want["v1/blobs/id_cw/b"] = d, d, f
	if got := tree(t, dir); !reflect.DeepEqual(got, want) {
		t.Fatalf("got %v", got)
	}
	storetest.Close(t, se)
	if err := s.Delete(background, sessionID); err != nil {
		t.Fatal(err)
	}
	for path := range tree(t, dir) {
		if strings.Contains(path, folder) {
			t.Errorf("deleting left %s", path)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	plain := filepath.Join(t.TempDir(), "file")
	write(t, plain, nil)
	for _, dir := range []string{"", "relative", "./x", plain, filepath.Join(plain, "below"), "/a\x00b"} {
		_, err := file.Open(background, file.Config{Dir: dir})
		var e *fault.Error
		if !errors.As(err, &e) || e.Code != fault.CodeSessionConfig || e.Details["field"] != "session_store" {
			t.Errorf("%q: %v", dir, err)
		}
	}
}

// The 6.x snapshot is read and written where those programs look for it.
func TestSnapshotPlace(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, nil)
	const id = "a/b ü"
	se, _ := storetest.Open(t, s, id)
	storetest.Append(t, se, "x")
	storetest.Save(t, se, storetest.Snapshot(id, "ours"))
	path := filepath.Join(dir, "v1/sessions/id_YS9iIMO8.json")
	if !bytes.HasPrefix(read(t, path), []byte("{\n  \"schema_version\": 1,\n")) {
		t.Errorf("snapshot is\n%s", read(t, path))
	}
}

// A program that knows no journal saved over our snapshot: its word counts, our facts
// are kept aside and said so.
func TestSnapshotReplaced(t *testing.T) {
	for _, name := range []string{"replaced", "removed"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := openStore(t, dir, nil)
			se, _ := storetest.Open(t, s, sessionID)
			storetest.Save(t, se, storetest.Snapshot(sessionID, "ours"))
			storetest.Append(t, se, "after ours")
			storetest.Close(t, se)
			path := filepath.Join(dir, "v1/sessions/id_cw.json")
			var want *record.Snapshot
			if name == "removed" {
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
			} else {
				want = storetest.Snapshot(sessionID, "theirs")
				b, err := record.EncodeSnapshot(want)
				if err != nil {
					t.Fatal(err)
				}
				write(t, path, b)
			}
			for _, warned := range []bool{true, false} {
				se, kept := storetest.Open(t, s, sessionID)
				storetest.WantSnapshot(t, kept.Snapshot, want)
				storetest.Want(t, kept.Facts)
				if strings.Contains(kept.Warning, "0000000001.log.aside-1") != warned {
					t.Errorf("warning %q", kept.Warning)
				}
				storetest.Close(t, se)
			}
			se, _ = storetest.Open(t, s, sessionID)
			if pos := storetest.Append(t, se, "after theirs"); pos.Generation != 2 {
				t.Errorf("generation %d was used before", pos.Generation)
			}
			storetest.Close(t, se)
			_, kept := storetest.Open(t, s, sessionID)
			storetest.WantSnapshot(t, kept.Snapshot, want)
			storetest.Want(t, kept.Facts, "after theirs")
			if !bytes.Contains(read(t, filepath.Join(journalDir(dir), "0000000001.log.aside-1")), []byte("after ours")) {
				t.Error("our facts are gone")
			}
		})
	}
}

// SESS-05: a snapshot that cannot be read is said, and nothing is touched.
func TestSESS05(t *testing.T) {
	good, err := record.EncodeSnapshot(storetest.Snapshot(sessionID, "x"))
	if err != nil {
		t.Fatal(err)
	}
	other, err := record.EncodeSnapshot(storetest.Snapshot("other", "x"))
	if err != nil {
		t.Fatal(err)
	}
	for name, doc := range map[string][]byte{
		"empty": {}, "half": good[:len(good)/2], "wrong type": []byte("[]"), "of another session": other,
		"of another version": bytes.Replace(good, []byte(`"schema_version": 1`), []byte(`"schema_version": 2`), 1),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "v1/sessions/id_cw.json")
			write(t, path, doc)
			log := logBytes(t, nil, "a")
			write(t, filepath.Join(journalDir(dir), "0000000001.log"), log)
			se, err := openStore(t, dir, nil).Open(background, sessionID, "o")
			if err != nil {
				t.Fatal(err)
			}
			defer se.Close()
			_, err = se.Load(background)
			storetest.WantKind(t, err, fault.Invalid)
			if !strings.Contains(err.Error(), path) {
				t.Errorf("the error names no file: %v", err)
			}
			storetest.WantKind(t, se.Save(background, storetest.Snapshot(sessionID, "y")), fault.Internal)
			if !bytes.Equal(read(t, path), doc) || !bytes.Equal(read(t, filepath.Join(journalDir(dir), "0000000001.log")), log) {
				t.Error("something was touched")
			}
		})
	}
}

func TestLegacy(t *testing.T) {
	dir := t.TempDir()
	put := func(name, id string) {
		b, err := record.EncodeSnapshot(storetest.Snapshot(id, "old "+id))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name), b)
	}
	put("a_b.json", "a/b")
	put("_x.json", "..x")
	put("wrong.json", "not wrong")
	write(t, filepath.Join(dir, "bare.json"), []byte(`{"id":"bare","messages":[]}`))
	write(t, filepath.Join(dir, "settings.json"), []byte(`{"theme":"dark"}`))
	write(t, filepath.Join(dir, "broken.json"), []byte(`{`))
	s := openStore(t, dir, nil)
	ids, err := s.List(background)
	if want := []string{"..x", "a/b", "bare"}; err != nil || !slices.Equal(ids, want) {
		t.Fatalf("listed %q, %v", ids, err)
	}
	// The name of another id.
	se, kept := storetest.Open(t, s, "a_b")
	storetest.WantSnapshot(t, kept.Snapshot, nil)
	storetest.Close(t, se)
	// A file that may be none of ours.
	se, kept = storetest.Open(t, s, "settings")
	if kept.Snapshot != nil || !strings.Contains(kept.Warning, "settings.json") {
		t.Errorf("got %v, warning %q", kept.Snapshot, kept.Warning)
	}
	storetest.Close(t, se)

	se, kept = storetest.Open(t, s, "a/b")
	storetest.WantSnapshot(t, kept.Snapshot, storetest.Snapshot("a/b", "old a/b"))
	storetest.Append(t, se, "after")
	storetest.Close(t, se)
	se, kept = storetest.Open(t, s, "a/b")
	storetest.WantSnapshot(t, kept.Snapshot, storetest.Snapshot("a/b", "old a/b"))
	storetest.Want(t, kept.Facts, "after")
	before := read(t, filepath.Join(dir, "a_b.json"))
	storetest.Save(t, se, storetest.Snapshot("a/b", "new"))
	storetest.Close(t, se)
	if !bytes.Equal(before, read(t, filepath.Join(dir, "a_b.json"))) {
		t.Error("the old file was written")
	}
	se, kept = storetest.Open(t, s, "a/b")
	storetest.WantSnapshot(t, kept.Snapshot, storetest.Snapshot("a/b", "new"))
	storetest.Close(t, se)
	if err := s.Delete(background, "a/b"); err != nil {
		t.Fatal(err)
	}
	if ids, err := s.List(background); err != nil || !slices.Equal(ids, []string{"..x", "bare"}) {
		t.Errorf("listed %q, %v", ids, err)
	}
}

func TestListPassesOver(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{
		"v1/sessions/id_.json", "v1/sessions/id_cw==.json", "v1/sessions/cw.json", "v1/sessions/id_cx.json", "v1/sessions/id_AA.json",
		"v1/sessions/id_cw.json~1.2.3.tmp", "v1/sessions/id_!.json", "v1/journal/stray", "v1/journal/id_cw/lock", "v1/journal/id_cw/1.log",
		"v1/journal/id_cw/0000000001.log", "v1/journal/id_cw/0000000001.log.bad-1", "v1/journal/x/0000000001.log",
	} {
		write(t, filepath.Join(dir, path), nil)
	}
	write(t, filepath.Join(dir, "v1/sessions/id_YQ.json"), []byte("unreadable, but there"))
	write(t, filepath.Join(dir, "v1/journal/id_Yg/0000000002.log"), []byte("x"))
	ids, err := openStore(t, dir, nil).List(background)
	if err != nil || !slices.Equal(ids, []string{"a", "b"}) {
		t.Errorf("listed %q, %v", ids, err)
	}
}

// A file system that refuses with the same error for ever must not be asked for ever.
func TestFolderThatCannotBeMade(t *testing.T) {
	for _, dir := range []string{"/proc/x", "/proc/a/b/c", "/proc/self/fd/x"} {
		s, err := file.Open(t.Context(), file.Config{Dir: dir})
		if err == nil {
			_, err = s.Open(t.Context(), "s", "test")
		}
		if err == nil {
			t.Errorf("%s was taken", dir)
		}
	}
}
