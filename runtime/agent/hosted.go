package agent

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/session"
	"github.com/a3s-lab/liba3s/runtime/tool"
	"github.com/a3s-lab/liba3s/runtime/tool/host"
)

// registration is an extension of the host.
type registration struct {
	spec host.Spec
}

// Registration takes an extension of the host back.
type Registration struct{ undo func() error }

// Close takes the extension back. Calls under way end as they would.
func (r *Registration) Close() error { return r.undo() }

// Register lets the host supply an extension for every session of the agent that opens
// afterwards and for those that are open. The one kind of this version is "tool".
func (a *Agent) Register(ctx context.Context, kind string, spec json.RawMessage) (*Registration, error) {
	s, err := decodeTool(kind, spec)
	if err != nil {
		return nil, err
	}
	if _, err := a.hostTool(ctx, s, ""); err != nil {
		return nil, err
	}
	a.mu.Lock()
	if a.closed {
		a.mu.Unlock()
		return nil, a.isClosed()
	}
	if a.tools[s.Name] != nil {
		a.mu.Unlock()
		return nil, fault.New(fault.Exists, "host.register", "tool %q is registered with this agent already", s.Name)
	}
	a.tools[s.Name] = &registration{s}
	var open []*session.Session
	for _, x := range a.sessions {
		open = append(open, x)
	}
	a.mu.Unlock()
	for _, x := range open {
		if _, err := a.RegisterSession(ctx, x, kind, spec); err != nil && fault.KindOf(err) != fault.Closed {
			a.forget(s.Name)
			return nil, err
		}
	}
	return &Registration{func() error { return a.forget(s.Name) }}, nil
}

func (a *Agent) forget(name string) error {
	a.mu.Lock()
	delete(a.tools, name)
	var open []*session.Session
	for _, x := range a.sessions {
		open = append(open, x)
	}
	a.mu.Unlock()
	for _, x := range open {
		if err := x.RemoveTool(name); err != nil && fault.KindOf(err) != fault.NotFound {
			return err
		}
	}
	return nil
}

// RegisterSession lets the host supply an extension for one session.
func (a *Agent) RegisterSession(ctx context.Context, s *session.Session, kind string, spec json.RawMessage) (*Registration, error) {
	d, err := decodeTool(kind, spec)
	if err != nil {
		return nil, err
	}
	t, err := a.hostTool(ctx, d, s.ID())
	if err != nil {
		return nil, err
	}
	if err := s.AddTool(t); err != nil {
		return nil, err
	}
	return &Registration{func() error { return s.RemoveTool(d.Name) }}, nil
}

func (a *Agent) hostTool(ctx context.Context, s host.Spec, sid string) (tool.Tool, error) {
	return host.Open(ctx, host.Config{Spec: s, Desk: a.desk, SessionID: sid})
}

// hostTools gives the agent's extensions for a new session.
func (a *Agent) hostTools(sid string) []tool.Tool {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []tool.Tool
	for _, r := range a.tools {
		if t, err := a.hostTool(context.Background(), r.spec, sid); err == nil { // it was checked before
			out = append(out, t)
		}
	}
	return out
}

func decodeTool(kind string, spec json.RawMessage) (host.Spec, error) {
	var s host.Spec
	if kind != "tool" {
		return s, fault.New(fault.Unsupported, "host.register", "host extensions of kind %q are not built in this version; \"tool\" is", kind).With("kind", kind)
	}
	d := json.NewDecoder(bytes.NewReader(spec))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return s, fault.New(fault.Invalid, "host.register", "the description of a tool: %v", err).With("field", "spec").With("reason", fault.BadType)
	}
	return s, nil
}
