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
