package openai

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/a3s-lab/liba3s/internal/httpx"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/model"
)

type nopCloser struct{ *strings.Reader }

func (nopCloser) Close() error { return nil }

func mustURL() *url.URL { return &url.URL{Scheme: "http", Host: "localhost"} }

// FuzzStream feeds bytes as a stream: whatever comes, the client ends with a Done or a
// typed error.
func FuzzStream(f *testing.F) {
	f.Add(stream(`{"index":0,"delta":{"content":"a"}}`, "data: [DONE]"))
	f.Add(stream(`{"delta":{"tool_calls":[{"function":{"name":"f","arguments":"{"}},{"id":"f","function":{"name":"f"}}]}}`, `data: {"error":1}`))
	f.Fuzz(func(t *testing.T, body string) {
		var o output
		dones := 0
		o.yield = func(c model.Chunk, _ error) bool {
			if c.Kind == model.Done {
				dones++
			}
			return true
		}
		c := &Client{cfg: Config{MaxEvent: 1 << 16, FinishGrace: time.Hour}, url: mustURL()}
		err := c.readStream(context.Background(), httpx.Request{Op: op, URL: c.url}, nopCloser{strings.NewReader(body)}, &o)
		if (err == nil) != (dones == 1) {
			t.Fatalf("error %v and %d Done", err, dones)
		}
		if err != nil && fault.KindOf(err) == fault.Internal {
			t.Fatal(err)
		}
	})
}
