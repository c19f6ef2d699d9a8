package session_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a3s-lab/liba3s/internal/tape"
	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/model"
	"github.com/a3s-lab/liba3s/runtime/session"
)

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
		c, err := r.Stream() // there before the first event
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		x := r.start("go")
		began := time.Now()
		<-x.Done()
		if d := time.Since(began); d != 10*time.Second {
			t.Errorf("the run waited %v", d)
		}
		if err := r.Close(t.Context()); err != nil {
			t.Fatal(err)
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
				c, err := r.Stream() // there before the first event
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				r.start("go")
				var events []event.Envelope
				for buf := make([]byte, 8<<10); len(events) == 0 || events[len(events)-1].Type != "agent_end"; {
					time.Sleep(time.Second)
					n, _, err := c.Next(t.Context(), 2, buf)
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
