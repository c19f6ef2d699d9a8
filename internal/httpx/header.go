package httpx

import (
	"net/http"
	"strings"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

// Headers makes the headers of a service that takes a bearer token: the key goes as
// Authorization unless custom carries one in any case of letters; custom headers go over
// ours. A name or value that cannot be sent is a CONFIG_ERROR that never repeats a value.
func Headers(op, key string, custom map[string]string, sessionHeader string) (http.Header, error) {
	h := http.Header{}
	authorized := false
	for name, value := range custom {
		if !validName(name) || !validValue(value) {
			return nil, fault.Of(fault.CodeConfig, op, "the header %q cannot be sent: its name or value holds a forbidden character", name)
		}
		h.Set(name, value)
		authorized = authorized || strings.EqualFold(name, "authorization")
	}
	if key != "" && !authorized {
		if !validValue(key) {
			return nil, fault.Of(fault.CodeConfig, op, "the API key cannot be sent: it holds a line break or another forbidden character")
		}
		h.Set("Authorization", "Bearer "+key)
	}
	if sessionHeader != "" && !validName(sessionHeader) {
		return nil, fault.Of(fault.CodeConfig, op, "the session id header %q is no header name", sessionHeader)
	}
	return h, nil
}

// SetSession adds the session's id under the configured name, if both are there. An id
// that cannot be sent is left out: it serves routing, not the answer.
func SetSession(h http.Header, name, id string) {
	if name != "" && id != "" && validValue(id) {
		h.Set(name, id)
	}
}

func validName(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return r <= ' ' || r > '~' || strings.ContainsRune(`()<>@,;:\"/[]?={}`, r)
	})
}

func validValue(value string) bool {
	return !strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}
