package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	a3s "github.com/a3s-lab/liba3s"
	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/fault"
)

// extension is an entry of host.json, or a tool of host_tools.json.
type extension struct {
	Kind    string              `json:"kind"`
	Spec    json.RawMessage     `json:"spec"`
	On      string              `json:"on"` // "agent", also if it is empty, or "session"
	Answers map[string][]answer `json:"answers"`
	Calls   map[string]int      `json:"calls"`

	tool *hostTool // what package a3s says in its own words
}

// answer is what the host does when it is asked, in this order.
type answer struct {
	Does      []string        `json:"does"`
	Chunks    []any           `json:"chunks"`
	Wait      bool            `json:"wait"`
	Withdrawn string          `json:"withdrawn"`
	Result    json.RawMessage `json:"result"`
	Error     json.RawMessage `json:"error"`
	Twice     bool            `json:"twice"`
	Dies      bool            `json:"dies"`

	echo bool // the result of a tool is the text it is given
}

// hostExtensions reads host.json.
func hostExtensions(text string) ([]*extension, error) {
	var all []*extension
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&all); err != nil {
		return nil, err
	}
	for _, x := range all {
		if x.On != "" && x.On != "agent" && x.On != "session" {
			return nil, fmt.Errorf("%q is none of agent, session", x.On)
		}
	}
	return all, nil
}

// key tells an extension from all others.
func (x *extension) key() string {
	var spec struct {
		Name string `json:"name"`
	}
	_ = json.Unmarshal(x.Spec, &spec)
	return x.Kind + " " + spec.Name
}

// next gives the n-th answer of an operation, counted from 1.
func (x *extension) next(op string, n int) answer {
	all := x.Answers[op]
	if len(all) == 0 {
		return answer{Error: json.RawMessage(`{"type":"Error","message":"no answer"}`)}
	}
	return all[min(n, len(all))-1]
}

// reply is the answer as the library gets it.
func (a answer) reply(params json.RawMessage) ([]byte, error) {
	if a.Error != nil {
		return large(map[string]any{"error": a.Error}), nil
	}
	body, err := a.body(params)
	return large(map[string]any{"result": body}), err
}

// body is the result, before large.
func (a answer) body(params json.RawMessage) (json.RawMessage, error) {
	switch {
	case a.Result == nil:
		return json.RawMessage("null"), nil
	case !a.echo:
		return a.Result, nil
	}
	var p struct{ Args struct{ Text string } }
	var v map[string]any
	if err := errors.Join(json.Unmarshal(params, &p), json.Unmarshal(a.Result, &v)); err != nil {
		return nil, err
	}
	v["output"] = p.Args.Text
	return json.RawMessage(encode(v)), nil
}

// largest bounds the texts that large makes.
var largest = 64 << 20

var bigText = regexp.MustCompile(`\{"\$big":(\d+)\}`)

// large gives a value as JSON, with the texts in place that {"$big": N} stands for.
func large(v any) []byte {
	return bigText.ReplaceAllFunc([]byte(encode(v)), func(b []byte) []byte {
		n, _ := strconv.Atoi(string(bigText.FindSubmatch(b)[1]))
		return []byte(`"` + strings.Repeat("x", min(n, largest)) + `"`)
	})
}

// calling counts requests and gathers what the host's side finds wrong.
type calling struct {
	mu    sync.Mutex
	calls map[string]int
	busy  int           // handlers at work
	moved chan struct{} // closed and replaced when a count changes, if somebody waits
	wrong []error
}

// called counts a request and gives its number, from 1 on.
func (c *calling) called(key, op string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls == nil {
		c.calls = map[string]int{}
	}
	c.calls[key+" "+op]++
	c.busy++
	c.bump()
	return c.calls[key+" "+op]
}

// answered says that the handler of a request is done.
func (c *calling) answered(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.wrong = append(c.wrong, err)
	}
	c.busy--
	c.bump()
}

// bump wakes who waits in settle. c.mu is held.
func (c *calling) bump() {
	if c.moved != nil {
		close(c.moved)
		c.moved = nil
	}
}

func (c *calling) blame(err error) {
	c.mu.Lock()
	c.wrong = append(c.wrong, err)
	c.mu.Unlock()
}

// settle waits until everything was asked as often as it must be, and answered. What is
// missing then is found by check.
func (c *calling) settle(all []*extension) {
	if all == nil {
		return
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		c.mu.Lock()
		if c.busy == 0 && c.short(all) == nil {
			c.mu.Unlock()
			return
		}
		if c.moved == nil {
			c.moved = make(chan struct{})
		}
		moved := c.moved
		c.mu.Unlock()
		select {
		case <-moved:
		case <-late.C:
			return
		}
	}
}

// short says what was asked less often than it must be. c.mu is held.
func (c *calling) short(all []*extension) error {
	for _, x := range all {
		for op, want := range x.Calls {
			if got := c.calls[x.key()+" "+op]; got < want {
				return fmt.Errorf("%s: asked %d times for %s, want %d", x.key(), got, op, want)
			}
		}
	}
	return nil
}

// check says what went wrong, if anything did.
func (c *calling) check(all []*extension) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.short(all); err != nil {
		return err
	}
	for _, x := range all {
		for op, want := range x.Calls {
			if got := c.calls[x.key()+" "+op]; got > want {
				return fmt.Errorf("%s: asked %d times for %s, want %d", x.key(), got, op, want)
			}
		}
	}
	return errors.Join(c.wrong...)
}

// answering is how a desk talks back; it says what the library says.
type answering interface {
	chunk(request uint64, piece []byte) error
	reply(request uint64, answer []byte) error
}

// hostDesk is the host's side below package a3s: it hears requests and answers them.
type hostDesk struct {
	agent answering
	does  func(line string) error // plays a step on the session in use
	leave func()                  // closes the control stream
	done  chan struct{}           // closed at the end of the stream
	calling

	lock sync.Mutex
	all  map[string]*extension
	open map[uint64]chan string // withdrawals by request
	work sync.WaitGroup
}

func newDesk(a answering, does func(string) error) *hostDesk {
	return &hostDesk{agent: a, does: does, done: make(chan struct{}), all: map[string]*extension{}, open: map[uint64]chan string{}}
}

func (d *hostDesk) add(x *extension) {
	d.lock.Lock()
	d.all[x.key()] = x
	d.lock.Unlock()
}

func (d *hostDesk) hear(e a3s.Event) {
	var r event.HostRequest
	var c event.HostCancel
	d.lock.Lock()
	defer d.lock.Unlock()
	switch e.Type {
	case "host_request":
		if err := json.Unmarshal(e.Payload, &r); err != nil {
			d.blame(err)
			return
		}
		x := d.all[r.Kind+" "+r.Name]
		gone := make(chan string, 1)
		d.open[r.Request] = gone
		a := x.next(r.Op, d.called(x.key(), r.Op))
		d.work.Go(func() {
			err := d.serve(a, r, gone)
			if err != nil {
				err = fmt.Errorf("%s, asked for %s: %w", x.key(), r.Op, err)
			}
			d.answered(err)
		})
	case "host_cancel":
		if err := json.Unmarshal(e.Payload, &c); err != nil {
			d.blame(err)
			return
		}
		if gone := d.open[c.Request]; gone != nil {
			gone <- c.Reason
		}
	}
}

// serve does what the answer to one request says.
func (d *hostDesk) serve(a answer, r event.HostRequest, gone <-chan string) error {
	for _, line := range a.Does {
		if err := d.does(line); err != nil {
			_ = d.agent.reply(r.Request, []byte(`{"error":{"type":"Error","message":"a step failed"}}`)) // nobody need wait
			return fmt.Errorf("%q: %w", line, err)
		}
	}
	for _, c := range a.Chunks {
		if err := d.agent.chunk(r.Request, large(c)); err != nil {
			return err
		}
	}
	params, err := json.Marshal(r.Params)
	if err != nil {
		return err
	}
	reply, err := a.reply(params)
	if err != nil {
		return err
	}
	if a.Wait {
		if err := waited(gone, a.Withdrawn); err != nil {
			return err
		}
		return d.late("a late", r.Request, reply)
	}
	if a.Dies {
		d.leave()
		return nil
	}
	if err := d.agent.reply(r.Request, reply); err != nil {
		return err
	}
	if a.Twice {
		return d.late("a second", r.Request, reply)
	}
	return nil
}

// late holds that an answer does not count any more.
func (d *hostDesk) late(which string, request uint64, reply []byte) error {
	if err := d.agent.reply(request, reply); fault.KindOf(err) != fault.NotFound {
		return fmt.Errorf("%s answer gave %v, want not_found", which, err)
	}
	return nil
}

// waited waits for the withdrawal of a request.
func waited(gone <-chan string, want string) error {
	select {
	case reason := <-gone:
		if want != "" && reason != want {
			return fmt.Errorf("withdrawn because %q, want %q", reason, want)
		}
		return nil
	case <-time.After(patience):
		return fmt.Errorf("nobody withdrew the request")
	}
}

// wait ends when everything was heard and answered.
func (d *hostDesk) wait() {
	<-d.done
	d.work.Wait()
}
