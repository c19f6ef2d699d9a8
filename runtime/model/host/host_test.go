package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"

	"github.com/a3s-lab/liba3s/internal/httpx"
	"github.com/a3s-lab/liba3s/runtime/fault"
	desk "github.com/a3s-lab/liba3s/runtime/host"
	"github.com/a3s-lab/liba3s/runtime/host/hosttest"
	"github.com/a3s-lab/liba3s/runtime/model"
	"github.com/a3s-lab/liba3s/runtime/model/host"
	"github.com/a3s-lab/liba3s/runtime/model/modeltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var bg = context.Background()

func open(t testing.TB, h *hosttest.Host, timeout time.Duration) model.Client {
	t.Helper()
	c, err := host.Open(bg, host.Config{Line: desk.NewLine(h.Desk, "model", "mine", host.Deadline), Timeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// player gives turns, one a request.
type player struct {
	chunks bool // what is said comes in chunks
	mu     sync.Mutex
	turns  []modeltest.Turn
}

func (p *player) answer(ctx context.Context, _ desk.Request, chunk func(any)) (any, error) {
	p.mu.Lock()
	turn := p.turns[0]
	p.turns = p.turns[1:]
	p.mu.Unlock()
	switch turn.Fail {
	case modeltest.Busy:
		return nil, &desk.Failure{Type: "Busy", Message: "later", Retryable: true}
	case modeltest.Reject:
		return nil, errors.New("no")
	case modeltest.Cut, modeltest.Hang:
		chunk(host.ModelChunk{Text: &turn.Text})
		if turn.Fail == modeltest.Cut {
			return nil, &desk.Failure{Type: "Cut", Message: "cut", Kind: "incomplete"}
		}
		<-ctx.Done()
		return nil, hosttest.ErrSilent
	}
	r := host.ModelResult{Usage: turn.Usage, Text: turn.Text, Reasoning: turn.Reasoning}
	for _, c := range turn.Calls {
		args := json.RawMessage(c.Args)
		if !json.Valid(args) {
			args = hosttest.Encode(nil, c.Args)
		}
		r.ToolCalls = append(r.ToolCalls, host.ModelToolCall{Name: c.Name, Arguments: args})
	}
	if p.chunks {
		if turn.Reasoning != "" {
			chunk(host.ModelChunk{Reasoning: &turn.Reasoning})
		}
		for _, r := range turn.Text {
			s := string(r)
			chunk(host.ModelChunk{Text: &s})
		}
		for i := range r.ToolCalls {
			chunk(host.ModelChunk{ToolCall: &r.ToolCalls[i]})
		}
	}
	return r, nil
}

func TestSuite(t *testing.T) {
	for name, chunks := range map[string]bool{"in chunks": true, "at once": false} {
		t.Run(name, func(t *testing.T) {
			modeltest.Run(t, modeltest.Features{Reasoning: true, Malformed: true, Usage: true}, func(t *testing.T, turns ...modeltest.Turn) model.Client {
				p := &player{chunks: chunks, turns: turns}
				return open(t, hosttest.New(t, p.answer), 0)
			})
		})
	}
}

// Every request has a deadline: ten minutes, or what the session allows.
func TestDeadline(t *testing.T) {
	for wanted, timeout := range map[time.Duration]time.Duration{10 * time.Minute: 0, time.Second: time.Second} {
		synctest.Test(t, func(t *testing.T) {
			h := hosttest.New(t, func(context.Context, desk.Request, func(any)) (any, error) { return nil, hosttest.ErrSilent })
			began := time.Now()
			_, err := model.Collect(bg, open(t, h, timeout).Stream(bg, model.Request{}), nil)
			f := fault.From("", err)
			if f.Code != fault.CodeLLM || !f.Retryable || f.Details["reason"] != "timeout" || time.Since(began) != wanted {
				t.Errorf("%v after %v, want %v", err, time.Since(began), wanted)
			}
		})
	}
}

// Whatever a host says, an answer is whole or an LLM_ERROR, and text is text.
func FuzzAnswer(f *testing.F) {
	for _, s := range [][2]string{
		{`{"text":"a"}`, `{"text":"ab","usage":{"prompt_tokens":1}}`},
		{`{"tool_call":{"name":"x","arguments":{"a":1}}}`, `{"tool_calls":[{"name":"x"},{"name":"y","arguments":"{"}]}`},
		{`{"reasoning":"r","text":"t"}`, `null`},
		{`[]`, `{"stop":"x"}`},
		{`{"tool_call":null}`, `{"usage":{"total_tokens":-1}}`},
	} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, chunk, result string) {
		h := hosttest.New(t, func(_ context.Context, _ desk.Request, send func(any)) (any, error) {
			send(hosttest.Raw(chunk))
			if !json.Valid([]byte(result)) || !utf8.ValidString(result) {
				return nil, errors.New("no JSON")
			}
			return hosttest.Raw(result), nil
		})
		ctx, cancel := context.WithTimeout(bg, time.Second) // nesting beyond the bound gets no answer
		defer cancel()
		a, err := model.Collect(ctx, open(t, h, 0).Stream(ctx, model.Request{}), nil)
		if err != nil && fault.From("", err).Code != fault.CodeLLM && ctx.Err() == nil {
			t.Errorf("%q, %q gave %v", chunk, result, err)
		}
		if m := a.Message; !utf8.ValidString(m.Text()) || !utf8.ValidString(m.ReasoningContent) || len(m.Calls()) > 128 {
			t.Errorf("%q, %q gave %+v", chunk, result, m)
		}
	})
}

// Whatever a transport says, a request ends in an answer, in an LLM_ERROR, or with its
// context.
func FuzzTransport(f *testing.F) {
	for _, s := range [][2]string{
		{`{"status":200,"headers":{"a":"b"}}`, `{"text":"{}"}`},
		{`{"status":200,"data":"e30="}`, `null`},
		{`{"text":"x"}`, `{}`},
		{`{"status":99}`, `{"status":200,"headers":{"a b":"c"}}`},
		{`{"status":500,"text":"no"}`, `{"status":1}`},
	} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, chunk, result string) {
		h := hosttest.New(t, func(_ context.Context, _ desk.Request, send func(any)) (any, error) {
			send(hosttest.Raw(chunk))
			if !json.Valid([]byte(result)) || !utf8.ValidString(result) {
				return nil, errors.New("no JSON")
			}
			return hosttest.Raw(result), nil
		})
		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		var out any
		err := fetch(ctx, t, h, &out)
		if err != nil && fault.From("", err).Code != fault.CodeLLM && ctx.Err() == nil {
			t.Errorf("%q, %q gave %v", chunk, result, err)
		}
	})
}

func fetch(ctx context.Context, t testing.TB, h *hosttest.Host, out any) error {
	rt, err := host.OpenTransport(ctx, desk.NewLine(h.Desk, "transport", "tunnel", host.Deadline))
	if err != nil {
		t.Fatal(err)
	}
	c, err := httpx.New(httpx.Config{RoundTripper: rt})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	u, err := httpx.ParseURL("https://models.example/v1")
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.JSON(ctx, httpx.Request{Op: "test", URL: u, Header: http.Header{"X-Key": {"k"}}, Body: map[string]int{"a": 1}}, 0, out)
	return err
}

// A body comes piece by piece, binary or not, and a large one without being held.
func TestTransportBody(t *testing.T) {
	big := strings.Repeat("0123456789", 200_000)
	h := hosttest.New(t, func(_ context.Context, r desk.Request, chunk func(any)) (any, error) {
		var p host.TransportRequest
		if err := json.Unmarshal(r.Params, &p); err != nil || string(p.Body) != `{"a":1}` || p.Method != "POST" || p.Headers["X-Key"][0] != "k" {
			t.Errorf("%+v %v", p, err)
		}
		chunk(host.TransportChunk{Status: 200})
		text, data := `{"big":"`, []byte(big)
		chunk(host.TransportChunk{Text: &text})
		chunk(host.TransportChunk{Data: &data})
		end := `"}`
		return host.TransportResponse{Text: &end}, nil
	})
	var out struct{ Big string }
	if err := fetch(bg, t, h, &out); err != nil || out.Big != big {
		t.Errorf("%d bytes, %v", len(out.Big), err)
	}
}

// A reader that leaves withdraws the request.
func TestTransportLeft(t *testing.T) {
	gone := make(chan struct{})
	h := hosttest.New(t, func(ctx context.Context, _ desk.Request, chunk func(any)) (any, error) {
		text := "x"
		chunk(host.TransportChunk{Status: 200})
		for ctx.Err() == nil {
			chunk(host.TransportChunk{Text: &text})
		}
		close(gone)
		return nil, hosttest.ErrSilent
	})
	rt, err := host.OpenTransport(bg, desk.NewLine(h.Desk, "transport", "tunnel", host.Deadline))
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequest("GET", "https://models.example/", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := rt.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := res.Body.Read(make([]byte, 1)); err != nil {
		t.Error(err)
	}
	if err := res.Body.Close(); err != nil {
		t.Error(err)
	}
	<-gone
}
