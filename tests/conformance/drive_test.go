package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	a3s "github.com/a3s-lab/liba3s"
	rt "github.com/a3s-lab/liba3s/runtime/agent"
)

// A driver is one way to the library. There are three: the Go package, the table of
// operations that the bindings of all languages use, and the functions of the C header.
type driver interface {
	open(p place, env map[string]string) (agent, error)
}

type agent interface {
	session(resume string, p place, options json.RawMessage) (session, error)
	// register takes an extension of the host; does plays a step of its handlers.
	register(x *extension, does func(line string) error) error
	// check says what the host's side found wrong, when the agent is closed.
	check(host []*extension) error
	sessions() []string
	// close lets the host's side end first.
	close(host []*extension) error
}

type session interface {
	// start begins a run and hands its events to sink, on a goroutine of its own, until
	// it ends; then sink.end is called.
	start(prompt string, history json.RawMessage, sink *sink) error
	send(prompt string, history json.RawMessage) (any, error)
	// call is an operation by the name it has after "session.".
	call(name string, params map[string]any) (any, error)
}

// patience bounds everything a scenario waits for.
var patience = 20 * time.Second

func bounded() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), patience)
}

// plain gives v as decoded JSON.
func plain(v any, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var out any
	return out, json.Unmarshal(b, &out)
}

// events pumps a stream into a sink.
func pump(seq func(func(a3s.Event, error) bool), sink *sink) {
	for e, err := range seq {
		if err != nil {
			sink.end(err)
			return
		}
		v, err := plain(e, nil)
		if err != nil {
			sink.end(err)
			return
		}
		sink.add(v)
	}
	sink.end(nil)
}

// facade drives package a3s.
type facade struct{}

type facadeAgent struct {
	*a3s.Agent
	tools []*a3s.Tool
	later []*extension // to be registered with sessions
	desk  *hostDesk    // counts, and knows what a handler does; it hears nothing
}

func (facade) open(p place, env map[string]string) (agent, error) {
	ctx, cancel := bounded()
	defer cancel()
	a, err := a3s.Create(ctx, "agent.acl", a3s.WithDir(p.dir), a3s.WithEnv(env))
	if err != nil {
		return nil, err
	}
	return &facadeAgent{Agent: a, desk: newDesk(nil, nil)}, nil
}

func (a *facadeAgent) session(resume string, p place, options json.RawMessage) (session, error) {
	ctx, cancel := bounded()
	defer cancel()
	o, err := rt.DecodeOptions(options)
	if err != nil {
		return nil, err
	}
	var s *a3s.Session
	if resume != "" {
		s, err = a.ResumeSession(ctx, resume, o)
	} else {
		s, err = a.Session(ctx, p.workspace, o)
	}
	if err != nil {
		return nil, err
	}
	for _, t := range a.tools {
		if _, err := s.RegisterTool(ctx, t); err != nil {
			return nil, err
		}
	}
	for _, x := range a.later {
		if _, err := s.RegisterExtension(ctx, x.Kind, x.Spec, x.handlers(a.desk)); err != nil {
			return nil, err
		}
	}
	return facadeSession{s}, nil
}

func (a *facadeAgent) register(x *extension, does func(string) error) error {
	a.desk.does = does
	if x.tool != nil && x.tool.plain() {
		made, err := x.goTool(&a.desk.calling)
		a.tools = append(a.tools, made)
		return err
	}
	for _, all := range x.Answers {
		if slices.ContainsFunc(all, func(a answer) bool { return a.Twice || a.Dies }) {
			return fmt.Errorf("%w: a function answers once, and does not close the control stream", errLacking)
		}
	}
	if x.On == "session" {
		a.later = append(a.later, x)
		return nil
	}
	ctx, cancel := bounded()
	defer cancel()
	_, err := a.RegisterExtension(ctx, x.Kind, x.Spec, x.handlers(a.desk))
	return err
}

func (a *facadeAgent) check(host []*extension) error { return a.desk.calling.check(host) }

func (a *facadeAgent) sessions() []string { return a.ListSessions() }

func (a *facadeAgent) close(host []*extension) error {
	a.desk.settle(host)
	ctx, cancel := bounded()
	defer cancel()
	return a.Close(ctx)
}

// errLacking says that a way to the library lacks what a scenario needs.
var errLacking = errors.New("package a3s cannot do this")

type facadeSession struct{ *a3s.Session }

func messages(history json.RawMessage) ([]a3s.Message, error) {
	if history == nil {
		return nil, nil
	}
	m := []a3s.Message{}
	return m, json.Unmarshal(history, &m)
}

func (s facadeSession) start(prompt string, history json.RawMessage, sink *sink) error {
	m, err := messages(history)
	if err != nil {
		return err
	}
	r, err := s.Start(prompt, m)
	if err != nil {
		return err
	}
	go pump(r.Events(0), sink)
	return nil
}

func (s facadeSession) send(prompt string, history json.RawMessage) (any, error) {
	ctx, cancel := bounded()
	defer cancel()
	m, err := messages(history)
	if err != nil {
		return nil, err
	}
	return plain(s.Send(ctx, prompt, m))
}

func (s facadeSession) call(name string, params map[string]any) (any, error) {
	ctx, cancel := bounded()
	defer cancel()
	word := func(key string) string { v, _ := params[key].(string); return v }
	switch name {
	case "history":
		return plain(s.History(), nil)
	case "runs":
		return plain(s.Runs(), nil)
	case "run_events":
		return plain(s.RunEvents(word("run_id")))
	case "info":
		return plain(s.Info(), nil)
	case "pending_confirmations":
		return plain(s.PendingConfirmations(), nil)
	case "tool_names":
		return plain(s.ToolNames(), nil)
	case "list_commands":
		return plain(s.Commands(), nil)
	case "current_run":
		r, ok := s.CurrentRun()
		if !ok {
			return nil, nil
		}
		return plain(r, nil)
	case "tool":
		return plain(s.Tool(ctx, word("name"), params["args"]))
	case "get_artifact":
		a, ok, err := s.Artifact(ctx, word("uri"))
		if !ok {
			return nil, err
		}
		return plain(a, err)
	case "confirm_tool_use":
		return s.ConfirmToolUse(word("tool_id"), params["approved"] == true, word("reason")), nil
	case "cancel_confirmations":
		return float64(s.CancelConfirmations()), nil
	case "cancel":
		return s.Cancel(), nil
	case "cancel_run":
		return s.CancelRun(word("run_id")), nil
	case "save":
		return nil, s.Save(ctx)
	case "close":
		return nil, s.Close(ctx)
	}
	return nil, fmt.Errorf("%w: %s", errLacking, name)
}
