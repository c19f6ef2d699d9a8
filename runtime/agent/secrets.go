package agent

import (
	"net/url"
	"slices"
	"strings"

	"github.com/a3s-lab/liba3s/internal/httpx"
)

// placeholders are what servers without keys are given for one, beside the name of their
// provider: words of ordinary text that hide nothing.
var placeholders = []string{
	"ollama", "lm-studio", "lmstudio", "llama.cpp", "vllm", "local", "localhost", "not-needed", "notneeded", "not-used", "unused",
	"no-key", "nokey", "sk-no-key", "sk-no-key-required", "no-key-required", "none", "null", "empty", "dummy", "placeholder",
	"api-key", "api_key", "apikey", "your-api-key", "test-key", "changeme",
}

// secrets gives everything of the configuration that must never be told.
func (c *Config) secrets() []string {
	var all []string
	key := func(p Provider, key string) {
		if !strings.EqualFold(key, p.Name) && !slices.Contains(placeholders, strings.ToLower(key)) {
			all = append(all, key)
		}
	}
	for _, p := range c.Providers {
		key(p, p.APIKey)
		all = append(all, inURL(p.BaseURL), inURL(p.Proxy))
		all = append(all, inHeaders(p.Headers)...)
		for _, m := range p.Models {
			key(p, m.APIKey)
			all = append(all, inURL(m.BaseURL))
			all = append(all, inHeaders(m.Headers)...)
		}
	}
	return slices.DeleteFunc(all, func(s string) bool { return s == "" })
}

// inURL gives the password of an address, or the name where it stands alone: a token.
func inURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.User == nil {
		return ""
	}
	if password, ok := u.User.Password(); ok {
		return password
	}
	return u.User.Username()
}

// inHeaders gives the values of headers that count as credentials, whole and without the
// scheme before them.
func inHeaders(headers map[string]string) []string {
	var all []string
	for name, value := range headers {
		if !secretHeader(name) {
			continue
		}
		all = append(all, value)
		if _, bare, ok := strings.Cut(strings.TrimSpace(value), " "); ok {
			all = append(all, strings.TrimSpace(bare))
		}
	}
	return all
}

// secretHeader says whether a header's value counts as a credential.
func secretHeader(name string) bool {
	name = strings.ToLower(name)
	for _, word := range []string{"authorization", "key", "token", "secret", "cookie", "password"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}

// shown gives an address as it may be kept: without user and query.
func shown(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return httpx.Show(u)
}
