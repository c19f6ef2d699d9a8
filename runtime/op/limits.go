package op

import (
	"runtime"
	"runtime/debug"
	"sync"

	"github.com/a3s-lab/liba3s/internal/schema"
	"github.com/a3s-lab/liba3s/runtime/fault"
)

// The limits of the process are set once, so that two agents cannot fight over them.
var process struct {
	mu  sync.Mutex
	set *ProcessLimits
}

// setLimits applies the limits of the first open. What the shell that started the host
// set for the Go runtime never counts: a good guest does not read the environment.
func setLimits(l *ProcessLimits) error {
	process.mu.Lock()
	defer process.mu.Unlock()
	if process.set != nil {
		if l != nil && *l != *process.set {
			return fault.Of(fault.CodeInvalidRequest, "agent.open", "limits hold for the whole process and were set by an earlier open").With("field", "limits").With("reason", fault.BadValue)
		}
		return nil
	}
	if l == nil {
		return nil
	}
	if l.GCPercent < 0 || l.MemoryBytes < 0 || l.Threads < 0 {
		return fault.Of(fault.CodeInvalidRequest, "agent.open", "limits must not be negative").With("field", "limits").With("reason", fault.BadValue)
	}
	if l.GCPercent > 0 {
		debug.SetGCPercent(l.GCPercent)
	}
	if l.MemoryBytes > 0 {
		debug.SetMemoryLimit(l.MemoryBytes)
	}
	if l.Threads > 0 {
		runtime.GOMAXPROCS(l.Threads)
	}
	process.set = l
	return nil
}

// CheckRequest refuses a request beyond the bounds of the public contract: valid UTF-8,
// no NUL, at most 64 levels and 64 MiB.
func CheckRequest(op string, b []byte) error {
	if err := schema.Request.Check(b); err != nil {
		bad := fault.From(op, err)
		e := fault.Of(fault.CodeInvalidRequest, op, "%s", bad.Message).With("reason", fault.BadValue)
		if at, ok := bad.Details["byte"].(int); ok {
			if field := schema.Place(b, at); field != "" {
				e.Message = field + ": " + bad.Message + " of the request"
				e.With("field", field)
			}
		}
		return e
	}
	return nil
}

func badField(op, field, format string, args ...any) error {
	return fault.Of(fault.CodeInvalidRequest, op, field+" "+format, args...).With("field", field).With("reason", fault.BadValue)
}
