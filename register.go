package a3s

import (
	"context"
	"encoding/json"
	"reflect"

	"github.com/a3s-lab/liba3s/runtime/agent"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/op"
)

// owner is what agents and sessions share: what is registered with an agent serves all its
// sessions, with a session that one alone.
type owner struct {
	on    op.Handle
	agent *agent.Agent
}

// PermissionChecker judges the calls of the model before they run. Whatever goes wrong in
// it denies the call.
type PermissionChecker interface {
	// Check judges a call. It may be asked from several goroutines at once.
	Check(ctx context.Context, call PermissionCheck) (PermissionDecision, error)
}

// PermissionExposer is a PermissionChecker that also says which tools the model is told
// of; an error hides the tool.
type PermissionExposer interface {
	PermissionChecker
	// Expose is asked once a run for each tool.
	Expose(ctx context.Context, tool PermissionExpose) (bool, error)
}

// PermissionCheckerFunc is a function as a PermissionChecker.
type PermissionCheckerFunc func(ctx context.Context, call PermissionCheck) (PermissionDecision, error)

// Check implements PermissionChecker.
func (f PermissionCheckerFunc) Check(ctx context.Context, call PermissionCheck) (PermissionDecision, error) {
	return f(ctx, call)
}

// ContextProvider knows the background of prompts.
type ContextProvider interface {
	// Query gives background to a prompt, at most as many items as it asks for; it is
	// asked at the start of a run.
	Query(ctx context.Context, q ContextQuery) ([]ContextItem, error)
}

// ContextProviderFunc is a function as a ContextProvider.
type ContextProviderFunc func(ctx context.Context, q ContextQuery) ([]ContextItem, error)

// Query implements ContextProvider.
func (f ContextProviderFunc) Query(ctx context.Context, q ContextQuery) ([]ContextItem, error) {
	return f(ctx, q)
}

// RegisterPermissionChecker has every call of the model judged by your program. With a
// permission policy the strictest word of both counts; without one this takes the place of
// the default. A failure, and no answer within 5 seconds, is a denial. name tells several
// apart.
func (o *owner) RegisterPermissionChecker(ctx context.Context, name string, c PermissionChecker, options ...ExtensionOption) (*Registration, error) {
	if none(c) {
		return nil, missing("permission", "checker")
	}
	spec, handlers := map[string]any{"name": name}, map[string]Handler{
		"check": typed(func(ctx context.Context, p PermissionCheck) (any, error) { return c.Check(ctx, p) }),
	}
	if e, ok := c.(PermissionExposer); ok {
		handlers["expose"] = typed(func(ctx context.Context, p PermissionExpose) (any, error) {
			visible, err := e.Expose(ctx, p)
			return agent.HostPermissionVisible{Visible: &visible}, err
		})
	} else {
		spec["check_only"] = true
	}
	return o.supply(ctx, "permission", spec, options, handlers)
}

// RegisterContextProvider gives background to prompts, which the system prompt quotes as
// untrusted data. What fails or takes more than 5 seconds is left out.
func (o *owner) RegisterContextProvider(ctx context.Context, name string, p ContextProvider, options ...ExtensionOption) (*Registration, error) {
	if none(p) {
		return nil, missing("context", "provider")
	}
	return o.supply(ctx, "context", map[string]any{"name": name}, options, map[string]Handler{
		"query": typed(func(ctx context.Context, q agent.HostContextQuery) (any, error) {
			items, err := p.Query(ctx, q)
			if items == nil {
				items = []ContextItem{}
			}
			return agent.HostContextResult{Items: items}, err
		}),
	})
}

// RegisterCommand answers prompts that begin with /name; no model is asked. answer gets
// what follows the name, and gives the text. description is what /help and Commands say.
// It has 5 seconds.
func (o *owner) RegisterCommand(ctx context.Context, name, description string, answer func(ctx context.Context, args string, c CommandContext) (string, error), options ...ExtensionOption) (*Registration, error) {
	if answer == nil {
		return nil, missing("command", "function")
	}
	return o.supply(ctx, "command", map[string]any{"name": name, "description": description}, options, map[string]Handler{
		"run": typed(func(ctx context.Context, p agent.HostCommandRequest) (any, error) {
			text, err := answer(ctx, p.Args, p.Ctx)
			return agent.HostCommandResult{Text: &text}, err
		}),
	})
}

// RegisterLog receives the library's log lines, one at a time. Lines that it does not take
// within a second are dropped, and counted in the next one. name tells several apart.
func (o *owner) RegisterLog(ctx context.Context, name string, write func(ctx context.Context, line LogLine), options ...ExtensionOption) (*Registration, error) {
	if write == nil {
		return nil, missing("log", "function")
	}
	return o.supply(ctx, "log", map[string]any{"name": name}, options, map[string]Handler{
		"write": typed(func(ctx context.Context, l LogLine) (any, error) {
			write(ctx, l)
			return nil, nil
		}),
	})
}

// RegisterTool gives a tool to the model. The error is a *Error, ALREADY_EXISTS for a name
// that is taken.
func (o *owner) RegisterTool(ctx context.Context, t *Tool) (*Registration, error) {
	if t == nil {
		return nil, missing("tool", "tool")
	}
	return o.supply(ctx, "tool", t.spec, nil, map[string]Handler{"call": t.call})
}

func (o *owner) supply(ctx context.Context, kind string, spec map[string]any, options []ExtensionOption, handlers map[string]Handler) (*Registration, error) {
	return o.RegisterExtension(ctx, kind, describe(spec, options), handlers)
}

// typed makes a Handler of a function that wants the parameters in their type.
func typed[P any](fn func(ctx context.Context, p P) (any, error)) Handler {
	return func(ctx context.Context, params json.RawMessage, _ func(any) error) (any, error) {
		var p P
		if err := json.Unmarshal(params, &p); err != nil {
			return nil, err
		}
		return fn(ctx, p)
	}
}

// none says that there is nothing to call.
func none(v any) bool {
	r := reflect.ValueOf(v)
	return !r.IsValid() || (r.Kind() == reflect.Func || r.Kind() == reflect.Pointer) && r.IsNil()
}

func missing(kind, what string) error {
	return fault.Of(fault.CodeInvalidRequest, "host.register", "the %s of a %s is nil", what, kind).With("field", "handlers").With("reason", fault.BadValue)
}
