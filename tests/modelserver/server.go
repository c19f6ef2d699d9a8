// Package modelserver is a model service on loopback that says what a test wrote, on the
// wires of OpenAI (/v1/chat/completions), Ollama (/api/chat, /api/show, /api/tags) and
// Anthropic (/v1/messages). It owns the composing, cutting and delaying of answers and
// the recording of requests; what they mean is the test's part. The command in
// cmd/modelserver serves it to tests in other languages, which add answers by POST to
// /_answers and read the requests at /_requests. Floor: tests.
package modelserver

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/a3s-lab/liba3s/internal/safego"
)

// Request is a request that the server received.
type Request struct {
	Method string          `json:"method"`
	Path   string          `json:"path"`
	Header http.Header     `json:"header"`
	Body   json.RawMessage `json:"body,omitempty"`
}

// Field gives a top-level field of the body, nil if there is none.
func (r Request) Field(name string) any {
	var body map[string]any
	_ = json.Unmarshal(r.Body, &body) // no object has no fields
	return body[name]
}

// Server answers requests with the answers it was given, in their order, over all wires.
type Server struct {
	// URL is the base address.
	URL string

	http   *http.Server
	closed chan struct{}
	served sync.WaitGroup // the accept loop

	mu       sync.Mutex
	answers  []Answer      // guarded by mu
	loop     bool          // guarded by mu
	requests []Request     // guarded by mu
	active   int           // handlers running; guarded by mu
	changed  chan struct{} // closed and replaced when active falls; guarded by mu
}

// New starts a server on loopback with these answers. Close ends it.
func New(answers ...Answer) (*Server, error) { return Listen("127.0.0.1:0", answers...) }

// Listen is New at a given address.
func Listen(addr string, answers ...Answer) (*Server, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("modelserver: listen: %w", err)
	}
	s := &Server{URL: "http://" + l.Addr().String(), answers: answers, closed: make(chan struct{}), changed: make(chan struct{})}
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	s.served.Add(1)
	safego.Go("modelserver.serve", nil, func() {
		defer s.served.Done()
		_ = s.http.Serve(l) // it always ends with an error, here that of Close
	})
	return s, nil
}

// Close ends the server and all its connections.
func (s *Server) Close() {
	close(s.closed)
	_ = s.http.Close()
	s.served.Wait()
}

// Add appends answers.
func (s *Server) Add(answers ...Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers = append(s.answers, answers...)
}

// Loop makes the server keep the answers: the first follows the last.
func (s *Server) Loop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loop = true
}

// Requests gives the requests for answers so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// WaitIdle waits until no request is being answered: every client has its answer or has
// closed its connection.
func (s *Server) WaitIdle(ctx context.Context) error {
	for {
		s.mu.Lock()
		active, changed := s.active, s.changed
		s.mu.Unlock()
		if active == 0 {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("modelserver: %d requests are still open: %w", active, ctx.Err())
		}
	}
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 64<<20))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	switch {
	case r.URL.Path == "/_requests":
		writeJSON(w, s.Requests())
	case r.URL.Path == "/_answers":
		var answers []Answer
		if err := json.Unmarshal(body, &answers); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		s.Add(answers...)
	case r.URL.Path == "/api/tags":
		writeJSON(w, obj{"models": []obj{{"name": "scripted", "model": "scripted"}}})
	case r.URL.Path == "/api/show":
		writeJSON(w, obj{"capabilities": []string{"completion", "tools", "thinking"}, "model_info": obj{"general.architecture": "scripted", "scripted.context_length": 32768}})
	case r.URL.Path == "/api/version":
		writeJSON(w, obj{"version": "0.0.0"})
	default:
		s.answer(w, r, body)
	}
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the client has left; nothing to tell
}

// wire composes answers in the words of one service.
type wire func(a Answer, model string, stream bool) (body, contentType string)

func pick(path string) (wire, bool) {
	switch {
	case strings.HasSuffix(path, "/chat/completions"):
		return openAI, false
	case strings.HasSuffix(path, "/api/chat"):
		return ollama, true // streams unless told otherwise
	case strings.HasSuffix(path, "/v1/messages"):
		return anthropic, false
	}
	return nil, false
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, body []byte) {
	compose, stream := pick(r.URL.Path)
	if compose == nil {
		http.NotFound(w, r)
		return
	}
	a, ok := s.take(Request{Method: r.Method, Path: r.URL.Path, Header: r.Header.Clone(), Body: body})
	defer s.leave()
	if !ok {
		// A status that no client retries: the test has a mistake.
		http.Error(w, `{"error":{"message":"modelserver has no more answers"}}`, http.StatusNotImplemented)
		return
	}
	ask := struct {
		Model  string `json:"model"`
		Stream *bool  `json:"stream"`
	}{}
	_ = json.Unmarshal(body, &ask) // a test may send nonsense on purpose
	if ask.Stream != nil {
		stream = *ask.Stream
	}
	text, contentType := a.Raw, "application/json"
	if a.Raw == "" && a.Status == 0 {
		text, contentType = compose(a, ask.Model, stream)
	} else if stream && a.Status == 0 {
		_, contentType = compose(Answer{}, ask.Model, stream)
	}
	s.write(w, r, a, text, contentType)
}

func (s *Server) write(w http.ResponseWriter, r *http.Request, a Answer, text, contentType string) {
	if a.DelayMS > 0 && !s.wait(r, time.After(a.delay())) {
		return
	}
	w.Header().Set("Content-Type", contentType)
	for name, value := range a.Header {
		w.Header().Set(name, value)
	}
	if a.Status > 0 {
		w.WriteHeader(a.Status)
	}
	if a.CutAfter != 0 {
		text = text[:min(max(a.CutAfter, 0), len(text))]
	}
	flush := http.NewResponseController(w).Flush
	step := len(text)
	if a.SplitBytes {
		step = 1
	}
	for len(text) > 0 {
		n := min(max(step, 1), len(text))
		if _, err := io.WriteString(w, text[:n]); err != nil {
			return // the client has left
		}
		_ = flush()
		text = text[n:]
	}
	_ = flush()
	if a.KeepOpen {
		s.wait(r, nil)
	}
	if a.Abort {
		panic(http.ErrAbortHandler) // the way of net/http to break a connection
	}
}

// wait gives false if the client left or the server closed before done.
func (s *Server) wait(r *http.Request, done <-chan time.Time) bool {
	select {
	case <-done:
		return true
	case <-r.Context().Done():
	case <-s.closed:
	}
	return false
}

func (s *Server) take(r Request) (Answer, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
	s.active++
	if len(s.answers) == 0 {
		return Answer{}, false
	}
	a := s.answers[0]
	s.answers = s.answers[1:]
	if s.loop {
		s.answers = append(s.answers, a)
	}
	return a, true
}

func (s *Server) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active--
	close(s.changed)
	s.changed = make(chan struct{})
}
