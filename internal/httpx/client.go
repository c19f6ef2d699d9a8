// Package httpx is the one way in which libA3S talks HTTP to model services. It owns
// the transport (proxy, TLS, time limits, all per agent and none from the environment),
// bounded reading, and the classification of what goes wrong: the kind of a failure and
// whether a retry may help are decided here. Retrying and the meaning of a body are left
// to others. Floor 1: it imports fault.
package httpx

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

// Config says how an agent reaches its services. The zero value is usable.
type Config struct {
	// Proxy is the URL of an HTTP or SOCKS5 proxy; empty connects directly.
	Proxy string
	// ConnectTimeout bounds making one connection; 0 is 10 s.
	ConnectTimeout time.Duration
	// ResolveTimeout bounds finding a host's addresses; 0 is 1.8 s, which keeps "no such
	// host" within the 2 s that users are promised.
	ResolveTimeout time.Duration
	// TLS replaces the default TLS settings, for tests and private authorities.
	TLS *tls.Config
	// RoundTripper, if not nil, sends the requests in the place of our own transport; the
	// rest of Config then has no part. An error of it that is a *fault.Error is passed on
	// as it is.
	RoundTripper http.RoundTripper
	// Resolve replaces the system's name service.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
}

// Client is an HTTP client of one agent. Its methods may be called concurrently.
type Client struct{ http *http.Client }

// New makes a client. Close frees its idle connections.
func New(cfg Config) (*Client, error) {
	const op = "http.open"
	if cfg.RoundTripper != nil {
		return over(cfg.RoundTripper), nil
	}
	if cfg.ConnectTimeout <= 0 {
		cfg.ConnectTimeout = 10 * time.Second
	}
	if cfg.ResolveTimeout <= 0 {
		cfg.ResolveTimeout = 1800 * time.Millisecond
	}
	if cfg.Resolve == nil {
		cfg.Resolve = resolve
	}
	t := &http.Transport{
		DialContext:         (&dialer{cfg}).dial,
		TLSClientConfig:     cfg.TLS,
		TLSHandshakeTimeout: cfg.ConnectTimeout,
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: 4,
		IdleConnTimeout:     90 * time.Second,
		// A compressed stream would be held back by buffers and could swell without bound.
		DisableCompression:     true,
		MaxResponseHeaderBytes: 256 << 10,
	}
	if cfg.Proxy != "" {
		u, err := url.Parse(cfg.Proxy)
		if err != nil || u.Host == "" || !knownProxy(u.Scheme) {
			return nil, fault.Of(fault.CodeConfig, op, "the proxy address is not a URL of http, https or socks5")
		}
		t.Proxy = http.ProxyURL(u)
	}
	return over(t), nil
}

func over(t http.RoundTripper) *Client {
	c := &http.Client{Transport: t}
	// Following a redirect would hand custom key headers to another host.
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{c}
}

// Close frees the idle connections. Streams that are being read go on.
func (c *Client) Close() { c.http.CloseIdleConnections() }

func knownProxy(scheme string) bool {
	switch scheme {
	case "http", "https", "socks5", "socks5h":
		return true
	}
	return false
}

// ParseURL checks the base address of a service: http or https with a host.
func ParseURL(raw string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(raw))
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, fault.Of(fault.CodeConfig, "http.open", "the base URL %q is not an http or https address", show(raw))
	}
	return u, nil
}

// show gives an address without the parts that may hold a secret.
func show(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "(unreadable)"
	}
	return Show(u)
}

// Show prints u without user, query and fragment, which may hold secrets.
func Show(u *url.URL) string {
	c := *u
	c.User, c.RawQuery, c.Fragment, c.RawFragment = nil, "", "", ""
	return c.String()
}

// dialer resolves once and connects to exactly the addresses it got.
type dialer struct{ cfg Config }

func (d *dialer) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	addrs, err := d.lookup(ctx, host)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, d.cfg.ConnectTimeout)
	defer cancel()
	var first error
	for i, a := range addrs {
		// Each address gets its share of the time, so that a dead one cannot eat it all.
		share := max(d.cfg.ConnectTimeout/time.Duration(len(addrs)-i), 2*time.Second)
		conn, err := (&net.Dialer{Timeout: share}).DialContext(ctx, network, net.JoinHostPort(a.String(), port))
		if err == nil {
			return conn, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

func (d *dialer) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	limited, cancel := context.WithTimeout(ctx, d.cfg.ResolveTimeout)
	defer cancel()
	addrs, err := d.cfg.Resolve(limited, host)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case limited.Err() != nil:
		return nil, &net.DNSError{Err: "the name service did not answer in time", Name: host, IsTimeout: true}
	case err != nil:
		return nil, err
	case len(addrs) == 0:
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return addrs, nil
}

func resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}
