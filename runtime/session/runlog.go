package session

import (
	"bytes"
	"cmp"
	"context"
	"iter"
	"slices"
	"strconv"

	"github.com/a3s-lab/liba3s/internal/tape"
	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/policy"
	"github.com/a3s-lab/liba3s/runtime/record"
)

// runLog is what a session holds of one run. It is changed by the sequencer alone, as its
// fold is; the tape has a lock of its own.
type runLog struct {
	snap     record.RunSnapshot
	tape     *tape.Tape
	next     int64      // number of the next event
	lastMS   int64      // time of the last one
	start    record.Pos // where the run begins in the journal; zero: somewhere in it
	isolated bool
	planning bool
	usage    chat.Usage
	calls    int

	open      []chat.Call                 // of the last assistant message, without outcome, in order
	started   map[string]startedCall      // by call id
	questions map[string]chat.Call        // confirmations without an answer, by call id
	active    map[string]chatActive       // for active_tools
	terminal  event.Payload               // how it ended
	untold    [][]byte                    // the last events between written and told (S9)
	pieces    map[deltaKey]*policy.Stream // ends that the redactor holds back
}

// startedCall is a call whose intent is written.
type startedCall struct {
	call     chat.Call
	readOnly bool
	atMS     int64
}

// chatActive is a running call.
type chatActive struct {
	Name        string
	StartedAtMS int64
}

func newRunLog(id, sid string, first int64) *runLog {
	return &runLog{
		snap:      record.RunSnapshot{ID: id, SessionID: sid, Status: record.Created},
		tape:      tape.New(id, first),
		next:      first,
		started:   map[string]startedCall{},
		questions: map[string]chat.Call{},
		active:    map[string]chatActive{},
	}
}

// isOver refuses facts of a run that has ended.
func (r *runLog) isOver() error {
	return fault.New(fault.Closed, "session.write", "run %q has ended", r.snap.ID)
}

// held gives the redacting stream of one key.
func (r *runLog) held(k deltaKey, red *policy.Redactor) *policy.Stream {
	if r.pieces == nil {
		r.pieces = map[deltaKey]*policy.Stream{}
	}
	h := r.pieces[k]
	if h == nil {
		h = red.Stream()
		r.pieces[k] = h
	}
	return h
}

type heldPiece struct {
	key    deltaKey
	stream *policy.Stream
}

// takeHeld gives up the redacting streams that are over, in the order of their keys.
func (r *runLog) takeHeld(over func(deltaKey) bool) []heldPiece {
	var out []heldPiece
	for k, h := range r.pieces {
		if over(k) {
			out = append(out, heldPiece{k, h})
			delete(r.pieces, k)
		}
	}
	slices.SortFunc(out, func(a, b heldPiece) int {
		return cmp.Or(cmp.Compare(a.key.kind, b.key.kind), cmp.Compare(a.key.id, b.key.id))
	})
	return out
}

// events gives the envelopes in memory from number from on.
func (r *runLog) events(from int64, limit int) [][]byte {
	items := r.tape.Items(from, limit)
	return append(items, r.untold[:min(len(r.untold), limit-len(items))]...)
}

// backfill reads events of r that memory no longer holds from the journal.
func (s *sequencer) backfill(r *runLog) tape.Backfill {
	if s.kept == nil {
		return nil
	}
	return func(ctx context.Context, from int64) (func() (int64, []byte, error), func()) {
		s.view.RLock()
		start := r.start
		s.view.RUnlock()
		step, stop := iter.Pull2(s.kept.Read(ctx, start))
		return func() (int64, []byte, error) {
			for {
				line, err, ok := step()
				if !ok || err != nil {
					return 0, nil, err
				}
				if n, mine := numberIn(line, r.snap.ID); mine && n >= from {
					return n, line, nil
				}
			}
		}, stop
	}
}

var (
	eventHead = []byte(`{"version":1,`)
	metaHead  = []byte(`,"metadata":{"run_id":"`)
	metaSeq   = []byte(`","session_id":"`)
	seqHead   = []byte(`","sequence":`)
)

// numberIn gives the number of a journal line if it is an event of the run. An event
// as this version writes it has both near its end; others are decoded.
func numberIn(line []byte, run string) (int64, bool) {
	if i := bytes.LastIndex(line, metaHead); i >= 0 && bytes.HasPrefix(line, eventHead) {
		rest := line[i+len(metaHead):]
		if len(rest) > len(run) && string(rest[:len(run)]) == run && bytes.HasPrefix(rest[len(run):], metaSeq) {
			_, rest, _ = bytes.Cut(rest[len(run):], seqHead)
			digits, _, ok := bytes.Cut(rest, []byte(","))
			if n, err := strconv.ParseInt(string(digits), 10, 64); ok && err == nil {
				return n, true
			}
		}
	}
	l, err := record.Decode(line)
	if err != nil || l.Event == nil || l.Event.Metadata.RunID != run {
		return 0, false
	}
	return l.Event.Metadata.Sequence, true
}

func frame(p event.Payload) []byte {
	b, err := event.AppendFrame(nil, p)
	if err != nil { // the frames hold nothing that cannot be encoded
		b, _ = event.AppendFrame(nil, event.LogLine{Level: "error", Message: "frame: " + err.Error()})
	}
	return b
}

// gapFrame stands for events that are no longer kept.
func gapFrame(run string, from, to int64) []byte {
	return frame(event.Gap{RunID: run, From: from, To: to})
}
