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

	"github.com/a3s-lab/liba3s/internal/tape"
	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/model"
	"github.com/a3s-lab/liba3s/runtime/policy"
	"github.com/a3s-lab/liba3s/runtime/record"
	"github.com/a3s-lab/liba3s/runtime/session"
	"github.com/a3s-lab/liba3s/runtime/tool"
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

func TestS5LaggingStreamReadsOnFromTheJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		small := session.DefaultRetention
		small.MaxEventsPerRun = 16
		r := open(t, setup{model: chatter(5000), kept: keep(t, memory(t)), retention: &small, fixed: "x"})
		x := r.start("go")
		c := x.Stream(0)
		defer c.Close()
		began := time.Now()
		<-x.Done() // nobody has read yet
		if d := time.Since(began); d != 0 {
			t.Errorf("the run waited %v", d)
		}
		events := drain(t, c)
		whole(t, events)
		if len(events) != 5000+4 {
			t.Errorf("%d events", len(events))
		}
	})
}

func TestS5WithoutStoreTheRunWaitsAndThenTheStreamHasAGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		small := session.DefaultRetention
		small.MaxEventsPerRun = 16
		r := open(t, setup{model: chatter(100), retention: &small, fixed: "x", stall: 10 * time.Second})
		x := r.start("go")
		c := x.Stream(0)
		defer c.Close()
		began := time.Now()
		<-x.Done()
		if d := time.Since(began); d != 10*time.Second {
			t.Errorf("the run waited %v", d)
		}
		events := drain(t, c)
		if events[0].Type != "gap" || events[0].Metadata != nil {
			t.Fatalf("first is %s %v", events[0].Type, events[0].Metadata)
		}
		var g event.Gap
		if err := json.Unmarshal(events[0].Payload, &g); err != nil {
			t.Fatal(err)
		}
		if g.RunID != x.ID() || g.From != 0 || g.To != events[1].Metadata.Sequence {
			t.Errorf("gap %+v before %d", g, events[1].Metadata.Sequence)
		}
		for i, e := range events[1:] {
			if e.Metadata.Sequence != g.To+int64(i) {
				t.Fatalf("event %d is %d", i, e.Metadata.Sequence)
			}
		}
		for _, e := range r.RunEvents(x.ID()) {
			if strings.Contains(string(e), `"type":"gap"`) {
				t.Error("a gap among the events of the run")
			}
		}
	})
}

func TestS5WithoutStoreASlowReaderLosesNothing(t *testing.T) {
	for _, limit := range []int{1, 3, 16} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				small := session.DefaultRetention
				small.MaxEventsPerRun = limit
				r := open(t, setup{model: chatter(60), retention: &small})
				x := r.start("go")
				c := x.Stream(0)
				defer c.Close()
				var events []event.Envelope
				for buf := make([]byte, 8<<10); ; {
					time.Sleep(time.Second)
					n, _, err := c.Next(t.Context(), 2, buf)
					if fault.KindOf(err) == fault.End {
						break
					}
					if err != nil {
						t.Fatal(err)
					}
					events = append(events, decode(t, buf[:n])...)
				}
				whole(t, events)
			})
		})
	}
}

func TestS6FromSeqWithoutGapOrDouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		small := session.DefaultRetention
		small.MaxEventsPerRun = 8
		slow := client(func(_ context.Context, _ model.Request, yield func(model.Chunk, error) bool) {
			for i := range 200 {
				time.Sleep(time.Millisecond)
				yield(model.Chunk{Kind: model.TextDelta, Text: fmt.Sprint(i)}, nil)
			}
			yield(model.Chunk{Kind: model.Done}, nil)
		})
		r := open(t, setup{model: slow, kept: keep(t, memory(t)), retention: &small, fixed: "x"})
		x := r.start("go")
		type reader struct {
			from   int64
			cursor *tape.Cursor
		}
		var readers []reader
		for i := range 100 {
			time.Sleep(2 * time.Millisecond)
			from := int64(i * 2)
			readers = append(readers, reader{from, x.Stream(from)})
		}
		<-x.Done()
		for _, rd := range readers {
			events := drain(t, rd.cursor)
			rd.cursor.Close()
			if len(events) != 204-int(rd.from) {
				t.Fatalf("from %d: %d events", rd.from, len(events))
			}
			for i, e := range events {
				if e.Metadata.Sequence != rd.from+int64(i) {
					t.Fatalf("from %d: event %d is %d", rd.from, i, e.Metadata.Sequence)
				}
			}
		}
	})
}

func TestS6OddPlacesToBegin(t *testing.T) {
	r := open(t, setup{script: "say hi"})
	events, err := r.play("go")
	if err != nil {
		t.Fatal(err)
	}
	x := r.start("again") // the script is at its end
	<-x.Done()
	for _, from := range []int64{-1, -1 << 62, 0, 2, 1 << 62} {
		c := x.Stream(from)
		got := drain(t, c)
		c.Close()
		if want := max(0, 4-max(0, from)); int64(len(got)) > want || len(got) > 0 && got[0].Metadata == nil {
			t.Errorf("from %d: %v", from, names(got))
		}
	}
	_ = events
}

func TestS6SessionStreamStartsNow(t *testing.T) {
	r := open(t, setup{script: "say one\nend\nsay two\nend\nsay three"})
	if _, err := r.play("first"); err != nil {
		t.Fatal(err)
	}
	c, err := r.Stream()
	if err != nil {
		t.Fatal(err)
	}
	var want []event.Envelope
	for _, p := range []string{"second", "third"} {
		events, err := r.play(p)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, events...)
	}
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := drain(t, c)
	c.Close()
	r.Release(c)
	a, _ := json.Marshal(got)
	b, _ := json.Marshal(want)
	if string(a) != string(b) {
		t.Errorf("got  %s\nwant %s", a, b)
	}
}

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
