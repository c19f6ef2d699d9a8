package main

import (
	"bufio"
	"encoding/json"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/a3s-lab/liba3s/internal/safego"
	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/fault"
)

func frame(t *testing.T, p event.Payload) []byte {
	t.Helper()
	b, err := event.AppendFrame(nil, p)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func logPipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

func TestLogToDescriptor(t *testing.T) {
	core := &fakeCore{}
	lib := newRim(core)
	before, err := lib.openAgent([]byte("before"))
	if err != nil {
		t.Fatal(err)
	}
	r, w := logPipe(t)
	if err := lib.log.to(lib, int32(w.Fd()), 2); err != nil {
		t.Fatal(err)
	}
	after, err := lib.openAgent([]byte("after"))
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(r)
	for i, tp := range core.tapes { // one stream for each agent
		tp.Append(frame(t, event.LogLine{Level: "info", Message: "too low"}),
			frame(t, event.Gap{RunID: "r"}),
			frame(t, event.LogLine{Level: "warn", Message: "heard", RunID: []string{"r0", "r1"}[i]}))
		if !lines.Scan() {
			t.Fatal(lines.Err())
		}
		var got struct {
			Time, Level, Message string
			RunID                string `json:"run_id"`
		}
		if err := json.Unmarshal(lines.Bytes(), &got); err != nil {
			t.Fatalf("%s: %v", lines.Bytes(), err)
		}
		if _, err := time.Parse(time.RFC3339, got.Time); err != nil {
			t.Error(err)
		}
		if got.Level != "warn" || got.Message != "heard" || got.RunID != []string{"r0", "r1"}[i] {
			t.Errorf("got %+v", got)
		}
	}
	for _, h := range []Handle{before, after} {
		if _, err := lib.close(h, -1, 0); err != nil {
			t.Error(err)
		}
	}
	if n := len(lib.log.follows); n != 0 {
		t.Errorf("%d agents are still followed", n)
	}
	if err := lib.log.to(lib, -1, 0); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if lines.Scan() {
		t.Errorf("a line too many: %s", lines.Text())
	}
}

// A descriptor that takes nothing loses lines; it holds up neither agents nor close.
func TestLogToAFullPipe(t *testing.T) {
	core := &fakeCore{}
	lib := newRim(core)
	_, w := logPipe(t)
	fd := int(w.Fd())
	if err := syscall.SetNonblock(fd, true); err != nil {
		t.Fatal(err)
	}
	for { // fill it
		if _, err := syscall.Write(fd, make([]byte, 4096)); err != nil {
			break
		}
	}
	if err := lib.log.to(lib, int32(fd), 0); err != nil {
		t.Fatal(err)
	}
	h, err := lib.openAgent(nil)
	if err != nil {
		t.Fatal(err)
	}
	core.tapes[0].Append(frame(t, event.LogLine{Level: "error", Message: "lost"}))
	closed := make(chan error, 1)
	safego.Go("test", nil, func() { _, err := lib.close(h, 500, 0); closed <- err })
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("close hangs")
	}
	if err := lib.log.to(lib, -1, 0); err != nil {
		t.Fatal(err)
	}
}

func TestLogRefuses(t *testing.T) {
	lib := newRim(&fakeCore{})
	for name, tt := range map[string]struct {
		fd, level int32
		kind      fault.Kind
	}{
		"fd":     {-2, 0, fault.Invalid},
		"level":  {1, 4, fault.Invalid},
		"closed": {1 << 20, 0, fault.IO},
	} {
		t.Run(name, func(t *testing.T) { kind(t, lib.log.to(lib, tt.fd, tt.level), tt.kind) })
	}
}
