//go:build unix

package faults_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/store"
	"github.com/a3s-lab/liba3s/runtime/store/file"
	"github.com/a3s-lab/liba3s/runtime/store/storetest"
	"github.com/a3s-lab/liba3s/tests/faults"
)

const session = "s"

var background = context.Background()

func init() {
	// In rounds of five appends and a save it numbers its facts on from
	// what it finds, saves a snapshot that holds their count, and tells after each
	// append how many are kept from then on.
	faults.Script("store", func(args []string) error {
		s, err := file.Open(background, file.Config{Dir: args[0], Hook: faults.Point})
		if err != nil {
			return err
		}
		se, err := s.Open(background, session, "child "+args[1])
		if err != nil {
			return err
		}
		kept, err := se.Load(background)
		if err != nil {
			return err
		}
		n, err := count(kept)
		if err != nil {
			return err
		}
		faults.Tell(strconv.Itoa(n))
		rounds, err := strconv.Atoi(args[2])
		if err != nil {
			return err
		}
		for range rounds {
			for i := range 5 {
				group := [][]byte{[]byte(strconv.Itoa(n)), []byte(strconv.Itoa(n + 1))}
				if _, err := se.Append(background, group); err != nil {
					return err
				}
				n += 2
				faults.Tell(strconv.Itoa(n))
				if i == 2 {
					err = se.Flush(background)
				}
				if err != nil {
					return err
				}
			}
			if err := se.Blobs().Put(background, strconv.Itoa(n), []byte("blob")); err != nil {
				return err
			}
			if err := se.Save(background, storetest.Snapshot(session, strconv.Itoa(n))); err != nil {
				return err
			}
		}
		return nil // without a close
	})
	faults.Script("grandchild", func(args []string) error {
		s, err := file.Open(background, file.Config{Dir: args[0]})
		if err != nil {
			return err
		}
		if _, err := s.Open(background, session, "parent"); err != nil {
			return err
		}
		cmd := exec.Command("sleep", "60")
		if err := cmd.Start(); err != nil {
			return err
		}
		faults.Point("open")
		return nil
	})
	faults.Script("open", func(args []string) error {
		s, err := file.Open(background, file.Config{Dir: args[0]})
		if err != nil {
			return err
		}
		_, err = s.Open(background, session, "second process")
		if err != nil {
			faults.Tell(err.Error())
		}
		return nil
	})
}

// count checks that the facts go on from the snapshot without a hole and gives how
// many there are in all.
func count(kept store.Kept) (int, error) {
	n := 0
	if kept.Snapshot != nil {
		var err error
		if n, err = strconv.Atoi(kept.Snapshot.Session.Messages[0].Text()); err != nil {
			return 0, err
		}
	}
	for b, err := range kept.Facts {
		if err != nil {
			return 0, err
		}
		if string(b) != strconv.Itoa(n) {
			return 0, fmt.Errorf("fact %q in the place of %d", b, n)
		}
		n++
	}
	return n, nil
}

// check opens what a dead child left: the facts from before it and all that it told are
// there, nothing is there twice, and at most the group it was writing is there besides.
// It gives the number of facts.
func check(t *testing.T, dir string, before int, out faults.Outcome) int {
	t.Helper()
	told := before
	if len(out.Told) > 0 {
		var err error
		if told, err = strconv.Atoi(out.Last()); err != nil || told < before {
			t.Fatalf("%d facts were there before: %v, %s", before, err, out)
		}
	}
	s, err := file.Open(background, file.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	se, kept := storetest.Open(t, s, session)
	defer storetest.Close(t, se)
	n, err := count(kept)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if n < told || n > told+2 {
		t.Errorf("%d facts are kept, %d were told\n%s", n, told, out)
	}
	if kept.Warning != "" && !strings.Contains(kept.Warning, "cut off by a crash") {
		t.Errorf("warning %q", kept.Warning)
	}
	filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil || strings.HasSuffix(path, ".tmp") || strings.Contains(path, ".log.") {
			t.Errorf("left behind: %s, %v", path, err)
		}
		return nil
	})
	return n
}

func TestStoreKilledAtEveryPoint(t *testing.T) {
	for _, point := range file.Points {
		if strings.HasPrefix(point, "delete.") {
			continue
		}
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			nth := 2
			if point == "append.log_created" {
				nth = 1 // a save makes all later logs
			}
			out := faults.Child(t, "store", dir, "1", "4").KillAt(point, nth)
			if !out.Killed {
				t.Fatal(out)
			}
			n := check(t, dir, 0, out)
			// KV-01: again and again without a close.
			for i := range 3 {
				n = check(t, dir, n, faults.Child(t, "store", dir, strconv.Itoa(i), "4").KillAt("save.temp_synced", 1+i))
			}
			out = faults.Child(t, "store", dir, "last", "2").Wait()
			if out.Status != 0 {
				t.Fatal(out)
			}
			check(t, dir, n, out)
		})
	}
}

// KV-03: killed anywhere in the midst of writing, only the group it was writing can be
// missing.
func TestStoreKilledAnytime(t *testing.T) {
	dir := t.TempDir()
	n := 0
	for i := range 25 {
		out := faults.Child(t, "store", dir, strconv.Itoa(i), "100").KillAfter(time.Duration(i*i*37%23000) * time.Microsecond)
		if !out.Killed && out.Status != 0 {
			t.Fatal(out)
		}
		n = check(t, dir, n, out)
	}
}

// KV-02: a second process is told who holds the session; a dead one holds nothing,
// even if a program that it started lives on.
func TestStoreHeldByProcess(t *testing.T) {
	dir := t.TempDir()
	holder := faults.Child(t, "store", dir, "one", "1")
	holder.Hold("flush.synced", 1)
	s, err := file.Open(background, file.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Open(background, session, "test")
	var e *fault.Error
	if !errors.As(err, &e) || e.Code != fault.CodeSessionBusy || e.Details["owner"] != "child one" || e.Details["pid"] != holder.PID() {
		t.Fatalf("got %v", err)
	}
	storetest.WantKind(t, s.Delete(background, session), fault.Busy)
	out := faults.Child(t, "open", dir).Wait()
	if out.Status != 0 || !strings.Contains(out.Last(), `in use by "child one" (process `+strconv.Itoa(holder.PID())+")") {
		t.Fatal(out)
	}
	n := check(t, dir, 0, holder.Kill())
	check(t, dir, n, faults.Child(t, "grandchild", dir).KillAt("open", 1))
	if ids, err := s.List(background); err != nil || !slices.Equal(ids, []string{session}) {
		t.Errorf("listed %q, %v", ids, err)
	}
}
