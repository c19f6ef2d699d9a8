// Package policy decides, in one Gate, whether a tool call may run: guards, schema,
// hooks, permission rules, confirmation and budget, in that order; and it takes known
// secrets out of texts. It executes nothing and tells nothing; run tells the events,
// session asks and redacts. Floor 3.
package policy

import (
	"context"
	"encoding/json"
	"time"

	"github.com/a3s-lab/liba3s/runtime/chat"
)

// Decision is what rules say of a call.
type Decision string

// The decisions.
const (
	Allow Decision = "allow"
	Ask   Decision = "ask"
	Deny  Decision = "deny"
)

// Asker puts a question to the host and waits for the answer (session implements it).
type Asker interface {
	// Ask tells confirmation_required and returns when the host answered, the time-out
	// of the confirmation policy ran out, or ctx was cancelled. It is called on the
	// run's goroutine, with no lock held. An error means that the question could not
	// be told; the Gate then denies.
	Ask(ctx context.Context, q Question) (Answer, error)
}

// Question is what a person needs to decide.
type Question struct {
	Call    chat.Call
	Effects chat.Effects
	Timeout time.Duration // 0 waits for ever
	Action  TimeoutAction
}

// Answer is what came of a Question.
type Answer struct {
	Approved bool
	Reason   string
	TimedOut bool
}

// TimeoutAction is what happens when nobody answers in time.
type TimeoutAction string

// The time-out actions.
const (
	Reject      TimeoutAction = "reject"
	AutoApprove TimeoutAction = "auto_approve"
)

// Hook looks at a call before the rules do and may block it or rewrite its arguments.
type Hook interface {
	// PreToolUse is called once per call, in call order. A nil Args in the answer keeps
	// the arguments; others are validated again. An error blocks the call.
	PreToolUse(ctx context.Context, call chat.Call) (HookAnswer, error)
}

// HookAnswer is what a hook says.
type HookAnswer struct {
	Block  bool
	Reason string
	Args   json.RawMessage
}

// Checker is the host's own opinion of every call. With a permission policy the
// strictest word of both counts; without one the checker's word takes the place of the
// default table. Methods may be called concurrently.
type Checker interface {
	// Check judges one call, after the pre-tool hook and before a question. An error
	// denies.
	Check(ctx context.Context, q Checked) (Ruling, error)
	// Expose says of each tool, in order, whether a model is told of it. It is called
	// once a run. A tool that nothing can be said of is not shown.
	Expose(ctx context.Context, tools []string) []bool
}

// Checked is the call that a Checker judges.
type Checked struct {
	Call    chat.Call
	Effects chat.Effects
}

// Guard keeps a budget.
type Guard interface {
	// BeforeTool is asked last, when everything else allowed the call. An error denies.
	BeforeTool(ctx context.Context, name string) (GuardAnswer, error)
}

// GuardAnswer is what a budget guard says.
type GuardAnswer struct {
	Deny     bool
	Soft     bool // told as budget_threshold_hit, the call goes on
	Resource string
	Reason   string
	Consumed float64
	Limit    float64
	Message  string
}
