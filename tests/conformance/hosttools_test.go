package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	a3s "github.com/a3s-lab/liba3s"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/op"
)

// hostTool is an entry of host_tools.json: a tool of the host with one parameter, text,
// and its one answer.
type hostTool struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	ReadOnly    bool   `json:"read_only"`
	TimeoutMS   int    `json:"timeout_ms"`
	// Calls is how often it must have been called; nil for any number.
	Calls  *int `json:"calls"`
	Answer struct {
		Chunks    []string       `json:"chunks"`
		Wait      bool           `json:"wait"`   // until the call is withdrawn; the answer then comes too late
		Output    *string        `json:"output"` // nil for the text it was given
		ExitCode  int            `json:"exit_code"`
		Metadata  map[string]any `json:"metadata,omitempty"`
		Error     *hostError     `json:"error"`
		Garbage   bool           `json:"garbage"`
		Twice     bool           `json:"twice"`
		Withdrawn string         `json:"withdrawn"` // the reason that the withdrawal must give
	} `json:"answer"`
}

type hostError struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// calling counts calls and gathers what the host's side finds wrong.
type calling struct {
	mu    sync.Mutex
	calls map[string]int
	wrong []error
}

func (c *calling) called(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls == nil {
		c.calls = map[string]int{}
	}
	c.calls[name]++
}

func (c *calling) blame(err error) {
	c.mu.Lock()
	c.wrong = append(c.wrong, err)
	c.mu.Unlock()
}

// check says what went wrong, if anything did.
func (c *calling) check(tools []*hostTool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range tools {
		if t.Calls != nil && c.calls[t.Name] != *t.Calls {
			return fmt.Errorf("host tool %s was called %d times, want %d", t.Name, c.calls[t.Name], *t.Calls)
		}
	}
	return errors.Join(c.wrong...)
}

// goTool makes a tool of package a3s. It can say what a Go function can say: a text or
// an error.
func (t *hostTool) goTool(c *calling) (*a3s.Tool, error) {
	a := t.Answer
	if a.Garbage || a.Twice || a.ExitCode != 0 || a.Metadata != nil {
		return nil, fmt.Errorf("%w: the answer of host tool %s", errLacking, t.Name)
	}
	options := []a3s.ToolOption{a3s.ToolTimeout(time.Duration(t.TimeoutMS) * time.Millisecond)}
	if t.ReadOnly {
		options = append(options, a3s.ReadOnly())
	}
	type given struct {
		Text string `json:"text"`
	}
	return a3s.NewTool(t.Name, t.Description, func(ctx context.Context, p given, emit func(string)) (string, error) {
		c.called(t.Name)
		for _, chunk := range a.Chunks {
			emit(chunk)
		}
		if a.Wait {
			select {
			case <-ctx.Done():
			case <-time.After(patience):
				c.blame(fmt.Errorf("host tool %s: nobody withdrew the call", t.Name))
			}
		}
		switch {
		case a.Error != nil:
			return "", fmt.Errorf("%s: %s", a.Error.Type, a.Error.Message)
		case a.Output != nil:
			return *a.Output, nil
		}
		return p.Text, nil
	}, options...)
}

// spec describes the tool for registration.
func (t *hostTool) spec() []byte {
	parameters := map[string]any{"type": "object", "properties": map[string]any{"text": map[string]any{"type": "string"}}, "required": []string{"text"}, "additionalProperties": false}
	spec := map[string]any{"name": t.Name, "description": t.Description, "parameters": parameters}
	if t.ReadOnly {
		spec["read_only"] = true
	}
	if t.TimeoutMS > 0 {
		spec["timeout_ms"] = t.TimeoutMS
	}
	return []byte(encode(spec))
}

// reply is the answer to a call with this text.
func (t *hostTool) reply(text string) []byte {
	a := t.Answer
	switch {
	case a.Error != nil:
		return []byte(encode(map[string]any{"error": a.Error}))
	case a.Garbage:
		return []byte(`{"result":{"output":5}}`)
	case a.Output == nil:
		a.Output = &text
	}
	return []byte(encode(map[string]any{"result": map[string]any{"output": *a.Output, "exit_code": a.ExitCode, "metadata": a.Metadata}}))
}

// answering is how a desk talks back; it says what the library says.
type answering interface {
	chunk(request uint64, piece []byte) error
	reply(request uint64, answer []byte) error
}

func (a *tableAgent) chunk(request uint64, piece []byte) error {
	return op.HostChunk(context.Background(), a.Agent, request, piece)
}

func (a *tableAgent) reply(request uint64, answer []byte) error {
	return op.HostReply(context.Background(), a.Agent, request, answer)
}

// hostDesk is the host's side below package a3s: it hears requests and lets the tools
// answer.
type hostDesk struct {
	agent answering
	done  chan struct{}
	calling

	lock  sync.Mutex
	tools map[string]*hostTool
	open  map[uint64]chan string // withdrawals by request
	work  sync.WaitGroup
}

func (a *tableAgent) register(t *hostTool) error {
	if a.desk == nil {
		d := newDesk(a)
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
	a.desk.add(t)
	_, err := op.HostRegister(context.Background(), a.Agent, "tool", t.spec())
	return err
}

func newDesk(a answering) *hostDesk {
	return &hostDesk{agent: a, done: make(chan struct{}), tools: map[string]*hostTool{}, open: map[uint64]chan string{}}
}

func (d *hostDesk) add(t *hostTool) {
	d.lock.Lock()
	d.tools[t.Name] = t
	d.lock.Unlock()
}

func (d *hostDesk) hear(e a3s.Event) {
	var f struct {
		Request uint64 `json:"request"`
		Name    string `json:"name"`
		Reason  string `json:"reason"`
		Params  struct {
			Args struct {
				Text string `json:"text"`
			} `json:"args"`
		} `json:"params"`
	}
	if err := json.Unmarshal(e.Payload, &f); err != nil {
		d.blame(err)
		return
	}
	d.lock.Lock()
	defer d.lock.Unlock()
	switch e.Type {
	case "host_request":
		t := d.tools[f.Name]
		d.called(f.Name)
		gone := make(chan string, 1)
		d.open[f.Request] = gone
		d.work.Go(func() {
			if err := d.serve(t, f.Request, f.Params.Args.Text, gone); err != nil {
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
func (d *hostDesk) serve(t *hostTool, request uint64, text string, gone <-chan string) error {
	for _, c := range t.Answer.Chunks {
		if err := d.agent.chunk(request, []byte(encode(map[string]any{"delta": c}))); err != nil {
			return err
		}
	}
	reply := func() error { return d.agent.reply(request, t.reply(text)) }
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

// wait ends when everything was heard and answered.
func (d *hostDesk) wait() {
	<-d.done
	d.work.Wait()
}
