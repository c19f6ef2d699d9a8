package httpx

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

// Details that errors of this package carry.
const (
	// DetailStatus is the HTTP status, an int.
	DetailStatus = "http_status"
	// DetailRetryAfter is how long the service asks to wait, in milliseconds, an int64.
	DetailRetryAfter = "retry_after_ms"
)

// Retryable says whether a status promises that the same call may succeed later.
func Retryable(status int) bool {
	switch status {
	case 408, 429, 500, 502, 503, 504, 529:
		return true
	}
	return false
}

// Broken turns an error met while reading a body into a *fault.Error: a cancelled or
// late ctx as such, anything else as a broken connection that a retry may mend.
func Broken(ctx context.Context, req Request, err error) error {
	return broken(ctx, req, err, false)
}

func broken(ctx context.Context, req Request, err error, connecting bool) error {
	if ctx.Err() != nil {
		return fault.From(req.Op, ctx.Err())
	}
	// The outer error repeats the whole address, which may hold a secret.
	var ue *url.Error
	if errors.As(err, &ue) {
		err = ue.Err
	}
	var known *fault.Error
	if errors.As(err, &known) { // of a transport that is not ours
		return known
	}
	host := req.URL.Host
	fail := func(format string, args ...any) *fault.Error {
		e := fault.Of(fault.CodeLLM, req.Op, format, args...)
		e.Message, e.Err = hide(e.Message, req), err
		return e
	}
	var dns *net.DNSError
	var op *net.OpError
	switch {
	case errors.As(err, &dns):
		return fail("cannot find the host %q (%s); check the base URL and the network", dns.Name, dns.Err).With("reason", "name_not_found")
	case errors.Is(err, syscall.ECONNREFUSED):
		return fail("%q refuses the connection; check that the service runs and that the base URL is right", host).With("reason", "connection_refused")
	case isTLS(err):
		return fail("no secure connection to %q: %v", host, err).With("reason", "tls")
	case errors.As(err, &op) && op.Op == "proxyconnect":
		return fail("the proxy does not connect to %q: %v", host, op.Err).With("reason", "proxy")
	case op != nil && op.Op == "dial", op == nil && connecting && isTimeout(err):
		return fail("cannot connect to %q: %v", host, err).With("reason", "no_connection")
	}
	return fail("the connection to %q broke: %v", host, err).With("reason", "broken").Retry()
}

func isTLS(err error) bool {
	var (
		verify *tls.CertificateVerificationError
		record tls.RecordHeaderError
		alert  tls.AlertError
		name   x509.HostnameError
		unkn   x509.UnknownAuthorityError
		op     *net.OpError
	)
	if errors.As(err, &op) && (op.Op == "remote error" || op.Op == "local error") {
		return true // crypto/tls reports alerts under these names
	}
	return errors.As(err, &verify) || errors.As(err, &record) || errors.As(err, &alert) || errors.As(err, &name) ||
		errors.As(err, &unkn) || errors.Is(err, http.ErrSchemeMismatch)
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

// refused classifies an answer outside 200-299.
func refused(req Request, res *http.Response, raw []byte) *fault.Error {
	status := res.StatusCode
	body := hide(Clean(string(raw)), req)
	var e *fault.Error
	if req.Explain != nil {
		e = req.Explain(status, body)
	}
	if e == nil {
		// Once more, for what JSON had escaped.
		e = byStatus(req, res, hide(Clean(told(body)), req))
		e.Retryable = Retryable(status)
	}
	if wait := retryAfter(res.Header); wait > 0 {
		e.With(DetailRetryAfter, wait.Milliseconds())
	}
	return e.With(DetailStatus, status)
}

func byStatus(req Request, res *http.Response, text string) *fault.Error {
	host, status := req.URL.Host, res.StatusCode
	if text != "" {
		text = ": " + text
	}
	fail := func(format string, args ...any) *fault.Error { return fault.Of(fault.CodeLLM, req.Op, format, args...) }
	switch {
	case status == 401 || status == 403:
		return fail("%q refused the key (HTTP %d)%s; check the API key of this provider", host, status, text).With("reason", "key_refused")
	case status == 404:
		return fail("%q knows no such address or model (HTTP 404 at %s)%s", host, Show(req.URL), text)
	case status == 429:
		return fail("%q limits the rate of requests (HTTP 429)%s", host, text)
	case status >= 300 && status <= 399:
		to := "another address"
		if u, err := res.Location(); err == nil {
			to = Show(u)
		}
		return fail("%q redirects to %q (HTTP %d), which is not followed; set the base URL to the right address", host, to, status)
	}
	return fail("%q answered HTTP %d%s", host, status, text)
}

// told takes the message out of the usual JSON shapes of an error body.
func told(body string) string {
	var shape struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
		Detail  json.RawMessage `json:"detail"`
	}
	if json.Unmarshal([]byte(body), &shape) != nil {
		return body
	}
	for _, raw := range []json.RawMessage{shape.Error, shape.Detail} {
		var text string
		var inner struct {
			Message string `json:"message"`
		}
		if json.Unmarshal(raw, &text) == nil && text != "" {
			return text
		}
		if json.Unmarshal(raw, &inner) == nil && inner.Message != "" {
			return inner.Message
		}
	}
	if shape.Message != "" {
		return shape.Message
	}
	return body
}

// Clean makes foreign text fit for a message: valid UTF-8, no control characters, runs
// of blanks joined.
func Clean(s string) string {
	s = strings.ToValidUTF8(s, "")
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}

// retryAfter reads how long the service asks to wait, in any of the forms in use.
func retryAfter(h http.Header) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 && ms < 1e12 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	v := strings.TrimSpace(h.Get("Retry-After"))
	if s, err := strconv.ParseFloat(v, 64); err == nil {
		if s > 0 && s < 1e9 {
			return time.Duration(s * float64(time.Second))
		}
		return 0
	}
	at, err := http.ParseTime(v)
	if err != nil {
		return 0
	}
	// The service's own clock, where it tells it, makes ours irrelevant.
	now, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	return max(at.Sub(now), 0)
}

// hide takes the secrets of a request out of a text that may repeat them.
func hide(text string, req Request) string {
	for _, s := range secrets(req) {
		text = strings.ReplaceAll(text, s, "[redacted]")
	}
	return text
}

func secrets(req Request) []string {
	var found []string
	add := func(s string) {
		// A very short value is no secret, and hiding it would shred the message.
		if len(s) >= 6 {
			found = append(found, s)
		}
	}
	for name, values := range req.Header {
		if !secretName(name) {
			continue
		}
		for _, v := range values {
			if _, token, ok := strings.Cut(v, " "); ok {
				add(token)
			}
			add(v)
		}
	}
	if req.URL.User != nil {
		pass, _ := req.URL.User.Password()
		add(pass)
	}
	for _, values := range req.URL.Query() {
		for _, v := range values {
			add(v)
		}
	}
	// The longest first: one secret may begin with another.
	slices.SortFunc(found, func(a, b string) int { return len(b) - len(a) })
	return found
}

func secretName(header string) bool {
	h := strings.ToLower(header)
	for _, part := range []string{"auth", "key", "token", "secret", "cookie", "password"} {
		if strings.Contains(h, part) {
			return true
		}
	}
	return false
}
