package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
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
