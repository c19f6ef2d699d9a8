// Package host is a permission checker that the host implements: it judges every call of
// the model beside the rules and says which tools a model is told of. Whoever does not
// answer, or answers what cannot be read, has said no. Floor 8.
package host

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/a3s-lab/liba3s/internal/safego"
	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/fault"
	desk "github.com/a3s-lab/liba3s/runtime/host"
	"github.com/a3s-lab/liba3s/runtime/policy"
)

// Bounds of what a checker is asked and says.
const (
	// Deadline of one request.
	Deadline = 5 * time.Second
	atOnce   = 16 // expose requests under way
	// MaxAnswer bounds one answer in bytes.
	MaxAnswer = 64 << 10
	maxReason = 4 << 10
)

// PermissionSpec describes a permission checker.
type PermissionSpec struct {
	desk.Extension
	// CheckOnly says that the host judges calls and has no word about which tools are
	// shown: "expose" is not asked, and every tool that the rules do not hide is shown.
	CheckOnly bool `json:"check_only,omitempty"`
}

// PermissionCheck are the parameters of "check".
type PermissionCheck struct {
	// Tool is the name of the tool, Args the arguments that it would be run with.
	Tool string          `json:"tool"`
	Args json.RawMessage `json:"args" jsonschema:"type=object"`
	// Effects say what the call may do.
	Effects   chat.Effects `json:"effects"`
	CallID    string       `json:"call_id"`
	SessionID string       `json:"session_id"`
}

// PermissionDecision is the result of "check".
type PermissionDecision struct {
	// Decision is "allow", "ask" or "deny".
	Decision policy.Decision `json:"decision"`
	// Reason is told to the model if the call is denied, and to the person who is asked.
	Reason string `json:"reason,omitempty"`
}

// PermissionExpose are the parameters of "expose".
type PermissionExpose struct {
	Tool      string `json:"tool"`
	SessionID string `json:"session_id"`
}

// PermissionVisible is the result of "expose".
type PermissionVisible struct {
	Visible *bool `json:"visible"`
}

// Config is a checker and the way to the host.
type Config struct {
	Spec      PermissionSpec
	Line      *desk.Line
	SessionID string
	// Failed takes what went wrong where there is no error to return. Never nil.
	Failed func(error)
}

// Checker asks the host. It may be used concurrently.
type Checker struct{ cfg Config }

var _ policy.Checker = (*Checker)(nil)

// Open makes a checker. It asks nothing.
func Open(_ context.Context, cfg Config) (*Checker, error) { return &Checker{cfg}, nil }

// Check implements policy.Checker.
func (c *Checker) Check(ctx context.Context, q policy.Checked) (policy.Ruling, error) {
	var a PermissionDecision
	err := c.cfg.Line.Ask(ctx, desk.Question{
		Op: "check", SessionID: c.cfg.SessionID, Max: MaxAnswer,
		Params: PermissionCheck{Tool: q.Call.Name, Args: q.Call.Args, Effects: q.Effects, CallID: q.Call.ID, SessionID: c.cfg.SessionID},
	}, &a)
	if err != nil {
		return policy.Ruling{}, err
	}
	switch a.Decision {
	case policy.Allow, policy.Ask, policy.Deny:
		return policy.Ruling{Decision: a.Decision, Reason: desk.Cut(a.Reason, maxReason)}, nil
	}
	return policy.Ruling{}, fault.New(fault.Invalid, "host.permission", "%q is none of allow, ask, deny", desk.Cut(string(a.Decision), 80))
}

// Expose implements policy.Checker. The tools are asked for side by side.
func (c *Checker) Expose(ctx context.Context, tools []string) []bool {
	shown := make([]bool, len(tools))
	if c.cfg.Spec.CheckOnly {
		for i := range shown {
			shown[i] = true
		}
		return shown
	}
	slots := make(chan struct{}, atOnce)
	var asked sync.WaitGroup
	for i, name := range tools {
		slots <- struct{}{}
		asked.Add(1)
		safego.Go("host.permission", nil, func() {
			defer asked.Done()
			defer func() { <-slots }()
			shown[i] = c.visible(ctx, name)
		})
	}
	asked.Wait()
	return shown
}

func (c *Checker) visible(ctx context.Context, name string) bool {
	var a PermissionVisible
	err := c.cfg.Line.Ask(ctx, desk.Question{
		Op: "expose", SessionID: c.cfg.SessionID, Max: MaxAnswer, Params: PermissionExpose{name, c.cfg.SessionID},
	}, &a)
	if err == nil && a.Visible == nil {
		err = fault.New(fault.Invalid, "host.permission", "the answer says nothing of visible")
	}
	if err != nil {
		if ctx.Err() == nil {
			c.cfg.Failed(fmt.Errorf("permission checker %q: expose %q: %w", c.cfg.Line.Name(), name, err))
		}
		return false
	}
	return *a.Visible
}
