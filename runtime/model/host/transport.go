package host

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/a3s-lab/liba3s/internal/safego"
	"github.com/a3s-lab/liba3s/runtime/fault"
	desk "github.com/a3s-lab/liba3s/runtime/host"
)

// TransportSpec describes a transport of the host, used by a provider block with
// transport = "host/NAME" in the place of the library's own HTTP.
type TransportSpec struct {
	desk.Extension
}

// TransportRequest are the parameters of "round_trip": one HTTP request. The headers hold
// the provider's key, since the host must send it: treat them as a secret.
type TransportRequest struct {
	Method string `json:"method"`
	// URL is the full address.
	URL string `json:"url"`
	// Headers by canonical name, each with its values.
	Headers map[string][]string `json:"headers"`
	// Body in base64; absent if there is none.
	Body []byte `json:"body,omitempty"`
}

// TransportChunk is a piece of the response. The first one carries Status and may carry
// Headers; it and the following ones carry Text or Data, pieces of the body. Redirects are
// not followed and nothing is decompressed but by the host.
type TransportChunk struct {
	Status  int               `json:"status,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Text    *string           `json:"text,omitempty"`
	// Data is a piece in base64.
	Data *[]byte `json:"data,omitempty"`
}

// TransportResponse is the result of "round_trip": it ends the response. Without chunks it
// is the whole response; after chunks it may be empty.
type TransportResponse = TransportChunk

const (
	maxBody = 64 << 20 // bytes of a request
	// MaxPiece bounds one chunk, and the result, in bytes.
	MaxPiece   = 16 << 20
	maxHeaders = 256
	maxHeader  = 64 << 10 // bytes of all names and values
)

// Transport sends HTTP requests through the host. It may be used concurrently.
type Transport struct{ line *desk.Line }

var _ http.RoundTripper = (*Transport)(nil)

// OpenTransport makes a transport. It asks nothing.
func OpenTransport(_ context.Context, line *desk.Line) (*Transport, error) {
	return &Transport{line}, nil
}

// RoundTrip implements http.RoundTripper: it returns when the status is known; the body
// is received while it is read. An error is a *fault.Error with code LLM_ERROR, or that
// of the request's context.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	params := TransportRequest{Method: req.Method, URL: req.URL.String(), Headers: req.Header}
	if req.Body != nil {
		body, err := io.ReadAll(io.LimitReader(req.Body, maxBody+1))
		_ = req.Body.Close()
		if err != nil {
			return nil, err
		}
		if len(body) > maxBody {
			return nil, fault.Of(fault.CodeLLM, opTransport, "the request has more than %d bytes", maxBody).WithKind(fault.Limit)
		}
		params.Body = body
	}
	ctx, cancel := context.WithCancel(req.Context())
	x := &exchange{t: t, req: req, cancel: cancel, head: make(chan *http.Response, 1), failed: make(chan error, 1)}
	x.body, x.pieces = io.Pipe()
	broken := func(err error) { x.fail(fault.From(opTransport, err)) }
	safego.Go("model.transport", broken, func() { x.run(ctx, params) })
	select {
	case res := <-x.head:
		return res, nil
	case err := <-x.failed:
		cancel()
		return nil, err
	}
}

const opTransport = "model.transport"

// exchange is one request under way.
type exchange struct {
	t      *Transport
	req    *http.Request
	cancel context.CancelFunc
	body   *io.PipeReader
	pieces *io.PipeWriter
	head   chan *http.Response // capacity 1
	failed chan error          // capacity 1
	begun  bool                // the status is known
}

// run asks the host, on a goroutine of its own. A reader that leaves, and the end of the
// request's context, end a piece that nobody takes.
func (x *exchange) run(ctx context.Context, params TransportRequest) {
	defer x.cancel()
	stop := context.AfterFunc(ctx, func() { _ = x.body.CloseWithError(context.Cause(ctx)) })
	defer stop()
	var last TransportResponse
	err := x.t.line.Ask(ctx, desk.Question{Op: "round_trip", Params: params, Max: MaxPiece, Chunk: func(b json.RawMessage) error {
		var c TransportChunk
		if err := desk.Strict(b, MaxPiece, &c); err != nil {
			return err
		}
		return x.piece(c)
	}}, &last)
	if err == nil {
		err = x.end(last)
	}
	if err != nil {
		x.fail(x.t.explain(ctx, err))
		return
	}
	_ = x.pieces.Close()
}

// fail ends the exchange: before the status for the caller, after it for the reader.
func (x *exchange) fail(err error) {
	if !x.begun {
		x.failed <- err
	}
	_ = x.pieces.CloseWithError(err)
}

// end takes what the result adds.
func (x *exchange) end(r TransportResponse) error {
	if x.begun && r.Status == 0 && r.Headers == nil && r.Text == nil && r.Data == nil {
		return nil
	}
	return x.piece(r)
}

func (x *exchange) piece(c TransportChunk) error {
	switch {
	case !x.begun:
		if err := x.begin(c); err != nil {
			return err
		}
	case c.Status != 0 || c.Headers != nil:
		return invalidReply("status and headers come once, with the first piece")
	}
	var data []byte
	switch {
	case c.Text != nil && c.Data != nil:
		return invalidReply("a piece needs one of text, data")
	case c.Text != nil:
		data = []byte(*c.Text)
	case c.Data != nil:
		data = *c.Data
	}
	if len(data) == 0 {
		return nil
	}
	_, err := x.pieces.Write(data)
	return err
}

// begin takes the status and hands the response to the caller.
func (x *exchange) begin(c TransportChunk) error {
	if c.Status < 200 || c.Status > 599 {
		return invalidReply("status %d is not from 200 to 599", c.Status)
	}
	h, size := http.Header{}, 0
	for name, value := range c.Headers {
		size += len(name) + len(value)
		if !validName(name) || strings.ContainsAny(value, "\r\n\x00") || len(c.Headers) > maxHeaders || size > maxHeader {
			return invalidReply("the headers cannot be used")
		}
		h.Set(name, value)
	}
	x.begun = true
	x.head <- &http.Response{
		Status: fmt.Sprintf("%d %s", c.Status, http.StatusText(c.Status)), StatusCode: c.Status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: h, ContentLength: -1, Request: x.req,
		Body: &received{x.body, x.cancel},
	}
	return nil
}

func invalidReply(format string, args ...any) error {
	return &desk.Failure{Type: "InvalidReply", Message: fmt.Sprintf(format, args...)}
}

// validName says whether a header may be called so.
func validName(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || bytes.ContainsRune([]byte(`()<>@,;:\"/[]?={}`), r)
	})
}

// received is the body of a response; closing it withdraws the request.
type received struct {
	*io.PipeReader
	cancel context.CancelFunc
}

// Close ends the exchange.
func (r *received) Close() error {
	r.cancel()
	return r.PipeReader.Close()
}

// explain makes an LLM_ERROR of whatever went wrong, but for the end of ctx.
func (t *Transport) explain(ctx context.Context, err error) error {
	name := t.line.Name()
	switch f := desk.Explain(err); {
	case f != nil:
		e := fault.Of(fault.CodeLLM, opTransport, "the host's transport %q failed: %v", name, f)
		e.Retryable = f.Retryable
		if f.RetryAfterMS > 0 {
			e.With("retry_after_ms", f.RetryAfterMS)
		}
		return e
	case ctx.Err() != nil:
		return fault.From(opTransport, ctx.Err())
	case fault.KindOf(err) == fault.Timeout:
		return fault.Of(fault.CodeLLM, opTransport, "the host's transport %q did not answer within %s", name, t.line.Deadline()).With("reason", "timeout").Retry()
	}
	return fault.Of(fault.CodeLLM, opTransport, "the host's transport %q cannot be asked: %s", name, fault.From(opTransport, err).Message)
}
