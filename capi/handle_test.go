package main

import (
	"sync"
	"testing"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

func TestHandles(t *testing.T) {
	tab := newTable()
	agent := must(tab.put(agentKind, "a", nil))
	session := must(tab.put(sessionKind, "s", agent))
	run := must(tab.put(runKind, "r", session))
	other := newTable()
	for other.nonce == tab.nonce {
		other = newTable()
	}
	foreign := must(other.put(agentKind, "x", nil))

	tests := map[string]struct {
		h    Handle
		want []Kind
		ok   bool
	}{
		"agent":           {agent.handle, []Kind{agentKind}, true},
		"one of several":  {run.handle, []Kind{sessionKind, runKind}, true},
		"another kind":    {run.handle, []Kind{agentKind}, false},
		"zero":            {0, []Kind{agentKind}, false},
		"all ones":        {^Handle(0), []Kind{agentKind}, false},
		"index alone":     {agent.handle & maxIndex, []Kind{agentKind}, false},
		"generation off":  {agent.handle + 1<<indexBits, []Kind{agentKind}, false},
		"index too high":  {agent.handle + 1000, []Kind{agentKind}, false},
		"other library's": {foreign.handle, []Kind{agentKind}, false},
		"kind forged":     {agent.handle ^ 3<<58, []Kind{agentKind, sessionKind}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := tab.get(tt.h, tt.want...)
			if (err == nil) != tt.ok {
				t.Fatalf("got error %v", err)
			}
			if err != nil && fault.KindOf(err) != fault.Handle {
				t.Errorf("got kind %q", fault.KindOf(err))
			}
		})
	}
}

func TestTakeEndsEverythingBelow(t *testing.T) {
	tab := newTable()
	agent := must(tab.put(agentKind, "a", nil))
	session := must(tab.put(sessionKind, "s", agent))
	run := must(tab.put(runKind, "r", session))
	if _, err := tab.take(session.handle); err != nil {
		t.Fatal(err)
	}
	for _, h := range []Handle{session.handle, run.handle} {
		if _, err := tab.get(h, sessionKind, runKind); err == nil {
			t.Errorf("handle %#x is alive", uint64(h))
		}
		if _, err := tab.take(h); err == nil {
			t.Errorf("handle %#x was taken twice", uint64(h))
		}
	}
	if _, err := tab.put(runKind, "late", session); fault.KindOf(err) != fault.Handle {
		t.Errorf("a child of a closed parent: got %v", err)
	}
	live, closing := tab.counts()
	if want := [kinds]int{agentKind: 1}; live != want || closing != 1 {
		t.Errorf("got %v and %d closing, want %v and 1", live, closing, want)
	}
	tab.done()
	again := must(tab.put(sessionKind, "s", agent))
	if again.handle == session.handle {
		t.Error("a handle came back")
	}
	if len(agent.children) != 1 {
		t.Errorf("got %d children, want 1", len(agent.children))
	}
}

func TestSlotIsRetiredBeforeItsGenerationComesRound(t *testing.T) {
	tab := newTable()
	first := must(tab.put(agentKind, "a", nil))
	(*tab.slots.Load())[0].generation = maxGeneration
	first.handle = tab.handle(agentKind, maxGeneration, 0)
	must(tab.take(first.handle))
	second := must(tab.put(agentKind, "b", nil))
	if second.handle&maxIndex != 1 {
		t.Errorf("the used-up slot was given out again: %#x", uint64(second.handle))
	}
}

func TestHandlesConcurrently(t *testing.T) {
	tab := newTable()
	agent := must(tab.put(agentKind, "a", nil))
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for range 2000 {
				s, err := tab.put(sessionKind, "s", agent)
				if err != nil {
					t.Error(err)
					return
				}
				if got, err := tab.get(s.handle, sessionKind); err != nil || got != s {
					t.Errorf("got %v, %v", got, err)
				}
				if _, err := tab.take(s.handle); err != nil {
					t.Error(err)
				}
				tab.done()
			}
		})
	}
	wait.Wait()
	if live, closing := tab.counts(); live != [kinds]int{agentKind: 1} || closing != 0 {
		t.Errorf("got %v, %d", live, closing)
	}
	if n := len(*tab.slots.Load()); n > 5 {
		t.Errorf("%d slots for 5 handles at a time", n)
	}
}

func must(e *entry, err error) *entry {
	if err != nil {
		panic(err)
	}
	return e
}

func BenchmarkGet(b *testing.B) {
	tab := newTable()
	h := must(tab.put(agentKind, "a", nil)).handle
	b.ReportAllocs()
	for b.Loop() {
		if _, err := tab.get(h, agentKind); err != nil {
			b.Fatal(err)
		}
	}
}
