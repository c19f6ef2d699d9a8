package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

// ConfirmationPolicy is the confirmation_policy of a session: whether a person can be
// asked, how long an answer is waited for, and what happens without one.
type ConfirmationPolicy struct {
	// Enabled says that the host answers confirmation_required.
	Enabled bool `json:"enabled"`
	// DefaultTimeoutMS is how long an answer is waited for; nil is 30000, 0 waits for
	// ever.
	DefaultTimeoutMS *int64 `json:"default_timeout_ms,omitempty"`
	// TimeoutAction is "reject" (also when empty) or "auto_approve".
	TimeoutAction string `json:"timeout_action,omitempty"`
	// YoloLanes names lanes whose calls run without a question where rules would ask:
	// "control", "query", "execute", "generate". What a tool itself demands to have
	// confirmed is still asked.
	YoloLanes []string `json:"yolo_lanes,omitempty"`
}

// UnmarshalJSON reads a policy; a name that is not one of the policy's is an error.
func (p *ConfirmationPolicy) UnmarshalJSON(b []byte) error {
	type same ConfirmationPolicy
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	var q same
	if err := dec.Decode(&q); err != nil {
		return fmt.Errorf("confirmation_policy: %w", err)
	}
	*p = ConfirmationPolicy(q)
	return nil
}

// Lane groups tools by what they cost.
type Lane string

// The lanes.
const (
	ControlLane  Lane = "control"
	QueryLane    Lane = "query"
	ExecuteLane  Lane = "execute"
	GenerateLane Lane = "generate"
)

var lanes = map[string]Lane{
	"read": QueryLane, "glob": QueryLane, "ls": QueryLane, "grep": QueryLane, "list_files": QueryLane,
	"search": QueryLane, "web_fetch": QueryLane, "web_search": QueryLane,
}

// LaneOf gives the lane of a tool: query for the tools that only look, execute for all
// others.
func LaneOf(tool string) Lane {
	if l, ok := lanes[strings.ToLower(tool)]; ok {
		return l
	}
	return ExecuteLane
}

// Confirmation is a checked ConfirmationPolicy. It does not change.
type Confirmation struct {
	Enabled bool
	Timeout time.Duration // 0 waits for ever
	Action  TimeoutAction
	yolo    []Lane
}

// DefaultTimeout is how long an answer is waited for when the policy does not say.
const DefaultTimeout = 30 * time.Second

const maxTimeoutMS = int64(10 * 365 * 24 * time.Hour / time.Millisecond)

// Compile checks the policy. The error is a *fault.Error for the option
// confirmation_policy.
func (p ConfirmationPolicy) Compile() (*Confirmation, error) {
	bad := func(format string, args ...any) error {
		return fault.Option("confirmation_policy", fault.BadValue, format, args...)
	}
	c := &Confirmation{Enabled: p.Enabled, Timeout: DefaultTimeout, Action: Reject}
	if ms := p.DefaultTimeoutMS; ms != nil {
		if *ms < 0 || *ms > maxTimeoutMS {
			return nil, bad("default_timeout_ms is %d; use 0 to wait for ever, or up to %d", *ms, maxTimeoutMS)
		}
		c.Timeout = time.Duration(*ms) * time.Millisecond
	}
	switch strings.ReplaceAll(strings.ToLower(strings.TrimSpace(p.TimeoutAction)), "-", "_") {
	case "", "reject":
	case "auto_approve", "autoapprove":
		c.Action = AutoApprove
	default:
		return nil, bad("timeout_action %q is none of reject, auto_approve", p.TimeoutAction)
	}
	for _, name := range p.YoloLanes {
		switch l := Lane(strings.ToLower(strings.TrimSpace(name))); l {
		case ControlLane, QueryLane, ExecuteLane, GenerateLane:
			c.yolo = append(c.yolo, l)
		default:
			return nil, bad("yolo_lanes: %q is none of control, query, execute, generate", name)
		}
	}
	return c, nil
}

// skips says whether calls of a tool run where the rules would ask.
func (c *Confirmation) skips(tool string) bool { return slices.Contains(c.yolo, LaneOf(tool)) }
