package host_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/host"
)

// told hands over the numbers of the questions.
type told chan uint64

func (s told) Request(r host.Request) error { s <- r.ID; return nil }
func (told) Cancel(uint64, string)          {}

// A reply that was accepted is what Ask gives, also when the asker's context or the
// deadline ends in the same moment: the host must not be told that it was heard and
// then be overheard.
func TestAcceptedReplyCounts(t *testing.T) {
	for _, name := range []string{"cancelled", "timeout"} {
		t.Run(name, func(t *testing.T) {
			s := make(told, 1)
			d := host.NewDesk(s)
			for i := range 3000 {
				ctx, cancel := context.WithCancel(t.Context())
				deadline := time.Minute
				if name == "timeout" {
					deadline = time.Duration(i%20+1) * time.Microsecond
				}
				var wg sync.WaitGroup
				var accepted error
				wg.Go(func() {
					id := <-s
					if name == "cancelled" {
						wg.Go(cancel)
					}
					accepted = d.Reply(id, []byte(`{"result":"yes"}`))
					if again := d.Reply(id, []byte(`{"result":"no"}`)); fault.KindOf(again) != fault.NotFound {
						t.Errorf("a second reply: %v", again)
					}
				})
				got, err := d.Ask(ctx, host.Request{Kind: "tool", Name: "x", Op: "call", Deadline: deadline}, nil)
				wg.Wait()
				cancel()
				if (accepted == nil) != (err == nil) || err == nil && string(got) != `"yes"` {
					t.Fatalf("round %d: Reply says %v, Ask says %s, %v", i, accepted, got, err)
				}
			}
		})
	}
}

func TestChunksComeBeforeTheReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := make(told, 1)
		d := host.NewDesk(s)
		var got []string
		done := make(chan error, 1)
		go func() {
			_, err := d.Ask(t.Context(), host.Request{Kind: "tool", Deadline: time.Minute}, func(c json.RawMessage) { got = append(got, string(c)) })
			done <- err
		}()
		id := <-s
		for range 200 { // more than the desk keeps
			if err := d.Chunk(id, []byte(`{"delta":"x"}`)); err != nil {
				t.Fatal(err)
			}
		}
		if err := d.Reply(id, []byte(`{"result":1}`)); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil || len(got) != 200 {
			t.Fatalf("%d chunks, %v", len(got), err)
		}
		if err := d.Chunk(id, []byte(`1`)); fault.KindOf(err) != fault.NotFound {
			t.Errorf("a late chunk: %v", err)
		}
	})
}

// ear hears questions and their withdrawals.
type ear struct {
	told
	withdrawn chan string
}

func (e ear) Cancel(_ uint64, reason string) { e.withdrawn <- reason }

// A line may say who hears its requests: neither they nor their withdrawal reach the
// desk's sender, and the loss of that one is none of theirs.
func TestAnotherHears(t *testing.T) {
	desks, other := ear{make(told, 1), make(chan string, 1)}, ear{make(told, 1), make(chan string, 1)}
	d := host.NewDesk(desks)
	l := host.NewLine(d, "tool", "t", time.Minute)
	l.To(other)
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- l.Ask(ctx, host.Question{Op: "call", Params: 1}, new(int)) }()
	select {
	case <-other.told:
	case err := <-ended:
		t.Fatalf("it ended with %v before it was heard", err)
	}
	d.Lost()
	if n := d.Open(); n != 1 {
		t.Errorf("%d open after the loss of the desk's sender, want 1", n)
	}
	cancel()
	wantKind(t, "withdrawn", <-ended, fault.Cancelled)
	if got := <-other.withdrawn; got != "cancelled" {
		t.Errorf("withdrawn for %q", got)
	}
	if len(desks.told)+len(desks.withdrawn) != 0 {
		t.Error("the desk's sender was told of it")
	}
}

// What is taken back is asked no more, and what it was asked is withdrawn; another
// extension of the same desk goes on.
func TestTakenBack(t *testing.T) {
	e := ear{make(told, 2), make(chan string, 1)}
	d := host.NewDesk(e)
	mine, other := host.NewLine(d, "tool", "mine", time.Minute), host.NewLine(d, "tool", "other", time.Minute)
	ended := map[*host.Line]chan error{mine: make(chan error, 1), other: make(chan error, 1)}
	for l, end := range ended {
		go func() { end <- l.Ask(bg, host.Question{Op: "call", Params: 1}, new(int)) }()
	}
	ids := map[uint64]bool{<-e.told: true, <-e.told: true}
	mine.End()
	if err := <-ended[mine]; !host.Gone(err) {
		t.Errorf("the request under way: %v", err)
	}
	if reason := <-e.withdrawn; reason != "cancelled" {
		t.Errorf("withdrawn for %q", reason)
	}
	if err := mine.Ask(bg, host.Question{Op: "call", Params: 1}, new(int)); !host.Gone(err) || len(e.told) != 0 {
		t.Errorf("a new request: %v, %d told", err, len(e.told))
	}
	taken := 0
	for id := range ids {
		if d.Reply(id, []byte(`{"result":1}`)) == nil {
			taken++
		}
	}
	if err := <-ended[other]; err != nil || taken != 1 {
		t.Errorf("the other: %v, %d replies were taken", err, taken)
	}
}
