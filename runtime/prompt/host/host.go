// Package host is a context provider that the host implements: it is asked once a run
// what it knows of the prompt. Ranking, budget and quoting are prompt's. Floor 8.
package host

import (
	"context"
	"math"
	"time"

	"github.com/a3s-lab/liba3s/runtime/fault"
	desk "github.com/a3s-lab/liba3s/runtime/host"
	"github.com/a3s-lab/liba3s/runtime/prompt"
)

// Bounds of a request and its answer.
const (
	// Deadline of one query.
	Deadline = 5 * time.Second
	// MaxAnswer bounds one answer in bytes.
	MaxAnswer = 4 << 20
	maxQuery  = 64 << 10
)

// ContextSpec describes a context provider.
type ContextSpec struct {
	desk.Extension
}

// ContextQuery are the parameters of "query".
type ContextQuery struct {
	// Query is the user's prompt; a very long one is cut.
	Query string `json:"query"`
	// MaxResults is how many items are taken at most.
	MaxResults int    `json:"max_results"`
	SessionID  string `json:"session_id"`
}

// ContextItem is a piece of background.
type ContextItem struct {
	// ID tells items apart; of two with the same one the higher ranked is taken.
	ID string `json:"id"`
	// Type is a word for what it is, such as "file" or "issue".
	Type string `json:"type,omitempty"`
	// Content is the text that the model is shown, as quoted data.
	Content string `json:"content"`
	// Source says where it comes from.
	Source string `json:"source,omitempty"`
	// Priority ranks items, higher first.
	Priority float64 `json:"priority,omitempty"`
	// TokenCount is the host's own count; absent is ours.
	TokenCount int `json:"token_count,omitempty"`
	// Required items are taken whatever the budget says.
	Required bool `json:"required,omitempty"`
}

// ContextResult is the result of "query".
type ContextResult struct {
	Items []ContextItem `json:"items"`
}

// Config is a provider and the way to the host.
type Config struct {
	Line *desk.Line
}

// Provider asks the host. It may be used concurrently.
type Provider struct{ line *desk.Line }

var _ prompt.Provider = (*Provider)(nil)

// Open makes a provider. It asks nothing.
func Open(_ context.Context, cfg Config) (*Provider, error) { return &Provider{cfg.Line}, nil }

// Name implements prompt.Provider.
func (p *Provider) Name() string { return p.line.Name() }

// Query implements prompt.Provider.
func (p *Provider) Query(ctx context.Context, q prompt.Query) ([]prompt.Item, error) {
	var r ContextResult
	err := p.line.Ask(ctx, desk.Question{
		Op: "query", SessionID: q.SessionID, Max: MaxAnswer,
		Params: ContextQuery{Query: desk.Cut(q.Text, maxQuery), MaxResults: q.MaxResults, SessionID: q.SessionID},
	}, &r)
	if err != nil {
		return nil, err
	}
	items := make([]prompt.Item, 0, min(len(r.Items), q.MaxResults))
	for i, it := range r.Items[:cap(items)] {
		if it.ID == "" || it.TokenCount < 0 || it.TokenCount > math.MaxInt32 {
			return nil, fault.New(fault.Invalid, "host.context", "item %d needs an id, and a token_count from 0 to 2147483647", i)
		}
		items = append(items, prompt.Item{ID: it.ID, Type: it.Type, Content: it.Content, Source: it.Source, Priority: it.Priority, TokenCount: it.TokenCount, Required: it.Required})
	}
	return items, nil
}
