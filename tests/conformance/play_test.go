package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

// play is one scenario being played by one driver.
type play struct {
	sc      *scenario
	driver  driver
	place   place
	env     map[string]string
	host    []*extension
	options json.RawMessage

	agents  []agent // the last one is used
	session session
	history json.RawMessage
	active  *sink
	events  []ev
	keeping sync.Mutex // handlers of the host keep results too
	results []any
	noted   map[string]any
}

// run plays the scenario and says what was not as it wants.
func (p *play) run() error {
	err := p.steps()
	if p.active != nil && err == nil {
		err = p.join()
	}
	err = p.expectError(err)
	if err == nil {
		err = p.expectRest()
	}
	host := p.host
	if err != nil {
		host = nil // what did not come will not come
	}
	for _, a := range p.agents {
		if closing := a.close(host); err == nil && closing != nil {
			err = fmt.Errorf("closing the agent: %v", closing)
		}
		if err == nil {
			err = a.check(p.host)
		}
	}
	return err
}

func (p *play) steps() error {
	if err := p.newAgent(); err != nil {
		return err
	}
	var err error
	if p.session, err = p.agent().session("", p.place, p.options); err != nil {
		return err
	}
	for i, st := range p.sc.steps {
		st.rest = p.place.fill(st.rest)
		err := p.step(st)
		switch f := asFault(err); {
		case st.fails != "" && (f == nil || string(f.Code) != st.fails):
			return fmt.Errorf("step %q: got %v, want %s", st.line, err, st.fails)
		case err == nil || st.fails != "":
		case f != nil && i == len(p.sc.steps)-1:
			return err
		default:
			return fmt.Errorf("step %q: %w", st.line, err)
		}
	}
	return nil
}

// does plays a step that a handler of the host is told to play while it is asked.
func (p *play) does(line string) error {
	st, err := parseStep(p.place.fill(line))
	if err == nil && !slices.Contains([]string{"cancel", "check", "tool"}, st.verb) {
		err = fmt.Errorf("a handler does no %s", st.verb)
	}
	if err != nil {
		return err
	}
	return p.step(st)
}

func asFault(err error) *fault.Error {
	var f *fault.Error
	errors.As(err, &f)
	return f
}

func (p *play) agent() agent { return p.agents[len(p.agents)-1] }

func (p *play) newAgent() error {
	a, err := p.driver.open(p.place, p.env)
	if err != nil {
		return err
	}
	p.agents = append(p.agents, a)
	for _, x := range p.host {
		if err := a.register(x, p.does); err != nil {
			return err
		}
	}
	return nil
}

func (p *play) step(st step) error {
	switch st.verb {
	case "stream", "start":
		if st.fails == "" { // what must fail may be refused because a run is active
			if err := p.join(); err != nil {
				return err
			}
		}
		history := p.history
		p.history = nil
		s := newSink()
		if err := p.session.start(st.rest, history, s); err != nil {
			return err
		}
		p.active = s
		if st.verb == "stream" {
			return p.join()
		}
		return nil
	case "send":
		return p.send(st)
	case "history":
		p.history = json.RawMessage(st.rest)
		return nil
	case "join":
		return p.join()
	case "await":
		f, err := parseFacts(st.rest)
		if err != nil {
			return err
		}
		_, err = p.active.next(&p.active.passed, f.fitsEvent)
		return err
	case "check":
		return p.check(st.rest)
	case "note":
		v, err := p.view(st.rest)
		if p.noted == nil {
			p.noted = map[string]any{}
		}
		p.noted[st.rest] = v
		return err
	case "same":
		v, err := p.view(st.rest)
		if err == nil && !reflect.DeepEqual(v, p.noted[st.rest]) {
			err = fmt.Errorf("it is %s, was %s", short(v), short(p.noted[st.rest]))
		}
		return err
	case "agent":
		return p.newAgent()
	case "open":
		s, err := p.agent().session("", p.place, json.RawMessage(st.rest))
		if err == nil {
			p.session = s
		}
		return err
	case "resume":
		return p.resume(st.rest)
	case "artifact":
		return p.keep(p.session.call("get_artifact", map[string]any{"uri": st.rest}))
	case "tool":
		name, args, _ := strings.Cut(st.rest, " ")
		if args == "" {
			args = "{}"
		}
		return p.keep(p.session.call("tool", map[string]any{"name": name, "args": json.RawMessage(args)}))
	}
	return p.control(st)
}

// control steers what goes on.
func (p *play) control(st step) error {
	want := func(got any, err error, want any) error {
		if err == nil && got != want {
			err = fmt.Errorf("got %v, want %v", got, want)
		}
		return err
	}
	switch st.verb {
	case "confirm", "confirm-late":
		return p.confirm(st)
	case "cancel":
		got, err := p.session.call("cancel", map[string]any{})
		return want(got, err, st.rest != "false")
	case "cancel_run":
		run, err := p.session.call("current_run", map[string]any{})
		if err != nil || run == nil {
			return fmt.Errorf("no run is active: %v", err)
		}
		got, err := p.session.call("cancel_run", map[string]any{"run_id": run.(map[string]any)["id"]})
		return want(got, err, true)
	case "cancel_confirmations":
		n, err := strconv.Atoi(st.rest)
		if err != nil {
			return err
		}
		got, err := p.session.call("cancel_confirmations", map[string]any{})
		return want(got, err, float64(n))
	}
	_, err := p.session.call(st.verb, map[string]any{}) // save, close
	return err
}

// confirm answers the next question about a tool; confirm-late answers the last one
// again, which must not count.
func (p *play) confirm(st step) error {
	name, rest, _ := strings.Cut(st.rest, " ")
	word, reason, _ := strings.Cut(rest, " ")
	if word != "allow" && word != "deny" {
		return fmt.Errorf("say allow or deny, not %q", word)
	}
	isQuestion := func(e ev) bool { return e.Type == "confirmation_required" && e.Payload["tool_name"] == name }
	var question ev
	var err error
	if st.verb == "confirm" {
		question, err = p.active.next(&p.active.asked, isQuestion)
	} else {
		question, err = p.latest(isQuestion)
	}
	if err != nil {
		return err
	}
	got, err := p.session.call("confirm_tool_use", map[string]any{"tool_id": question.Payload["tool_id"], "approved": word == "allow", "reason": reason})
	if err == nil && got != (st.verb == "confirm") {
		err = fmt.Errorf("the answer was accepted: %v", got)
	}
	return err
}

// latest gives the last event so far that fits.
func (p *play) latest(fits func(ev) bool) (ev, error) {
	seen := slices.Clone(p.events)
	if s := p.active; s != nil {
		s.mu.Lock()
		seen = append(seen, s.events...)
		s.mu.Unlock()
	}
	for _, e := range slices.Backward(seen) {
		if fits(e) {
			return e, nil
		}
	}
	return ev{}, fmt.Errorf("there was none")
}

func (p *play) keep(v any, err error) error {
	if err == nil {
		p.keeping.Lock()
		p.results = append(p.results, v)
		p.keeping.Unlock()
	}
	return err
}

// send is a run whose events are read from the records.
func (p *play) send(st step) error {
	if st.fails == "" {
		if err := p.join(); err != nil {
			return err
		}
	}
	before, err := p.view("runs")
	if err != nil {
		return err
	}
	history := p.history
	p.history = nil
	result, failed := p.session.send(st.rest, history)
	after, err := p.view("runs")
	if err != nil {
		return err
	}
	if len(after.([]any)) > len(before.([]any)) {
		recorded, err := p.view("events")
		if err != nil {
			return err
		}
		if err := p.ended(recorded.([]any)); err != nil {
			return err
		}
	}
	return p.keep(result, failed)
}

// join waits for the run that start began, if there is one.
func (p *play) join() error {
	s := p.active
	if s == nil {
		return nil
	}
	events, err := s.whole()
	if err != nil {
		return err
	}
	p.active = nil
	var all []any
	for _, e := range events {
		v, err := plain(e, nil)
		if err != nil {
			return err
		}
		all = append(all, v)
	}
	return p.ended(all)
}

func (p *play) resume(options string) error {
	info, err := p.view("info")
	if err != nil {
		return err
	}
	o := p.options
	if options != "" {
		o = json.RawMessage(options)
	}
	s, err := p.agent().session(fmt.Sprint(info.(map[string]any)["session_id"]), p.place, o)
	if err == nil {
		p.session = s
	}
	return err
}
