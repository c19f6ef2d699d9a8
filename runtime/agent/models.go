package agent

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/a3s-lab/liba3s/internal/httpx"
	"github.com/a3s-lab/liba3s/runtime/acl"
	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/model"
	modelhost "github.com/a3s-lab/liba3s/runtime/model/host"
	"github.com/a3s-lab/liba3s/runtime/model/offline"
	"github.com/a3s-lab/liba3s/runtime/model/ollama"
	"github.com/a3s-lab/liba3s/runtime/model/openai"
	"github.com/a3s-lab/liba3s/runtime/model/script"
)

const (
	// maxScript bounds the file of a script model.
	maxScript = 8 << 20
	// maxScripts bounds how many sessions' places in their scripts are remembered.
	maxScripts = 1024
	// maxRetries of one model call (reference: governance 4.4).
	maxRetries = 10
	// defaultWindow is used where nobody says how much a model can hold (reference:
	// contract 2.1).
	defaultWindow = 200_000
)

// kind is how the models of a provider are reached.
type kind struct {
	open func(a *Agent, ctx context.Context, w want) (model.Client, error)
	// needsKey says that the service answers nobody without a key.
	needsKey bool
	base     string // default base URL; empty: it must be configured
	wire     bool   // an HTTP service
	timed    bool   // it keeps the time limit of a call itself
}

// want is one model to be opened.
type want struct {
	p       Provider
	m       Model
	session string
	kept    bool // the session outlives its handle
	timeout time.Duration
	// attempts of one call before it has failed (circuit_breaker_threshold).
	attempts int
}

// kinds maps provider names to adapters; any other name is an OpenAI-compatible
// service whose base URL is configured. A new provider is one folder and one line.
var kinds = map[string]kind{
	"script":  {open: (*Agent).openScript},
	"offline": {open: (*Agent).openOffline},
	"host":    {open: (*Agent).openHost, timed: true},
	"ollama":  {open: (*Agent).openOllama, base: "http://127.0.0.1:11434", wire: true},
	"openai":  {open: (*Agent).openOpenAI, base: "https://api.openai.com", needsKey: true, wire: true},
	"gpt":     {open: (*Agent).openOpenAI, base: "https://api.openai.com", needsKey: true, wire: true},
}

// unbuilt are providers of the contract whose adapters this version does not have.
var unbuilt = []string{"anthropic", "claude", "glm", "zhipu", "bigmodel"}

func kindOf(provider string) kind {
	if k, ok := kinds[strings.ToLower(provider)]; ok {
		return k
	}
	return kind{open: (*Agent).openOpenAI, wire: true}
}

// find resolves "provider/model" against the configuration.
func (a *Agent) find(ref string) (Provider, Model, error) {
	at := acl.Pos{}
	if ref == a.cfg.DefaultModel {
		at = a.cfg.defaultAt
	}
	fail := func(at acl.Pos, format string, args ...any) error {
		return configAt(a.setup.ACLPath, at, format, args...).With("field", "model")
	}
	name, id, ok := strings.Cut(ref, "/")
	if !ok || name == "" || id == "" {
		return Provider{}, Model{}, fail(at, "model %q is not of the form provider/model", ref)
	}
	if strings.EqualFold(name, "offline") && a.provider(name) == nil {
		if id != "search" {
			return Provider{}, Model{}, fail(at, "provider offline has one model, \"offline/search\", not %q", ref)
		}
		return Provider{Name: name}, Model{ID: id, Name: id, ToolCall: true}, nil
	}
	p := a.provider(name)
	if strings.EqualFold(name, "host") {
		return a.findHost(p, name, id)
	}
	if p == nil {
		return Provider{}, Model{}, fail(at, "unknown provider %q in %q: declare providers %q { ... }", name, ref, name)
	}
	i := slices.IndexFunc(p.Models, func(m Model) bool { return m.ID == id })
	if i < 0 {
		return *p, Model{}, fail(at, "provider %q has no model %q: declare models %q { }", name, id, id)
	}
	m := merged(*p, p.Models[i])
	return *p, m, a.usable(*p, m, fail)
}

// usable says whether a model has what its provider needs.
func (a *Agent) usable(p Provider, m Model, fail func(acl.Pos, string, ...any) error) error {
	k := kindOf(p.Name)
	switch {
	case slices.Contains(unbuilt, strings.ToLower(p.Name)):
		return fail(p.pos, "provider %q is not built in this version", p.Name)
	case k.needsKey && m.APIKey == "" && p.Transport == "" && !hasAuthorization(m.Headers):
		return fail(p.pos, "provider %q needs a key and has none: set apiKey, for example apiKey = env(\"OPENAI_API_KEY\"), and see that the variable is set", p.Name)
	case k.wire && k.base == "" && m.BaseURL == "":
		return fail(p.pos, "provider %q needs baseUrl: only openai and ollama have a default", p.Name)
	case k.wire && p.Transport == "" && badURL(m.BaseURL) != nil:
		return fail(p.pos, "baseUrl of provider %q: %v", p.Name, badURL(m.BaseURL))
	case strings.EqualFold(p.Name, "script") && m.Script == "":
		return fail(m.pos, "models %q of provider script needs script = \"FILE\"", m.ID)
	}
	return nil
}

// badURL says what is wrong with an address.
func badURL(raw string) error {
	if _, err := httpx.ParseURL(raw); err != nil {
		return errors.New(fault.From("", err).Message)
	}
	return nil
}

func hasAuthorization(h map[string]string) bool {
	for k := range h {
		if strings.EqualFold(k, "authorization") {
			return true
		}
	}
	return false
}

// provider gives the declaration of a name; repeated blocks add up, later ones win.
func (a *Agent) provider(name string) *Provider {
	var out *Provider
	for _, p := range a.cfg.Providers {
		if p.Name != name {
			continue
		}
		if out != nil {
			p = overlay(*out, p)
		}
		out = &p
	}
	return out
}

func overlay(old, p Provider) Provider {
	p.APIKey = cmp.Or(p.APIKey, old.APIKey)
	p.BaseURL = cmp.Or(p.BaseURL, old.BaseURL)
	p.SessionIDHeader = cmp.Or(p.SessionIDHeader, old.SessionIDHeader)
	p.Proxy = cmp.Or(p.Proxy, old.Proxy)
	p.Transport = cmp.Or(p.Transport, old.Transport)
	if p.Headers == nil {
		p.Headers = old.Headers
	}
	p.Models = append(slices.Clone(p.Models), old.Models...)
	return p
}

// merged completes a model with its provider's words.
func merged(p Provider, m Model) Model {
	m.APIKey = cmp.Or(m.APIKey, p.APIKey)
	m.BaseURL = cmp.Or(m.BaseURL, p.BaseURL, kindOf(p.Name).base)
	m.SessionIDHeader = cmp.Or(m.SessionIDHeader, p.SessionIDHeader)
	if m.Headers == nil {
		m.Headers = p.Headers
	}
	return m
}

// open makes the client of a model, with its time limit inside its retries.
func (a *Agent) open(ctx context.Context, w want) (model.Client, error) {
	k := kindOf(w.p.Name)
	c, err := k.open(a, ctx, w)
	if err != nil {
		return nil, err
	}
	cfg := model.RetryConfig{MaxRetries: min(w.attempts-1, maxRetries), OnRetry: func(n int, wait time.Duration, cause *fault.Error) {
		a.log(event.LogLine{Level: "warn", Message: "model call failed, trying again in " + wait.String() + ": " + cause.Error(), SessionID: w.session, ErrorKind: string(cause.Kind), Fields: map[string]any{"retry": n}})
	}}
	if cfg.MaxRetries == 0 {
		cfg.MaxRetries = -1
	}
	if k.timed {
		w.timeout = 0
	}
	if !k.wire {
		cfg.Base = 10 * time.Millisecond // there is no service to be spared
	}
	return model.Retry(model.Timeout(c, w.timeout), cfg), nil
}

// findHost resolves "host/NAME". It needs no block in the configuration; one may set what
// the host's description of the model leaves open. Whether the host has registered it is
// seen when a session opens, since the agent comes first.
func (a *Agent) findHost(p *Provider, name, id string) (Provider, Model, error) {
	m := Model{ID: id, Name: id, ToolCall: true, Temperature: true}
	if p == nil {
		return Provider{Name: name}, m, nil
	}
	if i := slices.IndexFunc(p.Models, func(m Model) bool { return m.ID == id }); i >= 0 {
		m = p.Models[i]
	}
	return *p, m, nil
}

// describeHost completes a model of the host with what its registration says.
func (a *Agent) describeHost(p Provider, m *Model) error {
	if !strings.EqualFold(p.Name, "host") {
		return nil
	}
	r, err := a.named("model", m.ID)
	if err != nil {
		return fault.Option("model", fault.BadValue, "%q: %v", p.Name+"/"+m.ID, err)
	}
	s := r.spec.(*modelhost.ModelSpec)
	m.Window, m.MaxOutput = cmp.Or(m.Window, s.Context), cmp.Or(m.MaxOutput, s.Output)
	m.Reasoning = m.Reasoning || s.Reasoning
	m.ToolCall = m.ToolCall && (s.ToolCall == nil || *s.ToolCall)
	return nil
}

func (a *Agent) openHost(ctx context.Context, w want) (model.Client, error) {
	r, err := a.named("model", w.m.ID)
	if err != nil {
		return nil, err
	}
	return modelhost.Open(ctx, modelhost.Config{Spec: *r.spec.(*modelhost.ModelSpec), Line: r.line, Timeout: w.timeout})
}

func (a *Agent) openScript(ctx context.Context, w want) (model.Client, error) {
	key := w.session + "\x00" + w.p.Name + "/" + w.m.ID
	a.mu.Lock()
	c := a.scripts[key]
	a.mu.Unlock()
	if c != nil { // a resumed session goes on where it was
		return c, nil
	}
	text, err := a.readScript(w.m)
	if err != nil {
		return nil, err
	}
	c, err = script.Open(ctx, script.Config{Text: text})
	if err != nil {
		return nil, configAt(a.setup.ACLPath, w.m.pos, "script %q of models %q: %s", w.m.Script, w.m.ID, fault.From("", err).Message)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if w.kept && len(a.scripts) < maxScripts {
		a.scripts[key] = c
	}
	return c, nil
}

// readScript looks beside the configuration first, then in the working directory.
func (a *Agent) readScript(m Model) (string, error) {
	path := absolute(a.setup.Cwd, m.Script)
	if a.cfg.Dir != "" && !filepath.IsAbs(m.Script) {
		if beside := filepath.Join(a.cfg.Dir, m.Script); isFile(beside) {
			path = beside
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", configAt(a.setup.ACLPath, m.pos, "script of models %q: %v", m.ID, err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxScript {
		return "", configAt(a.setup.ACLPath, m.pos, "script %q of models %q is not a regular file of at most %d bytes", path, m.ID, maxScript)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", configAt(a.setup.ACLPath, m.pos, "script of models %q: %v", m.ID, err)
	}
	return string(b), nil
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

func (a *Agent) openOffline(ctx context.Context, w want) (model.Client, error) {
	return offline.Open(ctx, offline.Config{Model: w.m.ID})
}

// hostTransport gives a client whose requests the host sends.
func (a *Agent) hostTransport(ctx context.Context, p Provider) (*httpx.Client, error) {
	if p.Proxy != "" {
		return nil, configAt(a.setup.ACLPath, p.pos, "provider %q has transport and proxy: the host's transport knows its own way", p.Name)
	}
	r, err := a.named("transport", p.Transport)
	if err != nil {
		return nil, configAt(a.setup.ACLPath, p.pos, "provider %q: %v", p.Name, err)
	}
	t, err := modelhost.OpenTransport(ctx, r.line)
	if err != nil {
		return nil, err
	}
	return httpx.New(httpx.Config{RoundTripper: t})
}

// transport gives the agent's own HTTP client for a proxy, made at the first need.
func (a *Agent) transport(ctx context.Context, p Provider) (*httpx.Client, error) {
	if p.Transport != "" {
		return a.hostTransport(ctx, p)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.clients[p.Proxy]; c != nil {
		return c, nil
	}
	if a.closed {
		return nil, a.isClosed()
	}
	c, err := httpx.New(httpx.Config{Proxy: p.Proxy})
	if err == nil {
		a.clients[p.Proxy] = c
	}
	return c, err
}

func (a *Agent) openOpenAI(ctx context.Context, w want) (model.Client, error) {
	t, err := a.transport(ctx, w.p)
	if err != nil {
		return nil, err
	}
	return openai.Open(ctx, openai.Config{
		HTTP: t, Provider: w.p.Name, Model: w.m.Name, APIKey: w.m.APIKey, BaseURL: w.m.BaseURL, Headers: maps.Clone(w.m.Headers),
		SessionIDHeader: w.m.SessionIDHeader, Stream: w.m.Stream, NoTemperature: !w.m.Temperature,
	})
}

func (a *Agent) openOllama(ctx context.Context, w want) (model.Client, error) {
	t, err := a.transport(ctx, w.p)
	if err != nil {
		return nil, err
	}
	return ollama.Open(ctx, ollama.Config{
		HTTP: t, Provider: w.p.Name, Model: w.m.Name, APIKey: w.m.APIKey, BaseURL: w.m.BaseURL, Headers: maps.Clone(w.m.Headers),
		SessionIDHeader: w.m.SessionIDHeader, Stream: w.m.Stream, Reasoning: w.m.Reasoning, Window: w.m.Window, NoTemperature: !w.m.Temperature,
	})
}
