package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/host"
	"github.com/a3s-lab/liba3s/runtime/host/hosttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var bg = context.Background()

func silent(context.Context, host.Request, func(any)) (any, error) { return nil, hosttest.ErrSilent }

func wantKind(t *testing.T, what string, err error, kind fault.Kind) {
	t.Helper()
	if fault.KindOf(err) != kind {
		t.Errorf("%s: got %v (%s), want kind %s", what, err, fault.KindOf(err), kind)
	}
}

// What ends a question that nobody answers: its own deadline, the asker's context, the
// loss of the host, the end of its session.
func TestEnds(t *testing.T) {
	for _, c := range []struct {
		name   string
		end    func(h *hosttest.Host, cancel context.CancelFunc)
		kind   fault.Kind
		after  time.Duration
		reason string
	}{
		{"deadline", func(*hosttest.Host, context.CancelFunc) {}, fault.Timeout, time.Minute, "timeout"},
		{"context", func(_ *hosttest.Host, cancel context.CancelFunc) { cancel() }, fault.Cancelled, time.Second, "cancelled"},
		{"lost", func(h *hosttest.Host, _ context.CancelFunc) { h.Desk.Lost() }, fault.Unsupported, time.Second, "lost"},
		{"session", func(h *hosttest.Host, _ context.CancelFunc) { h.Desk.CancelSession("s1", "closed") }, fault.Cancelled, time.Second, "cancelled"},
		{"another session", func(h *hosttest.Host, _ context.CancelFunc) { h.Desk.CancelSession("s2", "closed") }, fault.Timeout, time.Minute, "timeout"},
		{"the desk closes", func(h *hosttest.Host, _ context.CancelFunc) { h.Desk.Close() }, fault.Timeout, time.Minute, "timeout"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := hosttest.New(t, silent)
				ctx, cancel := context.WithCancel(bg)
				defer cancel()
				time.AfterFunc(time.Second, func() { c.end(h, cancel) })
				began := time.Now()
				_, err := h.Desk.Ask(ctx, host.Request{Kind: "tool", Name: "t", SessionID: "s1", Deadline: time.Minute}, nil)
				wantKind(t, "ask", err, c.kind)
				if took := time.Since(began); took != c.after {
					t.Errorf("after %v, want %v", took, c.after)
				}
				id := h.Requests()[0].ID
				if got := h.Withdrawn(id); got != c.reason {
					t.Errorf("withdrawn for %q, want %q", got, c.reason)
				}
				wantKind(t, "a late reply", h.Desk.Reply(id, []byte(`{"result":1}`)), fault.NotFound)
				wantKind(t, "a late chunk", h.Desk.Chunk(id, []byte(`{}`)), fault.NotFound)
				if n := h.Desk.Open(); n != 0 {
					t.Errorf("%d open", n)
				}
			})
		})
	}
}

func TestRefusals(t *testing.T) {
	h := hosttest.New(t, silent)
	h.Deaf = true
	_, err := h.Desk.Ask(bg, host.Request{Kind: "tool", Deadline: time.Minute}, nil)
	if err == nil || h.Desk.Open() != 0 {
		t.Errorf("deaf: %v, %d open", err, h.Desk.Open())
	}
	h.Desk.Close()
	_, err = h.Desk.Ask(bg, host.Request{Kind: "tool", Deadline: time.Minute}, nil)
	wantKind(t, "closed", err, fault.Closed)
	dead, cancel := context.WithCancel(bg)
	cancel()
	_, err = hosttest.New(t, silent).Desk.Ask(dead, host.Request{Kind: "tool", Deadline: time.Minute}, nil)
	wantKind(t, "cancelled before", err, fault.Cancelled)
}

// An answer that is no answer is refused where it is given, and the question stays open.
func TestMalformed(t *testing.T) {
	refused := make(chan error, 16)
	var h *hosttest.Host
	bad := []string{``, `{`, `{} {}`, "\"\xff\"", strings.Repeat("[", 65) + strings.Repeat("]", 65), `"` + strings.Repeat("x", 64<<20) + `"`}
	h = hosttest.New(t, func(_ context.Context, r host.Request, _ func(any)) (any, error) {
		for _, b := range bad {
			refused <- h.Desk.Reply(r.ID, []byte(b))
			refused <- h.Desk.Chunk(r.ID, []byte(b))
		}
		return hosttest.Raw(`"[[[[\"]"`), nil
	})
	b, err := h.Desk.Ask(bg, host.Request{Kind: "tool", Deadline: time.Minute}, func(c json.RawMessage) { t.Errorf("chunk %.40s", c) })
	if err != nil || string(b) != `"[[[[\"]"` {
		t.Errorf("%s %v", b, err)
	}
	for range 2 * len(bad) {
		if err := <-refused; fault.KindOf(err) != fault.Invalid && fault.KindOf(err) != fault.Limit {
			t.Errorf("%v", err)
		}
	}
}

// Chunks come in order and before the reply; a host that floods waits.
func TestChunks(t *testing.T) {
	h := hosttest.New(t, func(_ context.Context, _ host.Request, chunk func(any)) (any, error) {
		for i := range 1000 {
			chunk(i)
		}
		return "end", nil
	})
	next := 0
	b, err := h.Desk.Ask(bg, host.Request{Kind: "tool", Deadline: time.Minute}, func(c json.RawMessage) {
		var n int
		if json.Unmarshal(c, &n) != nil || n != next {
			t.Errorf("chunk %s, want %d", c, next)
		}
		next++
	})
	if err != nil || string(b) != `"end"` || next != 1000 {
		t.Errorf("%s %v after %d chunks", b, err, next)
	}
}

// What is no answer is refused at once and does not use up the one answer.
func TestRepliesThatAreRefused(t *testing.T) {
	for _, bad := range []string{`{"result":1,"error":{"type":"E","message":"m"}}`, `{}`, `[]`, `{"zzz":1}`, `{"result":1,"more":2}`, `"x"`} {
		var h *hosttest.Host
		h = hosttest.New(t, func(_ context.Context, r host.Request, _ func(any)) (any, error) {
			if err := h.Desk.Reply(r.ID, []byte(bad)); fault.KindOf(err) != fault.Invalid {
				t.Errorf("%s: %v", bad, err)
			}
			if err := h.Desk.Reply(r.ID, []byte(`{"result":"good"}`)); err != nil {
				t.Errorf("after %s: %v", bad, err)
			}
			return nil, hosttest.ErrSilent
		})
		if b, err := h.Desk.Ask(bg, host.Request{Kind: "tool", Deadline: time.Minute}, nil); string(b) != `"good"` || err != nil {
			t.Errorf("after %s: %s, %v", bad, b, err)
		}
	}
}

func TestReplies(t *testing.T) {
	for _, c := range []struct {
		name, reply string
		result      string
		failure     *host.Failure
	}{
		{"a result", `{"result":{"a":1}}`, `{"a":1}`, nil},
		{"null", `{"result":null}`, `null`, nil},
		{"a result with spaces", ` { "result" : "}" } `, `"}"`, nil},
		{"escaped texts", `{"result":"\\\\\"[[{\\\""}`, `"\\\\\"[[{\\\""`, nil},
		{"a failure", `{"error":{"type":"E","message":"m"}}`, "", &host.Failure{Type: "E", Message: "m"}},
		{"a failure with all", `{"error":{"type":"E","message":"m","kind":"conflict","retryable":true,"retry_after_ms":5,"details":{"a":1}}}`, "",
			&host.Failure{Type: "E", Message: "m", Kind: "conflict", Retryable: true, RetryAfterMS: 5}},
		{"a negative wait", `{"error":{"type":"E","message":"m","retry_after_ms":-5}}`, "", &host.Failure{Type: "E", Message: "m"}},
		{"too much", `{"result":"` + strings.Repeat("x", 2<<20) + `"}`, "", &host.Failure{Type: "InvalidReply", Message: "the answer has 2097154 bytes, more than 1048576"}},
		{"too much to be read at all", `{"result":` + strings.Repeat("[", 2<<20), "", &host.Failure{Type: "InvalidReply", Message: "the answer has 2097151 bytes, more than 1048576"}},
		{"an error that is none", `{"error":5}`, "", &host.Failure{Type: "InvalidReply", Message: "the error cannot be read: json: cannot unmarshal number into Go value of type host.Failure"}},
		{"a long message", `{"error":{"type":"E","message":"` + strings.Repeat("ä", 5000) + `"}}`, "", &host.Failure{Type: "E", Message: strings.Repeat("ä", 4096)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var h *hosttest.Host
			h = hosttest.New(t, func(_ context.Context, r host.Request, _ func(any)) (any, error) {
				if err := h.Desk.Reply(r.ID, []byte(c.reply)); err != nil {
					t.Error(err)
				}
				return nil, hosttest.ErrSilent
			})
			b, err := h.Desk.Ask(bg, host.Request{Kind: "tool", Deadline: time.Minute}, nil)
			var f *host.Failure
			if errors.As(err, &f) {
				f.Details = nil
			}
			if string(b) != c.result || (f == nil) != (c.failure == nil) || f != nil && (f.Error() != c.failure.Error() || f.Kind != c.failure.Kind || f.Retryable != c.failure.Retryable || f.RetryAfterMS != c.failure.RetryAfterMS) {
				t.Errorf("got %s, %+v; want %s, %+v", b, f, c.result, c.failure)
			}
		})
	}
}

func TestLine(t *testing.T) {
	h := hosttest.New(t, func(_ context.Context, r host.Request, chunk func(any)) (any, error) {
		chunk(1)
		return hosttest.Raw(r.Params), nil
	})
	l := host.NewLine(h.Desk, "tool", "t", time.Minute)
	ask := func(q host.Question, into any) error { return l.Ask(bg, q, into) }
	var out struct{ A int }
	if err := ask(host.Question{Op: "x", Params: map[string]int{"a": 3}, SessionID: "s1"}, &out); err != nil || out.A != 3 {
		t.Errorf("%+v %v", out, err)
	}
	want := host.Request{ID: 1, Kind: "tool", Name: "t", Op: "x", Params: json.RawMessage(`{"a":3}`), SessionID: "s1", Deadline: time.Minute}
	if got := h.Requests()[0]; string(got.Params) != string(want.Params) || got.Deadline != want.Deadline || got.SessionID != "s1" || got.Op != "x" {
		t.Errorf("%+v", got)
	}
	if f := host.Explain(ask(host.Question{Params: map[string]int{"b": 3}}, &out)); f == nil || f.Type != "InvalidReply" {
		t.Errorf("an unknown key: %v", f)
	}
	if f := host.Explain(ask(host.Question{Params: map[string]string{"a": strings.Repeat("x", 100)}, Max: 50}, &out)); f == nil || !strings.Contains(f.Message, "more than 50") {
		t.Errorf("too much: %v", f)
	}
	broken := errors.New("broken")
	if err := ask(host.Question{Params: map[string]int{}, Chunk: func(json.RawMessage) error { return broken }}, &out); err != broken {
		t.Errorf("an error of chunk: %v", err)
	}
	if err := ask(host.Question{Params: func() {}}, &out); fault.KindOf(err) != fault.Internal {
		t.Errorf("no JSON: %v", err)
	}
	l.End()
	if err := ask(host.Question{Params: 1}, &out); !host.Gone(err) {
		t.Errorf("taken back: %v", err)
	}
}

func TestExtension(t *testing.T) {
	for name, ok := range map[string]bool{"a": true, "my-tool_2": true, "qwen3:8b": true, "a.b": true, "": false, "-a": false, "a b": false, "a/b": false, "ä": false, strings.Repeat("a", 64): true, strings.Repeat("a", 65): false} {
		if err := (host.Extension{Name: name}).Check(); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
	for ms, ok := range map[int64]bool{0: true, 1: true, -1: false, 86_400_000: true, 86_400_001: false} {
		if err := (host.Extension{Name: "a", TimeoutMS: ms}).Check(); (err == nil) != ok {
			t.Errorf("%d: %v", ms, err)
		}
	}
	if d := (host.Extension{TimeoutMS: 5}).Deadline(time.Hour); d != 5*time.Millisecond {
		t.Error(d)
	}
}

// Whatever a host answers, the question ends: with a result that is JSON, or a failure of
// a bounded size.
func FuzzReply(f *testing.F) {
	for _, s := range []string{`{"result":1}`, `{"error":{"type":"a","message":"b"}}`, `{`, `[[[]]]`, `"\"["`, "{\"result\":\"\xff\"}", `{"result":{"a":[{"b":null}]},"error":null}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var h *hosttest.Host
		h = hosttest.New(t, func(_ context.Context, r host.Request, _ func(any)) (any, error) {
			if h.Desk.Reply(r.ID, b) != nil {
				return nil, errors.New("refused")
			}
			return nil, hosttest.ErrSilent
		})
		got, err := h.Desk.Ask(bg, host.Request{Kind: "tool", Deadline: time.Minute}, nil)
		var fail *host.Failure
		switch {
		case err == nil && !json.Valid(got):
			t.Errorf("%q gave %q", b, got)
		case err != nil && !errors.As(err, &fail):
			t.Errorf("%q gave %v", b, err)
		case err != nil && len(fail.Message) > 8<<10:
			t.Errorf("%q gave a message of %d bytes", b, len(fail.Message))
		}
	})
}
