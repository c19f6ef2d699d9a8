package conformance

import (
	"context"
	"encoding/json"

	a3s "github.com/a3s-lab/liba3s"
	rt "github.com/a3s-lab/liba3s/runtime/agent"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/op"
	rs "github.com/a3s-lab/liba3s/runtime/session"
)

// table drives the table of operations.
type table struct{}

type tableAgent struct {
	*rt.Agent
	desk  *hostDesk
	later []*extension // to be registered with sessions
}

func (table) open(p place, env map[string]string) (agent, error) {
	ctx, cancel := bounded()
	defer cancel()
	request, err := json.Marshal(op.AgentOpen{ACLPath: "agent.acl", Env: env, Cwd: p.dir})
	if err != nil {
		return nil, err
	}
	a, err := op.OpenAgent(ctx, request)
	if err != nil {
		return nil, err
	}
	return &tableAgent{Agent: a}, nil
}

func (a *tableAgent) session(resume string, p place, options json.RawMessage) (session, error) {
	ctx, cancel := bounded()
	defer cancel()
	r := op.SessionOpen{Resume: resume, Cwd: p.dir, Options: options}
	if resume == "" {
		r.Workspace = p.workspace
	}
	request, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	s, err := op.OpenSession(ctx, a.Agent, request)
	if err != nil {
		return nil, err
	}
	for _, x := range a.later {
		if _, err := op.HostRegister(ctx, s, x.Kind, x.Spec); err != nil {
			return nil, err
		}
	}
	return tableSession{s}, nil
}

func (a *tableAgent) register(x *extension, does func(string) error) error {
	ctx := context.Background()
	if a.desk == nil {
		st, err := op.OpenStream(ctx, a.Agent, nil)
		if err != nil {
			return err
		}
		a.desk = newDesk(a, does)
		a.desk.leave = st.Close
		go a.desk.listen(st)
	}
	a.desk.add(x)
	if x.On == "session" {
		a.later = append(a.later, x)
		return nil
	}
	_, err := op.HostRegister(ctx, a.Agent, x.Kind, x.Spec)
	return err
}

// listen hears the control stream to its end.
func (d *hostDesk) listen(st *op.Stream) {
	defer close(d.done)
	defer st.Close()
	for e, err := range read(st) {
		switch fault.KindOf(err) {
		case "":
			d.hear(e)
		case fault.Closed, fault.Handle: // by the host that dies
		default:
			d.blame(err)
		}
	}
}

func (a *tableAgent) chunk(request uint64, piece []byte) error {
	return op.HostChunk(context.Background(), a.Agent, request, piece)
}

func (a *tableAgent) reply(request uint64, answer []byte) error {
	return op.HostReply(context.Background(), a.Agent, request, answer)
}

func (a *tableAgent) sessions() []string { return a.ListSessions() }

func (a *tableAgent) close(host []*extension) error {
	if a.desk != nil {
		a.desk.settle(host)
	}
	ctx, cancel := bounded()
	defer cancel()
	err := op.Close(ctx, a.Agent)
	if a.desk != nil {
		a.desk.wait()
	}
	return err
}

func (a *tableAgent) check(host []*extension) error {
	if a.desk == nil {
		return nil
	}
	return a.desk.calling.check(host)
}

type tableSession struct{ *rs.Session }

func (s tableSession) start(prompt string, history json.RawMessage, sink *sink) error {
	ctx := context.Background()
	r, err := op.StartRun(ctx, s.Session, request(prompt, history))
	if err != nil {
		return err
	}
	st, err := op.OpenStream(ctx, r, nil)
	if err != nil {
		return err
	}
	go func() {
		defer st.Close()
		pump(read(st), sink)
	}()
	return nil
}

func request(prompt string, history json.RawMessage) []byte {
	m := map[string]any{"prompt": prompt}
	if history != nil {
		m["history"] = history
	}
	return []byte(encode(m))
}

// read yields the events and frames of a stream.
func read(st *op.Stream) func(func(a3s.Event, error) bool) {
	return func(yield func(a3s.Event, error) bool) {
		buf := make([]byte, 512) // small, so that it has to grow
		for {
			n, needed, err := st.Next(context.Background(), 64, buf)
			switch fault.KindOf(err) {
			case fault.Buffer:
				buf = make([]byte, needed)
				continue
			case fault.End:
				return
			}
			var batch []a3s.Event
			if err == nil {
				err = json.Unmarshal(buf[:n], &batch)
			}
			if err != nil {
				yield(a3s.Event{}, err)
				return
			}
			for _, e := range batch {
				if !yield(e, nil) {
					return
				}
			}
		}
	}
}

func (s tableSession) send(prompt string, history json.RawMessage) (any, error) {
	ctx, cancel := bounded()
	defer cancel()
	return decoded(op.Call(ctx, s.Session, "session.send", request(prompt, history)))
}

// answers names the one field that the result of an operation wraps its value in.
var answers = map[string]string{
	"history": "messages", "runs": "runs", "run_events": "events", "pending_confirmations": "pending", "tool_names": "names",
	"list_commands": "commands", "current_run": "run", "get_artifact": "artifact", "confirm_tool_use": "found",
	"cancel_confirmations": "count", "cancel": "cancelled", "cancel_run": "cancelled", "trace_events": "events",
}

func (s tableSession) call(name string, params map[string]any) (any, error) {
	ctx, cancel := bounded()
	defer cancel()
	v, err := decoded(op.Call(ctx, s.Session, "session."+name, []byte(encode(params))))
	if field := answers[name]; field != "" && err == nil {
		return v.(map[string]any)[field], nil
	}
	return v, err
}

func decoded(b []byte, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	var v any
	return v, json.Unmarshal(b, &v)
}
