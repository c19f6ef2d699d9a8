package proc

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Bounds of ending a tree.
const (
	killing  = time.Second          // how long SIGKILL is repeated for what keeps appearing
	firstGap = 2 * time.Millisecond // between two looks; doubled each time
	lastGap  = 50 * time.Millisecond
)

// end ends all processes of the tree and says how many, besides the first, it found.
// First they are asked, then, after grace, killed.
func (t *tree) end(grace time.Duration) int {
	alive := t.members()
	found := len(alive)
	for _, m := range alive {
		if m.pid == t.pid {
			found--
		}
	}
	if len(alive) > 0 {
		t.signal(unix.SIGTERM, alive)
		alive = t.outlast(grace, 0)
	}
	if len(alive) > 0 {
		t.outlast(killing, unix.SIGKILL)
	}
	t.reapStrays()
	return found
}

// outlast looks until nothing of the tree is left or the time is over, sending sig,
// if it is one, at every look.
func (t *tree) outlast(limit time.Duration, sig unix.Signal) []member {
	until := time.Now().Add(limit)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for gap := firstGap; ; gap = min(2*gap, lastGap) {
		alive := t.members()
		left := time.Until(until)
		if len(alive) == 0 || left <= 0 {
			return alive
		}
		if sig != 0 {
			t.signal(sig, alive)
		}
		timer.Reset(min(gap, left))
		<-timer.C
	}
}

// signal sends sig to the group of the first process, which no fork can outrun, and to
// each member that has left the group.
func (t *tree) signal(sig unix.Signal, alive []member) {
	grouped := t.held()
	if grouped {
		// An error says that the group is empty.
		_ = unix.Kill(-t.pid, sig)
	}
	for _, m := range alive {
		if grouped && m.group == t.pid {
			continue
		}
		if send(m, sig) {
			t.killed[m.pid] = m.begun
		}
	}
}

// held says whether the number of the first process is still its own.
func (t *tree) held() bool {
	select {
	case <-t.exited:
		return !t.lost
	default:
		return true
	}
}

// send signals a process through a handle, after checking with the handle in the hand
// that the number still means the process that was looked at.
func send(m member, sig unix.Signal) bool {
	fd, err := unix.PidfdOpen(m.pid, 0)
	if err == nil {
		defer unix.Close(fd)
	} else if err != unix.ENOSYS && err != unix.EPERM {
		return false
	}
	now, ok := stat(m.pid)
	if !ok || now.begun != m.begun {
		return false
	}
	if err != nil {
		return unix.Kill(m.pid, sig) == nil
	}
	return unix.PidfdSendSignal(fd, sig, nil, 0) == nil
}

// member is one process as /proc shows it.
type member struct {
	pid, parent, group, session int
	dead                        bool
	begun                       uint64
}

// members finds the living processes of the tree. Without /proc it finds none, and the
// signals to the group are all there is.
func (t *tree) members() []member {
	all := processes()
	held := t.held() // if not, the number of the first process may be somebody else's by now
	in := make(map[int]bool, 8)
	for i := range all {
		m := &all[i]
		ours := held && (m.pid == t.pid || m.session == t.pid || m.group == t.pid)
		begun, signalled := t.killed[m.pid]
		in[m.pid] = ours || signalled && m.begun == begun || t.marked(m)
	}
	for grown := true; grown; {
		grown = false
		for i := range all {
			m := &all[i]
			if !in[m.pid] && in[m.parent] {
				in[m.pid], grown = true, true
			}
		}
	}
	self := os.Getpid()
	var alive []member
	for _, m := range all {
		switch {
		case !in[m.pid], m.pid == self:
		case !m.dead:
			alive = append(alive, m)
		case m.parent == self && m.pid != t.pid:
			t.killed[m.pid] = m.begun
		}
	}
	return alive
}

// reapStrays reaps what the system gave to us to reap because we are the first process
// of a container.
func (t *tree) reapStrays() {
	for pid, begun := range t.killed {
		if s, ok := stat(pid); ok && s.begun == begun && s.dead && s.parent == os.Getpid() {
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
		}
	}
}

// marked says whether a process carries the mark or holds the pipe of the tree.
func (t *tree) marked(m *member) bool {
	if m.dead || m.begun < t.begun || m.pid == os.Getpid() {
		return false
	}
	dir := "/proc/" + strconv.Itoa(m.pid)
	if env, err := os.ReadFile(dir + "/environ"); err == nil && bytes.Contains(env, []byte(t.mark)) {
		return true
	}
	return t.holdsPipe(dir)
}

// holdsPipe looks at the standard streams only: elsewhere a copy may have come to a
// process that the host forked at the wrong moment.
func (t *tree) holdsPipe(dir string) bool {
	if t.pipe == "" {
		return false
	}
	for _, fd := range []string{"/fd/1", "/fd/2"} {
		if name, err := os.Readlink(dir + fd); err == nil && name == t.pipe {
			return true
		}
	}
	return false
}

// processes reads all of /proc.
func processes() []member {
	d, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil
	}
	out := make([]member, 0, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if m, ok := stat(pid); ok {
			out = append(out, m)
		}
	}
	return out
}

// stat reads /proc/PID/stat. The name of the program comes second, in parentheses, and
// may itself contain anything. Every look reads it for every process of the machine, so
// it goes without os.File.
func stat(pid int) (member, bool) {
	var path [32]byte
	p := append(strconv.AppendInt(append(path[:0], "/proc/"...), int64(pid), 10), "/stat"...)
	fd, err := unix.Open(string(p), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return member{}, false
	}
	var buf [1024]byte
	n, err := unix.Read(fd, buf[:])
	unix.Close(fd)
	if err != nil {
		return member{}, false
	}
	return parseStat(pid, buf[:n])
}

func parseStat(pid int, data []byte) (member, bool) {
	end := bytes.LastIndexByte(data, ')')
	if end < 0 {
		return member{}, false
	}
	const state, parent, group, session, threads, begun = 0, 1, 2, 3, 17, 19
	var f [begun + 1]uint64
	i, first := 0, byte(0)
	for field := range bytes.FieldsSeq(data[end+1:]) {
		if i == state {
			first = field[0]
		} else {
			f[i] = number(field)
		}
		if i++; i == len(f) {
			break
		}
	}
	if i < len(f) {
		return member{}, false
	}
	m := member{pid: pid, parent: int(f[parent]), group: int(f[group]), session: int(f[session]), begun: f[begun]}
	// The first thread of a process can be a zombie while others go on.
	m.dead = (first == 'Z' || first == 'X') && f[threads] <= 1
	return m, true
}

// number reads a decimal number; what is none, such as a negative one, is 0, which is
// no process.
func number(digits []byte) (n uint64) {
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0
		}
		n = n*10 + uint64(c-'0')
	}
	return n
}
