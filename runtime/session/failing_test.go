package session_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/record"
	"github.com/a3s-lab/liba3s/runtime/session"
	"github.com/a3s-lab/liba3s/runtime/tool"
)

const busyScript = `think hm
say one two three
call look {}
call effect {}
call look {"n":2}
end
say done
`

// Whatever step of the store fails, and for how long, the run ends in one terminal event
// that names SESSION_ERROR, nothing hangs, no effect happens without an intent on disk,
// and what is on disk can be resumed.
func TestStoreThatFails(t *testing.T) {
	total := 0
	{
		k := keep(t, memory(t))
		r := open(t, failingSetup(k, new(int)))
		if _, err := r.play("go"); err != nil {
			t.Fatal(err)
		}
		total = len(k.steps())
	}
	for _, how := range []string{"once", "for ever", "panic"} {
		for n := range total {
			t.Run(fmt.Sprintf("%s at step %d", how, n), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { storeFails(t, n, how) })
			})
		}
	}
}

func failingSetup(k *journal, effects *int) setup {
	return setup{script: busyScript, kept: k, tools: []tool.Tool{answers("look", reads, "seen"), counting(effects)}}
}

func storeFails(t *testing.T, n int, how string) {
	effects := 0
	k := keep(t, memory(t))
	r := open(t, failingSetup(k, &effects))
	at := 0
	failed := ""
	k.failing(func(step string) error {
		defer func() { at++ }()
		if at < n || how == "once" && at > n {
			return nil
		}
		if failed == "" {
			failed = step
		}
		if how == "panic" {
			panic("the store is broken")
		}
		return fmt.Errorf("no room for %s", step)
	})
	x := r.start("go")
	events := told(t, x)
	_, err := x.Wait(t.Context())
	isCode(t, err, fault.CodeSession)
	if last := brief(t, events); last[len(last)-1] != "error SESSION_ERROR" {
		t.Errorf("after %s: %v", failed, last)
	}
	closed(t, r.History())
	if _, err := r.Start(session.Prompt{Text: "next"}); err != nil {
		t.Errorf("the lease is not free: %v", err)
	}
	for r.Active() != nil {
		time.Sleep(time.Millisecond)
	}
	intent := slices.ContainsFunc(k.facts(t), func(b []byte) bool {
		return kindOf(b) == "tool_execution_start" && strings.Contains(string(b), `"effect"`)
	})
	if effects > 0 && !intent {
		t.Error("an effect without an intent on disk")
	}
	k.failing(nil)
	s := open(t, setup{kept: crash(t, k), model: untouched(t)})
	closed(t, s.History())
	for _, run := range s.Runs() {
		whole(t, kept(t, s.Session, run.ID))
	}
}

// counting is a tool whose effect is counted.
func counting(n *int) act {
	a := answers("effect", writes, "did it")
	inner := a.do
	a.do = func(ctx context.Context, env tool.Env, args json.RawMessage) (chat.Result, error) {
		*n++
		return inner(ctx, env, args)
	}
	return a
}

func TestSaveHealsAFailedJournal(t *testing.T) {
	k := keep(t, memory(t))
	r := open(t, setup{script: "say one\nend\nsay two\nend\nsay three", kept: k})
	if _, err := r.play("first"); err != nil {
		t.Fatal(err)
	}
	k.failing(func(step string) error {
		if strings.HasPrefix(step, "append text_delta") {
			return errBoom
		}
		return nil
	})
	_, err := r.play("second")
	isCode(t, err, fault.CodeSession)
	k.failing(nil)
	_, err = r.play("still broken")
	isCode(t, err, fault.CodeSession)
	if err := r.Save(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.play("third"); err != nil {
		t.Fatal(err)
	}
	s := open(t, setup{kept: crash(t, k), model: untouched(t)})
	compare(t, r, s)
	if h := s.History(); h[len(h)-1].Text() != "three" {
		t.Errorf("%+v", h)
	}
}

func TestSaveThatFails(t *testing.T) {
	k := keep(t, memory(t))
	r := open(t, setup{script: "say one\nend\nsay two", kept: k})
	if _, err := r.play("first"); err != nil {
		t.Fatal(err)
	}
	k.failing(func(step string) error {
		if step == "save" {
			return errBoom
		}
		return nil
	})
	err := r.Save(t.Context())
	isCode(t, err, fault.CodeSession)
	if err == nil || !strings.Contains(err.Error(), "Failed to save session s") {
		t.Errorf("%v", err)
	}
	if _, err := r.play("second"); err != nil { // the journal goes on
		t.Fatal(err)
	}
	s := open(t, setup{kept: crash(t, k), model: untouched(t)})
	compare(t, r, s)
}

// A direct call that worked is told as such, though its trace cannot be kept.
func TestDirectCallWithABrokenStore(t *testing.T) {
	k := keep(t, memory(t))
	r := open(t, setup{kept: k, tools: []tool.Tool{answers("once", writes, "did it")}})
	k.failing(func(string) error { return errBoom })
	res, err := r.Tool(t.Context(), "once", nil)
	if err != nil || res.Output != "did it" {
		t.Errorf("%+v, %v", res, err)
	}
	if !strings.Contains(r.logged(), "could not be kept") {
		t.Errorf("log: %s", r.logged())
	}
}

func TestStoreThatCannotBeLoaded(t *testing.T) {
	k := keep(t, memory(t))
	k.failing(func(string) error { return errBoom })
	_ = k.Close() // Load is refused from here on
	if _, err := tryOpen(t, setup{kept: k}); fault.KindOf(err) != fault.Closed {
		t.Errorf("%v", err)
	}
}

// Settling a dead run is part of opening: if it cannot be kept the session does not open.
func TestSettlementThatCannotBeKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, k := make(chan struct{}, 1), keep(t, memory(t))
		r := open(t, setup{script: "call effect {}", kept: k, tools: []tool.Tool{waits("effect", writes, began)}})
		x := r.start("go")
		<-began
		synctest.Wait()
		place := crash(t, k)
		place.failing(func(step string) error {
			if step == "flush" {
				return errBoom
			}
			return nil
		})
		_, err := tryOpen(t, setup{kept: place, model: untouched(t)})
		isCode(t, err, fault.CodeSession)
		s := open(t, setup{kept: crash(t, place), model: untouched(t)}) // what was appended stands, whole
		if run, _ := s.RunSnapshot(x.ID()); run.Status != record.Failed {
			t.Errorf("%+v", run)
		}
	})
}

// A store may need the very thread that looks at the session: looking never waits for it.
func TestLookingDoesNotWaitForTheStore(t *testing.T) {
	k := keep(t, memory(t))
	r := open(t, setup{script: "say one\nend\nsay two", kept: k})
	if _, err := r.play("first"); err != nil {
		t.Fatal(err)
	}
	first := r.Runs()[0].ID
	inside, answer := make(chan string), make(chan struct{})
	k.failing(func(step string) error {
		inside <- step
		<-answer
		return nil
	})
	looks := map[string]func(){
		"history":      func() { r.History() },
		"runs":         func() { r.Runs() },
		"run_snapshot": func() { r.RunSnapshot(first) },
		"run_events":   func() { r.RunEvents(first) },
		"current_run":  func() { r.Current() },
		"active_tools": func() { r.ActiveTools() },
		"traces":       func() { r.Traces() },
		"info":         func() { r.Info() },
		"pending":      func() { r.Pending() },
		"commands":     func() { r.Commands() },
		"tools":        func() { r.ToolDefinitions() },
		"stream": func() {
			if c, err := r.Stream(); err == nil {
				c.Close()
				r.Release(c)
			}
		},
		"cancel_confirmations": func() { r.CancelConfirmations("") },
		"busy":                 func() { _, _ = r.Start(session.Prompt{Text: "third"}) },
		"cancel":               func() { r.CancelActive("") },
	}
	begins := func(where string) {
		for name, look := range looks {
			done := make(chan struct{})
			go func() { defer close(done); look() }()
			select {
			case <-done:
			case <-time.After(10 * time.Second):
				t.Fatalf("%s waits for the store's %s", name, where)
			}
		}
	}
	x := r.start("second")
	saved := make(chan error, 1)
	for {
		select {
		case step := <-inside:
			begins(step)
			answer <- struct{}{}
		case <-x.Done():
			_, err := x.Wait(t.Context())
			isCode(t, err, fault.CodeCancelled)
			go func() { saved <- r.Save(t.Context()) }()
			begins(<-inside)
			k.failing(nil)
			answer <- struct{}{}
			if err := <-saved; err != nil {
				t.Error(err)
			}
			return
		}
	}
}
