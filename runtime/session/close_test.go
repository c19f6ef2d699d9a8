package session_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/policy"
	"github.com/a3s-lab/liba3s/runtime/session"
	"github.com/a3s-lab/liba3s/runtime/tool"
)

// deaf is a tool that does not hear that it is cancelled; letGo ends it.
func deaf(name string, began chan<- struct{}, letGo <-chan struct{}) act {
	return act{name, writes, func(context.Context, tool.Env, json.RawMessage) (chat.Result, error) {
		began <- struct{}{}
		<-letGo
		return chat.Result{Output: "at last"}, nil
	}}
}

func TestS12CloseWaitsForTheRunAndEndsTheStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory(t)
		k := keep(t, st)
		r := open(t, setup{
			script: "call write {\"file_path\":\"a\",\"content\":\"x\"}\nend\nsay never", kept: k, autoSave: true,
			rules: &policy.Policy{DefaultDecision: "ask"}, confirm: &policy.ConfirmationPolicy{Enabled: true},
		})
		c, err := r.Stream()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		x := r.start("go")
		synctest.Wait()
		at := time.Now()
		if err := r.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(at); d != 0 {
			t.Errorf("it took %v", d)
		}
		events := drain(t, c)
		whole(t, events)
		tail := brief(t, events)
		tail = tail[len(tail)-4:]
		tail[2], _, _ = strings.Cut(tail[2], " ") // rejected or cancelled, whichever the Gate sees first
		same(t, "events", tail, []string{"confirmation_required write", "confirmation_received false the session was closed", "tool_end", "error CANCELLED"})
		isCode(t, func() error { _, err := x.Wait(t.Context()); return err }(), fault.CodeCancelled)
		steps := k.steps()
		if slices.Contains(steps, "save") {
			t.Error("close saved")
		}
		if i := slices.Index(steps, "append error"); i < 0 || steps[i+1] != "flush" {
			t.Errorf("the terminal fact is not flushed: %v", steps)
		}
		if _, err := st.Open(t.Context(), "s", "another"); err != nil {
			t.Errorf("the session is still held: %v", err)
		}
	})
}

func TestS12CloseBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, letGo := make(chan struct{}, 2), make(chan struct{})
		r := open(t, setup{script: "call deaf {}\nend\nsay never", tools: []tool.Tool{deaf("deaf", began, letGo)}})
		x := r.start("go")
		<-began
		direct := make(chan error, 1)
		go func() {
			_, err := r.Tool(context.Background(), "deaf", nil)
			direct <- err
		}()
		<-began
		at := time.Now()
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := r.Close(short); fault.KindOf(err) != fault.Timeout {
			t.Errorf("a short time-out: %v", err)
		}
		if d := time.Since(at); d != time.Second {
			t.Errorf("it took %v", d)
		}
		if _, err := r.Start(session.Prompt{Text: "x"}); fault.From("", err).Code != fault.CodeSessionClosed {
			t.Errorf("new work: %v", err)
		}
		if err := r.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if d := time.Since(at); d != 3*time.Second {
			t.Errorf("the whole took %v, want 2 s for the run and 1 s for the tools", d)
		}
		select {
		case <-x.Done():
			t.Error("the run has ended")
		default:
		}
		close(letGo)
		events := told(t, x) // it ends in one terminal event all the same
		if last := events[len(events)-1].Type; last != "error" {
			t.Error(last)
		}
		<-direct
	})
}

func TestS12ReadingGoesOnAfterClose(t *testing.T) {
	r := open(t, setup{script: "say hi", kept: keep(t, memory(t))})
	events, err := r.play("go")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(t.Context()); err != nil {
		t.Errorf("a second close: %v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Close(gone); err != nil {
		t.Errorf("a close without time of a closed session: %v", err)
	}
	if len(r.History()) != 2 || len(r.Runs()) != 1 || len(r.RunEvents(events[0].Metadata.RunID)) != len(events) || !r.Info().Closed {
		t.Error("records are gone")
	}
	closedWith := map[string]error{
		"start": func() error { _, err := r.Start(session.Prompt{Text: "x"}); return err }(),
		"save":  r.Save(t.Context()),
		"tool":  func() error { _, err := r.Tool(t.Context(), "ls", nil); return err }(),
		"add":   r.AddTool(answers("x", reads, "")),
	}
	for what, err := range closedWith {
		if f := fault.From("", err); f == nil || f.Code != fault.CodeSessionClosed || f.Kind != fault.Closed {
			t.Errorf("%s: %v", what, err)
		}
	}
	if r.CancelActive("") {
		t.Error("something was cancelled")
	}
	c, err := r.Stream()
	if err != nil {
		t.Fatal(err)
	}
	if got := drain(t, c); len(got) != 0 {
		t.Errorf("a stream of a closed session: %v", names(got))
	}
	c.Close()
}
