package proc

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

func TestMain(m *testing.M) {
	if os.Getenv("PROC_TEST_IGNORE_CHILD") != "" {
		signal.Ignore(syscall.SIGCHLD)
		r, out, err := sh("echo out; (sleep 60 &) ; exit 3")
		fmt.Printf("%d %v %d %q %v", r.Code, r.Unknown, r.Background, out, err)
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

var path = []string{"PATH=/usr/local/bin:/usr/bin:/bin"}

func spec(line string) Spec {
	return Spec{Path: "/bin/bash", Args: []string{"bash", "-c", line}, Dir: "/", Env: path}
}

// run runs a line and gives what it printed.
func run(ctx context.Context, s Spec) (Result, string, error) {
	var out bytes.Buffer
	r, err := Run(ctx, s, func(p []byte) { out.Write(p) })
	return r, out.String(), err
}

func sh(line string) (Result, string, error) { return run(context.Background(), spec(line)) }

// census checks that a test leaves no process with the word in its command line and no
// open file. It gives the word.
func census(t *testing.T) string {
	t.Helper()
	word := "census" + strconv.FormatInt(time.Now().UnixNano(), 36)
	fds := len(names(t, "/proc/self/fd"))
	t.Cleanup(func() {
		for _, p := range names(t, "/proc") {
			line, err := os.ReadFile("/proc/" + p + "/cmdline")
			if err == nil && bytes.Contains(line, []byte(word)) && p != strconv.Itoa(os.Getpid()) {
				t.Errorf("process %s is left: %q", p, line)
			}
		}
		if n := len(names(t, "/proc/self/fd")); n > fds {
			t.Errorf("%d open files at the end, %d at the start", n, fds)
		}
	})
	return word
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	l, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range l {
		out = append(out, e.Name())
	}
	return out
}

func TestRun(t *testing.T) {
	census(t)
	for _, c := range []struct {
		name, line, out string
		code            int
	}{
		{"output", "echo a; echo b >&2; echo c", "a\nb\nc\n", 0},
		{"status", "exit 7", "", 7},
		{"a signal", "kill -9 $$", "", -1},
		{"a signal of our own kind", "kill -TERM $$", "", -1},
		{"no newline", "printf x", "x", 0},
		{"CANC-04 cat", "cat", "", 0},
		{"CANC-04 read", "read x; echo $?", "1\n", 0},
		{"CANC-07 terminal", "(echo hi > /dev/tty) 2>/dev/null || echo none", "none\n", 0},
		{"a session of its own", "read -r p n s pp g sid x < /proc/$$/stat; [ $sid = $$ ] && [ $g = $$ ] && echo yes", "yes\n", 0},
		// What the host ignores, such as SIGHUP under nohup, its children ignore too; SIGPIPE not.
		{"signals", "grep -E 'SigBlk|SigIgn' /proc/self/status", "SigBlk:\t0000000000000000\nSigIgn:\t" + ignored(t) + "\n", 0},
		{"BIG pipe end", "yes | head -n 1", "y\n", 0},
		{"files", "ls /proc/self/fd | tr '\\n' ' '", "0 1 2 3 ", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, out, err := sh(c.line)
			if want := (Result{Code: c.code}); r != want || out != c.out || err != nil {
				t.Errorf("%+v, %q, %v; want %+v, %q", r, out, err, want, c.out)
			}
		})
	}
}

func TestEnvironment(t *testing.T) {
	s := spec("/usr/bin/env | LC_ALL=C sort")
	s.Env = []string{"B=2", "A=1", "A3S_CALL=outer"}
	_, out, err := run(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out, "\n")
	// PWD, SHLVL and _ are the shell's own.
	if len(lines) != 7 || lines[1] != "A=1" || !strings.HasPrefix(lines[0], "A3S_CALL=outer,") || lines[2] != "B=2" {
		t.Errorf("environment %q", lines)
	}
	s = Spec{Path: "/usr/bin/env", Args: []string{"env"}, Dir: "/"}
	if _, out, _ = run(context.Background(), s); strings.Count(out, "\n") != 1 {
		t.Errorf("an empty environment became %q", out)
	}
}

func TestStartErrors(t *testing.T) {
	census(t)
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		spec Spec
		kind fault.Kind
	}{
		{"no program", Spec{Path: "/no/such", Args: []string{"x"}, Dir: "/"}, fault.NotFound},
		{"no folder", Spec{Path: "/bin/true", Args: []string{"x"}, Dir: "/no/such"}, fault.NotFound},
		{"not executable", Spec{Path: plain, Args: []string{"x"}, Dir: "/"}, fault.Denied},
		{"too long", spec(strings.Repeat("x", 3<<20)), fault.Limit},
		{"NUL", spec("echo a\x00b"), fault.Invalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, _, err := run(context.Background(), c.spec); fault.KindOf(err) != c.kind {
				t.Errorf("%v, want kind %s", err, c.kind)
			}
			if _, err := Start(c.spec); fault.KindOf(err) != c.kind {
				t.Errorf("%v, want kind %s", err, c.kind)
			}
		})
	}
}

// TestCANC01 leaves loops behind that hide in every way the package knows of, and runs
// into the time-out.
func TestCANC01(t *testing.T) {
	word := census(t)
	for name, line := range map[string]string{
		"eight loops":     "for i in 1 2 3 4 5 6 7 8; do (while :; do sleep 0.05; done) & done; wait",
		"ignores TERM":    "trap '' TERM; (trap '' TERM; while :; do sleep 1; done) & while :; do sleep 1; done",
		"own groups":      "set -m; sleep 6173 & sleep 6173 & wait",
		"own session":     "setsid sleep 6173 & setsid -f sleep 6173; wait",
		"no environment":  "env -i setsid sleep 6173 & env -i setsid -f sleep 6173; wait",
		"no output":       "setsid -f sleep 6173 >/dev/null 2>&1; sleep 6173",
		"a chain":         "setsid bash -c 'setsid bash -c \"setsid sleep 6173; :\"; :'; :",
		"stopped":         "kill -STOP $$",
		"CANC-05 holds":   "(sleep 6173 & wait) | cat",
		"keeps forking":   "f() { sleep 0.01; setsid -f bash -c \"$(declare -f f); f\" " + word + "; }; f; sleep 6173",
		"env -i, no out":  "env -i setsid sleep 6173 >/dev/null 2>&1 & wait",
		"holds both ends": "sleep 6173 <&1 & wait",
	} {
		t.Run(name, func(t *testing.T) {
			s := spec("# " + word + "\n" + line)
			s.Args = append(s.Args, word)
			s.Timeout = 300 * time.Millisecond
			s.Grace = 100 * time.Millisecond
			start := time.Now()
			r, _, err := run(context.Background(), s)
			if took := time.Since(start); took > 2*time.Second {
				t.Errorf("took %v", took)
			}
			if r.Background = 0; !r.TimedOut || r.Cancelled || err != nil {
				t.Errorf("%+v, %v", r, err)
			}
			if n := sleepers(t); n != 0 {
				t.Errorf("%d sleepers are left", n)
			}
		})
	}
}

// sleepers counts the processes of this test that sleep for that long.
func sleepers(t *testing.T) (n int) {
	for _, p := range names(t, "/proc") {
		if line, err := os.ReadFile("/proc/" + p + "/cmdline"); err == nil && bytes.Equal(line, []byte("sleep\x006173\x00")) {
			n++
		}
	}
	return n
}

// TestCANC02 makes sure that nothing but the call is signalled: a process of ours in
// the group of the test lives on.
func TestCANC02(t *testing.T) {
	other, err := os.StartProcess("/bin/sleep", []string{"sleep", "601"}, &os.ProcAttr{})
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan os.Signal, 8)
	signal.Notify(got, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer signal.Stop(got)
	s := spec("kill -TERM 0; sleep 6173")
	s.Timeout = 100 * time.Millisecond
	if _, _, err := run(context.Background(), s); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r, err := Run(ctx, spec("echo; sleep 6173"), func([]byte) { cancel() })
	if !r.Cancelled || r.TimedOut || err != nil {
		t.Errorf("%+v, %v", r, err)
	}
	select {
	case s := <-got:
		t.Errorf("the host got %v", s)
	default:
	}
	if err := other.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("a process of the host is gone: %v", err)
	}
	other.Kill()
	other.Wait()
}

func TestCANC03(t *testing.T) {
	word := census(t)
	start := time.Now()
	r, out, err := sh("# " + word + "\n(while :; do echo tick; sleep 0.02; done) & sleep 0.1; echo done")
	if took := time.Since(start); took > 3*time.Second {
		t.Errorf("took %v", took)
	}
	if r.Background == 0 || r.Code != 0 || r.TimedOut || !strings.Contains(out, "done\n") || err != nil {
		t.Errorf("%+v, %q, %v", r, out, err)
	}
	r, out, err = sh("sleep 6173 >/dev/null 2>&1 & echo done")
	if (r != Result{Background: 1}) || out != "done\n" || err != nil {
		t.Errorf("%+v, %q, %v", r, out, err)
	}
	// CANC-06: kill %1 does not work without job control.
	r, _, err = sh("sleep 6173 & kill %1 2>/dev/null; exit 0")
	if r.Background > 1 || err != nil || sleepers(t) != 0 {
		t.Errorf("%+v, %v, %d sleepers", r, err, sleepers(t))
	}
}

func TestSUB04(t *testing.T) {
	word := census(t)
	ctx, cancel := context.WithCancel(context.Background())
	var started sync.WaitGroup
	var all sync.WaitGroup
	for range 4 {
		started.Add(1)
		all.Go(func() {
			var once sync.Once
			r, err := Run(ctx, spec("# "+word+"\nbash -c 'bash -c \"sleep 6173 & sleep 6173 & echo; wait\" & wait' & wait"), func([]byte) { once.Do(started.Done) })
			if !r.Cancelled || err != nil {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
	started.Wait()
	cancel()
	all.Wait()
	if n := sleepers(t); n != 0 {
		t.Errorf("%d sleepers are left", n)
	}
}

func TestCancelledBefore(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r, out, err := run(ctx, spec("echo x"))
	if (r != Result{Code: -1, Cancelled: true}) || out != "" || err != nil {
		t.Errorf("%+v, %q, %v", r, out, err)
	}
	ctx, cancel = context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if r, _, err = run(ctx, spec("sleep 6173")); !r.TimedOut || r.Cancelled || err != nil {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestBIG01 reads 2 GB through a flat memory.
func TestBIG01(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	total := int64(0)
	r, err := Run(context.Background(), spec("head -c 2G /dev/zero"), func(p []byte) { total += int64(len(p)) })
	runtime.ReadMemStats(&after)
	if r != (Result{}) || err != nil || total != 2<<30 {
		t.Errorf("%+v, %v, %d bytes", r, err, total)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > 4<<20 {
		t.Errorf("allocated %d bytes", n)
	}
}

func TestOutputPanics(t *testing.T) {
	word := census(t)
	_, err := Run(context.Background(), spec("# "+word+"\nyes"), func([]byte) { panic("no") })
	if fault.KindOf(err) != fault.Internal {
		t.Errorf("%v, want kind internal", err)
	}
}

// TestMask blocks every signal on its thread, as the threads of the library do.
func TestMask(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all, old, now unix.Sigset_t
	for i := range all.Val {
		all.Val[i] = ^uint64(0)
	}
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &all, &old); err != nil {
		t.Fatal(err)
	}
	_, out, err := sh("grep SigBlk /proc/self/status")
	unix.PthreadSigmask(unix.SIG_SETMASK, &old, &now)
	if out != "SigBlk:\t0000000000000000\n" || err != nil {
		t.Errorf("%q, %v", out, err)
	}
	if now.Val[0] == 0 {
		t.Error("the mask of the thread was not put back")
	}
}

// TestChildIgnored runs in a process that ignores SIGCHLD: the exit status is lost, the
// rest works.
func TestChildIgnored(t *testing.T) {
	s := Spec{Path: os.Args[0], Args: []string{os.Args[0]}, Dir: "/", Env: append(path, "PROC_TEST_IGNORE_CHILD=1")}
	r, out, err := run(context.Background(), s)
	if r.Code != 0 || out != `-1 true 1 "out\n" <nil>` || err != nil {
		t.Errorf("%+v, %q, %v", r, out, err)
	}
}

func TestChild(t *testing.T) {
	word := census(t)
	c, err := Start(spec("# " + word + "\nsleep 6173 & while read l; do echo \"<$l>\"; echo e >&2; done; exit 5"))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(c.Stdin, "hello")
	buf := make([]byte, 100)
	if n, err := c.Stdout.Read(buf); string(buf[:n]) != "<hello>\n" || err != nil {
		t.Errorf("%q, %v", buf[:n], err)
	}
	if n, err := c.Stderr.Read(buf); string(buf[:n]) != "e\n" || err != nil {
		t.Errorf("%q, %v", buf[:n], err)
	}
	c.Stdin.Close()
	<-c.Done()
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			if r := c.Stop(); r != (Result{Code: 5}) {
				t.Errorf("%+v", r)
			}
		})
	}
	all.Wait()
	if n := sleepers(t); n != 0 {
		t.Errorf("%d sleepers are left", n)
	}
	c, err = Start(spec("# " + word + "\nsleep 6173"))
	if err != nil {
		t.Fatal(err)
	}
	if r := c.Stop(); r != (Result{Code: -1}) {
		t.Errorf("%+v", r)
	}
}

func FuzzParseStat(f *testing.F) {
	self, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(self)
	f.Add([]byte("1 (a) b) (c) S 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 1 19 20 21"))
	f.Add([]byte("1 (x) Z"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if m, ok := parseStat(1, data); ok && m.pid != 1 {
			t.Errorf("%+v", m)
		}
	})
}

func BenchmarkRun(b *testing.B) {
	for b.Loop() {
		if _, err := Run(context.Background(), Spec{Path: "/bin/true", Args: []string{"true"}, Dir: "/"}, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMembers(b *testing.B) {
	t := &tree{pid: os.Getpid(), mark: "x", exited: make(chan struct{})}
	for b.Loop() {
		t.members()
	}
}

// ignored gives the signals this process ignores, but for SIGPIPE, as /proc writes them.
func ignored(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), "SigIgn:\t")
	set, err := strconv.ParseUint(rest[:16], 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%016x", set&^(1<<(syscall.SIGPIPE-1)))
}
