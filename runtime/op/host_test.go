package op_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/a3s-lab/liba3s/runtime/agent"
	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/op"
	"github.com/a3s-lab/liba3s/runtime/session"
)

// asked reads the control stream up to the next frame of a type.
func asked[T event.Payload](t *testing.T, c *op.Stream) T {
	t.Helper()
	buf := make([]byte, 1<<20)
	for {
		n, _, err := c.Next(t.Context(), 1, buf)
		if err != nil {
			t.Fatal(err)
		}
		var frames []event.Envelope
		if err := json.Unmarshal(buf[:n], &frames); err != nil {
			t.Fatal(err)
		}
		var want T
		if frames[0].Type != want.Type() {
			continue
		}
		if err := json.Unmarshal(frames[0].Payload, &want); err != nil {
			t.Fatal(err)
		}
		return want
	}
}

func control(t *testing.T, a *agent.Agent) *op.Stream {
	t.Helper()
	c, err := op.OpenStream(t.Context(), a, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// A store that does not answer holds up the operations that close for their limit and no
// longer: they say that the rest goes on.
func TestS12ClosingIsBounded(t *testing.T) {
	defer op.CloseWithin(20 * time.Millisecond)()
	p := scripted(t, "say x")
	a := p.agent()
	c := control(t, a)
	if _, err := op.HostRegister(t.Context(), a, "store", []byte(`{"name":"stuck"}`)); err != nil {
		t.Fatal(err)
	}
	opened := make(chan *session.Session)
	go func() {
		opened <- p.session(a, with(allowAll, "session_store", object{"kind": "host", "name": "stuck"}))
	}()
	q := asked[event.HostRequest](t, c)
	if err := op.HostReply(t.Context(), a, q.Request, []byte(`{"result":{}}`)); err != nil {
		t.Fatal(err)
	}
	s := <-opened
	r, err := op.StartRun(t.Context(), s, request(t, object{"prompt": "go"}))
	if err != nil {
		t.Fatal(err)
	}
	asked[event.HostRequest](t, c) // its first facts, which nobody keeps
	for _, one := range []struct {
		on     op.Handle
		method string
		params any
	}{{s, "session.close", nil}, {a, "agent.close_session", object{"session_id": s.ID()}}, {a, "agent.close", nil}} {
		_, err := op.Call(t.Context(), one.on, one.method, request(t, one.params))
		wanted{fault.CodeTimeout, fault.Timeout, "background", nil}.check(t, err)
	}
	c.Close() // nobody listens any more: the store has failed
	_, _ = op.Wait(t.Context(), r)
	shut(t, a)
}

// What a host is asked when its session closes or its run is cancelled is withdrawn, and
// a reply that comes all the same finds nothing.
func TestS12HostRequestsAreWithdrawn(t *testing.T) {
	for _, how := range []string{"close", "cancel"} {
		t.Run(how, func(t *testing.T) {
			p := scripted(t, "call mine {\"x\":1}\nend\nsay never")
			a := p.agent()
			c := control(t, a)
			s := p.session(a, allowAll)
			if _, err := op.HostRegister(t.Context(), s, "tool", []byte(`{"name":"mine","description":"of the host"}`)); err != nil {
				t.Fatal(err)
			}
			r, err := op.StartRun(t.Context(), s, request(t, object{"prompt": "go"}))
			if err != nil {
				t.Fatal(err)
			}
			q := asked[event.HostRequest](t, c)
			if q.Kind != "tool" || q.Name != "mine" || q.SessionID != s.ID() || q.DeadlineMS <= 0 {
				t.Errorf("%+v", q)
			}
			began := time.Now()
			if how == "close" {
				shut(t, s)
			} else if err := op.Cancel(t.Context(), r, "enough"); err != nil {
				t.Fatal(err)
			}
			_, err = op.Wait(t.Context(), r)
			wanted{fault.CodeCancelled, fault.Cancelled, "", nil}.check(t, err)
			if d := time.Since(began); d > time.Second {
				t.Errorf("it took %v", d)
			}
			if w := asked[event.HostCancel](t, c); w.Request != q.Request {
				t.Errorf("%+v", w)
			}
			err = op.HostReply(t.Context(), a, q.Request, []byte(`{"result":{"output":"late"}}`))
			wanted{fault.CodeNotFound, fault.NotFound, "no open request", nil}.check(t, err)
		})
	}
}

// The host's chunks become output, its reply the result; what it says is redacted and
// bounded like any tool's.
func TestHostToolFromEndToEnd(t *testing.T) {
	p := scripted(t, "call mine {\"x\":1}\nend\nexpect all of it\nsay done")
	a := p.agent()
	c := control(t, a)
	s := p.session(a, allowAll)
	if _, err := op.HostRegister(t.Context(), a, "tool", []byte(`{"name":"mine","description":"of the host","parameters":{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"]}}`)); err != nil {
		t.Fatal(err)
	}
	r, err := op.StartRun(t.Context(), s, request(t, object{"prompt": "go"}))
	if err != nil {
		t.Fatal(err)
	}
	q := asked[event.HostRequest](t, c)
	for _, piece := range []string{"some ", "of it"} {
		if err := op.HostChunk(t.Context(), s, q.Request, request(t, object{"delta": piece})); err != nil {
			t.Fatal(err)
		}
	}
	bad := []struct {
		name  string
		reply []byte
		code  fault.Code
	}{
		{"no JSON", []byte("yes"), fault.CodeInvalidRequest},
		{"another request", []byte(`{"result":1}`), fault.CodeNotFound},
	}
	for i, b := range bad {
		if err := op.HostReply(t.Context(), a, q.Request+uint64(i*100), b.reply); fault.From("", err).Code != b.code {
			t.Errorf("%s: %v", b.name, err)
		}
	}
	if err := op.HostReply(t.Context(), a, q.Request, request(t, object{"result": object{"output": "all of it"}})); err != nil {
		t.Fatal(err)
	}
	told := read(t, r)
	if _, err := op.Wait(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	var output strings.Builder
	for _, e := range told {
		if e.Type == "tool_output_delta" {
			var d event.ToolOutputDelta
			if err := json.Unmarshal(e.Payload, &d); err != nil {
				t.Fatal(err)
			}
			output.WriteString(d.Delta)
		}
	}
	if output.String() != "some of it" {
		t.Errorf("output %q", output.String())
	}
	if end := outcomes(t, told); len(end) != 1 || end[0].Output != "all of it" || end[0].ExitCode != 0 {
		t.Errorf("%+v", end)
	}
}

// Exactly one answer to a question counts.
func TestConfirmCountsOnce(t *testing.T) {
	p := scripted(t, calls(`write {"file_path":"a","content":"x"}`))
	s := p.session(p.agent(), object{"confirmation_policy": object{"enabled": true, "default_timeout_ms": 0}})
	r, err := op.StartRun(t.Context(), s, request(t, object{"prompt": "go"}))
	if err != nil {
		t.Fatal(err)
	}
	c, err := op.OpenStream(t.Context(), r, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	q := asked[event.ConfirmationRequired](t, c)
	var pending op.PendingConfirmations
	call(t, s, "session.pending_confirmations", object{}, &pending)
	if len(pending.Pending) != 1 || pending.Pending[0].ToolID != q.ToolID || string(pending.Pending[0].Args) != string(q.Args) {
		t.Errorf("%+v", pending)
	}
	answer := func(id string, yes bool) string {
		var got op.Confirmed
		call(t, s, "session.confirm_tool_use", object{"tool_id": id, "approved": yes}, &got)
		if got.Found != (got.Status == "accepted") {
			t.Errorf("%+v", got)
		}
		return string(got.Status)
	}
	statuses := []string{answer("call-nobody-made", true), answer(q.ToolID, true), answer(q.ToolID, false)}
	if _, err := op.Wait(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	statuses = append(statuses, answer(q.ToolID, false))
	if want := []string{"unknown", "accepted", "stale", "stale"}; !slices.Equal(statuses, want) {
		t.Errorf("%v", statuses)
	}
	err = op.Input(t.Context(), r, request(t, object{"confirm": object{"tool_id": q.ToolID, "approved": true}}))
	wanted{fault.CodeNotFound, fault.NotFound, "stale", object{"status": "stale"}}.check(t, err)
}
