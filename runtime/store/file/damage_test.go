package file_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/store"
	"github.com/a3s-lab/liba3s/runtime/store/file"
	"github.com/a3s-lab/liba3s/runtime/store/storetest"
)

// A crash may cut the last write at any byte, or leave its place filled with zeros or
// with what was on the disk before.
func TestTornTail(t *testing.T) {
	dir := t.TempDir()
	last := []string{"third", strings.Repeat("f", 40), "fifth"}
	path, _, at := journal(t, dir, []string{"first"}, []string{"second"}, last)
	whole := read(t, path)
	ends := []int64{at}
	for _, f := range last {
		ends = append(ends, ends[len(ends)-1]+8+int64(len(f)))
	}
	if ends[3] != int64(len(whole)) {
		t.Fatalf("frames end at %v, the file at %d", ends, len(whole))
	}
	for cut := at; cut < int64(len(whole)); cut++ {
		facts := []string{"first", "second"}
		torn := true
		for i, end := range ends[1:] {
			if cut >= end {
				facts = append(facts, last[i])
			}
		}
		torn = !slices.Contains(ends, cut)
		rest := int(int64(len(whole)) - cut)
		tails := map[string][]byte{
			"short": nil,
			"zeros": make([]byte, rest),
			"old":   bytes.Repeat([]byte("old text "), rest)[:rest],
		}
		for name, tail := range tails {
			write(t, path, append(slices.Clone(whole[:cut]), tail...))
			se, kept := storetest.Open(t, openStore(t, dir, nil), sessionID)
			storetest.Want(t, kept.Facts, facts...)
			if warned := kept.Warning != ""; warned != (torn || name != "short") {
				t.Errorf("cut at %d, %s: warning %q", cut, name, kept.Warning)
			}
			storetest.Append(t, se, "next")
			storetest.Close(t, se)
			se, kept = storetest.Open(t, openStore(t, dir, nil), sessionID)
			storetest.Want(t, kept.Facts, append(slices.Clone(facts), "next")...)
			if kept.Warning != "" {
				t.Errorf("cut at %d, %s: second warning %q", cut, name, kept.Warning)
			}
			storetest.Close(t, se)
			if names := logNames(t, dir); len(names) == 2 && name == "old" {
				bad := path + ".bad-1"
				if !bytes.HasSuffix(read(t, bad), tail) {
					t.Fatalf("cut at %d: %q was set aside", cut, read(t, bad))
				}
				if err := os.Remove(bad); err != nil {
					t.Fatal(err)
				}
			} else if len(names) != 1 {
				t.Fatalf("cut at %d, %s: %q", cut, name, names)
			}
		}
	}
}

// A log that was cut before its first fact was whole holds nothing.
func TestTornHeader(t *testing.T) {
	dir := t.TempDir()
	path, first, _ := journal(t, dir, []string{"first"})
	whole := read(t, path)
	for cut := range first {
		write(t, path, whole[:cut])
		se, kept := storetest.Open(t, openStore(t, dir, nil), sessionID)
		storetest.Want(t, kept.Facts)
		storetest.Append(t, se, "next")
		storetest.Close(t, se)
		se, kept = storetest.Open(t, openStore(t, dir, nil), sessionID)
		storetest.Want(t, kept.Facts, "next")
		storetest.Close(t, se)
		if err := os.RemoveAll(journalDir(dir)); err != nil {
			t.Fatal(err)
		}
	}
}

// SESS-11: one flipped bit anywhere. The facts before it are read, the position is
// told, and every byte from it on is still there.
func TestDamageAnywhere(t *testing.T) {
	dir := t.TempDir()
	groups := [][]string{{"first"}, {"second", "third"}, {"fourth"}}
	path, first, _ := journal(t, dir, groups...)
	whole := read(t, path)
	all := slices.Concat(groups...)
	starts := []int64{first}
	for _, f := range all {
		starts = append(starts, starts[len(starts)-1]+8+int64(len(f)))
	}
	for i := range whole {
		for _, bit := range []byte{0x01, 0x80} {
			if err := os.RemoveAll(journalDir(dir)); err != nil {
				t.Fatal(err)
			}
			hurt := slices.Clone(whole)
			hurt[i] ^= bit
			write(t, path, hurt)
			se, kept := storetest.Open(t, openStore(t, dir, nil), sessionID)
			names := logNames(t, dir)
			if int64(i) < first {
				storetest.Want(t, kept.Facts)
				if !slices.Equal(names, []string{"0000000001.log.aside-1"}) || !strings.Contains(kept.Warning, "aside-1") {
					t.Fatalf("byte %d: %q, %q", i, names, kept.Warning)
				}
				if !bytes.Equal(read(t, path+".aside-1"), hurt) {
					t.Fatalf("byte %d: the log set aside is not as it was", i)
				}
				storetest.Close(t, se)
				continue
			}
			n, _ := slices.BinarySearch(starts, int64(i)+1)
			n-- // the hurt frame
			storetest.Want(t, kept.Facts, all[:n]...)
			if !strings.Contains(kept.Warning, fmt.Sprint("byte ", starts[n])) {
				t.Fatalf("byte %d: warning %q", i, kept.Warning)
			}
			if n < len(all)-1 {
				if !slices.Equal(names, []string{"0000000001.log", "0000000001.log.bad-1"}) || !bytes.Equal(read(t, path+".bad-1"), hurt[starts[n]:]) {
					t.Fatalf("byte %d: %q", i, names)
				}
			} else if len(names) == 2 && !bytes.Equal(read(t, path+".bad-1"), hurt[starts[n]:]) {
				t.Fatalf("byte %d: %q", i, names)
			}
			if !bytes.Equal(read(t, path), whole[:starts[n]]) {
				t.Fatalf("byte %d: the log is not cut where the good part ends", i)
			}
			storetest.Close(t, se)
		}
	}
}

func frame(b []byte) []byte {
	out := binary.LittleEndian.AppendUint32(nil, uint32(len(b)))
	out = binary.LittleEndian.AppendUint32(out, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
	return append(out, b...)
}

func logBytes(t testing.TB, head map[string]any, facts ...string) []byte {
	t.Helper()
	h := map[string]any{"format": "a3s-journal", "version": 1, "session_id": sessionID,
		"snapshot_sha256": strings.Repeat("0", 64), "predecessor": "", "created_ms": 1}
	for k, v := range head {
		h[k] = v
	}
	b, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	out := frame(b)
	for _, f := range facts {
		out = append(out, frame([]byte(f))...)
	}
	return out
}

func TestHeaders(t *testing.T) {
	tests := []struct {
		name  string
		log   []byte
		facts []string
		aside string // part of the warning
	}{
		{"good", logBytes(t, nil, "a"), []string{"a"}, ""},
		{"unknown field", logBytes(t, map[string]any{"later": true}, "a"), []string{"a"}, ""},
		{"another session", logBytes(t, map[string]any{"session_id": "t"}, "a"), nil, `belongs to session "t"`},
		{"another format", logBytes(t, map[string]any{"format": "x"}, "a"), nil, "no journal header"},
		{"no object", append(frame([]byte("[]")), frame([]byte("a"))...), nil, "no journal header"},
		{"not JSON", append(frame([]byte("{")), frame([]byte("a"))...), nil, "no journal header"},
		{"follows another snapshot", logBytes(t, map[string]any{"snapshot_sha256": strings.Repeat("1", 64)}, "a"), nil, "saved by another program"},
		{"follows another snapshot, empty", logBytes(t, map[string]any{"snapshot_sha256": strings.Repeat("1", 64)}), nil, ""},
		{"header too long", append(frame(bytes.Repeat([]byte("x"), 65<<10)), frame([]byte("a"))...), nil, "header is too long"},
		{"text file", []byte("this is no journal at all\n"), nil, "impossible length"},
		{"empty", nil, nil, ""},
		{"zeros", make([]byte, 4096), nil, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(journalDir(dir), "0000000007.log"), tt.log)
			se, kept := storetest.Open(t, openStore(t, dir, nil), sessionID)
			storetest.Want(t, kept.Facts, tt.facts...)
			if (tt.aside == "") != (kept.Warning == "") || !strings.Contains(kept.Warning, tt.aside) {
				t.Errorf("warning %q", kept.Warning)
			}
			pos := storetest.Append(t, se, "next")
			want := uint64(8)
			if tt.facts != nil {
				want = 7
			}
			if pos.Generation != want {
				t.Errorf("went on in generation %d", pos.Generation)
			}
		})
	}
	t.Run("newer version", func(t *testing.T) {
		dir := t.TempDir()
		path := filepath.Join(journalDir(dir), "0000000001.log")
		log := logBytes(t, map[string]any{"version": 2}, "a")
		write(t, path, log)
		se, err := openStore(t, dir, nil).Open(background, sessionID, "o")
		if err != nil {
			t.Fatal(err)
		}
		defer se.Close()
		_, err = se.Load(background)
		storetest.WantKind(t, err, fault.Unsupported)
		if !bytes.Equal(read(t, path), log) {
			t.Error("the log was touched")
		}
	})
}

var _ store.Store = (*file.Store)(nil)
