package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/a3s-lab/liba3s/runtime/agent"
	"github.com/a3s-lab/liba3s/runtime/session"
)

// child is a part of this program that has a process of its own.
func child(args []string) error {
	ctx := context.Background()
	switch {
	case len(args) == 4 && args[0] == "go":
		return goChild(ctx, args[1], args[2], args[3])
	case len(args) == 3 && args[0] == "idle":
		return idleChild(ctx, args[1], args[2])
	case len(args) == 5 && args[0] == "fill":
		return fillChild(ctx, args[1], args[2], args[3], args[4])
	case len(args) == 4 && args[0] == "resume":
		return resumeChild(ctx, args[1], args[2], args[3])
	}
	return fmt.Errorf("no such child: %q", args)
}

// idle measures what an open session costs that does nothing.
func idle(b *bench, t *table) error {
	for _, store := range []string{"", "idle-store"} {
		name := "without a store"
		dir := filepath.Join(b.dir, "idle"+store)
		if store != "" {
			name, store = "with a file store", filepath.Join(b.dir, store)
		}
		got, err := b.self(time.Minute, "idle", dir, store)
		if err != nil {
			t.failed("memory per idle session, "+name, err)
			continue
		}
		fresh, used := got["fresh"], got["used"]
		t.add("memory per idle session, "+name, below(64<<10), kib, fresh[:1], fmt.Sprintf("RSS of 1,000 more / 1,000; heap %s each; %g goroutines each", kib(fresh[1]), fresh[2]))
		t.add("the same after one short run each", below(64<<10), kib, used[:1], fmt.Sprintf("RSS; heap %s; %g goroutines each; the run's events stay readable", kib(used[1]), used[2]))
	}
	return nil
}

func idleChild(ctx context.Context, dir, store string) error {
	const n = 1000
	a, err := openAgent(ctx, dir, "say a short answer\nend\n")
	if err != nil {
		return err
	}
	var all []*session.Session
	open := func() error {
		s, err := a.OpenSession(ctx, spec(dir, stored(options(), store)))
		all = append(all, s)
		return err
	}
	if err := open(); err != nil {
		return err
	}
	if _, err := play(ctx, all[0]); err != nil {
		return err
	}
	base := usage()
	for range n {
		if err := open(); err != nil {
			return err
		}
	}
	usage().since(base).print("fresh", n)
	for _, s := range all[1:] {
		if _, err := play(ctx, s); err != nil {
			return err
		}
	}
	usage().since(base).print("used", n)
	return a.Close(ctx)
}

// memory is what a process holds.
type memory struct{ rss, heap, goroutines float64 }

func usage() memory {
	time.Sleep(50 * time.Millisecond) // what has just ended may still be on its way out
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return memory{float64(status("VmRSS")), float64(m.HeapAlloc), float64(runtime.NumGoroutine())}
}

func (m memory) since(o memory) memory {
	return memory{m.rss - o.rss, m.heap - o.heap, m.goroutines - o.goroutines}
}

func (m memory) print(name string, n float64) {
	fmt.Println(name, m.rss/n, m.heap/n, m.goroutines/n)
}

// status reads a size from the process's own status, in bytes.
func status(name string) int64 {
	b, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, name+":"); ok {
			n, _ := strconv.ParseInt(strings.Fields(v)[0], 10, 64)
			return n << 10
		}
	}
	return 0
}

// resumeSize is a journal: runs of so many MiB each.
type resumeSize struct{ runs, mib int }

// One run shows that memory follows what is kept of a run, many that it follows what
// is kept of a session.
var resumeSizes = []resumeSize{{1, 256}, {16, 16}}

// resume measures the peak of memory while a big journal is resumed.
func resume(b *bench, t *table) error {
	for i, size := range resumeSizes {
		name := fmt.Sprintf("resume of a journal of %d MiB (%d runs)", size.runs*size.mib, size.runs)
		dir, store := filepath.Join(b.dir, fmt.Sprint("resume", i)), filepath.Join(b.dir, fmt.Sprint("resume-store", i))
		if _, err := b.self(3*time.Minute, "fill", dir, store, fmt.Sprint(size.runs), fmt.Sprint(size.mib)); err != nil {
			t.failed(name, err)
			continue
		}
		got, err := b.self(3*time.Minute, "resume", dir, store, "big")
		if err != nil {
			t.failed(name, err)
			continue
		}
		m := got["resume"]
		t.add(name, below(64<<20), mib, []float64{m[0] - m[1]}, fmt.Sprintf("peak RSS %s above the RSS of the resumed session (%s, heap %s); took %.2f s", mib(m[0]-m[1]), mib(m[1]), mib(m[2]), m[3]))
		if err := os.RemoveAll(store); err != nil {
			return err
		}
	}
	return nil
}

func fillChild(ctx context.Context, dir, store, runs, size string) error {
	n, err := strconv.Atoi(runs)
	if err != nil {
		return err
	}
	each, err := strconv.Atoi(size)
	if err != nil {
		return err
	}
	a, err := openAgent(ctx, dir, strings.Repeat(ticks(1), n))
	if err != nil {
		return err
	}
	id := "big"
	o := stored(options(), store)
	o.SessionID = &id
	s, _, err := chatter(ctx, a, dir, o, each<<20/4300)
	for range n - 1 {
		if err == nil {
			_, err = play(ctx, s)
		}
	}
	if err != nil {
		return err
	}
	return a.Close(ctx)
}

func resumeChild(ctx context.Context, dir, store, id string) error {
	a, err := agent.Open(ctx, agent.Setup{ACLPath: filepath.Join(dir, "agent.acl"), Cwd: dir})
	if err != nil {
		return err
	}
	start := time.Now()
	s, err := a.OpenSession(ctx, agent.SessionSpec{Resume: id, Options: stored(options(), store)})
	took := time.Since(start).Seconds()
	if err != nil {
		return err
	}
	most := float64(status("VmHWM"))
	debug.FreeOSMemory() // what is left is the live state
	live := usage()
	fmt.Println("resume", most, live.rss, live.heap, took)
	return s.Close(ctx)
}
