package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	a3s "github.com/a3s-lab/liba3s"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/op"
)

// hostTool is an entry of host_tools.json: a tool of the host with its one answer.
type hostTool struct {
	Name        string            `json:"name"`
	Description string            `json:"description"`
	Parameters  map[string]string `json:"parameters"` // name to JSON type; all are required
	ReadOnly    bool              `json:"read_only"`
	TimeoutMS   int               `json:"timeout_ms"`
	// Calls is how often it must have been called; nil for any number.
	Calls  *int `json:"calls"`
	Answer struct {
		Chunks    []string       `json:"chunks"`
		Wait      bool           `json:"wait"` // until the call is withdrawn; the answer then comes too late
		Output    *string        `json:"output"`
		ExitCode  int            `json:"exit_code"`
		Metadata  map[string]any `json:"metadata,omitempty"`
		Error     map[string]any `json:"error"`
		Garbage   bool           `json:"garbage"`
		Twice     bool           `json:"twice"`
		Withdrawn string         `json:"withdrawn"` // the reason that the withdrawal must give
	} `json:"answer"`
}

func (t *hostTool) spec() []byte {
	properties, required := map[string]any{}, []string{}
	for name, kind := range t.Parameters {
		properties[name] = map[string]any{"type": kind}
		required = append(required, name)
	}
	spec := map[string]any{"name": t.Name, "description": t.Description, "parameters": map[string]any{"type": "object", "properties": properties, "required": required}}
	if t.ReadOnly {
		spec["read_only"] = true
	}
	if t.TimeoutMS > 0 {
		spec["timeout_ms"] = t.TimeoutMS
	}
	return []byte(encode(spec))
}

// reply is the answer to a call with these arguments.
func (t *hostTool) reply(args any) []byte {
	a := t.Answer
	switch {
	case a.Error != nil:
		return []byte(encode(map[string]any{"error": a.Error}))
	case a.Garbage:
		return []byte(`{"result":{"output":5}}`)
	case a.Output == nil:
		s := encode(args)
		a.Output = &s
	}
	return []byte(encode(map[string]any{"result": map[string]any{"output": *a.Output, "exit_code": a.ExitCode, "metadata": a.Metadata}}))
}

// hostDesk is the host's side: it hears requests and lets the tools answer.
type hostDesk struct {
	agent *tableAgent
	done  chan struct{}

	mu    sync.Mutex
	tools map[string]*hostTool
	calls map[string]int
	open  map[uint64]chan string // withdrawals by request
	wrong []error
	work  sync.WaitGroup
}

func (a *tableAgent) register(t *hostTool) error {
	if a.desk == nil {
		d := &hostDesk{agent: a, done: make(chan struct{}), tools: map[string]*hostTool{}, calls: map[string]int{}, open: map[uint64]chan string{}}
		st, err := op.OpenStream(context.Background(), a.Agent, nil)
		if err != nil {
			return err
		}
		a.desk = d
		go func() {
			defer close(d.done)
			defer st.Close()
			for e, err := range read(st) {
				if err != nil {
					d.blame(err)
					return
				}
				d.hear(e)
			}
		}()
	}
	a.desk.mu.Lock()
	a.desk.tools[t.Name] = t
	a.desk.mu.Unlock()
	_, err := op.HostRegister(context.Background(), a.Agent, "tool", t.spec())
	return err
}

func (d *hostDesk) blame(err error) {
	d.mu.Lock()
	d.wrong = append(d.wrong, err)
	d.mu.Unlock()
}

func (d *hostDesk) hear(e a3s.Event) {
	var f struct {
		Request uint64 `json:"request"`
		Name    string `json:"name"`
		Reason  string `json:"reason"`
		Params  struct {
			Args any `json:"args"`
		} `json:"params"`
	}
	if err := json.Unmarshal(e.Payload, &f); err != nil {
		d.blame(err)
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch e.Type {
	case "host_request":
		t := d.tools[f.Name]
		d.calls[f.Name]++
		gone := make(chan string, 1)
		d.open[f.Request] = gone
		d.work.Go(func() {
			if err := d.serve(t, f.Request, f.Params.Args, gone); err != nil {
				d.blame(err)
			}
		})
	case "host_cancel":
		if gone := d.open[f.Request]; gone != nil {
			gone <- f.Reason
		}
	}
}

// serve answers one call as its tool is told to.
func (d *hostDesk) serve(t *hostTool, request uint64, args any, gone <-chan string) error {
	ctx := context.Background()
	for _, c := range t.Answer.Chunks {
		if err := op.HostChunk(ctx, d.agent.Agent, request, []byte(encode(map[string]any{"delta": c}))); err != nil {
			return err
		}
	}
	reply := func() error { return op.HostReply(ctx, d.agent.Agent, request, t.reply(args)) }
	late := func(when string) error {
		if err := reply(); fault.KindOf(err) != fault.NotFound {
			return fmt.Errorf("host tool %s: %s answer gave %v, want not_found", t.Name, when, err)
		}
		return nil
	}
	if t.Answer.Wait {
		select {
		case reason := <-gone:
			if want := t.Answer.Withdrawn; want != "" && reason != want {
				return fmt.Errorf("host tool %s: withdrawn because %q, want %q", t.Name, reason, want)
			}
			return late("a late")
		case <-time.After(patience):
			return fmt.Errorf("host tool %s: nobody withdrew the call", t.Name)
		}
	}
	if err := reply(); err != nil {
		return fmt.Errorf("host tool %s: %v", t.Name, err)
	}
	if t.Answer.Twice {
		return late("a second")
	}
	return nil
}

// wait ends with the agent; check says what went wrong.
func (d *hostDesk) wait() {
	<-d.done
	d.work.Wait()
}

func (d *hostDesk) check(tools []*hostTool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, t := range tools {
		if t.Calls != nil && d.calls[t.Name] != *t.Calls {
			return fmt.Errorf("host tool %s was called %d times, want %d", t.Name, d.calls[t.Name], *t.Calls)
		}
	}
	for _, err := range d.wrong {
		return err
	}
	return nil
}
