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

	"github.com/a3s-lab/liba3s/internal/tape"
	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/model"
	"github.com/a3s-lab/liba3s/runtime/policy"
	"github.com/a3s-lab/liba3s/runtime/session"
)

// chatter is a model that yields n pieces of text, each with its number.
func chatter(n int) client {
	return func(_ context.Context, _ model.Request, yield func(model.Chunk, error) bool) {
		for i := range n {
			if !yield(model.Chunk{Kind: model.TextDelta, Text: fmt.Sprintf("%d ", i)}, nil) {
				return
			}
		}
		yield(model.Chunk{Kind: model.Done}, nil)
	}
}

// now gives what a cursor has at this moment.
func now(t *testing.T, c *tape.Cursor) []event.Envelope {
	t.Helper()
	buf := make([]byte, 1<<20)
	n, _, err := c.TryNext(1<<20, buf)
	if err != nil || n == 0 {
		return nil
	}
	return decode(t, buf[:n])
}

func TestS1WrittenAndFlushedBeforeTold(t *testing.T) {
	k := keep(t, memory(t))
	r := open(t, setup{script: "say hello\ncall write {\"file_path\":\"a\",\"content\":\"x\"}\nend\nsay bye", kept: k})
	c, err := r.Stream()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var groups [][]string // events of every group handed to the store
	var told, wrong []string
	k.failing(func(step string) error {
		told = append(told, names(now(t, c))...)
		before := groups
		if step == "flush" {
			before = groups[:len(groups)-1] // what is being flushed is not told yet
		}
		if want := slices.Concat(before...); !slices.Equal(told, want) {
			wrong = append(wrong, fmt.Sprintf("at %s: told %v, want %v", step, told, want))
		}
		if kinds, ok := strings.CutPrefix(step, "append "); ok {
			groups = append(groups, slices.DeleteFunc(strings.Split(kinds, "+"), func(kind string) bool { return kind == "message" || kind == "mark" }))
		}
		return nil
	})
	<-r.start("go").Done()
	same(t, "told", wrong, nil)
	if all := append(told, names(now(t, c))...); !slices.Equal(all, slices.Concat(groups...)) {
		t.Errorf("told %v, written %v", all, groups)
	}
}

func TestS2ConfirmAndCancelNeverWaitForAReader(t *testing.T) {
	for _, how := range []string{"confirm", "cancel"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				small := session.DefaultRetention
				small.MaxEventsPerRun = 4
				r := open(t, setup{
					script: "call write {\"file_path\":\"a\",\"content\":\"x\"}\nend\nsay done", retention: &small,
					rules: &policy.Policy{DefaultDecision: "ask"}, confirm: &policy.ConfirmationPolicy{Enabled: true},
				})
				began := time.Now()
				x := r.start("go")
				c := x.Stream(0) // never read
				defer c.Close()
				synctest.Wait()
				open := r.Pending()
				if len(open) != 1 {
					t.Fatalf("%d open questions", len(open))
				}
				switch how {
				case "confirm":
					if s := r.Confirm(open[0].ToolID, false, "no"); s != session.AnswerAccepted {
						t.Fatal(s)
					}
				case "cancel":
					if !x.Cancel("") {
						t.Fatal("not cancelled")
					}
				}
				synctest.Wait()
				if len(r.Pending()) != 0 {
					t.Error("the question is still open")
				}
				if d := time.Since(began); d != 0 {
					t.Errorf("it took %v", d)
				}
				if how == "cancel" {
					<-x.Done()
					if d := time.Since(began); d != 0 {
						t.Errorf("the end took %v", d)
					}
				}
			})
		})
	}
}

func TestS3Groups(t *testing.T) {
	cases := []struct {
		name, script string
		want         []string
	}{
		{"no call", "say hi", []string{
			"append mark+agent_start+message", "flush", "append turn_start", "append text_delta", "append message", "append turn_end", "append agent_end", "flush",
		}},
		{"a call with effects", "call write {\"file_path\":\"a\",\"content\":\"x\"}\nend\nsay hi", []string{
			"append mark+agent_start+message", "flush", "append turn_start", "append tool_start", "append tool_input_delta", "append message", "append tool_execution_start", "flush",
			"append tool_end", "flush", "append turn_end", "append turn_start", "append text_delta", "append message", "append turn_end", "append agent_end", "flush",
		}},
		{"a read-only call", "call ls {}\nend\nsay hi", []string{
			"append mark+agent_start+message", "flush", "append turn_start", "append tool_start", "append tool_input_delta", "append message", "append tool_execution_start",
			"append tool_end", "append turn_end", "append turn_start", "append text_delta", "append message", "append turn_end", "append agent_end", "flush",
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			k := keep(t, memory(t))
			r := open(t, setup{script: c.script, kept: k, files: map[string]string{"f": "1"}, fixed: "id"})
			if _, err := r.play("go"); err != nil {
				t.Fatal(err)
			}
			same(t, "steps", k.steps(), c.want)
		})
	}
}

// mixed yields pieces of several streams without a pause.
func mixed(_ context.Context, _ model.Request, yield func(model.Chunk, error) bool) {
	for _, c := range []model.Chunk{
		{Kind: model.ReasoningDelta, Text: "a"}, {Kind: model.ReasoningDelta, Text: "b"},
		{Kind: model.TextDelta, Text: "c"}, {Kind: model.TextDelta, Text: "d"}, {Kind: model.ReasoningDelta, Text: "e"},
		{Kind: model.ToolStart, Slot: 0, Name: "nothing"}, {Kind: model.ToolStart, Slot: 1, Name: "nothing"},
		{Kind: model.ToolInput, Slot: 0, Text: "{"}, {Kind: model.ToolInput, Slot: 0, Text: "}"}, {Kind: model.ToolInput, Slot: 1, Text: "{"}, {Kind: model.ToolInput, Slot: 0, Text: " "},
		{Kind: model.Done, Stop: model.StopEnd},
	} {
		if !yield(c, nil) {
			return
		}
	}
}

// pieces gives the deltas among events as "type id text".
func pieces(t *testing.T, events []event.Envelope) []string {
	t.Helper()
	var all []string
	for _, e := range events {
		p, err := event.Decode(e.Type, e.Payload)
		if err != nil {
			t.Fatal(err)
		}
		switch p := p.(type) {
		case event.TextDelta:
			all = append(all, "text "+p.Text)
		case event.ReasoningDelta:
			all = append(all, "reasoning "+p.Text)
		case event.ToolInputDelta:
			all = append(all, "input "+p.Delta)
		case event.ToolOutputDelta:
			all = append(all, "output "+p.Delta)
		case event.ToolStart:
			all = append(all, "start")
		}
	}
	return all
}

func TestS4MergesNeighboursOfOneStreamOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := open(t, setup{model: client(mixed)})
		x := r.start("go")
		a, b := x.Stream(0), x.Stream(0)
		defer a.Close()
		defer b.Close()
		<-x.Done()
		first, second := drain(t, a), drain(t, b)
		want := []string{"reasoning ab", "text cd", "reasoning e", "start", "start", "input {}", "input {", "input  "}
		same(t, "deltas", pieces(t, first)[:len(want)], want)
		one, _ := json.Marshal(first)
		two, _ := json.Marshal(second)
		if string(one) != string(two) {
			t.Errorf("two streams differ:\n%s\n%s", one, two)
		}
	})
}

func TestS4MergingEndsAfterTenMillisecondsOrFourKilobytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := client(func(_ context.Context, _ model.Request, yield func(model.Chunk, error) bool) {
			for _, text := range []string{"a", "b", strings.Repeat("x", 5<<10), "c"} {
				yield(model.Chunk{Kind: model.TextDelta, Text: text}, nil)
			}
			time.Sleep(20 * time.Millisecond)
			yield(model.Chunk{Kind: model.TextDelta, Text: "d"}, nil)
			yield(model.Chunk{Kind: model.Done}, nil)
		})
		r := open(t, setup{model: slow})
		events, err := r.play("go")
		if err != nil {
			t.Fatal(err)
		}
		same(t, "deltas", pieces(t, events), []string{"text ab" + strings.Repeat("x", 5<<10), "text c", "text d"})
	})
}

func TestS4FixedIdsAndClockGiveTheSameJournal(t *testing.T) {
	var first []string
	for range 3 {
		k := keep(t, memory(t))
		ms := int64(1000)
		r := open(t, setup{model: client(mixed), kept: k, fixed: "x", wrap: fixedTime(ms)})
		_, _ = r.play("go") // it calls a tool that is not there for ever
		var got []string
		for _, b := range k.facts(t) {
			got = append(got, string(b))
		}
		if first == nil {
			first = got
		}
		same(t, "journal", got, first)
	}
	if !slices.ContainsFunc(first, func(s string) bool { return strings.Contains(s, `{"text":"c"}`) }) {
		t.Error("deltas are merged in spite of a fixed host_env")
	}
}
