package agent

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/a3s-lab/liba3s/internal/safego"
	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/host"
)

const (
	logDeadline = time.Second
	logQueue    = 256 // lines that wait for the host
)

// LogSpec describes a receiver of log lines.
type LogSpec struct {
	host.Extension
	// Level is the least level that it gets: debug, info, warn or error; absent is the
	// agent's.
	Level string `json:"level,omitempty"`
}

// Check refuses an unknown level.
func (s *LogSpec) Check() error {
	if s.Level != "" && !slices.Contains(levels, s.Level) {
		return fault.New(fault.Invalid, "host.register", "level %q is none of debug, info, warn, error", host.Cut(s.Level, 40)).With("field", "level").With("reason", fault.BadValue)
	}
	return s.Extension.Check()
}

// logSink hands lines to a receiver, one after the other. Lines that it cannot take in
// time are dropped and counted in the next one.
type logSink struct {
	line    *host.Line
	level   int // -1 is the agent's
	queue   chan event.LogLine
	dropped atomic.Int64
}

func openLogSink(_ context.Context, r *registration) (any, error) {
	return &logSink{line: r.line, level: slices.Index(levels, r.spec.(*LogSpec).Level), queue: make(chan event.LogLine, logQueue)}, nil
}

// startLogSink begins the one goroutine of a receiver.
func startLogSink(a *Agent, r *registration) func() {
	s := r.part.(*logSink)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	safego.Go("agent.log", nil, func() {
		defer close(done)
		for {
			select {
			case l := <-s.queue:
				s.write(ctx, a, l)
			case <-ctx.Done():
				return
			}
		}
	})
	return sync.OnceFunc(func() {
		cancel()
		<-done
	})
}

// write asks once. A line that fails is dropped: whoever would be told is this one.
func (s *logSink) write(ctx context.Context, a *Agent, l event.LogLine) {
	n := s.dropped.Swap(0)
	if n > 0 {
		fields := map[string]any{"dropped": n}
		for k, v := range l.Fields {
			fields[k] = v
		}
		l.Fields = fields
	}
	b, err := json.Marshal(l)
	if err != nil { // fields that cannot be encoded must not cost the line
		l.Fields = nil
		b = raw(l)
	}
	b = a.redact.Bytes(b)
	if err := s.line.Ask(ctx, host.Question{Op: "write", Params: json.RawMessage(b), SessionID: l.SessionID}, &struct{}{}); err != nil {
		s.dropped.Add(n + 1)
	}
}

// toSinks gives a line to the host's receivers without waiting for any.
func (a *Agent) toSinks(l event.LogLine) {
	level := slices.Index(levels, l.Level)
	for _, r := range a.registered("log", l.SessionID) {
		s := r.part.(*logSink)
		least := s.level
		if least < 0 {
			least = a.level
		}
		if level < least {
			continue
		}
		select {
		case s.queue <- l:
		default:
			s.dropped.Add(1)
		}
	}
}
