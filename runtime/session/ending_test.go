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
	"github.com/a3s-lab/liba3s/runtime/policy"
	"github.com/a3s-lab/liba3s/runtime/prompt"
	"github.com/a3s-lab/liba3s/runtime/record"
	"github.com/a3s-lab/liba3s/runtime/run"
	"github.com/a3s-lab/liba3s/runtime/session"
	"github.com/a3s-lab/liba3s/runtime/tool"
)

// cancelled checks how a run that was cancelled ended, everywhere it shows.
func cancelled(t *testing.T, r *rig, x *session.Run) {
	t.Helper()
	_, err := x.Wait(t.Context())
	isCode(t, err, fault.CodeCancelled)
	if snap, _ := r.RunSnapshot(x.ID()); snap.Status != record.Cancelled {
		t.Errorf("status %s", snap.Status)
	}
	if x.Cancel("") {
		t.Error("a run that has ended was cancelled")
	}
	closed(t, r.History())
}

// closed checks that every call of a transcript has its answer.
func closed(t *testing.T, messages []chat.Message) {
	t.Helper()
	open := map[string]bool{}
	for _, m := range messages {
		for _, b := range m.Content {
			switch b.Type {
			case chat.ToolUse:
				open[b.ID] = true
			case chat.ToolResult:
				if !open[b.ToolUseID] {
					t.Errorf("an answer without a call: %+v", b)
				}
				delete(open, b.ToolUseID)
			}
		}
	}
	if len(open) > 0 {
		t.Errorf("calls without an answer: %v", open)
	}
}

func TestS11CancelModelStreaming(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		left := false
		r := open(t, setup{model: client(func(ctx context.Context, _ model.Request, yield func(model.Chunk, error) bool) {
			yield(model.Chunk{Kind: model.ReasoningDelta, Text: "hmm"}, nil)
			yield(model.Chunk{Kind: model.TextDelta, Text: "half an "}, nil)
			yield(model.Chunk{Kind: model.TextDelta, Text: "answer"}, nil)
			yield(model.Chunk{Kind: model.ToolStart, Name: "write"}, nil)
			yield(model.Chunk{Kind: model.ToolInput, Text: `{"file_`}, nil)
			<-ctx.Done()
			left = true
			yield(model.Chunk{}, ctx.Err())
		})})
		x := r.start("go")
		synctest.Wait()
		if !x.Cancel("enough") || x.Cancel("again") {
			t.Error("the first cancel is true, the second false")
		}
		events := told(t, x)
		cancelled(t, r, x)
		if !left {
			t.Error("the model was not left")
		}
		same(t, "events", brief(t, events), []string{"agent_start", "turn_start", "reasoning_delta", "text_delta", "tool_start write", "tool_input_delta", "error CANCELLED"})
		h := r.History()
		if len(h) != 2 || !h[1].Partial || h[1].Text() != "half an answer" || h[1].ReasoningContent != "hmm" || len(h[1].Calls()) != 0 {
			t.Errorf("history %+v", h)
		}
		var e event.Error
		if err := json.Unmarshal(events[len(events)-1].Payload, &e); err != nil {
			t.Fatal(err)
		}
		if e.Kind != fault.Cancelled || e.Retryable || !strings.Contains(e.Message, "enough") || e.Details["cancel_reason"] != "enough" || e.Details["reason"] != nil {
			t.Errorf("%+v", e)
		}
	})
}

func TestS11CancelAtTheGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := open(t, setup{
			script: "call write {\"file_path\":\"a\",\"content\":\"x\"}\ncall ls {}\nend\nsay never",
			rules:  &policy.Policy{DefaultDecision: "ask"}, confirm: &policy.ConfirmationPolicy{Enabled: true},
		})
		x := r.start("go")
		synctest.Wait()
		asked := r.Pending()
		if !x.Cancel("") {
			t.Error("not cancelled")
		}
		events := told(t, x)
		cancelled(t, r, x)
		same(t, "events", brief(t, events), []string{
			"agent_start", "turn_start", "tool_start write", "tool_input_delta", "tool_start ls", "tool_input_delta",
			"confirmation_required write", "confirmation_received false cancelled", "tool_end write cancelled", "tool_end ls cancelled", "error CANCELLED",
		})
		if s := r.Confirm(asked[0].ToolID, true, ""); s != session.AnswerStale {
			t.Errorf("a late answer is %s", s)
		}
	})
}

func TestS11CancelBetweenIntentAndStart(t *testing.T) {
	k := keep(t, memory(t))
	ran := false
	r := open(t, setup{
		script: "call effect {}\nend\nsay never", kept: k,
		tools: []tool.Tool{act{"effect", writes, func(context.Context, tool.Env, json.RawMessage) (chat.Result, error) {
			ran = true
			return chat.Result{}, nil
		}}},
	})
	k.failing(func(step string) error {
		if step == "append tool_execution_start" {
			r.CancelActive("")
		}
		return nil
	})
	x := r.start("go")
	events := told(t, x)
	cancelled(t, r, x)
	if ran {
		t.Error("the tool ran")
	}
	same(t, "events", brief(t, events)[4:], []string{"tool_execution_start effect", "tool_end effect cancelled", "error CANCELLED"})
}

func TestS11CancelRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := make(chan struct{}, 2)
		r := open(t, setup{
			script: "call look {}\ncall wait {}\ncall ls {}\nend\nsay never",
			tools:  []tool.Tool{waits("wait", writes, began), answers("look", reads, "seen")},
		})
		x := r.start("go")
		<-began
		if !x.Cancel("") {
			t.Error("not cancelled")
		}
		events := told(t, x)
		cancelled(t, r, x)
		same(t, "events", brief(t, events)[8:], []string{
			"tool_execution_start look", "tool_end look", "tool_execution_start wait", "tool_output_delta", "tool_end wait cancelled", "tool_end ls cancelled", "error CANCELLED",
		})
		var end event.ToolEnd
		if err := json.Unmarshal(events[len(events)-3].Payload, &end); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(end.Output, "half of it") || end.ExitCode == 0 {
			t.Errorf("the output so far: %+v", end)
		}
	})
}

func TestS11CancelRunningInParallel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := make(chan struct{}, 8)
		r := open(t, setup{
			script: "call wait {}\ncall wait {\"n\":2}\ncall wait {\"n\":3}\nend\nsay never",
			tools:  []tool.Tool{waits("wait", reads, began)}, limits: run.Limits{Parallel: 2},
		})
		x := r.start("go")
		<-began
		<-began
		synctest.Wait()
		x.Cancel("")
		events := told(t, x)
		cancelled(t, r, x)
		n := 0
		for _, line := range brief(t, events) {
			if line == "tool_end wait cancelled" {
				n++
			}
		}
		if n != 3 {
			t.Errorf("%d outcomes: %v", n, brief(t, events))
		}
	})
}

func TestS11CancelCompaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := false
		r := open(t, setup{
			window: 4000, compaction: prompt.Compaction{On: true, Threshold: 0.5},
			model: client(func(ctx context.Context, req model.Request, yield func(model.Chunk, error) bool) {
				if len(req.Tools) == 0 { // for a summary
					asked = true
					<-ctx.Done()
					yield(model.Chunk{}, ctx.Err())
					return
				}
				yield(model.Chunk{Kind: model.TextDelta, Text: strings.Repeat("word ", 800)}, nil)
				yield(model.Chunk{Kind: model.Done}, nil)
			}),
		})
		if _, err := r.play("first"); err != nil {
			t.Fatal(err)
		}
		if _, err := r.play("second"); err != nil {
			t.Fatal(err)
		}
		before := r.History()
		x := r.start("third")
		synctest.Wait()
		if !asked {
			t.Fatal("no summary was asked for")
		}
		x.Cancel("")
		events := told(t, x)
		cancelled(t, r, x)
		after := r.History()
		if len(after) != len(before)+1 || after[0].Text() != before[0].Text() {
			t.Errorf("the transcript was touched: %d messages, then %d", len(before), len(after))
		}
		if slices.Contains(names(events), "context_compacted") {
			t.Error("compaction was told")
		}
	})
}

func TestS11CancelOfARetryWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failing := client(func(_ context.Context, _ model.Request, yield func(model.Chunk, error) bool) {
			yield(model.Chunk{}, fault.Of(fault.CodeLLM, "test", "try later").Retry())
		})
		r := open(t, setup{model: model.Retry(failing, model.RetryConfig{Base: time.Hour})})
		x := r.start("go")
		synctest.Wait()
		began := time.Now()
		x.Cancel("")
		told(t, x)
		cancelled(t, r, x)
		if d := time.Since(began); d != 0 {
			t.Errorf("it took %v", d)
		}
	})
}

func TestS11BlockedSendRaisesCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := make(chan struct{}, 1)
		r := open(t, setup{script: "call wait {}", tools: []tool.Tool{waits("wait", writes, began)}})
		x := r.start("go")
		failed := make(chan error, 1)
		go func() {
			_, err := x.Wait(context.Background())
			failed <- err
		}()
		<-began
		if !r.CancelActive("") || r.CancelActive("") || r.CancelRun("nobody") {
			t.Error("cancel")
		}
		isCode(t, <-failed, fault.CodeCancelled)
		if r.CancelActive("") {
			t.Error("there is nothing to cancel any more")
		}
	})
}

// A cancel that was granted decides how the run ends, however far the run came.
func TestS11GrantedCancelIsNeverCompletion(t *testing.T) {
	k := keep(t, memory(t))
	r := open(t, setup{script: "say hi", kept: k})
	granted := false
	k.failing(func(step string) error {
		if step == "append turn_end" {
			granted = r.CancelActive("")
		}
		return nil
	})
	x := r.start("go")
	told(t, x)
	if !granted {
		t.Fatal("not granted")
	}
	cancelled(t, r, x)
}

func TestMaxExecutionTimeEndsARunInOneTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := make(chan struct{}, 1)
		r := open(t, setup{script: "call wait {}", tools: []tool.Tool{waits("wait", writes, began)}, limits: run.Limits{MaxTime: time.Minute}})
		at := time.Now()
		events, err := r.play("go")
		isCode(t, err, fault.CodeTimeout)
		if d := time.Since(at); d != time.Minute {
			t.Errorf("after %v", d)
		}
		if last := brief(t, events); last[len(last)-1] != "error TIMEOUT" || last[len(last)-2] != "tool_end wait cancelled" {
			t.Error(last)
		}
		if s := r.Runs()[0].Status; s != record.Failed {
			t.Errorf("status %s", s)
		}
		closed(t, r.History())
	})
}

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
			script: "call write {\"file_path\":\"a\",\"content\":\"x\"}\nend\nsay never", kept: k,
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

func TestMaxToolRoundsLeaveNoOpenCall(t *testing.T) {
	r := open(t, setup{script: "call ls {}\nend\ncall ls {\"path\":\".\"}\nend\nsay never", limits: run.Limits{MaxToolRounds: 1}})
	_, err := r.play("go")
	isCode(t, err, fault.CodeLLM)
	closed(t, r.History())
}

func TestToolTimeoutIsAFailedResultAndTheRunGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := make(chan struct{}, 1)
		r := open(t, setup{script: "call wait {}\nend\nexpect timed out\nsay done", tools: []tool.Tool{waits("wait", writes, began)}, limits: run.Limits{ToolTimeout: time.Second}})
		events, err := r.play("go")
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(brief(t, events), "tool_end wait timeout") {
			t.Error(brief(t, events))
		}
	})
}

var errBoom = errors.New("boom")

func TestBrokenToolsAreFailedResults(t *testing.T) {
	panics := func(e chat.Effects) act {
		return act{"broken", e, func(context.Context, tool.Env, json.RawMessage) (chat.Result, error) {
			panic("told key sk-12345678 by mistake")
		}}
	}
	cases := map[string]act{
		"panic, reading": panics(reads),
		"panic, writing": panics(writes),
		"error":          {"broken", writes, func(context.Context, tool.Env, json.RawMessage) (chat.Result, error) { return chat.Result{}, errBoom }},
		"huge panic": {"broken", writes, func(context.Context, tool.Env, json.RawMessage) (chat.Result, error) {
			panic(strings.Repeat("x", 1<<20))
		}},
	}
	for name, broken := range cases {
		t.Run(name, func(t *testing.T) {
			r := open(t, setup{script: "call broken {}\nend\nexpect Tool execution error\nsay done", tools: []tool.Tool{broken}, secrets: []string{"sk-12345678"}})
			events, err := r.play("go")
			if err != nil {
				t.Fatal(err)
			}
			all, _ := json.Marshal(events)
			if strings.Contains(string(all), "sk-12345678") || strings.Contains(fmt.Sprint(r.History()), "sk-12345678") {
				t.Error("the panic told a secret")
			}
			if n := len(all); n > 64<<10 {
				t.Errorf("%d bytes of events", n)
			}
			if !strings.Contains(r.logged(), "tool broken broke") {
				t.Errorf("log: %s", r.logged())
			}
			_, err = r.Tool(t.Context(), "broken", nil)
			isCode(t, err, fault.CodeTool)
			if err != nil && strings.Contains(err.Error(), "sk-12345678") {
				t.Errorf("%v", err)
			}
		})
	}
}

// A Gate or a tool's declaration that panics ends the run, in order.
type unsure struct{ act }

func (unsure) Effects(args json.RawMessage) chat.Effects {
	if strings.Contains(string(args), "break") {
		panic("no idea")
	}
	return chat.Effects{Read: true, Idempotent: true}
}

func TestPanicOfTheRuntimeEndsTheRunInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := make(chan struct{}, 1)
		slow := act{"slow", reads, func(_ context.Context, env tool.Env, _ json.RawMessage) (chat.Result, error) {
			began <- struct{}{}
			time.Sleep(time.Second)
			env.Emit("late")
			return chat.Result{Output: "slow"}, nil
		}}
		r := open(t, setup{script: "call slow {}\ncall unsure {\"do\":\"break\"}\ncall ls {}\nend\nsay never", tools: []tool.Tool{slow, unsure{answers("unsure", reads, "")}}})
		events, err := r.play("go")
		isCode(t, err, fault.CodeInternal)
		closed(t, r.History())
		lines := brief(t, events)
		same(t, "events", lines[len(lines)-4:], []string{"tool_end slow interrupted", "tool_end unsure cancelled", "tool_end ls cancelled", "error INTERNAL_ERROR"})
		if _, err := r.play("and again"); err != nil {
			t.Errorf("the session is broken: %v", err)
		}
	})
}

func TestHostileModels(t *testing.T) {
	text := func(s string) model.Chunk { return model.Chunk{Kind: model.TextDelta, Text: s} }
	done := model.Chunk{Kind: model.Done}
	cases := []struct {
		name   string
		model  client
		code   fault.Code // empty: it completes
		answer string
	}{
		{"panics", func(context.Context, model.Request, func(model.Chunk, error) bool) { panic("boom") }, fault.CodeInternal, ""},
		{"panics in the middle", func(_ context.Context, _ model.Request, yield func(model.Chunk, error) bool) {
			yield(text("a"), nil)
			panic("boom")
		}, fault.CodeInternal, ""},
		{"yields nothing", func(context.Context, model.Request, func(model.Chunk, error) bool) {}, fault.CodeLLM, ""},
		{"ends without Done", func(_ context.Context, _ model.Request, yield func(model.Chunk, error) bool) { yield(text("a"), nil) }, fault.CodeLLM, ""},
		{"only Done", func(_ context.Context, _ model.Request, yield func(model.Chunk, error) bool) { yield(done, nil) }, fault.CodeLLM, ""},
		{"an error of another kind", func(_ context.Context, _ model.Request, yield func(model.Chunk, error) bool) {
			yield(model.Chunk{}, errBoom)
		}, fault.CodeInternal, ""},
		{"chunks of no kind", func(_ context.Context, _ model.Request, yield func(model.Chunk, error) bool) {
			for k := range 256 {
				if k == int(model.Done) || k == int(model.ToolStart) || k == int(model.ToolInput) {
					continue
				}
				if !yield(model.Chunk{Kind: model.ChunkKind(k), Text: "x"}, nil) {
					return
				}
			}
			yield(done, nil)
		}, "", "x"},
		{"bytes that are no text", func(_ context.Context, _ model.Request, yield func(model.Chunk, error) bool) {
			yield(text("a\xff\x00b"), nil)
			yield(done, nil)
		}, "", "a\xff\x00b"},
		{"odd slots", func(_ context.Context, _ model.Request, yield func(model.Chunk, error) bool) {
			yield(model.Chunk{Kind: model.ToolInput, Slot: -7, Text: "{}"}, nil)
			yield(model.Chunk{Kind: model.ToolStart, Slot: 1 << 60, Name: strings.Repeat("ü", 500)}, nil)
			yield(model.Chunk{Kind: model.ToolStart, Slot: -7, Name: ""}, nil)
			yield(done, nil)
		}, fault.CodeLLM, ""},
		{"goes on after Done", func(_ context.Context, _ model.Request, yield func(model.Chunk, error) bool) {
			yield(text("a"), nil)
			if !yield(done, nil) {
				return
			}
			panic("not left")
		}, "", "a"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := open(t, setup{model: c.model, limits: run.Limits{MaxToolRounds: 1}})
			events, err := r.play("go")
			if c.code == "" && err != nil || c.code != "" {
				isCode(t, err, c.code)
			}
			var end event.AgentEnd
			if err := json.Unmarshal(events[len(events)-1].Payload, &end); err != nil {
				t.Fatal(err)
			}
			if c.code == "" && end.Text != strings.ToValidUTF8(c.answer, "\uFFFD") {
				t.Errorf("answer %q", end.Text)
			}
			closed(t, r.History())
			if _, busy := r.Start(session.Prompt{Text: "next"}); busy != nil {
				t.Errorf("the session is stuck: %v", busy)
			}
		})
	}
}
