package proc

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/a3s-lab/liba3s/internal/safego"
	"github.com/a3s-lab/liba3s/runtime/fault"
)

// markName is the variable that marks the processes of a call. A call inside another
// (a host that was itself started by libA3S) keeps the outer marks, so that the outer
// one finds these processes too.
const (
	markName = "A3S_CALL"
	maxMarks = 1024
	maxBusy  = 5 // starts while the program's file is open for writing elsewhere
)

// tree is a started process and all that comes from it.
type tree struct {
	pid    int
	begun  uint64 // start time in ticks; 0 if it was gone before we could look
	mark   string
	pipe   string // what /proc calls the pipe that only the tree writes to
	proc   *os.Process
	exited chan struct{} // closed when the process has ended
	lost   bool          // somebody else reaped it; set before exited is closed
	killed map[int]uint64
}

// start starts spec in a session of its own, without a terminal.
func start(spec Spec, stdin, stdout, stderr *os.File) (*tree, error) {
	if stdin == nil {
		null, err := os.Open(os.DevNull)
		if err != nil {
			return nil, fault.New(fault.IO, "proc.start", "cannot open the null device: %v", err)
		}
		defer null.Close()
		stdin = null
	}
	t := &tree{mark: rand.Text(), exited: make(chan struct{}), killed: map[int]uint64{}}
	attr := &os.ProcAttr{
		Dir:   spec.Dir,
		Env:   marked(spec.Env, t.mark),
		Files: append([]*os.File{stdin, stdout, stderr}, make([]*os.File, inheritable())...),
		Sys:   &syscall.SysProcAttr{Setsid: true},
	}
	var err error
	for range maxBusy {
		// A file that was written a moment ago may still be open in a child that some
		// other thread is just starting.
		if t.proc, err = unmasked(spec.Path, spec.Args, attr); !errors.Is(err, syscall.ETXTBSY) {
			break
		}
	}
	if err != nil {
		return nil, startError(spec, err)
	}
	t.pid = t.proc.Pid
	t.pipe = pipeName(stdout)
	if s, ok := stat(t.pid); ok {
		t.begun = s.begun
	}
	safego.Go("proc.wait", nil, t.wait)
	return t, nil
}

// unmasked starts a process from a thread on which no signal is blocked: the threads
// of the library block all, and a child inherits the mask of the thread it came from.
func unmasked(path string, args []string, attr *os.ProcAttr) (*os.Process, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var none, old unix.Sigset_t
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &none, &old); err != nil {
		return nil, err
	}
	p, err := os.StartProcess(path, args, attr)
	if back := unix.PthreadSigmask(unix.SIG_SETMASK, &old, nil); back != nil && err == nil {
		err = back // cannot happen: the mask came from the system
	}
	return p, err
}

// inheritable says up to which number behind the standard streams the host has files
// open that a child would inherit. A nil in ProcAttr.Files closes its number.
func inheritable() int {
	const most = 4096 // each is a system call in the child
	d, err := os.Open("/proc/self/fd")
	if err != nil {
		return 0
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return 0
	}
	last := 2
	for _, name := range names {
		fd, err := strconv.Atoi(name)
		if err != nil || fd <= last || fd > most {
			continue
		}
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if err == nil && flags&unix.FD_CLOEXEC == 0 {
			last = fd
		}
	}
	return last - 2
}

// marked adds the mark to an environment.
func marked(env []string, mark string) []string {
	out := make([]string, 0, len(env)+1)
	outer := ""
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, markName+"="); ok {
			outer = v
			continue
		}
		out = append(out, e)
	}
	if outer != "" && len(outer) < maxMarks {
		mark = outer + "," + mark
	}
	return append(out, markName+"="+mark)
}

// wait waits for the end but leaves the zombie: as long as it is there, its number
// cannot become that of another process or group.
func (t *tree) wait() {
	defer close(t.exited)
	var info unix.Siginfo
	for {
		err := unix.Waitid(unix.P_PID, t.pid, &info, unix.WEXITED|unix.WNOWAIT, nil)
		if err == nil {
			return
		}
		if err != unix.EINTR {
			// The host ignores SIGCHLD, or waits for any child it can get.
			t.lost = true
			return
		}
	}
}

// pipeName gives the name under which /proc shows a pipe.
func pipeName(f *os.File) string {
	fi, err := f.Stat()
	if err != nil || fi.Mode()&fs.ModeNamedPipe == 0 {
		return ""
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return "pipe:[" + strconv.FormatUint(st.Ino, 10) + "]"
}

// reap takes the exit status of an ended tree. A process that hangs in the kernel, on
// a dead file server say, outlives even SIGKILL; nobody waits for it.
func (t *tree) reap() (code int, known bool) {
	timer := time.NewTimer(killing)
	defer timer.Stop()
	select {
	case <-t.exited:
		return t.status()
	case <-timer.C:
		safego.Go("proc.reap", nil, func() { <-t.exited; t.status() })
		return -1, false
	}
}

func (t *tree) status() (code int, known bool) {
	if t.lost {
		t.proc.Release()
		return -1, false
	}
	state, err := t.proc.Wait()
	if err != nil {
		t.proc.Release()
		return -1, false
	}
	return state.ExitCode(), true
}

func startError(spec Spec, err error) error {
	const op = "proc.start"
	name := spec.Path
	if _, e := os.Stat(spec.Dir); spec.Dir != "" && e != nil {
		return fault.New(fault.NotFound, op, "cannot run %q: the working directory %q is not there", name, spec.Dir)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fault.New(fault.NotFound, op, "cannot run %q: there is no such program", name)
	case errors.Is(err, fs.ErrPermission):
		return fault.Of(fault.CodeIO, op, "cannot run %q: the operating system refuses it", name).WithKind(fault.Denied)
	case errors.Is(err, syscall.E2BIG):
		return fault.New(fault.Limit, op, "cannot run %q: the command line is too long for the operating system; put it into a file", name)
	case errors.Is(err, syscall.EINVAL):
		return fault.New(fault.Invalid, op, "cannot run %q: the command or its environment contains a NUL byte", name)
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.ENOMEM):
		return fault.New(fault.IO, op, "cannot run %q: no process or memory is left: %v", name, err).Retry()
	}
	return fault.New(fault.IO, op, "cannot run %q: %v", name, err)
}
