// Package id makes the names of runs, sessions and calls, and tells the time. Both
// come from one Source, so that a host can fix them and get the same journal twice.
// It knows nothing of what it names. Floor 1.
package id

import (
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

// Source makes ids and tells the time. The zero value is the system: unguessable ids
// and the wall clock. Methods may be called concurrently; a Source must not be copied
// after the first use.
type Source struct {
	prefix  string // ids are prefix-0, prefix-1, ... if it is set
	next    atomic.Uint64
	fixed   bool
	fixedMS int64
}

// Fixed describes a deterministic Source; a nil field means the system's.
type Fixed struct {
	// Prefix makes ids <prefix>-0, <prefix>-1, ...
	Prefix *string
	// TimeMS is the only time the clock tells, in Unix milliseconds.
	TimeMS *int64
}

// NewSource gives a Source. A negative time or an empty prefix is refused.
func NewSource(f Fixed) (*Source, error) {
	s := new(Source)
	if f.Prefix != nil {
		if *f.Prefix == "" {
			return nil, fault.Option("host_env", fault.BadValue, "sequential_id_prefix must not be empty")
		}
		s.prefix = *f.Prefix
	}
	if f.TimeMS != nil {
		if *f.TimeMS < 0 {
			return nil, fault.Option("host_env", fault.BadValue, "fixed_time_ms must not be negative, got %d", *f.TimeMS)
		}
		s.fixed, s.fixedMS = true, *f.TimeMS
	}
	return s, nil
}

// Sequence gives a Source whose ids are prefix-0, prefix-1, ... and whose clock is the
// system's.
func Sequence(prefix string) *Source { return &Source{prefix: prefix} }

// New gives the next id: <kind>-<uuid>, or <prefix>-<n> from a deterministic Source,
// which numbers all kinds in one row.
func (s *Source) New(kind string) string {
	if s.prefix == "" {
		return New(kind)
	}
	return s.prefix + "-" + strconv.FormatUint(s.next.Add(1)-1, 10)
}

// Taken notes an id that is in use already, so that New does not give it again: the
// numbers of a deterministic Source begin anew with every one.
func (s *Source) Taken(id string) {
	digits, ok := strings.CutPrefix(id, s.prefix+"-")
	if s.prefix == "" || !ok {
		return
	}
	n, err := strconv.ParseUint(digits, 10, 63)
	if err != nil {
		return
	}
	for now := s.next.Load(); now <= n && !s.next.CompareAndSwap(now, n+1); now = s.next.Load() {
	}
}

// NowMS is the time in Unix milliseconds.
func (s *Source) NowMS() int64 {
	if s.fixed {
		return s.fixedMS
	}
	return time.Now().UnixMilli()
}

// Deterministic says that ids or time are fixed by the host.
func (s *Source) Deterministic() bool { return s.prefix != "" || s.fixed }

// New gives an unguessable id <kind>-<uuid>, or the bare uuid if kind is empty. Ids of
// one process sort by the time they were made.
func New(kind string) string {
	u := uuid.Must(uuid.NewV7()).String() // fails only where the system has no randomness, which Go treats as fatal
	if kind == "" {
		return u
	}
	return kind + "-" + u
}
