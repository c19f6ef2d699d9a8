package conformance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"testing"
	"time"

	a3s "github.com/a3s-lab/liba3s"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/tests/native"
)

// errGone says that the process of the driver ended before it answered.
var errGone = errors.New("the driver ended without an answer")

// process is c/driver.c, running; that file describes the protocol.
type process struct {
	cmd    *exec.Cmd
	stderr bytes.Buffer
	read   chan struct{} // closed at the end of its output

	writing sync.Mutex
	stdin   io.WriteCloser

	mu      sync.Mutex
	last    uint64
	pending map[uint64]*inFlight
}

// inFlight is a command without its answer, or a stream without its end.
type inFlight struct {
	answer chan message
	events func([]a3s.Event)
	end    func(message)
}

// message is one line of the driver.
type message struct {
	ID     uint64          `json:"id"`
	Status int32           `json:"status"`
	Handle uint64          `json:"handle,string"`
	Result json.RawMessage `json:"result"`
	Events []a3s.Event     `json:"events"`
	End    *int32          `json:"end"`
	Error  *fault.Error    `json:"error"`
}

// err gives what a message reports as the error it is.
func (m message) err() error {
	if m.Error != nil {
		return m.Error
	}
	if m.Status < 0 {
		return fmt.Errorf("status %d without an error", m.Status)
	}
	return nil
}

// startProcess builds the driver with the library and starts it.
func startProcess(t *testing.T) *process {
	t.Helper()
	root, err := native.Root()
	dir := t.TempDir()
	if err == nil {
		err = native.Library(root, dir, "")
	}
	var program string
	if err == nil {
		program, err = native.Program(root, dir, "c/driver.c")
	}
	if err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: exec.Command(program), read: make(chan struct{}), pending: map[uint64]*inFlight{}}
	p.cmd.Stderr = &p.stderr
	p.cmd.Dir = dir // not the folder of any scenario
	p.cmd.Env = []string{}
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go p.hear(stdout)
	return p
}

// finish ends the driver, which must find nothing alive and print nothing beside its
// answers.
func (p *process) finish() error {
	closing := p.stdin.Close()
	kill := time.AfterFunc(patience, func() { _ = p.cmd.Process.Kill() })
	defer kill.Stop()
	<-p.read
	if err := errors.Join(closing, p.cmd.Wait()); err != nil || p.stderr.Len() > 0 {
		return fmt.Errorf("the driver ended with %v: %s", err, p.stderr.String())
	}
	return nil
}

// hear hands every message to the command it belongs to.
func (p *process) hear(out io.Reader) {
	defer close(p.read)
	d := json.NewDecoder(out)
	for {
		var m message
		if err := d.Decode(&m); err != nil {
			p.lose()
			return
		}
		p.mu.Lock()
		f := p.pending[m.ID]
		if m.End != nil || m.Events == nil && (f.events == nil || m.Status < 0) {
			delete(p.pending, m.ID)
		}
		p.mu.Unlock()
		switch {
		case m.End != nil:
			m.Status = *m.End
			f.end(m)
		case m.Events != nil:
			f.events(m.Events)
		default:
			f.answer <- m
		}
	}
}

// lose ends what waits for a process that is gone.
func (p *process) lose() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.pending {
		close(f.answer)
		if f.end != nil {
			f.end(message{Status: -1})
		}
	}
	p.pending = nil
}

// say sends a command and gives its answer. A stream's events and its end are told to
// the functions, on the goroutine that hears the driver; without them it is no stream.
func (p *process) say(verb string, handle, number uint64, word string, body []byte, events func([]a3s.Event), end func(message)) (message, error) {
	f := &inFlight{answer: make(chan message, 1), events: events, end: end}
	p.mu.Lock()
	if p.pending == nil {
		p.mu.Unlock()
		return message{}, errGone
	}
	p.last++
	id := p.last
	p.pending[id] = f
	p.mu.Unlock()

	p.writing.Lock()
	_, err := fmt.Fprintf(p.stdin, "%d %s %d %d %s %d\n%s", id, verb, handle, number, word, len(body), body)
	p.writing.Unlock()
	if err != nil {
		return message{}, err
	}
	select {
	case m, ok := <-f.answer:
		if !ok {
			return m, errGone
		}
		return m, m.err()
	case <-time.After(patience + 5*time.Second): // the library's own limit comes first
		return message{}, fmt.Errorf("%s %s: no answer", verb, word)
	}
}

// do is say for what is no stream.
func (p *process) do(verb string, handle, number uint64, word string, body []byte) (message, error) {
	return p.say(verb, handle, number, word, body, nil, nil)
}
