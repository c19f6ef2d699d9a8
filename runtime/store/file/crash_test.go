package file_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/a3s-lab/liba3s/runtime/record"
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
