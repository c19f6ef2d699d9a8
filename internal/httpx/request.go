package httpx

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"net/url"
	"time"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

const (
	// maxErrorBody bounds what is read of, and told about, an error answer.
	maxErrorBody = 4 << 10
	// errorBodyWait bounds the time an error answer may take; the failure is known already.
	errorBodyWait = 2 * time.Second
	// DefaultMaxBody bounds a whole answer that is read at once.
	DefaultMaxBody = 64 << 20
)

// Request is one call to a service.
type Request struct {
	// Op names the operation in errors.
	Op string
	// URL is the full address.
	URL *url.URL
	// Header is sent as it is, besides Content-Type and User-Agent.
	Header http.Header
	// Body is sent as JSON with POST; nil makes it a GET.
	Body any
	// Explain may name a failure better than the status does: it gets the status and
	// the bounded body, and returns nil to leave it to the common rules. May be nil.
	Explain func(status int, body string) *fault.Error
}

// Response is a successful answer whose body is being received.
type Response struct {
	Status int
	Header http.Header
	// Body must be closed; closing it early ends the connection.
	Body io.ReadCloser
}

// Send makes the call and returns once the header of a successful answer is there. Any
// failure, a status outside 200-299 included, is a *fault.Error with its kind, whether
// a retry may help, and details "http_status" and "retry_after_ms" where known.
// Cancelling ctx ends the call and the reading of the body.
func (c *Client) Send(ctx context.Context, req Request) (*Response, error) {
	r, err := request(ctx, req)
	if err != nil {
		return nil, err
	}
	res, err := c.http.Do(r)
	if err != nil {
		return nil, broken(ctx, req, err, true)
	}
	if kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); kind == "text/html" && res.StatusCode < 300 {
		_ = res.Body.Close()
		return nil, fault.Of(fault.CodeLLM, req.Op, "%s answered with a web page; check the base URL", Show(req.URL))
	}
	if res.StatusCode >= 200 && res.StatusCode <= 299 {
		return &Response{Status: res.StatusCode, Header: res.Header, Body: res.Body}, nil
	}
	// The connection is closed by the timer, not by ctx, so that a service that keeps
	// its error answer open cannot hold the caller.
	timer := time.AfterFunc(errorBodyWait, func() { _ = res.Body.Close() })
	body, _ := io.ReadAll(io.LimitReader(res.Body, maxErrorBody))
	timer.Stop()
	_ = res.Body.Close()
	if ctx.Err() != nil {
		return nil, fault.From(req.Op, ctx.Err())
	}
	return nil, refused(req, res, body)
}

// JSON makes the call and decodes the whole answer into out. A larger answer than max
// bytes (0 is DefaultMaxBody) is an error.
func (c *Client) JSON(ctx context.Context, req Request, max int64, out any) (*Response, error) {
	res, err := c.Send(ctx, req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := ReadAll(ctx, req, res.Body, max)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(body, out); err != nil {
		return nil, fault.Of(fault.CodeLLM, req.Op, "%s did not answer with the expected JSON: %v", Show(req.URL), err)
	}
	return res, nil
}

// ReadAll reads a body of at most max bytes (0 is DefaultMaxBody).
func ReadAll(ctx context.Context, req Request, body io.Reader, max int64) ([]byte, error) {
	if max <= 0 {
		max = DefaultMaxBody
	}
	data, err := io.ReadAll(io.LimitReader(body, max+1))
	if err != nil {
		return nil, Broken(ctx, req, err)
	}
	if int64(len(data)) > max {
		return nil, fault.Of(fault.CodeLLM, req.Op, "the answer of %s is larger than %d bytes", Show(req.URL), max).WithKind(fault.Limit)
	}
	return data, nil
}

func request(ctx context.Context, req Request) (*http.Request, error) {
	method, body := http.MethodGet, io.Reader(nil)
	if req.Body != nil {
		data, err := json.Marshal(req.Body)
		if err != nil {
			return nil, fault.Of(fault.CodeInternal, req.Op, "encode the request: %v", err)
		}
		method, body = http.MethodPost, bytes.NewReader(data)
	}
	r, err := http.NewRequestWithContext(ctx, method, req.URL.String(), body)
	if err != nil {
		return nil, fault.Of(fault.CodeConfig, req.Op, "cannot make a request to %q", Show(req.URL))
	}
	for name, values := range req.Header {
		r.Header[http.CanonicalHeaderKey(name)] = values
	}
	if r.Header.Get("User-Agent") == "" {
		r.Header.Set("User-Agent", "libA3S")
	}
	if body != nil && r.Header.Get("Content-Type") == "" {
		r.Header.Set("Content-Type", "application/json")
	}
	return r, nil
}
