// Package modeltest is the suite that every model.Client must pass. It owns what all
// clients have in common; the quirks of one wire are tested beside its adapter. A
// back-end's test makes a client that gives the wanted turns and calls Run. Floor: tests
// of the port model.
package modeltest

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/a3s-lab/liba3s/internal/safego"
	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/model"
)

// Turn is one answer that the client under test must be made to give.
type Turn struct {
	Reasoning, Text string
	Calls           []Call
	Usage           chat.Usage
	Fail            Fail
}

// Call is a tool call of a Turn.
type Call struct {
	Name string
	// Args is the text of the arguments.
	Args string
}

// Fail is how a Turn goes wrong.
type Fail uint8

// The ways to fail.
const (
	// None is a whole answer.
	None Fail = iota
	// Cut ends the stream after the turn's text, without its end.
	Cut
	// Hang says nothing more after the turn's text, until the client gives up.
	Hang
	// Busy refuses before any output; a retry may help.
	Busy
	// Reject refuses before any output, for good.
	Reject
)

// Features says what the wire can carry.
type Features struct {
	// Reasoning: it has a channel for it.
	Reasoning bool
	// Malformed: arguments that are not JSON reach the client.
	Malformed bool
	// Usage: the counts of a Turn reach the client.
	Usage bool
}

// Open makes a client that gives these turns, one a call.
type Open func(t *testing.T, turns ...Turn) model.Client

// Run runs the suite.
func Run(t *testing.T, f Features, open Open) {
	s := suite{f, open}
	t.Run("answers", s.answers)
	t.Run("cut", s.cut)
	t.Run("refusals", s.refusals)
	t.Run("cancel", s.cancel)
	t.Run("leave", s.leave)
	t.Run("history", s.history)
	t.Run("at once", s.concurrent)
}

type suite struct {
	Features
	open Open
}

// prompt is the least that a client must accept.
func prompt() model.Request {
	schema := json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"additionalProperties":false}`)
	return model.Request{
		System:   "You are a test.",
		Messages: []chat.Message{chat.Say(chat.User, "Go on.")},
		Tools:    []chat.ToolSpec{{Name: "read", Description: "Reads.", Parameters: schema}, {Name: "list", Description: "Lists."}},
	}
}

func (s suite) answers(t *testing.T) {
	long := `{"content":"` + strings.Repeat("äöü€🙂 ", 20<<10) + `"}`
	tests := []struct {
		name string
		turn Turn
		skip bool
	}{
		{"text", Turn{Text: "Hello, big world."}, false},
		{"letters of many bytes", Turn{Text: "Grüße, 世界 🙂\nnext line"}, false},
		{"reasoning is apart", Turn{Reasoning: "let me think", Text: "done"}, !s.Reasoning},
		{"one call", Turn{Calls: []Call{{"read", `{"path":"a.txt"}`}}}, false},
		{"text and calls of one tool", Turn{Text: "I look.", Calls: []Call{{"read", `{"path":"a.txt"}`}, {"read", `{"path":"b.txt"}`}, {"list", `{}`}}}, false},
		{"large numbers stay", Turn{Calls: []Call{{"read", `{"n":12345678901234567890,"f":1.50}`}}}, false},
		{"long arguments", Turn{Calls: []Call{{"read", long}}}, false},
		{"malformed arguments stay as written", Turn{Calls: []Call{{"read", `{"path":"a`}}}, !s.Malformed},
		{"usage", Turn{Text: "a", Usage: chat.Usage{PromptTokens: 7, CompletionTokens: 3, TotalTokens: 10}}, !s.Usage},
	}
	for _, tt := range tests {
		if tt.skip { // not on this wire
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			c := s.open(t, tt.turn)
			dones := 0
			a, err := model.Collect(t.Context(), c.Stream(t.Context(), prompt()), func(ch model.Chunk) error {
				if ch.Kind == model.Done {
					dones++
				} else if dones > 0 {
					t.Errorf("a chunk of kind %d after Done", ch.Kind)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if dones != 1 || a.Partial {
				t.Fatalf("%d Done, partial %v", dones, a.Partial)
			}
			check(t, a, tt.turn, s.Usage)
		})
	}
}

// check compares an answer with the turn behind it.
func check(t *testing.T, a model.Answer, turn Turn, usage bool) {
	t.Helper()
	var calls []Call
	for _, c := range a.Message.Calls() {
		calls = append(calls, Call{c.Name, string(c.Args)})
	}
	got := Turn{Reasoning: a.Message.ReasoningContent, Text: a.Message.Text(), Calls: calls, Usage: turn.Usage}
	if usage {
		got.Usage = a.Usage
	}
	if !reflect.DeepEqual(got, turn) {
		t.Fatalf("got  %.300v\nwant %.300v", got, turn)
	}
	stop := model.StopEnd
	if len(turn.Calls) > 0 {
		stop = model.StopTools
	}
	if a.Stop != stop {
		t.Fatalf("stop %q, want %q", a.Stop, stop)
	}
}

func (s suite) cut(t *testing.T) {
	c := s.open(t, Turn{Text: "half an answer", Fail: Cut})
	a, err := model.Collect(t.Context(), c.Stream(t.Context(), prompt()), nil)
	e := fault.From("", err)
	if e == nil || e.Code != fault.CodeLLM || !e.Retryable || e.Details["incomplete"] != true {
		t.Fatalf("got %#v", e)
	}
	if !a.Partial || !strings.HasPrefix("half an answer", a.Message.Text()) || a.Message.Text() == "" {
		t.Fatalf("got %+v", a)
	}
}

func (s suite) refusals(t *testing.T) {
	for _, tt := range []struct {
		name  string
		fail  Fail
		retry bool
	}{{"busy", Busy, true}, {"reject", Reject, false}} {
		t.Run(tt.name, func(t *testing.T) {
			c := s.open(t, Turn{Fail: tt.fail})
			n := 0
			_, err := model.Collect(t.Context(), c.Stream(t.Context(), prompt()), func(model.Chunk) error { n++; return nil })
			e := fault.From("", err)
			if e == nil || e.Code != fault.CodeLLM || e.Retryable != tt.retry || n != 0 || e.Op == "" {
				t.Fatalf("got %#v after %d chunks", e, n)
			}
		})
	}
}

func (s suite) cancel(t *testing.T) {
	c := s.open(t, Turn{Text: "half an answer", Fail: Hang})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	a, err := model.Collect(ctx, c.Stream(ctx, prompt()), func(model.Chunk) error { cancel(); return nil })
	if e := fault.From("", err); e == nil || e.Code != fault.CodeCancelled || !a.Partial {
		t.Fatalf("got %#v, %+v", e, a)
	}
}

func (s suite) leave(t *testing.T) {
	c := s.open(t, Turn{Text: "half an answer", Fail: Hang}, Turn{Text: "next"})
	for range c.Stream(t.Context(), prompt()) {
		break
	}
	a, err := model.Collect(t.Context(), c.Stream(t.Context(), prompt()), nil)
	if err != nil || a.Message.Text() != "next" {
		t.Fatalf("got %+v, %v", a, err)
	}
}

// history sends a transcript with everything a run may have left in it.
func (s suite) history(t *testing.T) {
	c := s.open(t, Turn{Text: "fine"})
	req := prompt()
	req.Messages = append(req.Messages,
		chat.Message{Role: chat.Assistant, ReasoningContent: "hm", Content: []chat.Block{
			{Type: chat.Text, Text: "I look."},
			{Type: chat.ToolUse, ID: "t1", WireID: "read:0", Name: "read", Input: json.RawMessage(`{"path":"a"}`)},
			{Type: chat.ToolUse, ID: "t2", WireID: "read:0", Name: "read", Input: json.RawMessage(`{"path":`)},
			{Type: chat.ToolUse, ID: "t3", Name: "list"},
		}},
		chat.Message{Role: chat.Tool, Content: []chat.Block{{Type: chat.ToolResult, ToolUseID: "t1", Content: "one"}, {Type: chat.ToolResult, ToolUseID: "t2", Content: "bad", IsError: true}}},
		chat.Message{Role: chat.Tool, Content: []chat.Block{{Type: chat.ToolResult, ToolUseID: "t3", Content: ""}}},
		chat.Message{Role: chat.Assistant, Partial: true},
		chat.Say(chat.User, "And now?"),
	)
	temperature := 0.0
	req.Temperature, req.MaxTokens, req.SessionID = &temperature, 100, "s1"
	a, err := model.Collect(t.Context(), c.Stream(t.Context(), req), nil)
	if err != nil {
		t.Fatal(err)
	}
	check(t, a, Turn{Text: "fine", Usage: a.Usage}, false)
}

func (s suite) concurrent(t *testing.T) {
	const n = 8
	turns := make([]Turn, n)
	for i := range turns {
		turns[i] = Turn{Text: "the same", Calls: []Call{{"list", `{}`}}}
	}
	c := s.open(t, turns...)
	var all sync.WaitGroup
	for range n {
		all.Add(1)
		safego.Go("modeltest.stream", func(err error) { t.Error(err) }, func() {
			defer all.Done()
			a, err := model.Collect(t.Context(), c.Stream(t.Context(), prompt()), nil)
			if err != nil || a.Message.Text() != "the same" || len(a.Message.Calls()) != 1 {
				t.Errorf("got %+v, %v", a, err)
			}
		})
	}
	all.Wait()
}
