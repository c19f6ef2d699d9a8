package a3s

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/a3s-lab/liba3s/runtime/agent"
)

// RegisterTransport sends the HTTP requests of a provider through your program: the
// provider names it by transport = "host/NAME", for sessions that open afterwards. The
// requests carry the provider's key in their headers: treat them as a secret. Redirects
// are not followed; http.DefaultTransport and what wraps it will do. An answer has 10
// minutes. A request whose answer is no longer wanted ends with its context.
func (a *Agent) RegisterTransport(ctx context.Context, name string, t http.RoundTripper, options ...ExtensionOption) (*Registration, error) {
	if none(t) {
		return nil, missing("transport", "transport")
	}
	return a.supply(ctx, "transport", map[string]any{"name": name}, options, map[string]Handler{
		"round_trip": func(ctx context.Context, params json.RawMessage, chunk func(any) error) (any, error) {
			var p agent.HostTransportRequest
			if err := json.Unmarshal(params, &p); err != nil {
				return nil, err
			}
			return struct{}{}, roundTrip(ctx, t, p, chunk)
		},
	})
}

func roundTrip(ctx context.Context, t http.RoundTripper, p agent.HostTransportRequest, chunk func(any) error) error {
	req, err := http.NewRequestWithContext(ctx, p.Method, p.URL, bytes.NewReader(p.Body))
	if err != nil {
		return err
	}
	req.Header = p.Headers
	res, err := t.RoundTrip(req)
	if err != nil {
		return err
	}
	if res == nil || res.Body == nil {
		return errors.New("the transport gave neither a response nor an error")
	}
	defer res.Body.Close()
	headers := map[string]string{}
	for name, values := range res.Header {
		headers[name] = strings.Join(values, ", ")
	}
	if err := chunk(agent.HostTransportChunk{Status: res.StatusCode, Headers: headers}); err != nil {
		return err
	}
	buf := make([]byte, 32<<10)
	for {
		n, err := res.Body.Read(buf)
		if n > 0 {
			piece := buf[:n]
			if err := chunk(agent.HostTransportChunk{Data: &piece}); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return err
		}
	}
}
