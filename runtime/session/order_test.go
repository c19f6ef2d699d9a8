package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/model"
	"github.com/a3s-lab/liba3s/runtime/prompt"
	"github.com/a3s-lab/liba3s/runtime/record"
	"github.com/a3s-lab/liba3s/runtime/session"
	"github.com/a3s-lab/liba3s/runtime/tool"
)

func TestS9TerminalOrder(t *testing.T) {
	k := keep(t, memory(t))
	r := open(t, setup{script: "say hi", kept: k, autoSave: true, fixed: "x"})
	c, err := r.Stream()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var atSave string
	k.failing(func(step string) error {
		if step == "save" {
			_, busy := r.Start(session.Prompt{Text: "too early"})
			told := names(now(t, c))
			if atSave == "" {
				atSave = fmt.Sprint(fault.From("", busy).Code, " ", slices.Contains(told, "agent_end"), " ", r.Active() != nil)
			}
		}
		return nil
	})
	x := r.start("go")
	stream := x.Stream(0)
	defer stream.Close()
	drain(t, stream)
	// The terminal event is told: the lease is free (no SESSION_BUSY now).
	y := r.start("next")
	<-y.Done()
	if atSave != "SESSION_BUSY false true" {
		t.Errorf("while saving: %s", atSave)
	}
	steps := k.steps()
	i := slices.Index(steps, "save")
	same(t, "before the save", steps[i-2:i], []string{"append agent_end", "flush"})
}

func TestS9FailedAutoSaveIsToldAndTheRunStands(t *testing.T) {
	k := keep(t, memory(t))
	r := open(t, setup{script: "say hi", kept: k, autoSave: true})
	c, err := r.Stream()
	if err != nil {
		t.Fatal(err)
	}
	k.failing(func(step string) error {
		if step == "save" {
			return errors.New("the disk is full")
		}
		return nil
	})
	events, err := r.play("go")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := drain(t, c)
	c.Close()
	last := all[len(all)-1]
	if last.Type != "persistence_failed" || last.Metadata != nil || !strings.Contains(string(last.Payload), "the disk is full") {
		t.Errorf("the session's stream ends with %s %s", last.Type, last.Payload)
	}
	if slices.Contains(names(events), "persistence_failed") {
		t.Error("the frame is on the run's stream")
	}
	if !strings.Contains(r.logged(), "the disk is full") {
		t.Errorf("log: %s", r.logged())
	}
}

func TestS10ClosedStreamLeavesTheRunGoing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		small := session.DefaultRetention
		small.MaxEventsPerRun = 8
		r := open(t, setup{model: chatter(500), retention: &small, fixed: "x"})
		x := r.start("go")
		c := x.Stream(0)
		buf := make([]byte, 4<<10)
		if _, _, err := c.Next(t.Context(), 1, buf); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // the run waits for the reader
		began := time.Now()
		c.Close()
		if _, err := x.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(began); d != 0 {
			t.Errorf("the run waited %v for a closed stream", d)
		}
		if _, _, err := c.Next(t.Context(), 1, buf); fault.KindOf(err) != fault.Closed {
			t.Errorf("after close: %v", err)
		}
	})
}

func TestS20ParallelReadsAreToldInCallOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := map[string]time.Duration{}
		began := time.Now()
		sleeper := func(name string, e chat.Effects, d time.Duration) act {
			return act{name, e, func(context.Context, tool.Env, json.RawMessage) (chat.Result, error) {
				at[name] = time.Since(began)
				time.Sleep(d)
				return chat.Result{Output: name}, nil
			}}
		}
		r := open(t, setup{
			script: "call slow {}\ncall quick {}\ncall effect {}\ncall quick {\"again\":1}\nend\nsay done",
			tools: []tool.Tool{sleeper("slow", reads, 3*time.Second), act{"quick", reads, func(context.Context, tool.Env, json.RawMessage) (chat.Result, error) {
				return chat.Result{Output: "quick"}, nil
			}}, sleeper("effect", writes, time.Second)},
		})
		events, err := r.play("go")
		if err != nil {
			t.Fatal(err)
		}
		var order []string
		for _, line := range brief(t, events) {
			if strings.HasPrefix(line, "tool_e") {
				order = append(order, line)
			}
		}
		same(t, "order", order, []string{
			"tool_execution_start slow", "tool_execution_start quick", "tool_end slow", "tool_end quick",
			"tool_execution_start effect", "tool_end effect", "tool_execution_start quick", "tool_end quick",
		})
		if at["slow"] != 0 || at["effect"] != 3*time.Second {
			t.Errorf("slow began after %v, effect after %v", at["slow"], at["effect"])
		}
	})
}

func TestS21HelpIsARunWithoutMessages(t *testing.T) {
	k := keep(t, memory(t))
	r := open(t, setup{script: "say hi", kept: k})
	events, err := r.play("/help")
	if err != nil {
		t.Fatal(err)
	}
	same(t, "events", names(events), []string{"agent_start", "text_delta", "agent_end"})
	var end event.AgentEnd
	if err := json.Unmarshal(events[2].Payload, &end); err != nil {
		t.Fatal(err)
	}
	if end.Usage != (chat.Usage{}) || end.Text == "" {
		t.Errorf("%+v", end)
	}
	for _, b := range k.facts(t) {
		if kindOf(b) == "message" {
			t.Errorf("a message fact: %s", b)
		}
	}
	if len(r.History()) != 0 || len(r.Runs()) != 1 || r.Runs()[0].Status != record.Completed {
		t.Errorf("history %v, runs %+v", r.History(), r.Runs())
	}
}

func TestS21IsolatedRunLeavesTheTranscriptAlone(t *testing.T) {
	st := memory(t)
	k := keep(t, st)
	script := "say one\nend\nexpect (?s)side note.*ask$\ncall ls {}\nend\nsay aside\nend\nexpect (?s)first.*one.*third\nsay three"
	r := open(t, setup{script: script, kept: k})
	if _, err := r.play("first"); err != nil {
		t.Fatal(err)
	}
	x, err := r.Start(session.Prompt{Text: "ask", History: []chat.Message{chat.Say(chat.User, "side note")}})
	if err != nil {
		t.Fatal(err)
	}
	events := told(t, x)
	if _, err := x.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(names(events), "tool_end") {
		t.Error(names(events))
	}
	isolated := 0
	for _, b := range k.facts(t) {
		l, err := record.Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		if l.Message != nil && l.Message.RunID == x.ID() {
			isolated++
			if !l.Message.Isolated {
				t.Errorf("not marked isolated: %s", b)
			}
		}
	}
	if isolated != 3 {
		t.Errorf("%d messages of the isolated run are kept, want prompt and two answers", isolated)
	}
	if h := r.History(); len(h) != 2 || h[1].Text() != "one" {
		t.Errorf("history %v", h)
	}
	if n := len(r.Runs()); n != 2 {
		t.Errorf("%d runs", n)
	}
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	r = open(t, setup{script: "expect (?s)first.one.third$\nsay three", kept: keep(t, st)})
	if h := r.History(); len(h) != 2 || h[1].Text() != "one" {
		t.Errorf("history after a resume %v", h)
	}
}

func TestS22OutputIsKeptOnce(t *testing.T) {
	k := keep(t, memory(t))
	r := open(t, setup{script: "call once {}\nend\nsay done", kept: k, tools: []tool.Tool{answers("once", reads, "the one output")}})
	if _, err := r.play("go"); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, b := range k.facts(t) {
		n += strings.Count(string(b), "the one output")
	}
	if n != 1 {
		t.Errorf("the output is kept %d times", n)
	}
	h := r.History()
	if len(h) != 4 || h[2].Role != chat.Tool || h[2].Content[0].Content != "the one output" {
		t.Errorf("history %+v", h)
	}
}

func TestS23DirectCallsLeaveATraceAndNoEvents(t *testing.T) {
	k := keep(t, memory(t))
	r := open(t, setup{script: "say hi", kept: k, noRules: true})
	res, err := r.Tool(t.Context(), "write", json.RawMessage(`{"file_path":"a","content":"x"}`))
	if err != nil || res.ExitCode != 0 {
		t.Fatal(res, err)
	}
	if n := len(r.Runs()); n != 0 {
		t.Errorf("%d runs", n)
	}
	if tr := r.Traces(); len(tr) != 1 || tr[0].Name != "write" || !tr[0].Success {
		t.Errorf("traces %+v", tr)
	}
	for _, b := range k.facts(t) {
		if kindOf(b) != "mark" {
			t.Errorf("kept: %s", b)
		}
	}
}

// After a compaction in the middle of a run the transcript is what the model is sent,
// live and after a resume.
func TestCompactionKeepsTranscriptAndRequestAlike(t *testing.T) {
	var last model.Request
	turn := 0
	k := keep(t, memory(t))
	m := client(func(_ context.Context, req model.Request, yield func(model.Chunk, error) bool) {
		if len(req.Tools) == 0 {
			yield(model.Chunk{Kind: model.TextDelta, Text: "the sum of it"}, nil)
			yield(model.Chunk{Kind: model.Done}, nil)
			return
		}
		last = req
		if turn++; turn%6 != 0 {
			yield(model.Chunk{Kind: model.TextDelta, Text: strings.Repeat("thinking aloud ", 60)}, nil)
			yield(model.Chunk{Kind: model.ToolStart, Name: "look"}, nil)
			yield(model.Chunk{Kind: model.ToolInput, Text: fmt.Sprintf(`{"n":%d}`, turn)}, nil)
		} else {
			yield(model.Chunk{Kind: model.TextDelta, Text: "done"}, nil)
		}
		yield(model.Chunk{Kind: model.Done}, nil)
	})
	r := open(t, setup{model: m, kept: k, window: 4000, compaction: prompt.Compaction{On: true, Threshold: 0.6}, tools: []tool.Tool{answers("look", reads, strings.Repeat("seen ", 100))}})
	compacted := 0
	for i := range 4 {
		events, err := r.play(fmt.Sprintf("prompt %d", i))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			if e.Type == "context_compacted" {
				compacted++
			}
		}
		h := r.History()
		closed(t, h)
		if len(h) != len(last.Messages)+1 {
			t.Fatalf("run %d: %d messages in the transcript, %d were sent", i, len(h), len(last.Messages))
		}
		for j, sent := range last.Messages {
			if sent.Role != h[j].Role || len(sent.Content) != len(h[j].Content) || sent.Text() != h[j].Text() {
				t.Errorf("run %d, message %d: sent %+v, kept %+v", i, j, sent, h[j])
			}
		}
	}
	if compacted < 2 {
		t.Errorf("compacted %d times", compacted)
	}
	s := open(t, setup{kept: crash(t, k), model: untouched(t)})
	compare(t, r, s)
}

func TestClearAndCompactCommands(t *testing.T) {
	k := keep(t, memory(t))
	r := open(t, setup{script: "say one\nend\nsay two\nend\nsay the sum\nend\nsay after", kept: k})
	for _, p := range []string{"first", "second", "/compact"} {
		if _, err := r.play(p); err != nil {
			t.Fatal(err)
		}
	}
	h := r.History()
	if len(h) != 3 || !strings.Contains(h[0].Text(), "the sum") || h[1].Text() != "second" || h[2].Text() != "two" {
		t.Errorf("%+v", h)
	}
	if _, err := r.play("/clear"); err != nil {
		t.Fatal(err)
	}
	if h := r.History(); len(h) != 0 {
		t.Errorf("%+v", h)
	}
	if _, err := r.play("third"); err != nil {
		t.Fatal(err)
	}
	compare(t, r, open(t, setup{kept: crash(t, k), model: untouched(t)}))
}

func TestTracesAreBounded(t *testing.T) {
	few := session.DefaultRetention
	few.MaxTraceEvents = 5
	k := keep(t, memory(t))
	r := open(t, setup{script: "call ls {}\nend\nsay done", retention: &few, kept: k})
	for range 12 {
		if _, err := r.Tool(t.Context(), "ls", nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.play("go"); err != nil {
		t.Fatal(err)
	}
	if n := len(r.Traces()); n != 5 {
		t.Errorf("%d traces", n)
	}
	if n := len(open(t, setup{kept: crash(t, k), retention: &few, model: untouched(t)}).Traces()); n != 5 {
		t.Errorf("%d traces after a resume", n)
	}
}
