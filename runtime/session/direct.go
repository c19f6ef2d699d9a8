package session

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/a3s-lab/liba3s/internal/safego"
	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/record"
	"github.com/a3s-lab/liba3s/runtime/run"
	"github.com/a3s-lab/liba3s/runtime/tool"
)

// ToolResult is the outcome of a direct call.
type ToolResult struct {
	Name      string          `json:"name"`
	Output    string          `json:"output"`
	ExitCode  int             `json:"exit_code"`
	Metadata  map[string]any  `json:"metadata,omitempty"`
	ErrorKind *chat.ErrorKind `json:"error_kind,omitempty"`
}

// Tool runs a tool for the host itself. The host is trusted: rules and questions are
// skipped, validation, time-outs, bounds, redaction and artifacts are not. It works
// beside a run and leaves no event, only a trace (S23). A failing tool is a result.
func (s *Session) Tool(ctx context.Context, name string, args json.RawMessage) (ToolResult, error) {
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	caller := ctx
	ctx, cancel, err := s.beginDirect(ctx)
	if err != nil {
		return ToolResult{}, err
	}
	defer cancel()
	e := *s.cfg.Engine
	e.Env.MayRead = func(string) bool { return true } // the rules are for the model
	t, ok := e.Tools.Get(name)
	if !ok {
		return toolResult(name, chat.Fail(chat.ErrorKind{Type: chat.NotFound, Message: "no tool of this name"}, "Unknown tool: "+name)), nil
	}
	name = t.Spec().Name
	if err := tool.Validate(t, args); err != nil {
		why := fault.From("", err).Message
		return toolResult(name, chat.Fail(chat.ErrorKind{Type: chat.InvalidArgument, Message: why}, fmt.Sprintf("invalid arguments for tool %s: %s", name, why))), nil
	}
	began := s.cfg.Source.NowMS()
	call := chat.Call{ID: s.cfg.Source.New("call"), Name: name, Args: args}
	var out run.ToolOutcome
	err = safego.Call("session.tool", func() (err error) {
		out, err = e.RunTool(ctx, call, t, func(string) {})
		return err
	})
	if err != nil {
		return ToolResult{}, withoutSecrets(fault.Of(fault.CodeTool, "session.tool", "%s: %v", name, err), s.cfg.Redact)
	}
	trace := traceOf(event.ToolEnd{Name: name, Output: out.Result.Output, ExitCode: out.Result.ExitCode, Metadata: out.Result.Metadata}, s.cfg.Source.NowMS()-began)
	facts := append(out.Facts, record.Fact{Mark: &record.Mark{Trace: &trace}})
	if err := s.seq.append(ctx, nil, false, facts...); err != nil { // the tool ran: that must not be lost with the record of it
		s.log(event.LogLine{Level: "error", Message: "the trace of tool " + name + " could not be kept: " + err.Error(), ErrorKind: string(fault.KindOf(err))})
	}
	if caller.Err() != nil { // who gave the call up is told that, not how the tool took it
		return ToolResult{}, fault.Ended(caller, "session.tool")
	}
	return cleanedValue(toolResult(name, out.Result), s.cfg.Redact)
}

// beginDirect ties a direct call to the life of the session.
func (s *Session) beginDirect(ctx context.Context) (context.Context, context.CancelFunc, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.admit(); err != nil {
		return nil, nil, err
	}
	s.direct.Add(1)
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.life, func() { cancel(context.Cause(s.life)) })
	return ctx, func() {
		stop()
		cancel(nil)
		s.direct.Done()
	}, nil
}

func toolResult(name string, r chat.Result) ToolResult {
	return ToolResult{Name: name, Output: r.Output, ExitCode: r.ExitCode, Metadata: r.Metadata, ErrorKind: r.Error}
}

// AddTool registers a tool of the host with this session.
func (s *Session) AddTool(t tool.Tool) error {
	if err := s.isOpen(); err != nil {
		return err
	}
	return s.cfg.Engine.Tools.Add(t)
}

// RemoveTool takes a tool of the host back.
func (s *Session) RemoveTool(name string) error { return s.cfg.Engine.Tools.Remove(name) }
