// Package openai speaks the chat-completions wire of OpenAI and of the many services
// that imitate it. It owns the mapping of requests and answers and every quirk of that
// wire: missing indexes and ids, null and empty choices, repeated text, unfinished
// streams. Retrying, time limits and the judgement of tool arguments are left to others.
// Request and response types come from go-openai; transport and stream reading are ours,
// since its reader cannot tell a cut stream from a finished one. Floor 8: a back-end of
// model.
package openai

import (
	"context"
	"iter"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/a3s-lab/liba3s/internal/httpx"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/model"
)

const op = "model.openai"

// DefaultPath is where the service of OpenAI takes requests, below its base URL.
const DefaultPath = "/v1/chat/completions"

// Config says which model of which service to ask.
type Config struct {
	// HTTP is the agent's transport; required.
	HTTP *httpx.Client
	// Provider is the name in the configuration, for Meta; empty is "openai".
	Provider string
	// Model is the model's id at the service; required.
	Model string
	// BaseURL of the service; empty is https://api.openai.com.
	BaseURL string
	// Path below the base URL; empty is DefaultPath.
	Path string
	// APIKey goes as a bearer token unless Headers carry an authorization; may be empty.
	APIKey string
	// Headers are sent as they are, over ours.
	Headers map[string]string
	// SessionIDHeader names the header for the session id; empty sends none.
	SessionIDHeader string
	// Stream asks for the answer piece by piece; false asks for it at once.
	Stream bool
	// NoTemperature leaves the temperature out, for models that refuse it.
	NoTemperature bool
	// Extra is added to the body as it is, for parameters of one provider. It wins over
	// ours.
	Extra map[string]any
	// MaxEvent bounds one event of a stream in bytes; 0 is 16 MiB.
	MaxEvent int
	// FinishGrace bounds the wait for the end of a stream once the service said why it
	// stopped; 0 is 5 s. The answer is whole by then.
	FinishGrace time.Duration
}

// Client is one model behind this wire. Its methods may be called concurrently.
type Client struct {
	cfg    Config
	url    *url.URL
	header http.Header
}

var _ model.Client = (*Client)(nil)

// Open checks the configuration. It sends nothing.
func Open(_ context.Context, cfg Config) (*Client, error) {
	if cfg.HTTP == nil {
		return nil, fault.Of(fault.CodeInternal, op, "no HTTP client was given")
	}
	if cfg.Model == "" {
		return nil, fault.Of(fault.CodeConfig, op, "no model is named")
	}
	if cfg.Provider == "" {
		cfg.Provider = "openai"
	}
	if cfg.FinishGrace <= 0 {
		cfg.FinishGrace = 5 * time.Second
	}
	u, err := endpoint(cfg.BaseURL, cfg.Path)
	if err != nil {
		return nil, err
	}
	header, err := httpx.Headers(op, cfg.APIKey, cfg.Headers, cfg.SessionIDHeader)
	if err != nil {
		return nil, err
	}
	return &Client{cfg: cfg, url: u, header: header}, nil
}

// endpoint applies the base URL rule: a trailing slash and a trailing /v1 are dropped,
// then the path is added; a base that is complete or has a version of its own is not
// given another.
func endpoint(base, path string) (*url.URL, error) {
	if base == "" {
		base = "https://api.openai.com"
	}
	if path == "" {
		path = DefaultPath
	}
	u, err := httpx.ParseURL(base)
	if err != nil {
		return nil, err
	}
	p := strings.TrimRight(u.Path, "/")
	const completions = "/chat/completions"
	switch {
	case strings.HasSuffix(p, completions):
	case path != DefaultPath:
		p = strings.TrimRight(strings.TrimSuffix(p, "/v1"), "/")
		// A base that names the path's own prefix must not get it twice.
		if prefix := strings.TrimSuffix(path, completions); prefix != "" && strings.HasSuffix(p, prefix) {
			p = strings.TrimSuffix(p, prefix)
		}
		p += path
	case strings.Contains(p+"/", "/api/"), strings.HasSuffix(p, "/v2"), strings.HasSuffix(p, "/v3"), strings.HasSuffix(p, "/v4"):
		p += completions
	default:
		p = strings.TrimRight(strings.TrimSuffix(p, "/v1"), "/") + path
	}
	c := *u
	c.Path, c.RawPath = p, ""
	return &c, nil
}

// Stream asks the model.
func (c *Client) Stream(ctx context.Context, req model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		if err := c.stream(ctx, req, yield); err != nil {
			yield(model.Chunk{}, err)
		}
	}
}

// stream yields chunks and gives the failure that ends them; nil if the answer was
// whole or the reader left.
func (c *Client) stream(ctx context.Context, req model.Request, yield func(model.Chunk, error) bool) error {
	start := time.Now()
	call := httpx.Request{Op: op, URL: c.url, Header: c.header.Clone(), Explain: explain}
	call.Header.Set("Accept", "application/json")
	if c.cfg.Stream {
		call.Header.Set("Accept", "text/event-stream")
	}
	httpx.SetSession(call.Header, c.cfg.SessionIDHeader, req.SessionID)
	body, err := c.body(req)
	if err != nil {
		return err
	}
	call.Body = body
	res, err := c.cfg.HTTP.Send(ctx, call)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	out := &output{yield: yield, start: start, meta: model.Meta{Provider: c.cfg.Provider, RequestModel: c.cfg.Model, RequestURL: httpx.Show(c.url)}}
	// Some services ignore stream: true and answer at once.
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if !c.cfg.Stream || kind == "application/json" {
		return c.readWhole(ctx, call, res.Body, out)
	}
	return c.readStream(ctx, call, res.Body, out)
}
