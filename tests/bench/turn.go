package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/tool"
)

// turns measures what the runtime adds to one turn with one tool call: the time from
// one call of the tool to the next, which takes the model no time and the tool none. A
// reader takes the events meanwhile.
func turns(b *bench, t *table) error {
	bound := below(0.25e-3, 1e-3)
	rows := []struct {
		name  string
		store string
		goal  goal
		runs  int
		note  string
	}{
		{"memory only", "", goal{}, 40, "no store"},
		{"durable, fsync excluded", b.fast, bound, 40, "file store on tmpfs, where fdatasync does nothing"},
		{"durable, with fsync", filepath.Join(b.dir, "turn-store"), goal{}, 8, "file store on the disk of the checkout"},
	}
	for _, effects := range []bool{false, true} {
		kind, flushes := "read-only call", "no flush"
		if effects {
			kind, flushes = "call with effects", "two flushes"
		}
		for _, r := range rows {
			name := "turn, " + kind + ", " + r.name
			if r.store == "" && r.goal.at != nil {
				t.failed(name, errors.New("/dev/shm is no tmpfs"))
				continue
			}
			got, err := turnTimes(b, r.store, effects, r.runs)
			if err != nil {
				t.failed(name, err)
				continue
			}
			t.add(name, r.goal, micros, quantiles(got), fmt.Sprintf("p50 / p99 of %d turns; %s; %s a turn", len(got), r.note, flushes))
		}
	}
	return nil
}

func turnTimes(b *bench, store string, effects bool, runs int) ([]float64, error) {
	const calls = 50
	dir, err := b.sub("turn")
	if err != nil {
		return nil, err
	}
	a, err := openAgent(b.ctx, dir, ticks(calls))
	if err != nil {
		return nil, err
	}
	defer a.Close(b.ctx)
	var all []float64
	for run := range runs + 1 {
		s, err := a.OpenSession(b.ctx, spec(dir, stored(options(), store)))
		if err != nil {
			return nil, err
		}
		var at []time.Time
		tick := goTool{effects: chat.Effects{Read: true, Idempotent: true, Exec: effects}, run: func(tool.Env) string {
			at = append(at, time.Now())
			return "ticked"
		}}
		if err := s.AddTool(tick); err != nil {
			return nil, err
		}
		if _, err := play(b.ctx, s); err != nil {
			return nil, err
		}
		if len(at) != calls {
			return nil, fmt.Errorf("%d calls of %d came", len(at), calls)
		}
		for i := 1; i < len(at) && run > 0; i++ { // the first run warms up
			all = append(all, at[i].Sub(at[i-1]).Seconds())
		}
		if err := s.Close(b.ctx); err != nil {
			return nil, err
		}
	}
	return all, nil
}
