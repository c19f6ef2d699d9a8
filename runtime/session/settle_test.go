package session_test

import (
	"context"
	"encoding/json"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/model"
	"github.com/a3s-lab/liba3s/runtime/policy"
	"github.com/a3s-lab/liba3s/runtime/record"
	"github.com/a3s-lab/liba3s/runtime/session"
	"github.com/a3s-lab/liba3s/runtime/tool"
)

// crash gives the place of a session as its process left it: what was handed to the
// store is there, nothing else is.
func crash(t *testing.T, k *journal) *journal {
	t.Helper()
	st := memory(t)
	place := keep(t, st)
	if _, err := place.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	k.jmu.Lock()
	saved := k.saved
	k.jmu.Unlock()
	if saved != nil {
		snap, err := record.ParseSnapshot(saved)
		if err != nil {
			t.Fatal(err)
		}
		if err := place.Session.Save(t.Context(), snap); err != nil {
			t.Fatal(err)
		}
	}
	if facts := k.facts(t); len(facts) > 0 {
		if _, err := place.Session.Append(t.Context(), facts); err != nil {
			t.Fatal(err)
		}
	}
	if err := place.Close(); err != nil {
		t.Fatal(err)
	}
	return keep(t, st)
}

// untouched is a model that must not be asked.
func untouched(t *testing.T) client {
	return func(context.Context, model.Request, func(model.Chunk, error) bool) { t.Error("the model was asked") }
}

// kept gives the events of a run that are in memory.
func kept(t *testing.T, s *session.Session, run string) []event.Envelope {
	t.Helper()
	var all []event.Envelope
	for _, b := range s.RunEvents(run) {
		var e event.Envelope
		if err := json.Unmarshal(b, &e); err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

// The ways a process can die in the middle of a run, and what a resume says of the open
// calls. Nothing is executed.
func TestS13Settlement(t *testing.T) {
	ask := &policy.ConfirmationPolicy{Enabled: true}
	cases := []struct {
		name    string
		script  string
		su      setup
		save    bool
		history []chat.Message
		want    []string // the last events after the resume
		unknown float64  // details.outcome_unknown
	}{
		{"while the model answers", "say half\nwait 100000", setup{}, false, nil, []string{"text_delta", "error INTERRUPTED"}, 0},
		{"while a question is open (S14)", "call write {\"file_path\":\"a\",\"content\":\"x\"}\ncall ls {}", setup{rules: &policy.Policy{Ask: []string{"write"}, DefaultDecision: "allow"}, confirm: ask}, false, nil,
			[]string{"confirmation_required write", "confirmation_received false interrupted", "tool_end write cancelled", "tool_end ls cancelled", "error INTERRUPTED"}, 0},
		{"while a call with effects runs", "call ls {}\ncall effect {}\ncall ls {\"path\":\".\"}", setup{}, false, nil,
			[]string{"tool_execution_start effect", "tool_output_delta", "tool_end effect outcome_unknown", "tool_end ls cancelled", "error INTERRUPTED"}, 1},
		{"while reads run", "call look {}\ncall look {\"n\":1}\ncall effect {}", setup{}, false, nil,
			[]string{"tool_output_delta", "tool_end look interrupted", "tool_end look interrupted", "tool_end effect cancelled", "error INTERRUPTED"}, 0},
		{"saved while a call runs", "call ls {}\ncall effect {}\ncall ls {\"path\":\".\"}", setup{}, true, nil,
			[]string{"tool_output_delta", "tool_end effect outcome_unknown", "tool_end ls cancelled", "error INTERRUPTED"}, 1},
		{"saved while a question is open", "call write {\"file_path\":\"a\",\"content\":\"x\"}", setup{rules: &policy.Policy{DefaultDecision: "ask"}, confirm: ask}, true, nil,
			[]string{"confirmation_required write", "confirmation_received false interrupted", "tool_end write cancelled", "error INTERRUPTED"}, 0},
		{"an isolated run", "call effect {}", setup{}, false, []chat.Message{chat.Say(chat.User, "aside")},
			[]string{"tool_output_delta", "tool_end effect outcome_unknown", "error INTERRUPTED"}, 1},
		{"an isolated run, saved", "call effect {}", setup{}, true, []chat.Message{chat.Say(chat.User, "aside")},
			[]string{"tool_output_delta", "tool_end effect outcome_unknown", "error INTERRUPTED"}, 1},
		{"saved after the intent was trimmed", "call effect {}", setup{retention: &session.Retention{MaxRunsRetained: 4, MaxEventsPerRun: 1, MaxEventBytesPerRun: 1 << 20, MaxTraceEvents: 4}}, true, nil,
			[]string{"tool_end effect outcome_unknown", "error INTERRUPTED"}, 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := make(chan struct{}, 4)
				c.su.script = c.script
				c.su.kept = keep(t, memory(t))
				c.su.tools = []tool.Tool{waits("effect", writes, began), waits("look", reads, began)}
				r := open(t, c.su)
				x, err := r.Start(session.Prompt{Text: "go", History: c.history})
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				if c.save {
					if err := r.Save(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				place := crash(t, c.su.kept.(*journal))
				again := setup{model: untouched(t), kept: place, tools: []tool.Tool{
					act{"effect", writes, func(context.Context, tool.Env, json.RawMessage) (chat.Result, error) {
						t.Error("a call was repeated")
						return chat.Result{}, nil
					}},
				}}
				s := open(t, again)
				steps := place.steps()
				if steps[len(steps)-1] != "flush" {
					t.Errorf("not flushed before it opened: %v", steps)
				}
				settled(t, s, x.ID(), c.want, c.unknown)
				if c.history == nil {
					closed(t, s.History())
				}

				// A second resume finds everything settled and writes nothing.
				third := crash(t, place)
				s3 := open(t, setup{model: untouched(t), kept: third})
				if steps := third.steps(); len(steps) != 0 {
					t.Errorf("written again: %v", steps)
				}
				if a, b := s.RunEvents(x.ID()), s3.RunEvents(x.ID()); !c.save && !reflect.DeepEqual(a, b) {
					t.Errorf("events differ:\n%s\n%s", a, b)
				}
			})
		})
	}
}

func settled(t *testing.T, s *rig, run string, want []string, unknown float64) {
	t.Helper()
	events := kept(t, s.Session, run)
	lines := brief(t, events)
	same(t, "events", lines[max(0, len(lines)-len(want)):], want)
	last := events[len(events)-1]
	var e event.Error
	if err := json.Unmarshal(last.Payload, &e); err != nil {
		t.Fatal(err)
	}
	if e.Code != fault.CodeInterrupted || e.Kind != fault.Interrupted || e.Details["outcome_unknown"] != unknown {
		t.Errorf("%+v", e)
	}
	for i, e := range events[1:] {
		if e.Metadata.Sequence != events[i].Metadata.Sequence+1 {
			t.Errorf("%d follows %d", e.Metadata.Sequence, events[i].Metadata.Sequence)
		}
	}
	snap, ok := s.RunSnapshot(run)
	if !ok || snap.Status != record.Failed || snap.EventCount != last.Metadata.Sequence+1 || snap.Error == "" {
		t.Errorf("%+v", snap)
	}
	if len(s.Pending()) != 0 || s.Active() != nil || len(s.ActiveTools()) != 0 {
		t.Error("something is still open")
	}
}

// After a resume the session works on, and the next model call sees the settled calls.
func TestS13TheNextRunSeesWhatIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := make(chan struct{}, 1)
		k := keep(t, memory(t))
		r := open(t, setup{script: "call effect {}", kept: k, tools: []tool.Tool{waits("effect", writes, began)}})
		r.start("do it")
		<-began
		synctest.Wait()
		s := open(t, setup{script: "expect whether it took effect is not known\nsay I will look", kept: crash(t, k)})
		events, err := s.play("and?")
		if err != nil {
			t.Fatal(err, events)
		}
	})
}

// A question that was open when its process died is rejected, since its run is dead;
// nobody can answer it any more.
func TestS14PendingConfirmationsSettleAsRejected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keep(t, memory(t))
		r := open(t, setup{
			script: "call write {\"file_path\":\"a\",\"content\":\"x\"}", kept: k,
			rules: &policy.Policy{DefaultDecision: "ask"}, confirm: &policy.ConfirmationPolicy{Enabled: true},
		})
		x := r.start("go")
		synctest.Wait()
		asked := r.Pending()[0].ToolID
		s := open(t, setup{kept: crash(t, k), model: untouched(t)})
		if len(s.Pending()) != 0 || s.Confirm(asked, true, "") != session.AnswerUnknown {
			t.Error("the question is still open")
		}
		settled(t, s, x.ID(), []string{"confirmation_required write", "confirmation_received false interrupted", "tool_end write cancelled", "error INTERRUPTED"}, 0)
	})
}
