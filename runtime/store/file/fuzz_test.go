package file_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/a3s-lab/liba3s/runtime/record"
	"github.com/a3s-lab/liba3s/runtime/store/storetest"
)

// Whatever a log holds: reading it never crashes, says the same a second time without
// a warning, loses no byte of what is not torn, and can be appended to.
func FuzzLog(f *testing.F) {
	good := logBytes(f, nil, "first", strings.Repeat("second", 20), "\x03\x00\x00\x00third")
	f.Add(good)
	f.Add(good[:len(good)-3])
	f.Add(append(bytes.Clone(good), make([]byte, 20)...))
	f.Add(append(bytes.Clone(good), good...))
	f.Add(logBytes(f, map[string]any{"snapshot_sha256": "x", "predecessor": "0000000001.log"}, "a"))
	f.Add([]byte("\x02\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, log []byte) {
		dir := t.TempDir()
		path := filepath.Join(journalDir(dir), "0000000001.log")
		write(t, path, log)
		s := openStore(t, dir, nil)
		se, err := s.Open(background, sessionID, "o")
		if err != nil {
			t.Fatal(err)
		}
		defer se.Close()
		kept, err := se.Load(background)
		if err != nil {
			return // a log of a newer version
		}
		facts, err := storetest.Collect(kept.Facts)
		if err != nil {
			t.Fatal(err)
		}
		storetest.Append(t, se, "next")
		facts = append(facts, "next")
		storetest.Want(t, se.Read(background, record.Pos{}), facts...)
		storetest.Close(t, se)
		_, kept = storetest.Open(t, s, sessionID)
		storetest.Want(t, kept.Facts, facts...)
		if kept.Warning != "" {
			t.Fatalf("second warning %q", kept.Warning)
		}
		rest := 0
		for _, name := range logNames(t, dir) {
			if strings.Contains(name, ".log.") {
				b := read(t, filepath.Join(journalDir(dir), name))
				if !bytes.HasSuffix(log, b) {
					t.Fatalf("%s is no part of the log", name)
				}
				rest += len(b)
			}
		}
		if rest > len(log) {
			t.Fatalf("%d bytes set aside of %d", rest, len(log))
		}
	})
}
