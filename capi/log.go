package main

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/fault"
)

// levels of the log, lowest first; the index is the number C gives.
var levels = []string{"debug", "info", "warn", "error"}

// logSink writes the log frames of all agents to one descriptor. Each agent has a
// stream of its own for it, so that a slow descriptor holds up nobody.
type logSink struct {
	mu      sync.Mutex
	file    *logFile           // nil when off; guarded by mu
	follows map[*entry]*stream // guarded by mu
}

// logFile is a duplicate of the host's descriptor.
type logFile struct {
	mu    sync.Mutex
	fd    int // -1 after close; guarded by mu
	level int
}

// to switches the log to fd, or off with -1.
func (l *logSink) to(r *rim, fd, level int32) error {
	switch {
	case fd < -1:
		return invalid("fd", "is %d; give an open descriptor, or -1 to stop", fd)
	case level < 0 || int(level) >= len(levels):
		return invalid("level", "is %d; give 0 debug, 1 info, 2 warn or 3 error", level)
	}
	var file *logFile
	if fd >= 0 {
		dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
		if err != nil {
			return fault.New(fault.IO, "", "descriptor %d cannot be duplicated: %v; give an open one", fd, err)
		}
		file = &logFile{fd: dup, level: int(level)}
	}
	l.mu.Lock()
	old, streams := l.file, l.follows
	l.file, l.follows = file, map[*entry]*stream{}
	l.mu.Unlock()
	for _, s := range streams {
		s.stop()
	}
	if old != nil {
		old.close()
	}
	if file != nil {
		for _, a := range r.table.agents() {
			l.follow(r, a)
		}
	}
	return nil
}

// follow writes the log of an agent from now on, if the log is on.
func (l *logSink) follow(r *rim, agent *entry) {
	l.mu.Lock()
	file := l.file
	l.mu.Unlock()
	if file == nil {
		return
	}
	c, err := r.OpenStream(agent.ctx, agent.value, []byte(`{}`))
	if err != nil {
		return // the agent is being closed
	}
	s := newStream(c)
	l.mu.Lock()
	taken := l.file == file && l.follows[agent] == nil && agent.ctx.Err() == nil
	if taken {
		l.follows[agent] = s
	}
	l.mu.Unlock()
	if !taken {
		s.stop()
		return
	}
	err = s.subscribe(subscription{batch: defaultBatch, deliver: file.write, finish: func() {}})
	if err != nil {
		s.stop()
	}
}

// unfollow ends the writing of an agent's log.
func (l *logSink) unfollow(agent *entry) {
	l.mu.Lock()
	s := l.follows[agent]
	delete(l.follows, agent)
	l.mu.Unlock()
	if s != nil {
		s.stop()
	}
}

// write writes the log frames of a batch, one line each.
func (f *logFile) write(batch []byte) {
	var frames []event.Envelope
	if json.Unmarshal(batch, &frames) != nil {
		return // our own encoding; tests of event hold it
	}
	for _, e := range frames {
		var line event.LogLine
		if e.Type != "log" || json.Unmarshal(e.Payload, &line) != nil || slices.Index(levels, line.Level) < f.level {
			continue
		}
		f.line(e.Payload)
	}
}

// line writes one object with its time in front.
func (f *logFile) line(payload []byte) {
	var b bytes.Buffer
	b.WriteString(`{"time":`)
	b.WriteString(time.Now().UTC().Format(`"2006-01-02T15:04:05.000Z"`))
	b.WriteByte(',')
	b.Write(bytes.TrimPrefix(payload, []byte("{")))
	b.WriteByte('\n')
	f.mu.Lock()
	defer f.mu.Unlock()
	rest := b.Bytes()
	for len(rest) > 0 && f.fd >= 0 && writable(f.fd) {
		n, err := unix.Write(f.fd, rest[:min(len(rest), 4096)]) // what a ready pipe takes
		if err != nil && err != unix.EINTR {
			return
		}
		rest = rest[max(n, 0):]
	}
}

// writable waits up to a second for fd.
func writable(fd int) bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for ctx.Err() == nil {
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
		n, err := unix.Poll(p, 100)
		if n > 0 {
			return p[0].Revents&unix.POLLOUT != 0
		}
		if err != nil && err != unix.EINTR {
			return false
		}
	}
	return false
}

func (f *logFile) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fd >= 0 {
		_ = unix.Close(f.fd) // a duplicate; the host's own stays open
		f.fd = -1
	}
}
