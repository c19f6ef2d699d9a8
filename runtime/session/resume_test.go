package session_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/model"
	"github.com/a3s-lab/liba3s/runtime/record"
	"github.com/a3s-lab/liba3s/runtime/session"
	"github.com/a3s-lab/liba3s/runtime/tool"
)

// live and loaded are the same: what a session says of itself does not change by a
// death of its process.
func TestLoadedIsLive(t *testing.T) {
	script := `think first
say hello
call write {"file_path":"a.txt","content":"one"}
call read {"file_path":"a.txt"}
end
say and
call nothing {}
call read {"file_path":"../out"}
call read not json
end
say done
end
say second
end
say aside
call ls {}
end
say aside done
end
say third
fail retryable sorry
end
say fourth
`
	k := keep(t, memory(t))
	r := open(t, setup{script: script, kept: k, secrets: []string{"hello"}})
	for i, p := range []string{"one", "two", "/help", "", "three", "/clear", "four"} {
		if p == "" {
			x, err := r.Start(session.Prompt{Text: "aside", History: []chat.Message{chat.Say(chat.User, "x")}})
			if err != nil {
				t.Fatal(err)
			}
			<-x.Done()
			continue
		}
		_, _ = r.play(p)
		if _, err := r.Tool(t.Context(), "ls", nil); err != nil {
			t.Fatal(i, err)
		}
	}
	s := open(t, setup{kept: crash(t, k), model: untouched(t)})
	compare(t, r, s)

	// And a save in between changes nothing but what is on disk.
	if err := r.Save(t.Context()); err != nil {
		t.Fatal(err)
	}
	saved := open(t, setup{kept: crash(t, k), model: untouched(t)})
	compare(t, r, saved)
}

func compare(t *testing.T, live, loaded *rig) {
	t.Helper()
	alike(t, "history", live.History(), loaded.History())
	alike(t, "runs", live.Runs(), loaded.Runs())
	alike(t, "traces", live.Traces(), loaded.Traces())
	for _, run := range live.Runs() {
		alike(t, "events of "+run.Prompt, live.RunEvents(run.ID), loaded.RunEvents(run.ID))
	}
}

// alike compares the JSON of two values and shows where they part.
func alike(t *testing.T, what string, live, loaded any) {
	t.Helper()
	a, err := json.Marshal(live)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(loaded)
	if err != nil {
		t.Fatal(err)
	}
	at := 0
	for at < len(a) && at < len(b) && a[at] == b[at] {
		at++
	}
	if at < len(a) || at < len(b) {
		from := max(0, at-80)
		t.Errorf("%s differ at byte %d:\nlive   ...%s\nloaded ...%s", what, at, a[from:min(len(a), at+80)], b[from:min(len(b), at+80)])
	}
}

// What a session saves, loads and saves again is the same document.
func TestSnapshotOfALoadedSnapshot(t *testing.T) {
	k := keep(t, memory(t))
	script := "say hi\ncall write {\"file_path\":\"a\",\"content\":\"x\"}\nend\nsay done"
	r := open(t, setup{script: script, kept: k, wrap: fixedTime(5000)})
	if _, err := r.play("go"); err != nil {
		t.Fatal(err)
	}
	if err := r.Save(t.Context()); err != nil {
		t.Fatal(err)
	}
	place := crash(t, k)
	s := open(t, setup{kept: place, model: untouched(t), wrap: fixedTime(5000)})
	if err := s.Save(t.Context()); err != nil {
		t.Fatal(err)
	}
	if string(place.saved) != string(k.saved) {
		t.Errorf("first:\n%s\nsecond:\n%s", k.saved, place.saved)
	}
}

func TestS16SaveInTheMiddleOfARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, k := make(chan struct{}, 1), keep(t, memory(t))
		letGo := make(chan struct{})
		r := open(t, setup{script: "say before\ncall deaf {}\nend\nsay after", kept: k, tools: []tool.Tool{deaf("deaf", began, letGo)}})
		x := r.start("go")
		c := x.Stream(0)
		defer c.Close()
		<-began
		if err := r.Save(t.Context()); err != nil {
			t.Fatal(err)
		}
		close(letGo)
		if _, err := x.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		events := drain(t, c)
		whole(t, events)
		s := open(t, setup{kept: crash(t, k), model: untouched(t)})
		compare(t, r, s)
		if n := len(kept(t, s.Session, x.ID())); n != len(events) {
			t.Errorf("%d events after the resume, %d told", n, len(events))
		}
	})
}

// A stream that lags behind memory reads on across a save: what the snapshot does not
// keep either is one gap.
func TestS16StreamAcrossASave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		small := session.DefaultRetention
		small.MaxEventsPerRun = 20
		k := keep(t, memory(t))
		step := make(chan struct{})
		r := open(t, setup{kept: k, retention: &small, fixed: "x", model: client(func(_ context.Context, _ model.Request, yield func(model.Chunk, error) bool) {
			for i := range 200 {
				if i == 100 {
					<-step
				}
				yield(model.Chunk{Kind: model.TextDelta, Text: "x"}, nil)
			}
			yield(model.Chunk{Kind: model.Done}, nil)
		})})
		x := r.start("go")
		c := x.Stream(0)
		defer c.Close()
		synctest.Wait()
		if err := r.Save(t.Context()); err != nil {
			t.Fatal(err)
		}
		close(step)
		<-x.Done()
		want := int64(0)
		gaps := 0
		for _, e := range drain(t, c) {
			if e.Type == "gap" {
				var g event.Gap
				if err := json.Unmarshal(e.Payload, &g); err != nil {
					t.Fatal(err)
				}
				if g.From != want {
					t.Fatalf("gap %+v at %d", g, want)
				}
				gaps++
				want = g.To
				continue
			}
			if e.Metadata.Sequence != want {
				t.Fatalf("%d at %d", e.Metadata.Sequence, want)
			}
			want++
		}
		if want != 204 || gaps != 1 {
			t.Errorf("ended at %d with %d gaps", want, gaps)
		}
	})
}

// The limits hold for memory; the journal keeps everything since the last save.
func TestS16ResumeIsBoundedAndTheJournalIsWhole(t *testing.T) {
	k := keep(t, memory(t))
	r := open(t, setup{model: chatter(300), kept: k, fixed: "x"})
	x := r.start("go")
	<-x.Done()
	small := session.DefaultRetention
	small.MaxEventsPerRun = 10
	s := open(t, setup{kept: crash(t, k), retention: &small, model: chatter(1), fixed: "x"})
	if n := len(s.RunEvents(x.ID())); n > 10 {
		t.Errorf("%d events in memory", n)
	}
	snap, _ := s.RunSnapshot(x.ID())
	if snap.EventCount != 304 {
		t.Errorf("event_count %d", snap.EventCount)
	}
	p, _ := s.RunEventPage(x.ID(), nil, 5)
	if !p.RetentionGap || p.LatestSequenceExclusive != 304 || *p.FirstAvailableSequence < 294 {
		t.Errorf("%+v", p)
	}
}

func TestIdsGoOnAfterAResume(t *testing.T) {
	k := keep(t, memory(t))
	script := "call ls {}\nend\nsay one\nend\ncall ls {}\nend\nsay two\nend\ncall ls {}\nend\nsay three"
	r := open(t, setup{script: script, kept: k, fixed: "x"})
	for range 2 {
		if _, err := r.play("go"); err != nil {
			t.Fatal(err)
		}
	}
	s := open(t, setup{script: script, kept: crash(t, k), fixed: "x"})
	if _, err := s.play("again"); err != nil {
		t.Fatal(err)
	}
	ids := map[string]int{}
	for _, run := range s.Runs() {
		ids[run.ID]++
	}
	for _, m := range s.History() {
		for _, c := range m.Calls() {
			ids[c.ID]++
		}
	}
	for name, n := range ids {
		if n > 1 {
			t.Errorf("%s is the name of %d things", name, n)
		}
	}
	if len(ids) != 6 {
		t.Errorf("%v", ids)
	}
}

func TestJournalFalseKeepsSnapshotsOnly(t *testing.T) {
	k := keep(t, memory(t))
	r := open(t, setup{script: "say one\nend\nsay two", kept: k, noJournal: true})
	if _, err := r.play("go"); err != nil {
		t.Fatal(err)
	}
	same(t, "steps before the save", k.steps(), nil)
	if err := r.Save(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.play("lost"); err != nil {
		t.Fatal(err)
	}
	same(t, "steps", k.steps(), []string{"save"})
	s := open(t, setup{kept: crash(t, k), noJournal: true, model: untouched(t)})
	if h := s.History(); len(h) != 2 || h[1].Text() != "one" {
		t.Errorf("history %+v", h)
	}
}

// A run of another program that was saved while it was active is settled once, and its
// calls count as started if their intents are not in the record.
func TestForeignSnapshotOfAnActiveRun(t *testing.T) {
	snap := &record.Snapshot{SchemaVersion: 1, Session: record.SessionData{ID: "s", State: "Active", Messages: []chat.Message{
		chat.Say(chat.User, "do it"),
		{Role: chat.Assistant, Content: []chat.Block{{Type: chat.ToolUse, ID: "c1", Name: "bash", Input: json.RawMessage(`{"command":"make"}`)}, {Type: chat.ToolUse, ID: "c2", Name: "ls", Input: json.RawMessage(`{}`)}}},
	}}}
	snap.RunRecords = []record.RunRecord{{
		Snapshot: record.RunSnapshot{ID: "run-1", SessionID: "s", Status: record.Executing, Prompt: "do it", EventCount: 3},
		Events: []record.StoredEvent{
			{Sequence: 0, Event: json.RawMessage(`{"type":"agent_start","prompt":"do it"}`)},
			{Sequence: 1, Event: json.RawMessage(`{"type":"tool_execution_start","id":"c1","name":"bash","args":{"command":"make"}}`)},
			{Sequence: 2, Event: json.RawMessage(`{"type":"something_new","x":[1,2]}`)},
		},
	}}
	snap.Normalise()
	st := memory(t)
	place := keep(t, st)
	if _, err := place.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := place.Session.Save(t.Context(), snap); err != nil {
		t.Fatal(err)
	}
	if err := place.Close(); err != nil {
		t.Fatal(err)
	}
	s := open(t, setup{kept: keep(t, st), model: untouched(t)})
	settled(t, s, "run-1", []string{"agent_start", "tool_execution_start bash", "something_new", "tool_end bash outcome_unknown", "tool_end ls cancelled", "error INTERRUPTED"}, 1)
	closed(t, s.History())
	if !strings.Contains(s.logged(), "interrupted") {
		t.Errorf("log: %s", s.logged())
	}
}

func TestUnreadableJournalsAreRefusedWithTheirPlace(t *testing.T) {
	start := `{"version":1,"type":"agent_start","payload":{"prompt":"x"},"metadata":{"run_id":"r","session_id":"s","sequence":0,"timestamp_ms":1}}`
	cases := map[string][]string{
		"a number is missing":     {start, strings.Replace(start, `"sequence":0`, `"sequence":2`, 1)},
		"a number comes twice":    {start, start},
		"a payload of wrong type": {start, `{"version":1,"type":"turn_start","payload":{"turn":"one"},"metadata":{"run_id":"r","session_id":"s","sequence":1,"timestamp_ms":1}}`},
		"no JSON":                 {"hello"},
		"no fact":                 {`{"a":1}`},
		"another version":         {`{"version":2,"type":"x","payload":{},"metadata":{"run_id":"r","session_id":"s","sequence":0,"timestamp_ms":1}}`},
	}
	for name, lines := range cases {
		t.Run(name, func(t *testing.T) {
			st := memory(t)
			place := keep(t, st)
			if _, err := place.Load(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, l := range lines {
				if _, err := place.Session.Append(t.Context(), [][]byte{[]byte(l)}); err != nil {
					t.Fatal(err)
				}
			}
			if err := place.Close(); err != nil {
				t.Fatal(err)
			}
			_, err := tryOpen(t, setup{kept: keep(t, st)})
			isCode(t, err, fault.CodeSerialization)
		})
	}
}

func TestFactsOfANewerVersionArePassedOver(t *testing.T) {
	st := memory(t)
	place := keep(t, st)
	if _, err := place.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	lines := []string{
		`{"fact":"grant","grant":{"x":1}}`, `{"fact":"mark","mark":{"checkpoint":{"turn":1}}}`,
		`{"version":1,"type":"agent_start","payload":{"prompt":"x"},"metadata":{"run_id":"r","session_id":"s","sequence":0,"timestamp_ms":1}}`,
		`{"version":1,"type":"holographic","payload":[1],"metadata":{"run_id":"r","session_id":"s","sequence":1,"timestamp_ms":1}}`,
		`{"version":1,"type":"agent_end","payload":{"text":"hi","usage":{}},"metadata":{"run_id":"r","session_id":"s","sequence":2,"timestamp_ms":1}}`,
	}
	for _, l := range lines {
		if _, err := place.Session.Append(t.Context(), [][]byte{[]byte(l)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := place.Close(); err != nil {
		t.Fatal(err)
	}
	s := open(t, setup{kept: keep(t, st), model: untouched(t)})
	if r := s.Runs(); len(r) != 1 || r[0].Status != record.Completed || r[0].ResultText != "hi" || r[0].EventCount != 3 {
		t.Errorf("%+v", r)
	}
	if got := names(kept(t, s.Session, "r")); !slices.Equal(got, []string{"agent_start", "holographic", "agent_end"}) {
		t.Error(got)
	}
}
