package hosts

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	a3s "github.com/a3s-lab/liba3s"
)

// way is a proxy that answers for the model behind it and remembers who asked.
type way struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string
}

func newWay(n int) *way {
	w := &way{}
	w.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.mu.Lock()
		w.asked = append(w.asked, r.URL.Host+" "+r.Header.Get("Authorization"))
		w.mu.Unlock()
		rw.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(rw, `{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":"answer %d"},"finish_reason":"stop"}]}`, n)
	}))
	return w
}

// FFI-08: each agent of a process has its own proxy, key, store of memory and receiver of
// log lines; TestFiftyAgents has the rest.
func TestFiftyProxies(t *testing.T) {
	const count = 50
	ways := make([]*way, count)
	for n := range ways {
		ways[n] = newWay(n)
		defer ways[n].Close()
	}
	var all sync.WaitGroup
	for n, w := range ways {
		all.Go(func() {
			if err := throughProxy(n, w); err != nil {
				t.Errorf("agent %d: %v", n, err)
			}
		})
	}
	all.Wait()
	for n, w := range ways {
		if want := fmt.Sprintf("model-%d.invalid Bearer sk-key-of-agent-%03d", n, n); len(w.asked) != 1 || w.asked[0] != want {
			t.Errorf("proxy %d was asked %q, want %q once", n, w.asked, want)
		}
	}
}

// throughProxy runs one agent, whose log must tell of its own provider of context alone.
func throughProxy(n int, w *way) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	agent, err := a3s.Create(ctx, fmt.Sprintf("default_model = \"openai/m\"\nproviders \"openai\" {\n  apiKey = env(\"THE_KEY\")\n  baseUrl = \"http://model-%d.invalid\"\n  proxy = %q\n  models \"m\" {}\n}\n", n, w.URL),
		a3s.WithEnv(map[string]string{"THE_KEY": fmt.Sprintf("sk-key-of-agent-%03d", n), "HTTP_PROXY": "http://127.0.0.1:1"}))
	if err != nil {
		return err
	}
	lines := make(chan string, 16)
	_, err = agent.RegisterExtension(ctx, "log", map[string]any{"name": "lines"}, map[string]a3s.Handler{"write": func(_ context.Context, params json.RawMessage, _ func(any) error) (any, error) {
		lines <- string(params)
		return nil, nil
	}})
	if err != nil {
		return err
	}
	name := fmt.Sprintf("source-%d", n)
	_, err = agent.RegisterExtension(ctx, "context", map[string]any{"name": name}, map[string]a3s.Handler{"query": func(context.Context, json.RawMessage, func(any) error) (any, error) {
		return nil, &a3s.ExtensionError{Message: "nothing known"}
	}})
	if err != nil {
		return err
	}
	id := fmt.Sprintf("session-%d", n)
	session, err := agent.Session(ctx, ".", &a3s.SessionOptions{SessionID: &id})
	if err != nil {
		return err
	}
	result, err := session.Send(ctx, "hello", nil)
	if err != nil {
		return err
	}
	if want := fmt.Sprintf("answer %d", n); result.Text != want {
		return fmt.Errorf("got %q, want %q", result.Text, want)
	}
	if got := agent.ListSessions(); len(got) != 1 || got[0] != id {
		return fmt.Errorf("it has sessions %q", got)
	}
	select {
	case line := <-lines:
		if !strings.Contains(line, name+" was left out") {
			return fmt.Errorf("its log says %s", line)
		}
	case <-ctx.Done():
		return fmt.Errorf("its log says nothing")
	}
	if err := agent.Close(ctx); err != nil {
		return err
	}
	if len(lines) > 0 {
		return fmt.Errorf("its log says more: %s", <-lines)
	}
	return nil
}
