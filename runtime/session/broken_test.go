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
	"github.com/a3s-lab/liba3s/runtime/run"
	"github.com/a3s-lab/liba3s/runtime/session"
	"github.com/a3s-lab/liba3s/runtime/tool"
)

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
