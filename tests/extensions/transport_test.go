package extensions

import (
	"errors"
	"strings"
	"testing"

	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/host"
)

const overHost = `default_model = "openai/gpt"
providers "openai" { apiKey = "sk-the-key-of-tests" transport = "host/tunnel" baseUrl = "https://models.example" models "gpt" { } }`

const sse = `data: {"id":"c1","choices":[{"index":0,"delta":{"content":"hel"}}]}

data: {"id":"c1","choices":[{"index":0,"delta":{"content":"lo"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}

data: [DONE]

`

func TestTransport(t *testing.T) {
	for name, answer := range map[string]handler{
		"in chunks": func(a asked) (any, error) {
			_ = a.chunk(object{"status": 200, "headers": object{"Content-Type": "text/event-stream"}})
			for i := 0; i < len(sse); i += 20 {
				_ = a.chunk(object{"data": []byte(sse[i:min(i+20, len(sse))])})
			}
			return nil, nil
		},
		"at once": result(object{"status": 200, "headers": object{"content-type": "text/event-stream"}, "text": sse}),
		"as JSON": result(object{"status": 200, "headers": object{"content-type": "application/json"}, "text": `{"id":"c1","choices":[{"index":0,"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}]}`}),
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, overHost, nil)
			p.on("transport/round_trip", func(a asked) (any, error) {
				want(t, "method", a.param("method"), "POST")
				want(t, "url", a.param("url"), "https://models.example/v1/chat/completions")
				want(t, "key", a.param("headers").(object)["Authorization"], []string{"Bearer sk-the-key-of-tests"})
				if body, ok := a.param("body").(string); !ok || body == "" {
					t.Error("no body")
				}
				return answer(a)
			})
			p.register("transport", object{"name": "tunnel"})
			r := p.run(p.session(nil), "hi")
			if r.err != nil || r.text != "hello" {
				t.Fatalf("%q %v", r.text, r.err)
			}
		})
	}
}

func TestTransportFails(t *testing.T) {
	cut := func(a asked) (any, error) {
		_ = a.chunk(object{"status": 200, "headers": object{"content-type": "text/event-stream"}})
		_ = a.chunk(object{"text": sse[:40]})
		return nil, errors.New("cable cut")
	}
	for name, c := range map[string]struct {
		spec   object
		answer handler
		words  string
		retry  bool
	}{
		"raises":             {nil, func(asked) (any, error) { return nil, errors.New("no route") }, "ValueError: no route", false},
		"may be tried again": {nil, func(asked) (any, error) { return nil, &host.Failure{Type: "Busy", Message: "x", Retryable: true} }, "Busy: x", true},
		"no answer in time":  {object{"name": "tunnel", "timeout_ms": 40}, func(asked) (any, error) { return nil, errSilent }, "within 40ms", true},
		"status 401":         {nil, result(object{"status": 401, "text": `{"error":{"message":"bad key"}}`}), "refused the key", false},
		"status 503":         {nil, result(object{"status": 503}), "HTTP 503", true},
		"no status":          {nil, result(object{"text": "x"}), "status 0", false},
		"nothing":            {nil, result(nil), "status 0", false},
		"a broken header":    {nil, result(object{"status": 200, "headers": object{"a b": "x"}}), "headers cannot be used", false},
		"a header of two":    {nil, result(object{"status": 200, "headers": object{"a": "x\r\nb: y"}}), "headers cannot be used", false},
		"not an object":      {nil, result(5), "cannot be read", false},
		"cut":                {nil, cut, "stream incomplete", true},
		"status twice": {nil, func(a asked) (any, error) {
			_ = a.chunk(object{"status": 200, "headers": object{"content-type": "text/event-stream"}})
			return object{"status": 200}, nil
		}, "stream incomplete", true},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, overHost, nil)
			p.on("transport/round_trip", c.answer)
			if c.spec == nil {
				c.spec = object{"name": "tunnel"}
			}
			p.register("transport", c.spec)
			r := p.run(p.session(object{"circuit_breaker_threshold": 1}), "hi")
			f := wantError(t, "run", r.err, fault.CodeLLM, c.words)
			if f.Retryable != c.retry {
				t.Errorf("retryable %v: %v", f.Retryable, f)
			}
		})
	}
}

// A cancelled run withdraws the request, whether or not its body is being read.
func TestTransportCancelled(t *testing.T) {
	for name, begin := range map[string]bool{"before the status": false, "in the body": true} {
		t.Run(name, func(t *testing.T) {
			p := start(t, overHost, nil)
			s := make(chan func() bool, 1)
			p.on("transport/round_trip", func(a asked) (any, error) {
				if begin {
					_ = a.chunk(object{"status": 200, "headers": object{"content-type": "text/event-stream"}})
					_ = a.chunk(object{"text": strings.Repeat(": wait\n\n", 10)})
				}
				(<-s)()
				<-a.ctx.Done()
				return nil, errSilent
			})
			p.register("transport", object{"name": "tunnel"})
			se := p.session(nil)
			s <- func() bool { return se.CancelActive("") }
			wantError(t, "run", p.run(se, "hi").err, fault.CodeCancelled)
			p.withdraws("transport", "cancelled")
		})
	}
}

func TestTransportConfiguration(t *testing.T) {
	p := start(t, overHost, nil)
	_, err := p.trySession(nil)
	wantError(t, "not registered", err, fault.CodeConfig, `registered no transport "tunnel"`)
	p.register("transport", object{"name": "tunnel"})
	s := p.session(nil)
	_, err = p.tryRegister("transport", object{"name": "late"}, s)
	wantError(t, "with a session", err, fault.CodeInvalidRequest, "with the agent")

	p = deaf(t, overHost, nil)
	p.register("transport", object{"name": "tunnel"})
	wantError(t, "deaf", p.run(p.session(object{"circuit_breaker_threshold": 1}), "hi").err, fault.CodeLLM, "no control stream")
}
