package file_test

import (
	"bytes"
	"context"
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
	"github.com/a3s-lab/liba3s/runtime/record"
	"github.com/a3s-lab/liba3s/runtime/store"
	"github.com/a3s-lab/liba3s/runtime/store/file"
	"github.com/a3s-lab/liba3s/runtime/store/storetest"
)

const (
	sessionID = "s"
	folder    = "id_cw" // its name on disk
)

var background = context.Background()

func openStore(t testing.TB, dir string, hook func(string)) *file.Store {
	t.Helper()
	s, err := file.Open(background, file.Config{Dir: dir, Hook: hook})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func copyTree(t testing.TB, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

// state is what a crash image must hold.
type state struct {
	snapshot *record.Snapshot
	facts    []string
	blob     bool
	listed   bool
}

// Every step of a session's life is followed by a crash: the folder is copied at that
// moment, and the copy must hold what was promised by then and nothing else.
func TestCrashAtEveryPoint(t *testing.T) {
	dir := t.TempDir()
	live, images := filepath.Join(dir, "live"), filepath.Join(dir, "images")
	type image struct {
		point string
		path  string
		want  state
	}
	var taken []image
	var before, after state
	hit := map[string]bool{}
	s := openStore(t, live, func(point string) {
		im := image{point, filepath.Join(images, fmt.Sprint(len(taken))), before}
		switch point {
		case "append.written", "blob.renamed", "save.renamed", "save.synced", "save.old_removed", "delete.snapshot_removed":
			im.want = after
		case "delete.logs_removed", "delete.blobs_removed":
			im.want = state{snapshot: before.snapshot, listed: true, blob: before.blob && point == "delete.logs_removed"}
		}
		copyTree(t, live, im.path)
		taken = append(taken, im)
		hit[point] = true
	})
	se, _ := storetest.Open(t, s, sessionID)
	do := func(change func(*state), act func()) {
		after = before
		after.facts = slices.Clone(before.facts)
		change(&after)
		act()
		before = after
	}
	appendFacts := func(facts ...string) {
		do(func(s *state) { s.facts, s.listed = append(s.facts, facts...), true }, func() { storetest.Append(t, se, facts...) })
	}
	flush := func() {
		do(func(*state) {}, func() {
			if err := se.Flush(background); err != nil {
				t.Fatal(err)
			}
		})
	}
	save := func(text string) {
		snap := storetest.Snapshot(sessionID, text)
		do(func(s *state) { *s = state{snapshot: snap, blob: s.blob, listed: true} }, func() { storetest.Save(t, se, snap) })
	}
	appendFacts("a", "b")
	appendFacts("c")
	flush()
	do(func(s *state) { s.blob = true }, func() {
		if err := se.Blobs().Put(background, "blob", []byte("x")); err != nil {
			t.Fatal(err)
		}
	})
	save("one")
	save("two")
	appendFacts("d")
	save("three")
	appendFacts("e", "f")
	flush()
	storetest.Close(t, se)
	do(func(s *state) { *s = state{} }, func() {
		if err := s.Delete(background, sessionID); err != nil {
			t.Fatal(err)
		}
	})

	for _, p := range file.Points {
		if !hit[p] {
			t.Errorf("point %q was never reached", p)
		}
	}
	for i, im := range taken {
		t.Run(fmt.Sprintf("%d %s", i, im.point), func(t *testing.T) {
			checkImage(t, im.path, im.want)
		})
	}
}

func checkImage(t *testing.T, dir string, want state) {
	s := openStore(t, dir, nil)
	ids, err := s.List(background)
	if err != nil || want.listed != slices.Equal(ids, []string{sessionID}) {
		t.Fatalf("listed %q, %v", ids, err)
	}
	facts := want.facts
	for round := range 2 {
		se, kept := storetest.Open(t, s, sessionID)
		storetest.WantSnapshot(t, kept.Snapshot, want.snapshot)
		storetest.Want(t, kept.Facts, facts...)
		storetest.Want(t, se.Read(background, record.Pos{}), facts...)
		if kept.Warning != "" {
			t.Errorf("warning %q", kept.Warning)
		}
		if _, err := se.Blobs().Get(background, "blob"); (err == nil) != want.blob {
			t.Errorf("blob: %v", err)
		}
		wantNoTemps(t, dir)
		// The session goes on from there.
		more := fmt.Sprint("more ", round)
		storetest.Append(t, se, more)
		facts = append(slices.Clone(facts), more)
		if err := se.Flush(background); err != nil {
			t.Fatal(err)
		}
		storetest.Close(t, se)
	}
	se, _ := storetest.Open(t, s, sessionID)
	storetest.Save(t, se, storetest.Snapshot(sessionID, "last"))
	storetest.Append(t, se, "after")
	storetest.Close(t, se)
	_, kept := storetest.Open(t, s, sessionID)
	storetest.WantSnapshot(t, kept.Snapshot, storetest.Snapshot(sessionID, "last"))
	storetest.Want(t, kept.Facts, "after")
	if logs := logNames(t, dir); len(logs) != 1 {
		t.Errorf("logs after a save: %q", logs)
	}
}

func wantNoTemps(t testing.TB, dir string) {
	t.Helper()
	filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			t.Error(err)
		}
		if strings.HasSuffix(path, ".tmp") {
			t.Errorf("left behind: %s", path)
		}
		return nil
	})
}

func journalDir(dir string) string { return filepath.Join(dir, "v1", "journal", folder) }

// logNames lists what is in the journal folder besides the lock.
func logNames(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(journalDir(dir))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if e.Name() != "lock" {
			names = append(names, e.Name())
		}
	}
	return names
}

// journal writes groups of facts to a new store and gives the log file, where its
// facts start, and where the last group starts.
func journal(t testing.TB, dir string, groups ...[]string) (path string, first, last int64) {
	t.Helper()
	se, _ := storetest.Open(t, openStore(t, dir, nil), sessionID)
	for i, g := range groups {
		pos := storetest.Append(t, se, g...)
		if i == 0 {
			first = pos.Offset
		}
		last = pos.Offset
	}
	storetest.Close(t, se)
	return filepath.Join(journalDir(dir), "0000000001.log"), first, last
}

func write(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

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
