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
