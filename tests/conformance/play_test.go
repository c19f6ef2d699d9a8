package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

// sink takes the events of a run as they come.
type sink struct {
	mu     sync.Mutex
	events []ev
	ended  bool
	err    error
	news   chan struct{} // closed and replaced at every change
	passed int           // how far await has looked
	asked  int           // how far confirm has looked
}

func newSink() *sink { return &sink{news: make(chan struct{})} }

func (s *sink) change(fn func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fn()
	close(s.news)
	s.news = make(chan struct{})
}

func (s *sink) add(v any) {
	s.change(func() {
		e, err := eventOf(v)
		if err != nil {
			s.err = err
		}
		s.events = append(s.events, e)
	})
}

func (s *sink) end(err error) {
	s.change(func() { s.ended, s.err = true, errors.Join(s.err, err) })
}

// next gives the first event from *from on that fits, and moves *from behind it.
func (s *sink) next(from *int, fits func(ev) bool) (ev, error) {
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		s.mu.Lock()
		i, ended, news := slices.IndexFunc(s.events[*from:], fits), s.ended, s.news
		if i >= 0 {
			*from += i + 1
			defer s.mu.Unlock()
			return s.events[*from-1], nil
		}
		s.mu.Unlock()
		if ended {
			return ev{}, fmt.Errorf("the run ended without it")
		}
		select {
		case <-news:
		case <-late.C:
			return ev{}, fmt.Errorf("it did not come within %s", patience)
		}
	}
}

// whole waits for the end and gives all events.
func (s *sink) whole() ([]ev, error) {
	all := 0
	_, err := s.next(&all, func(ev) bool { return false })
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		return nil, err
	}
	return s.events, s.err
}

func eventOf(v any) (ev, error) {
	var e ev
	b, err := json.Marshal(v)
	if err != nil {
		return e, err
	}
	return e, json.Unmarshal(b, &e)
}

// play is one scenario being played by one driver.
type play struct {
	sc      *scenario
	driver  driver
	place   place
	env     map[string]string
	tools   []*hostTool
	options json.RawMessage

	agents  []agent // the last one is used
	session session
	history json.RawMessage
	active  *sink
	events  []ev
	results []any
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
	for _, a := range p.agents {
		if closing := a.close(); err == nil && closing != nil {
			err = fmt.Errorf("closing the agent: %v", closing)
		}
		if err == nil {
			err = a.check(p.tools)
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
	for _, t := range p.tools {
		if err := a.register(t); err != nil {
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
		p.results = append(p.results, v)
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

// view gives what check and want/NAME.json look at.
func (p *play) view(name string) (any, error) {
	calls := map[string]string{"commands": "list_commands", "history": "history", "info": "info", "pending": "pending_confirmations", "runs": "runs", "tools": "tool_names", "traces": "trace_events"}
	switch name {
	case "sessions":
		return plain(p.agent().sessions(), nil)
	case "events":
		runs, err := p.view("runs")
		if err != nil {
			return nil, err
		}
		all := runs.([]any)
		if len(all) == 0 {
			return []any{}, nil
		}
		return p.session.call("run_events", map[string]any{"run_id": all[len(all)-1].(map[string]any)["id"]})
	}
	call, ok := calls[name]
	if !ok {
		return nil, fmt.Errorf("there is nothing called %q to look at", name)
	}
	return p.session.call(call, map[string]any{})
}

func (p *play) check(rest string) error {
	name, text, _ := strings.Cut(rest, " ")
	var want any
	if err := json.Unmarshal([]byte(text), &want); err != nil {
		return err
	}
	got, err := p.view(name)
	if err != nil {
		return err
	}
	if d := diff(got, want, name); d != "" {
		return errors.New(d)
	}
	return nil
}

// expectRest checks everything that the scenario wants at its end.
func (p *play) expectRest() error {
	if text, ok := p.sc.sections["want/events"]; ok {
		if err := compare(joined(p.events), p.place.fill(text)); err != nil {
			return err
		}
	}
	if text, ok := p.sc.sections["want/result.json"]; ok {
		var want any
		if err := json.Unmarshal([]byte(p.place.fill(text)), &want); err != nil {
			return fmt.Errorf("want/result.json: %v", err)
		}
		var got any = p.results
		if _, many := want.([]any); !many && len(p.results) > 0 {
			got = p.results[len(p.results)-1]
		}
		if d := diff(got, want, "result"); d != "" {
			return errors.New(d)
		}
	}
	for _, name := range views {
		if text, ok := p.sc.sections["want/"+name+".json"]; ok {
			if err := p.check(name + " " + p.place.fill(text)); err != nil {
				return err
			}
		}
	}
	want, err := p.sc.wantFiles(p.place)
	if err != nil {
		return err
	}
	for path, w := range want {
		if g := got(filepath.Join(p.place.workspace, path)); encode(g) != encode(w) {
			return fmt.Errorf("file %s is %s, want %s", path, short(g), short(w))
		}
	}
	return nil
}
