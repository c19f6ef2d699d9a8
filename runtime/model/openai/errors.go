package openai

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/a3s-lab/liba3s/internal/httpx"
	"github.com/a3s-lab/liba3s/runtime/fault"
)

// problem is the error object of this wire, in the shapes in use.
type problem struct {
	Message string          `json:"message"`
	Type    string          `json:"type"`
	Code    json.RawMessage `json:"code"`
}

// code gives the code as text; services send a word or a number.
func (p problem) code() string { return strings.Trim(string(p.Code), `"`) }

// explain names a refused request better than its status does.
func explain(status int, body string) *fault.Error {
	var shape struct {
		Error problem `json:"error"`
	}
	if status < 400 || json.Unmarshal([]byte(body), &shape) != nil || !tooLong(shape.Error) {
		return nil
	}
	return fault.Of(fault.CodeContext, op, "the request does not fit the model's window: %s", httpx.Clean(shape.Error.Message))
}

// tooLong says that the request is larger than the model's window. The code is the one
// stable sign of it on this wire.
func tooLong(p problem) bool {
	return p.code() == "context_length_exceeded" || p.Type == "exceed_context_size_error"
}

// reported finds an error that came inside a successful answer. name is the event's
// type, data the whole event.
func reported(raw json.RawMessage, name string, data []byte) *fault.Error {
	if len(raw) == 0 || string(raw) == "null" {
		if name != "error" {
			return nil
		}
		raw = data
	}
	var p problem
	if json.Unmarshal(raw, &p) != nil || p.Message == "" {
		var text string
		if json.Unmarshal(raw, &text) != nil {
			text = string(raw[:min(len(raw), 1024)])
		}
		p.Message = text
	}
	if tooLong(p) {
		return fault.Of(fault.CodeContext, op, "the request does not fit the model's window: %s", httpx.Clean(p.Message))
	}
	e := fault.Of(fault.CodeLLM, op, "the model service reported an error: %s", httpx.Clean(p.Message))
	if p.Type != "" {
		e.With("type", p.Type)
	}
	if code := p.code(); code != "" && code != "null" {
		e.With("code", code)
	}
	e.Retryable = passing(p)
	return e
}

// passing says that the service itself calls the trouble one of the moment.
func passing(p problem) bool {
	if n, err := strconv.Atoi(p.code()); err == nil {
		return httpx.Retryable(n)
	}
	for _, word := range []string{p.Type, p.code()} {
		switch word {
		case "server_error", "internal_error", "api_error", "overloaded_error", "overloaded", "rate_limit_error",
			"rate_limit_exceeded", "engine_overloaded_error", "service_unavailable", "timeout":
			return true
		}
	}
	return false
}
