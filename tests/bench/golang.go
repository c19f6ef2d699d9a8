package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	a3s "github.com/a3s-lab/liba3s"
	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/session"
)

// The column of Go: a program of package a3s, where nothing lies between host and
// library. The same parts as the programs of the other languages.

func goChild(ctx context.Context, part, dir, number string) error {
	n, err := strconv.Atoi(number)
	if err != nil {
		return err
	}
	a, err := a3s.Create(ctx, filepath.Join(dir, "agent.acl"))
	if err != nil {
		return err
	}
	parts := map[string]func(context.Context, *goHost, int) error{
		"call": goCall, "deliver": goDeliver, "many": goMany, "wake": goWake, "host": goHostTool, "first": goFirst, "memory": goMemory,
	}
	run, ok := parts[part]
	if !ok {
		return fmt.Errorf("there is no part %q", part)
	}
	return errors.Join(run(ctx, &goHost{a, dir}, n), a.Close(ctx))
}

type goHost struct {
	agent *a3s.Agent
	dir   string
}

func (h *goHost) session(ctx context.Context, o *a3s.SessionOptions) (*a3s.Session, error) {
	return h.agent.Session(ctx, filepath.Join(h.dir, "workspace"), o)
}

// finished is a run that has ended and whose events are kept.
func (h *goHost) finished(ctx context.Context, id *string) (*a3s.Run, error) {
	o := unbounded(unmerged(options()))
	o.SessionID = id
	s, err := h.session(ctx, o)
	if err != nil {
		return nil, err
	}
	r, err := s.Start("go on", nil)
	if err != nil {
		return nil, err
	}
	_, err = r.Wait(ctx)
	return r, err
}

func goCall(ctx context.Context, h *goHost, n int) error {
	s, err := h.session(ctx, nil)
	if err != nil {
		return err
	}
	var each []float64
	for range 51 {
		start := time.Now()
		for range n / 10 {
			_ = s.Info()
		}
		each = append(each, time.Since(start).Seconds()/float64(n/10))
	}
	printQuantiles("session_info", each)
	return nil
}

// goParsed gives the rate of n deltas, type and text of each.
func goParsed(r *a3s.Run, n int) (float64, error) {
	start, seen, length, rate := time.Now(), 0, 0, math.NaN()
	for e, err := range r.Events(0) {
		if err != nil {
			return 0, err
		}
		if e.Type != "text_delta" {
			continue
		}
		p, err := a3s.Decode(e)
		if err != nil {
			return 0, err
		}
		length += len(p.(event.TextDelta).Text)
		if seen++; seen == n {
			rate = float64(n) / time.Since(start).Seconds()
		}
	}
	if length < n {
		return 0, fmt.Errorf("%d events of %d came", seen, n)
	}
	return rate, nil
}

func goDeliver(ctx context.Context, h *goHost, n int) error {
	if err := goRaw(ctx, h, n); err != nil {
		return err
	}
	r, err := h.finished(ctx, nil)
	if err != nil {
		return err
	}
	var sync []float64
	for range 3 {
		rate, err := goParsed(r, n)
		if err != nil {
			return err
		}
		sync = append(sync, rate)
	}
	fmt.Println("sync", median(sync))
	return nil
}

// goRaw reads a run's events as bytes, by the cursor under package a3s, and again with a
// parser on each batch.
func goRaw(ctx context.Context, h *goHost, n int) error {
	dir := filepath.Join(h.dir, "raw")
	a, err := openAgent(ctx, dir, words(n))
	if err != nil {
		return err
	}
	defer a.Close(ctx)
	s, err := a.OpenSession(ctx, spec(dir, unbounded(unmerged(options()))))
	if err != nil {
		return err
	}
	r, err := s.Start(session.Prompt{Text: "go on"})
	if err != nil {
		return err
	}
	if _, err := r.Wait(ctx); err != nil {
		return err
	}
	buf := make([]byte, 128<<10)
	read := func(use func([]byte) error) (float64, error) {
		var rates []float64
		for range 3 {
			c, start := r.Stream(0), time.Now()
			for {
				got, _, err := c.Next(ctx, 256, buf)
				if fault.KindOf(err) == fault.Buffer { // the terminal event holds the whole text again: it does not count
					break
				}
				if err == nil {
					err = use(buf[:got])
				}
				if err != nil {
					return 0, err
				}
			}
			rates = append(rates, float64(n)/time.Since(start).Seconds())
			c.Close()
		}
		return median(rates), nil
	}
	raw, err := read(func([]byte) error { return nil })
	if err != nil {
		return err
	}
	floor, err := read(func(b []byte) error {
		var all []any
		return json.Unmarshal(b, &all)
	})
	fmt.Println("raw", raw)
	fmt.Println("floor", floor)
	return err
}

// goMany reads 100 runs at once, each in a goroutine.
func goMany(ctx context.Context, h *goHost, n int) error {
	const sessions = 100
	var runs []*a3s.Run
	for i := range sessions {
		r, err := h.finished(ctx, a3s.Ptr(fmt.Sprintf("many-%031d", i)))
		if err != nil {
			return err
		}
		runs = append(runs, r)
	}
	var rates []float64
	for range 3 {
		start := time.Now()
		errs := make([]error, sessions)
		var wg sync.WaitGroup
		for i, r := range runs {
			wg.Go(func() { _, errs[i] = goParsed(r, n) })
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			return err
		}
		rates = append(rates, float64(sessions*n)/time.Since(start).Seconds())
	}
	fmt.Println("many", median(rates))
	return nil
}

type empty struct{}

// goWake measures from a tool's word to the event in a range loop, and from a send to a
// receive on a channel.
func goWake(ctx context.Context, h *goHost, n int) error {
	stamps := make([]time.Time, n)
	pace, err := a3s.NewTool("pace", "Paces.", func(_ context.Context, _ empty, emit func(string)) (string, error) {
		for i := range n {
			time.Sleep(time.Millisecond)
			stamps[i] = time.Now()
			emit(strconv.Itoa(i) + ";")
		}
		return "done", nil
	}, a3s.ReadOnly())
	if err != nil {
		return err
	}
	s, err := h.session(ctx, unmerged(options()))
	if err == nil {
		_, err = s.RegisterTool(ctx, pace)
	}
	if err != nil {
		return err
	}
	var late []float64
	for e, err := range s.Stream(ctx, "go on") {
		now := time.Now()
		if err != nil {
			return err
		}
		if e.Type != "tool_output_delta" {
			continue
		}
		p, err := a3s.Decode(e)
		if err != nil {
			return err
		}
		i, err := strconv.Atoi(strings.TrimSuffix(p.(event.ToolOutputDelta).Delta, ";"))
		if err != nil {
			return err
		}
		late = append(late, now.Sub(stamps[i]).Seconds())
	}
	printQuantiles("sync", late)

	late = late[:0]
	pieces := make(chan time.Time)
	go func() {
		defer close(pieces)
		for range n {
			time.Sleep(time.Millisecond)
			pieces <- time.Now()
		}
	}()
	for at := range pieces {
		late = append(late, time.Since(at).Seconds())
	}
	printQuantiles("floor_sync", late)
	return nil
}

// goHostTool runs calls of a tool of this program: the time from one to the next.
func goHostTool(ctx context.Context, h *goHost, n int) error {
	var at []time.Time
	tick, err := a3s.NewTool("tick", "Ticks.", func(context.Context, struct {
		N int `json:"n,omitempty"`
	}, func(string)) (string, error) {
		at = append(at, time.Now())
		return "ticked", nil
	}, a3s.ReadOnly())
	if err != nil {
		return err
	}
	var each []float64
	for run := range n + 1 {
		at = at[:0]
		s, err := h.session(ctx, unmerged(options()))
		if err == nil {
			_, err = s.RegisterTool(ctx, tick)
		}
		if err == nil {
			_, err = s.Send(ctx, "go on", nil)
		}
		if err == nil {
			err = s.Close(ctx)
		}
		if err != nil {
			return err
		}
		for i := 1; i < len(at) && run > 0; i++ { // the first one warms up
			each = append(each, at[i].Sub(at[i-1]).Seconds())
		}
	}
	printQuantiles("sync", each)
	return nil
}

func goFirst(ctx context.Context, h *goHost, _ int) error {
	s, err := h.session(ctx, nil)
	if err != nil {
		return err
	}
	for _, err := range s.Stream(ctx, "go on") {
		if err != nil {
			return err
		}
		fmt.Println("first")
		break
	}
	return nil
}

// goMemory measures what n further sessions take, before and after a short run each.
func goMemory(ctx context.Context, h *goHost, n int) error {
	var all []*a3s.Session
	open := func() error {
		s, err := h.session(ctx, nil)
		all = append(all, s)
		return err
	}
	if err := open(); err != nil {
		return err
	}
	if _, err := all[0].Send(ctx, "go on", nil); err != nil {
		return err
	}
	base := usage()
	for range n {
		if err := open(); err != nil {
			return err
		}
	}
	fmt.Println("fresh", usage().since(base).rss/float64(n))
	for _, s := range all[1:] {
		if _, err := s.Send(ctx, "go on", nil); err != nil {
			return err
		}
	}
	fmt.Println("used", usage().since(base).rss/float64(n))
	return nil
}

func printQuantiles(name string, v []float64) {
	fmt.Println(name, quantile(v, 0.5), quantile(v, 0.99))
}
