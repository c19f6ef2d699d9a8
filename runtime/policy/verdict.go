package policy

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/fault"
)

// Code is the reason of a Verdict, for programs.
type Code string

// The codes.
const (
	PermissionAllow         Code = "permission_allow"
	PermissionDeny          Code = "permission_deny"
	ConfirmationRejected    Code = "confirmation_rejected"
	ConfirmationTimeout     Code = "confirmation_timeout"
	ConfirmationUnavailable Code = "confirmation_unavailable"
	HookBlock               Code = "hook_block"
	InvalidArguments        Code = "invalid_arguments"
	MalformedArguments      Code = "malformed_arguments"
	DuplicateCall           Code = "duplicate_call"
	Recursion               Code = "recursion"
	UnknownTool             Code = "unknown_tool"
	Budget                  Code = "budget"
	CallCancelled           Code = "cancelled"
)

// Verdict is what the Gate says of a call.
type Verdict struct {
	Allowed bool
	Code    Code
	// Args are what the tool must be run with: a hook may have rewritten them.
	Args json.RawMessage
	// Effects of the call, once its arguments are known to be valid.
	Effects chat.Effects
	// Rule is the permission rule that decided, if one did.
	Rule string
	// Reason says why, in one line.
	Reason string
	// Result is what the model is told of a call that is not allowed.
	Result chat.Result
	// Denied says that permission_denied is to be told.
	Denied bool
	// Confirmation is the answer of the host, if it was asked and answered or timed
	// out.
	Confirmation *Answer
	// Budget is set when budget_threshold_hit is to be told: hard if it denies, else
	// soft.
	Budget *GuardAnswer
	// Cancelled says that the run was cancelled while the Gate decided.
	Cancelled bool
	// Fatal ends the run: a guard has had enough.
	Fatal *fault.Error
}

func (v Verdict) refuse(code Code, kind *chat.ErrorKind, reason, text string) Verdict {
	v.Allowed, v.Code, v.Reason = false, code, reason
	v.Result = chat.Result{Output: text, ExitCode: 1, Error: kind}
	return v
}

// refused is the machine-readable side of a call that somebody said no to.
func refused(reason string) *chat.ErrorKind {
	return &chat.ErrorKind{Type: chat.PermissionDenied, Message: reason}
}

func (v Verdict) cancelled(call Call) Verdict {
	v.Cancelled = true
	return v.refuse(CallCancelled, &chat.ErrorKind{Type: chat.WasCancelled, Op: call.Name}, "cancelled",
		fmt.Sprintf("Tool %q was cancelled before it started.", call.Name))
}

func (v Verdict) recursion(call Call) Verdict {
	reason := fmt.Sprintf("recursive %s calls are not allowed", call.Name)
	return v.refuse(Recursion, nil, reason, fmt.Sprintf("Not run: %s.", reason))
}

func (v Verdict) unknown(call Call) Verdict {
	text := "Unknown tool: " + call.Name
	return v.refuse(UnknownTool, nil, text, text)
}

func (v Verdict) duplicate(call Call, g *guards) Verdict {
	count, again := g.blocked()
	v = v.refuse(DuplicateCall, nil, "the same call was made too often in a row",
		fmt.Sprintf("Not run: this is the same %s call with the same arguments %d times in a row, and its result would not change. "+
			"Use the result you have, or do something else.", call.Name, count))
	if again {
		v.Fatal = fault.Of(fault.CodeLLM, "run.gate", "the model repeats the same %s call: %d times in a row; "+
			"raise duplicate_tool_call_threshold if that is meant", call.Name, count).With("tool", call.Name).With("guard", string(DuplicateCall))
	}
	return v
}

func (v Verdict) badArguments(call Call, code Code, err error, failures int, limits Limits) Verdict {
	v = v.refuse(code, &chat.ErrorKind{Type: chat.InvalidArgument, Message: err.Error()}, err.Error(),
		fmt.Sprintf("Invalid arguments for tool %q: %s. The call was not run, and the same arguments fail again: change them.", call.Name, err))
	if failures > 0 && failures > limits.MaxParseRetries {
		v.Fatal = fault.Of(fault.CodeLLM, "run.gate", "the model sent unusable tool arguments %d times in a row, last for %q: %v",
			failures, call.Name, err).With("tool", call.Name).With("guard", string(code))
	}
	return v
}

func (v Verdict) blocked(call Call, reason string) Verdict {
	if reason == "" {
		reason = "no reason given"
	}
	v.Denied = true
	return v.refuse(HookBlock, refused(reason), reason,
		fmt.Sprintf("Tool %q was denied by the pre-tool hook: %s. Do not retry it unchanged.", call.Name, reason))
}

func (v Verdict) denied(call Call, code Code) Verdict {
	v.Denied = true
	return v.refuse(code, refused(v.Reason), v.Reason,
		fmt.Sprintf("Permission denied for tool %q: %s. The call was not run; do not retry it unchanged.", call.Name, v.Reason))
}

func (v Verdict) rejected(call Call, reason string) Verdict {
	if reason == "" {
		reason = "no reason given"
	}
	return v.refuse(ConfirmationRejected, refused(reason), "rejected by the user: "+reason,
		fmt.Sprintf("The user rejected this %s call: %s. It was not run. Do not retry it unless you are asked to.", call.Name, reason))
}

func (v Verdict) timedOut(call Call, after time.Duration) Verdict {
	reason := fmt.Sprintf("the confirmation timed out after %s", after)
	return v.refuse(ConfirmationTimeout, refused(reason), reason,
		fmt.Sprintf("The confirmation of this %s call timed out after %s: nobody answered. It was not run.", call.Name, after))
}

func (v Verdict) overBudget(call Call, a GuardAnswer) Verdict {
	v.Budget = &a
	reason := fmt.Sprintf("budget exhausted on %s: %s", a.Resource, a.Reason)
	return v.refuse(Budget, nil, reason, fmt.Sprintf("Tool %q was not run: %s.", call.Name, reason))
}
