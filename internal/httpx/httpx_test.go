package httpx

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/a3s-lab/liba3s/internal/safego"
	"github.com/a3s-lab/liba3s/runtime/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func client(t *testing.T, cfg Config) *Client {
	t.Helper()
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func server(t *testing.T, h http.HandlerFunc) *url.URL {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func send(c *Client, u *url.URL, key string) error {
	header := http.Header{}
	if key != "" {
		header.Set("Authorization", "Bearer "+key)
		header.Set("X-Gateway-Key", key+"-2")
	}
	res, err := c.Send(context.Background(), Request{Op: "model.stream", URL: u, Header: header, Body: map[string]string{"a": "b"}})
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
	return err
}

func TestStatus(t *testing.T) {
	const key = "sk-very-secret"
	tests := []struct {
		name      string
		status    int
		header    map[string]string
		body      string
		want      string // message after the server's address
		retryable bool
		details   map[string]any
	}{
		{"a refused key", 401, nil, `{"error":{"message":"bad key sk-very-secret"}}`, `refused the key (HTTP 401): bad key [redacted]; check the API key of this provider`, false, map[string]any{"http_status": 401, "reason": "key_refused"}},
		{"forbidden", 403, nil, ``, `refused the key (HTTP 403); check the API key of this provider`, false, map[string]any{"http_status": 403, "reason": "key_refused"}},
		{"a bad request", 400, nil, `{"message":"no\u0007 such\n field"}`, `answered HTTP 400: no such field`, false, map[string]any{"http_status": 400}},
		{"a custom key header", 400, nil, `you sent sk-very-secret-2`, `answered HTTP 400: you sent [redacted]`, false, map[string]any{"http_status": 400}},
		{"a limit with seconds", 429, map[string]string{"Retry-After": "1.5"}, `{"error":"slow down"}`, `limits the rate of requests (HTTP 429): slow down`, true, map[string]any{"http_status": 429, "retry_after_ms": int64(1500)}},
		{"a limit with milliseconds", 429, map[string]string{"Retry-After-Ms": "20", "Retry-After": "9"}, ``, `limits the rate of requests (HTTP 429)`, true, map[string]any{"http_status": 429, "retry_after_ms": int64(20)}},
		{"a limit with a date", 503, map[string]string{"Date": "Mon, 02 Jan 2006 15:04:05 GMT", "Retry-After": "Mon, 02 Jan 2006 15:14:05 GMT"}, `x`, `answered HTTP 503: x`, true, map[string]any{"http_status": 503, "retry_after_ms": int64(600000)}},
		{"an absurd limit", 503, map[string]string{"Retry-After": "-4"}, ``, `answered HTTP 503`, true, map[string]any{"http_status": 503}},
		{"time-out", 408, nil, ``, `answered HTTP 408`, true, map[string]any{"http_status": 408}},
		{"server error", 500, nil, "\xff<html>oops</html>", `answered HTTP 500: <html>oops</html>`, true, map[string]any{"http_status": 500}},
		{"bad gateway", 502, nil, ``, `answered HTTP 502`, true, map[string]any{"http_status": 502}},
		{"gateway time-out", 504, nil, ``, `answered HTTP 504`, true, map[string]any{"http_status": 504}},
		{"overloaded", 529, nil, ``, `answered HTTP 529`, true, map[string]any{"http_status": 529}},
		{"not implemented", 501, nil, `{"detail":{"message":"no"}}`, `answered HTTP 501: no`, false, map[string]any{"http_status": 501}},
		{"a redirect", 307, map[string]string{"Location": "http://elsewhere/x?key=1"}, ``, `redirects to "http://elsewhere/x" (HTTP 307), which is not followed; set the base URL to the right address`, false, map[string]any{"http_status": 307}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			u := server(t, func(w http.ResponseWriter, _ *http.Request) {
				for k, v := range tt.header {
					w.Header().Set(k, v)
				}
				w.WriteHeader(tt.status)
				_, _ = io.WriteString(w, tt.body)
			})
			err := send(client(t, Config{}), u, key)
			e := fault.From("", err)
			if e == nil || e.Code != fault.CodeLLM || e.Kind != fault.Provider || e.Retryable != tt.retryable || e.Op != "model.stream" {
				t.Fatalf("got %#v", e)
			}
			if got := strings.TrimPrefix(e.Message, `"`+u.Host+`" `); got != tt.want {
				t.Fatalf("got  %s\nwant %s", got, tt.want)
			}
			if len(e.Details) != len(tt.details) {
				t.Fatalf("details %v, want %v", e.Details, tt.details)
			}
			for k, v := range tt.details {
				if e.Details[k] != v {
					t.Fatalf("details %v, want %v", e.Details, tt.details)
				}
			}
		})
	}
}

func TestErrorBodyIsBounded(t *testing.T) {
	release := make(chan struct{})
	u := server(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(500)
		_, _ = io.WriteString(w, strings.Repeat("x", 1<<20))
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	defer close(release)
	err := send(client(t, Config{}), u, "")
	if n := len(err.Error()); n < maxErrorBody || n > maxErrorBody+200 {
		t.Fatalf("a message of %d bytes", n)
	}
}

func TestExplain(t *testing.T) {
	u := server(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "2")
		w.WriteHeader(500)
		_, _ = io.WriteString(w, "no user query")
	})
	_, err := client(t, Config{}).Send(context.Background(), Request{Op: "o", URL: u, Explain: func(status int, body string) *fault.Error {
		if status == 500 && body == "no user query" {
			return fault.Of(fault.CodeContext, "o", "does not fit")
		}
		return nil
	}})
	e := fault.From("", err)
	if e.Code != fault.CodeContext || e.Retryable || e.Details[DetailRetryAfter] != int64(2000) {
		t.Fatalf("got %#v", e)
	}
}

func TestNoConnection(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := &url.URL{Scheme: "http", Host: l.Addr().String()}
	_ = l.Close()
	plain := server(t, func(http.ResponseWriter, *http.Request) {})
	secure := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	named := &url.URL{Scheme: "http", Host: "model.invalid:80"}
	tests := []struct {
		name   string
		url    *url.URL
		cfg    Config
		reason string
	}{
		{"refused", closed, Config{}, "connection_refused"},
		{"no such name", named, Config{Resolve: func(context.Context, string) ([]netip.Addr, error) {
			return nil, &net.DNSError{Err: "no such host", Name: "model.invalid", IsNotFound: true}
		}}, "name_not_found"},
		{"a name without addresses", named, Config{Resolve: func(context.Context, string) ([]netip.Addr, error) { return nil, nil }}, "name_not_found"},
		{"a silent name service", named, Config{ResolveTimeout: time.Millisecond, Resolve: func(ctx context.Context, _ string) ([]netip.Addr, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}, "name_not_found"},
		{"https to a plain port", &url.URL{Scheme: "https", Host: plain.Host}, Config{}, "tls"},
		{"an unknown authority", &url.URL{Scheme: "https", Host: strings.TrimPrefix(secure.URL, "https://")}, Config{}, "tls"},
		{"a dead proxy", &url.URL{Scheme: "https", Host: "example.invalid"}, Config{Proxy: "http://" + closed.Host}, "connection_refused"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			start := time.Now()
			e := fault.From("", send(client(t, tt.cfg), tt.url, "sk-very-secret"))
			if e == nil || e.Code != fault.CodeLLM || e.Kind != fault.Provider || e.Retryable || e.Details["reason"] != tt.reason {
				t.Fatalf("got %#v", e)
			}
			if strings.Contains(e.Error(), "secret") || time.Since(start) > 2*time.Second {
				t.Fatalf("after %v: %v", time.Since(start), e)
			}
		})
	}
}

func TestSecondAddress(t *testing.T) {
	u := server(t, func(http.ResponseWriter, *http.Request) {})
	_, port, _ := net.SplitHostPort(u.Host)
	c := client(t, Config{Resolve: func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("127.1.2.3"), netip.MustParseAddr("127.0.0.1")}, nil
	}})
	if err := send(c, &url.URL{Scheme: "http", Host: "two.invalid:" + port}, ""); err != nil {
		t.Fatal(err)
	}
}

func TestBroken(t *testing.T) {
	u := server(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, _ := http.NewResponseController(w).Hijack()
		_ = conn.Close()
	})
	e := fault.From("", send(client(t, Config{}), u, ""))
	if e == nil || e.Code != fault.CodeLLM || !e.Retryable || e.Details["reason"] != "broken" {
		t.Fatalf("got %#v", e)
	}
}

func TestCancel(t *testing.T) {
	arrived := make(chan struct{}, 1)
	u := server(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/body" {
			w.WriteHeader(200)
			_ = http.NewResponseController(w).Flush()
		}
		arrived <- struct{}{}
		<-r.Context().Done()
	})
	t.Run("before the header", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		safego.Go("test.cancel", nil, func() { <-arrived; cancel() })
		_, err := client(t, Config{}).Send(ctx, Request{Op: "o", URL: u})
		if e := fault.From("", err); e.Code != fault.CodeCancelled || e.Kind != fault.Cancelled {
			t.Fatalf("got %#v", e)
		}
	})
	t.Run("while reading", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		req := Request{Op: "o", URL: u.JoinPath("body")}
		res, err := client(t, Config{}).Send(ctx, req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		<-arrived
		cancel()
		if _, err = ReadAll(ctx, req, res.Body, 0); fault.KindOf(err) != fault.Cancelled {
			t.Fatalf("got %v", err)
		}
	})
	t.Run("a deadline", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		_, err := client(t, Config{}).Send(ctx, Request{Op: "o", URL: u})
		if fault.KindOf(err) != fault.Timeout {
			t.Fatalf("got %v", err)
		}
	})
}

func TestJSON(t *testing.T) {
	u := server(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("User-Agent") != "libA3S" || r.Header.Get("Accept-Encoding") != "" {
			w.WriteHeader(400)
			return
		}
		body, _ := io.ReadAll(r.Body)
		if r.Method == "POST" && r.Header.Get("Content-Type") == "application/json" {
			_, _ = w.Write(body)
			return
		}
		if r.URL.Path == "/page" {
			_, _ = io.WriteString(w, "<html>")
			return
		}
		_, _ = io.WriteString(w, "no JSON")
	})
	c := client(t, Config{})
	var out map[string]string
	if _, err := c.JSON(context.Background(), Request{Op: "o", URL: u, Body: map[string]string{"a": "b"}}, 0, &out); err != nil || out["a"] != "b" {
		t.Fatalf("got %v, %v", out, err)
	}
	if _, err := c.JSON(context.Background(), Request{Op: "o", URL: u}, 0, &out); !errors.Is(err, fault.Of(fault.CodeLLM, "", "")) {
		t.Fatalf("got %v", err)
	}
	if _, err := c.JSON(context.Background(), Request{Op: "o", URL: u}, 5, &out); fault.KindOf(err) != fault.Limit {
		t.Fatalf("got %v", err)
	}
	if _, err := c.JSON(context.Background(), Request{Op: "o", URL: u.JoinPath("page")}, 0, &out); err == nil || !strings.Contains(err.Error(), "answered with a web page; check the base URL") {
		t.Fatalf("got %v", err)
	}
}

func TestNoAmbientProxy(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	t.Setenv("http_proxy", "http://127.0.0.1:1")
	u := server(t, func(http.ResponseWriter, *http.Request) {})
	c := client(t, Config{Resolve: func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}})
	if err := send(c, &url.URL{Scheme: "http", Host: "far.invalid:" + u.Port()}, ""); err != nil {
		t.Fatal(err)
	}
}

func TestProxy(t *testing.T) {
	var asked string
	proxy := server(t, func(_ http.ResponseWriter, r *http.Request) { asked = r.URL.String() })
	c := client(t, Config{Proxy: proxy.String()})
	if err := send(c, &url.URL{Scheme: "http", Host: "far.invalid", Path: "/x"}, ""); err != nil || asked != "http://far.invalid/x" {
		t.Fatalf("got %q, %v", asked, err)
	}
	for _, bad := range []string{"ftp://x", "nonsense", "http://", "://user:secret@"} {
		if _, err := New(Config{Proxy: bad}); !errors.Is(err, fault.Of(fault.CodeConfig, "", "")) || strings.Contains(err.Error(), "secret") {
			t.Fatalf("%q: got %v", bad, err)
		}
	}
}

func TestParseURL(t *testing.T) {
	for _, ok := range []string{"http://a", " https://a:1/b "} {
		if _, err := ParseURL(ok); err != nil {
			t.Fatalf("%q: %v", ok, err)
		}
	}
	for _, bad := range []string{"", "a", "ftp://a", "http://", "http://a:x"} {
		if _, err := ParseURL(bad); !errors.Is(err, fault.Of(fault.CodeConfig, "", "")) {
			t.Fatalf("%q: %v", bad, err)
		}
	}
	if _, err := ParseURL("ftp://u:secret@a/?k=secret"); strings.Contains(err.Error(), "secret") {
		t.Fatal(err)
	}
}
