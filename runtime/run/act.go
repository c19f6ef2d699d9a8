package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/a3s-lab/liba3s/internal/safego"
	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/policy"
	"github.com/a3s-lab/liba3s/runtime/record"
	"github.com/a3s-lab/liba3s/runtime/tool"
)

// job is one call on its way from the Gate to its tool_end.
type job struct {
	call    chat.Call
	lasting bool // it has effects: its outcome is flushed
	result  chat.Result
	extra   []record.Fact // facts that go with the outcome
	done    chan struct{}
}

// act gates and executes the calls of one turn. Gate, question and intent come in call
// order; read-only calls overlap; a call with effects waits for those before it and
// lets nothing start beside it; outcomes are told in call order (S20).
func (s *state) act(ctx context.Context, calls []chat.Call) error {
	b := &batch{limit: make(chan struct{}, max(1, s.Limits.Parallel))}
	defer b.wait()
	for i, call := range calls {
		err := s.start(ctx, b, call)
		if err == nil {
			continue
		}
		for _, rest := range calls[i+1:] { // every call of the message gets an outcome
			b.open = append(b.open, refused(rest, cancelled(rest, notStarted)))
		}
		if writing := s.finish(ctx, b); writing != nil {
			return writing
		}
		return err
	}
	if err := s.finish(ctx, b); err != nil {
		return err
	}
	return ctx.Err() // a run that was stopped while tools ran begins no further turn
}

// giveUp ends a run that calls tools without end. The calls that do not run any more get
// outcomes, since a transcript with open calls is refused by providers (case SESS-01).
func (s *state) giveUp(ctx context.Context, calls []chat.Call) error {
	rounds := s.Limits.MaxToolRounds
	b := new(batch)
	for _, c := range calls {
		b.open = append(b.open, refused(c, cancelled(c, "not started, since the limit of tool rounds is reached")))
	}
	if err := s.finish(ctx, b); err != nil {
		return err
	}
	return fault.Of(fault.CodeLLM, "run", "still calling tools after %d rounds; raise max_tool_rounds or ask for less", rounds).With("max_tool_rounds", rounds).With("guard", "max_tool_rounds")
}

// batch is what is under way of one turn.
type batch struct {
	open  []*job // without a told outcome, in call order
	limit chan struct{}
}

// wait waits for what is left when the run breaks off: no tool outlives its run.
func (b *batch) wait() {
	for _, j := range b.open {
		<-j.done
	}
}

// start takes one call through the Gate and begins it. Whatever comes of it, the call
// is in the batch or told.
func (s *state) start(ctx context.Context, b *batch, call chat.Call) error {
	refuse := func(r chat.Result, why error) error {
		b.open = append(b.open, refused(call, r))
		return why
	}
	if ctx.Err() != nil {
		return refuse(cancelled(call, notStarted), ctx.Err())
	}
	if s.tainted[call.ID] {
		const why = "its arguments hold a credential of the configuration"
		r := chat.Fail(chat.ErrorKind{Type: chat.PermissionDenied, Message: why}, fmt.Sprintf("Permission denied for tool %q: %s. The call was not run; leave the credential out.", call.Name, why))
		return refuse(r, s.log.Write(ctx, record.Fact{Event: event.PermissionDenied{ToolID: call.ID, ToolName: call.Name, Args: call.Args, Reason: why}}))
	}
	t, known := s.Tools.Get(call.Name)
	v := s.gate.Check(ctx, s.question(call, t, known))
	if err := s.verdict(ctx, call, v); err != nil {
		return refuse(cancelled(call, notStarted), err)
	}
	switch {
	case !v.Allowed && ctx.Err() != nil:
		return refuse(cancelled(call, "the question was withdrawn"), ctx.Err())
	case !v.Allowed && v.Fatal != nil:
		return refuse(v.Result, v.Fatal)
	case !v.Allowed:
		return refuse(v.Result, nil)
	}
	call.Args = v.Args
	parallel := v.Effects.ReadOnly() && v.Effects.Idempotent
	if !parallel {
		if err := s.finish(ctx, b); err != nil {
			return refuse(cancelled(call, notStarted), err)
		}
	}
	if err := s.intend(ctx, call, v.Effects); err != nil {
		return refuse(cancelled(call, notStarted), err)
	}
	j := &job{call: call, lasting: !v.Effects.ReadOnly(), done: make(chan struct{})}
	b.open = append(b.open, j)
	if !parallel {
		s.execute(ctx, j, t)
		return s.finish(ctx, b)
	}
	b.limit <- struct{}{}
	safego.Go("run.tool", nil, func() {
		defer func() { <-b.limit }()
		s.execute(ctx, j, t)
	})
	return nil
}

// question is what the Gate needs to know of a call.
func (s *state) question(call chat.Call, t tool.Tool, known bool) policy.Call {
	q := policy.Call{Call: call, Known: known}
	if known {
		q.Call.Name = t.Spec().Name
		q.Validate = func(args json.RawMessage) error {
			if f := fault.From("", tool.Validate(t, args)); f != nil {
				return errors.New(f.Message) // words for the model, without the prefix of the code
			}
			return nil
		}
		q.Effects = t.Effects
	}
	return q
}

// verdict tells what the Gate decided beside yes and no.
func (s *state) verdict(ctx context.Context, call chat.Call, v policy.Verdict) error {
	var facts []record.Fact
	if b := v.Budget; b != nil {
		kind := "soft"
		if b.Deny {
			kind = "hard"
		}
		facts = append(facts, record.Fact{Event: event.BudgetThresholdHit{Resource: b.Resource, Kind: kind, Consumed: b.Consumed, Limit: b.Limit, Message: b.Message}})
	}
	if v.Denied {
		facts = append(facts, record.Fact{Event: event.PermissionDenied{ToolID: call.ID, ToolName: call.Name, Args: v.Args, Reason: v.Reason}})
	}
	if len(facts) == 0 {
		return nil
	}
	return s.log.Write(ctx, facts...)
}

// intend writes the intent: flushed if the call has effects, so that no effect is
// without a trace after a crash.
func (s *state) intend(ctx context.Context, call chat.Call, e chat.Effects) error {
	f := record.Fact{Event: event.ToolExecutionStart{ID: call.ID, Name: call.Name, Args: call.Args, ReadOnly: e.ReadOnly()}}
	if e.ReadOnly() {
		return s.log.Write(ctx, f)
	}
	return s.log.Commit(ctx, f)
}

// refused is a job that ended before it ran.
func refused(call chat.Call, r chat.Result) *job {
	j := &job{call: call, result: r, done: make(chan struct{})}
	close(j.done)
	return j
}

const notStarted = "not started"

func cancelled(call chat.Call, why string) chat.Result {
	return chat.Fail(chat.ErrorKind{Type: chat.WasCancelled, Op: call.Name}, fmt.Sprintf("tool %s cancelled: %s", call.Name, why))
}

// execute runs the tool and prepares its outcome. A broken tool does not end the run.
func (s *state) execute(ctx context.Context, j *job, t tool.Tool) {
	defer close(j.done)
	if ctx.Err() != nil { // between intent and start
		j.result = cancelled(j.call, notStarted)
		return
	}
	err := safego.Call("run.tool", func() error {
		out, err := s.RunTool(ctx, j.call, t, func(delta string) {
			_ = s.log.Delta(ctx, event.ToolOutputDelta{ID: j.call.ID, Name: j.call.Name, Delta: delta}) // the next fact fails too
		})
		j.result, j.extra = out.Result, out.Facts
		return err
	})
	if f := fault.From("run.tool", err); f != nil {
		j.result = chat.Result{Output: cut(s.Redact("Tool execution error: "+f.Message), maxBroken), ExitCode: 1}
		s.Log(event.LogLine{Level: "error", Message: "tool " + j.call.Name + " broke: " + f.Message, RunID: s.in.RunID, ErrorKind: string(f.Kind), Fields: f.Details})
	}
}

// maxBroken bounds what the model is told of a tool that broke, in bytes.
const maxBroken = 4 << 10

// ToolOutcome is what came of one executed tool: the bounded result, and the facts that
// belong to it.
type ToolOutcome struct {
	Result chat.Result
	Facts  []record.Fact
}

// RunTool executes a call that was decided on, within its time-out, and bounds,
// redacts and keeps its output. emit gets output while it runs, from one goroutine at
// a time. An error says that the tool is broken; it may panic too.
func (e *Engine) RunTool(ctx context.Context, call chat.Call, t tool.Tool, emit func(string)) (ToolOutcome, error) {
	env := e.Env
	env.Call, env.Timeout = call, e.Limits.ToolTimeout
	var mu sync.Mutex
	over := false
	env.Emit = func(delta string) {
		mu.Lock()
		defer mu.Unlock()
		if !over && delta != "" {
			emit(delta)
		}
	}
	result, err := e.within(ctx, env, call, t)
	mu.Lock()
	over = true
	mu.Unlock()
	if err != nil {
		return ToolOutcome{}, err
	}
	result, kept, err := e.Artifacts.Bound(context.WithoutCancel(ctx), t.Spec().Name, result)
	if err != nil { // the result is bounded and says so
		e.Log(event.LogLine{Level: "warn", Message: "an output could not be kept: " + err.Error(), ErrorKind: string(fault.KindOf(err))})
	}
	out := ToolOutcome{Result: result}
	for i := range kept {
		out.Facts = append(out.Facts, record.Fact{Mark: &record.Mark{Artifact: &kept[i]}})
	}
	return out, nil
}

// within runs the tool under its time-out. A tool that ends for that reason is a failed
// result; so is one that was cancelled.
func (e *Engine) within(ctx context.Context, env tool.Env, call chat.Call, t tool.Tool) (chat.Result, error) {
	inner := ctx
	if e.Limits.ToolTimeout > 0 {
		var cancel context.CancelFunc
		inner, cancel = context.WithTimeout(ctx, e.Limits.ToolTimeout)
		defer cancel()
	}
	result, err := t.Run(inner, env, call.Args)
	switch {
	case err == nil:
		return result, nil
	case ctx.Err() != nil:
		r := cancelled(call, "the run was stopped")
		r.Output = joined(result.Output, r.Output)
		return r, nil
	case inner.Err() != nil:
		ms := e.Limits.ToolTimeout.Milliseconds()
		r := chat.Fail(chat.ErrorKind{Type: chat.TimedOut, Op: call.Name, DurationMS: ms}, joined(result.Output, fmt.Sprintf("tool %s timed out after %d ms", call.Name, ms)))
		return r, nil
	}
	f := fault.From("tool."+call.Name, err)
	if f.Kind == fault.Internal {
		return result, f
	}
	return chat.Result{Output: "Tool execution error: " + f.Error(), ExitCode: 1}, nil
}

func joined(a, b string) string {
	if a == "" {
		return b
	}
	return a + "\n" + b
}

// finish waits for what is under way and tells the outcomes in order; those of calls
// with effects are flushed.
func (s *state) finish(ctx context.Context, b *batch) error {
	for len(b.open) > 0 {
		j := b.open[0]
		<-j.done
		b.open = b.open[1:]
		r := j.result
		end := event.ToolEnd{ID: j.call.ID, Name: j.call.Name, Args: j.call.Args, Output: r.Output, ExitCode: r.ExitCode, Metadata: r.Metadata, ErrorKind: r.Error}
		tell := s.log.Write
		if j.lasting {
			tell = s.log.Commit
		}
		if err := tell(ctx, append(j.extra, record.Fact{Event: end})...); err != nil {
			return err
		}
		s.messages = chat.Answer(s.messages, j.call.ID, r.Output, r.ExitCode != 0)
	}
	return nil
}
