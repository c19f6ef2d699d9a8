// Package ollama speaks the native chat wire of Ollama. It owns the mapping of requests
// and answers and every quirk of that wire: the context size, which the server would
// otherwise choose and silently cut to, reasoning in a field or between tags, tool calls
// in any chunk or as bare text, and streams that end in errors of unknown shape.
// Retrying, time limits and the judgement of tool arguments are left to others. Request
// and response types come from the project's api package; its client is not used: it
// reads the environment, writes to stderr and gives no error for a cut stream. Floor 8:
// a back-end of model.
package ollama

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/a3s-lab/liba3s/internal/httpx"
	"github.com/a3s-lab/liba3s/internal/sse"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/model"
)

const op = "model.ollama"

// DefaultWindow is the context size asked for when none is configured.
const DefaultWindow = 16384

// Config says which model of which server to ask.
type Config struct {
	// HTTP is the agent's transport; required.
	HTTP *httpx.Client
	// Provider is the name in the configuration, for Meta; empty is "ollama".
	Provider string
	// Model is the model's name at the server; required.
	Model string
	// BaseURL of the server; empty is http://127.0.0.1:11434.
	BaseURL string
	// APIKey goes as a bearer token if it is not empty.
	APIKey string
	// Headers are sent as they are, over ours.
	Headers map[string]string
	// SessionIDHeader names the header for the session id; empty sends none.
	SessionIDHeader string
	// Stream asks for the answer piece by piece; false asks for it at once.
	Stream bool
	// Window is the context size in tokens that is asked for (num_ctx). 0 takes that of
	// the request, else DefaultWindow.
	Window int
	// Reasoning says that the model can think: only then is it asked to.
	Reasoning bool
	// NoTemperature leaves the temperature out.
	NoTemperature bool
	// MaxLine bounds one line of a stream in bytes; 0 is 16 MiB.
	MaxLine int
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
		cfg.Provider = "ollama"
	}
	if cfg.BaseURL == "" {
		cfg.BaseURL = "http://127.0.0.1:11434"
	}
	u, err := httpx.ParseURL(cfg.BaseURL)
	if err != nil {
		return nil, err
	}
	// People give the root, the native API or the imitated one; the server is the same.
	path := strings.TrimRight(u.Path, "/")
	for _, end := range []string{"/api/chat", "/api", "/v1"} {
		path = strings.TrimRight(strings.TrimSuffix(path, end), "/")
	}
	c := *u
	c.Path, c.RawPath = path+"/api/chat", ""
	header, err := httpx.Headers(op, cfg.APIKey, cfg.Headers, cfg.SessionIDHeader)
	if err != nil {
		return nil, err
	}
	return &Client{cfg: cfg, url: &c, header: header}, nil
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
	out := newOutput(c, req, yield)
	call := httpx.Request{Op: op, URL: c.url, Header: c.header.Clone(), Explain: explain}
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
	if !c.cfg.Stream {
		data, err := httpx.ReadAll(ctx, call, res.Body, 0)
		if err != nil {
			return err
		}
		if err := out.line(data, true); err != nil || out.left || out.whole {
			return err
		}
		return model.Incomplete(op, "")
	}
	return c.read(ctx, call, res.Body, out)
}

// read takes the lines of a stream up to the one that says done.
func (c *Client) read(ctx context.Context, call httpx.Request, body io.Reader, out *output) error {
	lines := sse.NewLines(body, c.cfg.MaxLine)
	for {
		line, whole, err := lines.Next()
		var long *sse.TooLongError
		switch {
		case err == io.EOF && ctx.Err() == nil:
			return model.Incomplete(op, "")
		case errors.As(err, &long):
			return fault.Of(fault.CodeLLM, op, "%v", long).WithKind(fault.Limit)
		case err != nil && ctx.Err() == nil:
			return model.Incomplete(op, fault.From(op, httpx.Broken(ctx, call, err)).Message)
		case err != nil:
			return httpx.Broken(ctx, call, err)
		}
		if err := out.line(line, whole); err != nil || out.left || out.whole {
			return err
		}
	}
}

// line takes one line of a stream, or a whole answer.
func (o *output) line(data []byte, whole bool) error {
	var a answer
	if err := json.Unmarshal(data, &a); err != nil {
		if !whole {
			return model.Incomplete(op, "")
		}
		return fault.Of(fault.CodeLLM, op, "the server sent a line that is not the expected JSON: %v; it begins with %q", err, head(data))
	}
	if len(a.Error) > 0 && string(a.Error) != "null" {
		return reported(text(a.Error))
	}
	if a.Message == nil && a.Done == nil {
		return reported(string(data)) // an error in a shape of its own (case OLL-12)
	}
	o.take(a)
	return nil
}

func head(data []byte) string {
	return strings.ToValidUTF8(string(data[:min(len(data), 200)]), "")
}

// text gives the words of a JSON value: a string as such, an object's message, else the
// value as it is written.
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var shape struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(raw, &shape) == nil && shape.Message != "" {
		return shape.Message
	}
	return string(raw)
}

// explain names a refused request better than its status does.
func explain(status int, body string) *fault.Error {
	var shape struct {
		Error json.RawMessage `json:"error"`
	}
	message := body
	if json.Unmarshal([]byte(body), &shape) == nil && len(shape.Error) > 0 {
		message = text(shape.Error)
	}
	if status < 400 || !overflow(message) && !badCall(message) && !noTools(message) {
		return nil
	}
	return reported(message)
}

// reported makes the error that the server told. This wire has no error codes, so the
// text is the only sign there is.
func reported(message string) *fault.Error {
	message = httpx.Clean(message[:min(len(message), 4096)])
	switch {
	case overflow(message):
		return fault.Of(fault.CodeContext, op, "the request does not fit the context size asked for; raise limit.context of this model or shorten the conversation: %s", message)
	case badCall(message):
		return fault.Of(fault.CodeLLM, op, "the model wrote a tool call that the server cannot read: %s", message).With("reason", "malformed_tool_call")
	case noTools(message):
		return fault.Of(fault.CodeLLM, op, "this model cannot call tools; set tool_call = false in its models block, or choose another: %s", message).With("reason", "no_tools")
	}
	return fault.Of(fault.CodeLLM, op, "the server reported an error: %s", message)
}

// overflow: cut to its window, the server may have lost the user's turn and complain
// about that instead (case OLL-04).
func overflow(message string) bool {
	m := strings.ToLower(message)
	return strings.Contains(m, "context length") || strings.Contains(m, "context size") ||
		strings.Contains(m, "no user query") || strings.Contains(m, "context window")
}

func badCall(message string) bool {
	return strings.Contains(strings.ToLower(message), "parsing tool call")
}

// since gives the milliseconds since t.
func since(t time.Time) int64 { return time.Since(t).Milliseconds() }

// noTools recognises the answer of a server whose template of the model has no tools.
func noTools(message string) bool { return strings.Contains(message, "does not support tools") }
