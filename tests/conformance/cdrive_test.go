package conformance

import (
	"encoding/json"
	"fmt"
	"sync/atomic"

	a3s "github.com/a3s-lab/liba3s"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/op"
)

// header drives the functions of the C header, in the process of c/driver.c.
type header struct{ *process }

type headerAgent struct {
	*process
	handle uint64
	desk   *hostDesk
	later  []*extension // to be registered with sessions
}

type headerSession struct {
	*process
	handle uint64
	run    atomic.Uint64 // the latest one that start began
}

func (d header) open(p place, env map[string]string) (agent, error) {
	request, err := json.Marshal(op.AgentOpen{ACLPath: "agent.acl", Env: env, Cwd: p.dir})
	if err != nil {
		return nil, err
	}
	m, err := d.do("agent", 0, 0, "-", request)
	if err != nil {
		return nil, err
	}
	return &headerAgent{process: d.process, handle: m.Handle}, nil
}

func (a *headerAgent) session(resume string, p place, options json.RawMessage) (session, error) {
	r := op.SessionOpen{Resume: resume, Cwd: p.dir, Options: options}
	if resume == "" {
		r.Workspace = p.workspace
	}
	request, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	m, err := a.do("session", a.handle, 0, "-", request)
	if err != nil {
		return nil, err
	}
	for _, x := range a.later {
		if _, err := a.do("register", m.Handle, 0, x.Kind, x.Spec); err != nil {
			return nil, err
		}
	}
	return &headerSession{process: a.process, handle: m.Handle}, nil
}

func (a *headerAgent) register(x *extension, does func(string) error) error {
	if a.desk == nil {
		if err := a.listen(does); err != nil {
			return err
		}
	}
	a.desk.add(x)
	if x.On == "session" {
		a.later = append(a.later, x)
		return nil
	}
	_, err := a.do("register", a.handle, 0, x.Kind, x.Spec)
	return err
}

// listen opens the control stream and begins to hear it.
func (a *headerAgent) listen(does func(string) error) error {
	d := newDesk(a, does)
	hear := func(events []a3s.Event) {
		for _, e := range events {
			d.hear(e)
		}
	}
	end := func(m message) {
		if kind := fault.KindOf(m.err()); kind != fault.End && kind != fault.Closed && kind != fault.Handle {
			d.blame(fmt.Errorf("the agent's stream ended with %v", m.err()))
		}
		close(d.done)
	}
	m, err := a.say("stream", a.handle, 0, "-", nil, hear, end)
	if err != nil {
		return err
	}
	d.leave = func() {
		if _, err := a.do("close", m.Handle, patienceMS(), "-", nil); err != nil {
			d.blame(err)
		}
	}
	a.desk = d
	return nil
}

func (a *headerAgent) chunk(request uint64, piece []byte) error {
	_, err := a.do("chunk", a.handle, request, "-", piece)
	return err
}

func (a *headerAgent) reply(request uint64, answer []byte) error {
	_, err := a.do("reply", a.handle, request, "-", answer)
	return err
}

func (a *headerAgent) check(host []*extension) error {
	if a.desk == nil {
		return nil
	}
	return a.desk.calling.check(host)
}

func (a *headerAgent) sessions() []string {
	var v op.SessionIDs
	m, err := a.do("call", a.handle, patienceMS(), "agent.list_sessions", nil)
	if err == nil {
		err = json.Unmarshal(m.Result, &v)
	}
	if err != nil {
		return []string{err.Error()}
	}
	return v.SessionIDs
}

func (a *headerAgent) close(host []*extension) error {
	if a.desk != nil {
		a.desk.settle(host)
	}
	_, err := a.do("close", a.handle, patienceMS(), "-", nil)
	if a.desk != nil {
		a.desk.wait()
	}
	return err
}

// start also holds that waiting for the run tells what its last event tells.
func (s *headerSession) start(prompt string, history json.RawMessage, sink *sink) error {
	m, err := s.do("run", s.handle, 0, "-", request(prompt, history))
	if err != nil {
		return err
	}
	run := m.Handle
	s.run.Store(run)
	var code any
	hear := func(events []a3s.Event) {
		for _, e := range events {
			v, err := plain(e, nil)
			if err != nil {
				sink.end(err)
				return
			}
			if e.Type == "error" {
				code = v.(map[string]any)["payload"].(map[string]any)["code"]
			}
			sink.add(v)
		}
	}
	ended := make(chan error, 1)
	end := func(m message) {
		if kind := fault.KindOf(m.err()); kind != fault.End {
			ended <- m.err()
		}
		close(ended)
	}
	if _, err := s.say("stream", run, 0, "-", nil, hear, end); err != nil {
		return err
	}
	go func() {
		err := <-ended
		if err == nil {
			err = s.waited(run, code)
		}
		sink.end(err)
	}()
	return nil
}

// waited compares how a run ended with the code of its error event.
func (s *headerSession) waited(run uint64, code any) error {
	m, err := s.do("wait", run, patienceMS(), "-", nil)
	var got any
	if m.Error != nil {
		got = string(m.Error.Code)
	} else if err != nil {
		return err
	}
	if got != code {
		return fmt.Errorf("waiting for the run gave %v, its last event says %v", err, code)
	}
	return nil
}

func (s *headerSession) send(prompt string, history json.RawMessage) (any, error) {
	return s.operation("session.send", request(prompt, history))
}

func (s *headerSession) operation(name string, params []byte) (any, error) {
	m, err := s.do("call", s.handle, patienceMS(), name, params)
	return decoded(m.Result, err)
}

// call says what has a function of its own in the header by that function.
func (s *headerSession) call(name string, params map[string]any) (any, error) {
	switch {
	case s.run.Load() != 0 && name == "confirm_tool_use":
		_, err := s.do("input", s.run.Load(), 0, "-", []byte(encode(map[string]any{"confirm": params})))
		if fault.KindOf(err) == fault.NotFound {
			return false, nil
		}
		return err == nil, err
	case s.run.Load() != 0 && name == "cancel_run":
		_, err := s.do("cancel", s.run.Load(), 0, "-", nil)
		return err == nil, err
	}
	v, err := s.operation("session."+name, []byte(encode(params)))
	if field := answers[name]; field != "" && err == nil {
		return v.(map[string]any)[field], nil
	}
	return v, err
}

// patienceMS is patience as a time limit in C.
func patienceMS() uint64 { return uint64(patience.Milliseconds()) }
