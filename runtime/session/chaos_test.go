package session_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/a3s-lab/liba3s/internal/tape"
	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/policy"
	"github.com/a3s-lab/liba3s/runtime/session"
)

const chaosScript = `think a b c
say one two three four five six seven eight nine ten
call ls {}
call ls {"path":"."}
call write {"file_path":"a","content":"x"}
call read {"file_path":"a"}
end
say and then
call write {"file_path":"b","content":"y"}
end
say done with it
end
say the second run
call read {"file_path":"b"}
end
say ends too
`

// Hosts call everything from everywhere at any time: every run ends in exactly one
// terminal event, numbers have no holes, nothing hangs, and what is kept can be resumed.
func TestChaos(t *testing.T) {
	rounds := 300
	if testing.Short() {
		rounds = 30
	}
	for seed := range rounds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			watchdog := time.AfterFunc(time.Minute, func() {
				stacks := make([]byte, 1<<20)
				panic(fmt.Sprintf("seed %d hangs:\n%s", seed, stacks[:runtime.Stack(stacks, true)]))
			})
			defer watchdog.Stop()
			chaos(t, uint64(seed))
		})
	}
}

func chaos(t *testing.T, seed uint64) {
	dice := rand.New(rand.NewPCG(seed, 1))
	small := session.DefaultRetention
	small.MaxEventsPerRun, small.MaxRunsRetained = 1+dice.IntN(20), 1+dice.IntN(3)
	su := setup{
		script: chaosScript, retention: &small, autoSave: dice.IntN(2) == 0, stall: time.Duration(1+dice.IntN(3)) * time.Millisecond,
		rules: &policy.Policy{Ask: []string{"write"}, DefaultDecision: "allow"}, confirm: &policy.ConfirmationPolicy{Enabled: true},
		secrets: []string{"seven eight"},
	}
	st := memory(t)
	var k *journal
	if dice.IntN(2) == 0 {
		k = keep(t, st)
		su.kept = k
	}
	r := open(t, su)
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for i := range 4 {
		wg.Go(func() { meddle(t, r, rand.New(rand.NewPCG(seed, uint64(i+2))), stop) })
	}
	var ended []*session.Run
	for range 2 {
		x, err := r.Start(session.Prompt{Text: "go"})
		if err != nil { // it was closed meanwhile
			isCode(t, err, fault.CodeSessionClosed)
			break
		}
		ended = append(ended, x)
		c := x.Stream(0)
		if k != nil && !su.autoSave {
			readAll(t, c)
		}
		<-x.Done()
		c.Close()
	}
	close(stop)
	wg.Wait()
	for _, x := range ended {
		if snap, ok := r.RunSnapshot(x.ID()); ok && !snap.Status.Terminal() {
			t.Errorf("status %s", snap.Status)
		}
	}
	closed(t, r.History())
	if k == nil {
		return
	}
	var left *journal
	if r.Info().Closed {
		<-r.Done()
		left = keep(t, st)
	} else {
		left = crash(t, k)
	}
	s := open(t, setup{kept: left, model: untouched(t)})
	closed(t, s.History())
	for _, run := range s.Runs() {
		if !run.Status.Terminal() {
			t.Errorf("after the resume: %+v", run)
		}
	}
	alike(t, "history", r.History(), s.History())
}

// readAll reads a run's stream, which may have gaps only where a save dropped the
// journal, and checks the rest.
func readAll(t *testing.T, c *tape.Cursor) {
	t.Helper()
	want, ends := int64(0), 0
	for _, e := range drain(t, c) {
		if e.Type == "gap" {
			var g event.Gap
			if err := json.Unmarshal(e.Payload, &g); err != nil {
				t.Error(err)
			}
			if g.From != want || g.To <= g.From {
				t.Errorf("gap %+v at %d", g, want)
			}
			want = g.To
			continue
		}
		if e.Metadata.Sequence != want {
			t.Errorf("%s has number %d, want %d", e.Type, e.Metadata.Sequence, want)
		}
		want = e.Metadata.Sequence + 1
		if e.Type == "error" || e.Type == "agent_end" {
			ends++
		}
	}
	if ends != 1 {
		t.Errorf("%d terminal events", ends)
	}
}

// meddle does what hosts do, at random, until it is stopped.
func meddle(t *testing.T, r *rig, dice *rand.Rand, stop <-chan struct{}) {
	deeds := []func(){
		func() {
			for _, q := range r.Pending() {
				r.Confirm(q.ToolID, dice.IntN(2) == 0, "")
				r.Confirm(q.ToolID, true, "twice")
			}
		},
		func() {
			if dice.IntN(20) == 0 {
				r.CancelActive("by chance")
			}
		},
		func() {
			if dice.IntN(20) == 0 {
				r.CancelConfirmations("all")
			}
		},
		func() {
			if err := r.Save(t.Context()); err != nil {
				isCode(t, err, fault.CodeSessionClosed)
			}
		},
		func() {
			if x := r.Active(); x != nil {
				c := x.Stream(int64(dice.IntN(5)))
				_, _, _ = c.TryNext(1+dice.IntN(8), make([]byte, 4<<10))
				c.Close()
			}
		},
		func() {
			if c, err := r.Stream(); err == nil {
				_, _, _ = c.TryNext(4, make([]byte, 4<<10))
				c.Close()
				r.Release(c)
			}
		},
		func() {
			for _, run := range r.Runs() {
				after := int64(dice.IntN(10))
				r.RunEventPage(run.ID, &after, 1+dice.IntN(5))
			}
			r.History()
			r.ActiveTools()
			r.Traces()
			r.Info()
		},
		func() {
			if _, err := r.Tool(t.Context(), "ls", nil); err != nil && fault.From("", err).Code != fault.CodeSessionClosed {
				t.Errorf("direct: %v", err)
			}
		},
		func() {
			if dice.IntN(400) == 0 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(dice.IntN(5))*time.Millisecond)
				_ = r.Close(ctx)
				cancel()
			}
		},
	}
	for {
		select {
		case <-stop:
			return
		default:
			deeds[dice.IntN(len(deeds))]()
			runtime.Gosched()
		}
	}
}

// Many sessions at once share nothing but the library.
func TestHundredSessionsInParallel(t *testing.T) {
	st := memory(t)
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			name := fmt.Sprintf("session-%d", i)
			place, err := st.Open(t.Context(), name, "test")
			if err != nil {
				t.Error(err)
				return
			}
			r, err := tryOpen(t, setup{
				script: "say I am " + name + "\ncall write {\"file_path\":\"me\",\"content\":\"" + name + "\"}\nend\ncall read {\"file_path\":\"me\"}\nend\nsay done " + name,
				kept:   place, autoSave: i%2 == 0, wrap: func(c *session.Config) { c.ID, c.Data.ID = name, name },
			})
			if err != nil {
				t.Error(err)
				return
			}
			x, err := r.Start(session.Prompt{Text: "go"})
			if err != nil {
				t.Error(err)
				return
			}
			c := x.Stream(0)
			defer c.Close()
			buf := make([]byte, 64<<10)
			for {
				n, _, err := c.Next(context.Background(), 100, buf)
				if err != nil {
					break
				}
				var batch []event.Envelope
				if err := json.Unmarshal(buf[:n], &batch); err != nil {
					t.Error(err)
				}
				for _, e := range batch {
					if e.Metadata.SessionID != name {
						t.Errorf("%s got an event of %s", name, e.Metadata.SessionID)
					}
				}
			}
			res, err := x.Wait(t.Context())
			if err != nil || res.Text != "done "+name || res.ToolCallsCount != 2 {
				t.Errorf("%s: %+v, %v", name, res, err)
			}
			if err := r.Close(t.Context()); err != nil {
				t.Error(err)
			}
			again, err := st.Open(t.Context(), name, "test")
			if err != nil {
				t.Error(err)
				return
			}
			kept, err := again.Load(t.Context())
			if err != nil || kept.Snapshot != nil && len(kept.Snapshot.Session.Messages) != 6 {
				t.Errorf("%s: %+v, %v", name, kept.Snapshot, err)
			}
			_ = again.Close()
		})
	}
	wg.Wait()
}
