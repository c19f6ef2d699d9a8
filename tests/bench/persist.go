package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/a3s-lab/liba3s/runtime/agent"
	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/op"
	"github.com/a3s-lab/liba3s/runtime/session"
	"github.com/a3s-lab/liba3s/runtime/store/file"
	"github.com/a3s-lab/liba3s/runtime/tool"
)

var sample = event.Metadata{RunID: "run-0190a3f0-0000-7000-8000-000000000000", SessionID: "0190a3f0-0000-7000-8000-000000000000", Sequence: 1234, TimestampMS: 1700000000000}

// persist measures the file store under one event and under the two of an action.
func persist(b *bench, t *table) error {
	st, err := file.Open(b.ctx, file.Config{Dir: filepath.Join(b.dir, "persist")})
	if err != nil {
		return err
	}
	se, err := st.Open(b.ctx, "persist", "bench")
	if err != nil {
		return err
	}
	defer se.Close()
	if _, err := se.Load(b.ctx); err != nil {
		return err
	}
	write := func(p event.Payload) error {
		line, err := event.Append(nil, p, sample)
		if err == nil {
			_, err = se.Append(b.ctx, [][]byte{line})
		}
		return err
	}
	delta := event.TextDelta{Text: strings.Repeat("x", 20)}
	intent := event.ToolExecutionStart{ID: "call-0190a3f0-0000-7000-8000-000000000000", Name: "write", Args: json.RawMessage(`{"path":"a.txt","content":"` + strings.Repeat("x", 300) + `"}`)}
	outcome := event.ToolEnd{ID: intent.ID, Name: "write", Args: intent.Args, Output: strings.Repeat("line of output\n", 100)}
	flush := func() error { return se.Flush(b.ctx) }

	var line []byte
	var p event.Payload = delta
	encoded, err := timed(50, func() error {
		for range 2000 {
			if line, err = event.Append(line[:0], p, sample); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	t.add("encode a text delta", below(150e-9), nanos, []float64{median(encoded) / 2000}, fmt.Sprintf("event.Append, %d bytes, no allocation", len(line)))
	got, err := timed(20000, func() error { return write(delta) })
	if err != nil {
		return err
	}
	t.add("persist one event, written", below(0.166e-3), micros, quantiles(got), "p50 / p99; encode and append a 20-byte delta; survives kill -9; disk of the checkout")
	got, err = timed(5000, func() error {
		if err := write(intent); err != nil {
			return err
		}
		return write(outcome)
	})
	if err != nil {
		return err
	}
	t.add("action cycle, written", below(0.36e-3), micros, quantiles(got), "p50 / p99; intent of 0.6 KB and outcome of 2.2 KB, one append each")
	var flushes []float64
	for range 200 {
		if err := write(delta); err != nil {
			return err
		}
		one, err := timed(1, flush)
		if err != nil {
			return err
		}
		flushes = append(flushes, one...)
	}
	t.add("one fdatasync", goal{}, micros, quantiles(flushes), "p50 / p99; what durability adds to a written event once, to an action twice; the disk's figure, not ours")
	return nil
}

// replay measures how 1,000 events of 4.3 KB come back: from memory, from the journal
// under a stream, and by resuming the session.
func replay(b *bench, t *table) error {
	const events = 1000
	dir, err := b.sub("replay")
	if err != nil {
		return err
	}
	a, err := openAgent(b.ctx, dir, ticks(1))
	if err != nil {
		return err
	}
	defer a.Close(b.ctx)
	storeDir := filepath.Join(b.dir, "replay-store")
	s, r, err := chatter(b.ctx, a, dir, stored(options(), storeDir), events)
	if err != nil {
		return err
	}
	got, err := timed(15, func() error {
		if n := len(s.RunEvents(r.ID())); n < events {
			return fmt.Errorf("%d events of %d", n, events)
		}
		return nil
	})
	if err != nil {
		return err
	}
	t.add("replay 1,000 events of 4.3 KB from memory", below(10e-3), millis, []float64{median(got)}, "Session.RunEvents: a copy of every event; median of 15")
	params := fmt.Appendf(nil, `{"run_id":%q}`, r.ID())
	got, err = timed(15, func() error {
		_, err := op.Call(b.ctx, s, "session.run_events", params)
		return err
	})
	if err != nil {
		return err
	}
	t.add("the same as one JSON text", below(10e-3), millis, []float64{median(got)}, "operation session.run_events, as C and Python get it; median of 15")
	if err := s.Close(b.ctx); err != nil {
		return err
	}

	got, err = timed(15, func() error { return reopen(b.ctx, dir, storeDir, s.ID()) })
	if err != nil {
		return err
	}
	t.add("recover 1,000 events of 4.3 KB", below(20e-3), millis, []float64{median(got)}, "agent open + resume_session + close, journal without snapshot; median of 15")

	o := stored(options(), filepath.Join(b.dir, "stream-store"))
	o.RetentionLimits = &session.Retention{MaxEventsPerRun: 16}
	s, r, err = chatter(b.ctx, a, dir, o, events)
	if err != nil {
		return err
	}
	defer s.Close(b.ctx)
	got, err = timed(15, func() error { return follow(b.ctx, r) })
	if err != nil {
		return err
	}
	t.add("stream the same from the journal", below(10e-3), millis, []float64{median(got)}, "a run's stream from 0 when memory keeps 16 events; median of 15")
	return nil
}

// chatter opens a session and runs a tool that puts out n pieces of 4.1 KB, each an
// event of 4.3 KB.
func chatter(ctx context.Context, a *agent.Agent, dir string, o *agent.Options, n int) (*session.Session, *session.Run, error) {
	s, err := a.OpenSession(ctx, spec(dir, o))
	if err != nil {
		return nil, nil, err
	}
	piece := strings.Repeat("x", 4099) + "\n" // as long as what is merged at most, so none is
	talk := goTool{effects: chat.Effects{Read: true}, run: func(env tool.Env) string {
		for range n {
			env.Emit(piece)
		}
		return "said all"
	}}
	if err := s.AddTool(talk); err != nil {
		return nil, nil, err
	}
	r, err := play(ctx, s)
	return s, r, err
}

// reopen resumes a kept session as a new process would, and closes it.
func reopen(ctx context.Context, dir, store, id string) error {
	a, err := agent.Open(ctx, agent.Setup{ACLPath: filepath.Join(dir, "agent.acl"), Cwd: dir})
	if err != nil {
		return err
	}
	if _, err := a.OpenSession(ctx, agent.SessionSpec{Resume: id, Options: stored(options(), store)}); err != nil {
		return err
	}
	return a.Close(ctx)
}
