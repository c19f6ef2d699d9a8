package extensions

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

// noisy starts a program with a context provider that raises: one warning a run.
func noisy(t *testing.T) *program {
	p := scripted(t, strings.Repeat("say x\nend\n", 400))
	p.on("context/query", func(asked) (any, error) { return nil, fmt.Errorf("boom") })
	p.register("context", object{"name": "x"})
	return p
}

// received collects what a receiver is told.
type received struct {
	mu    sync.Mutex
	lines []object
	block chan struct{} // a receiver waits for it, if it is not nil
}

func (r *received) take(a asked) (any, error) {
	r.mu.Lock()
	var l object
	for _, k := range []string{"level", "message", "session_id", "error_kind", "fields"} {
		if v := a.param(k); v != nil {
			if l == nil {
				l = object{}
			}
			l[k] = v
		}
	}
	r.lines = append(r.lines, l)
	block := r.block
	r.mu.Unlock()
	if block != nil {
		<-block
	}
	return nil, nil
}

func (r *received) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.lines)
}

func TestLog(t *testing.T) {
	p := noisy(t)
	got := &received{}
	p.on("log/write", got.take)
	reg := p.register("log", object{"name": "file"})
	s := p.session(object{"session_id": "s1"})
	p.run(s, "hi")
	p.until("the line", func() bool { return got.count() == 1 })
	want(t, "line", got.lines[0]["message"], "context provider x was left out: ValueError: boom")
	want(t, "level", got.lines[0]["level"], "warn")
	p.until("the frame", func() bool { return len(p.logs) == 1 })
	if err := reg.Close(); err != nil {
		t.Fatal(err)
	}
	p.run(s, "hi")
	p.until("the second frame", func() bool { return len(p.logs) == 2 })
	want(t, "after it was taken back", got.count(), 1)
}

func TestLogLevelsAndSessions(t *testing.T) {
	p := noisy(t)
	quiet, mine := &received{}, &received{}
	p.on("log/write", func(a asked) (any, error) {
		if a.Name == "quiet" {
			return quiet.take(a)
		}
		return mine.take(a)
	})
	s1, s2 := p.session(nil), p.session(nil)
	p.register("log", object{"name": "quiet", "level": "error"})
	p.register("log", object{"name": "mine"}, s2)
	p.run(s1, "hi")
	p.run(s2, "hi")
	p.until("the line", func() bool { return mine.count() == 1 && len(p.logs) == 2 })
	want(t, "quiet", quiet.count(), 0)
	_, err := p.tryRegister("log", object{"name": "x", "level": "loud"})
	wantError(t, "level", err, fault.CodeInvalidRequest, `"loud" is none of`)
}

// A receiver that does not answer costs the run nothing; what it misses is counted.
func TestLogSlow(t *testing.T) {
	p := noisy(t)
	got := &received{block: make(chan struct{})}
	p.on("log/write", got.take)
	p.register("log", object{"name": "file", "timeout_ms": 10_000})
	s := p.session(nil)
	for range 300 {
		if r := p.run(s, "hi"); r.err != nil {
			t.Fatal(r.err)
		}
	}
	got.mu.Lock()
	block := got.block
	got.block = nil
	got.mu.Unlock()
	close(block)
	p.until("the queue", func() bool { return got.count() == 257 })
	dropped := 0.0
	for _, l := range got.lines {
		if f, ok := l["fields"].(object); ok {
			dropped += f["dropped"].(float64)
		}
	}
	want(t, "dropped", dropped, 43)
}

func TestLogNoAnswer(t *testing.T) {
	p := noisy(t)
	p.on("log/write", func(asked) (any, error) { return nil, errSilent })
	p.register("log", object{"name": "file", "timeout_ms": 20})
	if r := p.run(p.session(nil), "hi"); r.err != nil {
		t.Fatal(r.err)
	}
	p.withdraws("log", "timeout")
}

// No secret of the configuration reaches a receiver.
func TestLogRedacted(t *testing.T) {
	acl, files := script("say x\nend")
	p := start(t, acl+`
providers "openai" { apiKey = "sk-very-secret-key" models "m" { } }`, files)
	got := &received{}
	p.on("context/query", func(asked) (any, error) { return nil, fmt.Errorf("refused sk-very-secret-key") })
	p.on("log/write", got.take)
	p.register("context", object{"name": "x"})
	p.register("log", object{"name": "file"})
	p.run(p.session(nil), "hi")
	p.until("the line", func() bool { return got.count() == 1 })
	if m := got.lines[0]["message"].(string); strings.Contains(m, "very-secret") || !strings.Contains(m, "refused") {
		t.Errorf("message %q", m)
	}
}
