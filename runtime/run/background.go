package run

import (
	"context"
	"slices"
	"sync"

	"github.com/a3s-lab/liba3s/internal/safego"
	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/prompt"
	"github.com/a3s-lab/liba3s/runtime/record"
)

// background asks the context providers side by side and gives what they know of the
// prompt as a section of the system prompt. One that fails is left out and logged.
func (e *Engine) background(ctx context.Context, in Input, log record.Log) (string, error) {
	if e.Prompt.Providers == nil {
		return "", nil
	}
	providers := e.Prompt.Providers()
	if len(providers) == 0 {
		return "", nil
	}
	resolving := event.ContextResolving{Providers: []string{}}
	for _, p := range providers {
		resolving.Providers = append(resolving.Providers, p.Name())
	}
	if err := log.Write(ctx, record.Fact{Event: resolving}); err != nil {
		return "", err
	}
	q := prompt.Query{Text: latest(in.Messages), MaxResults: prompt.MaxResults, SessionID: e.Prompt.SessionID}
	found := make([][]prompt.Item, len(providers))
	var asked sync.WaitGroup
	for i, p := range providers {
		asked.Add(1)
		safego.Go("run.background", nil, func() {
			defer asked.Done()
			found[i] = e.query(ctx, in.RunID, p, q)
		})
	}
	asked.Wait()
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	section, count, tokens := e.Prompt.Background(slices.Concat(found...))
	return section, log.Write(ctx, record.Fact{Event: event.ContextResolved{TotalItems: count, TotalTokens: tokens}})
}

func (e *Engine) query(ctx context.Context, runID string, p prompt.Provider, q prompt.Query) []prompt.Item {
	var items []prompt.Item
	err := safego.Call("run.background", func() (err error) {
		items, err = p.Query(ctx, q)
		return err
	})
	if err != nil {
		if ctx.Err() == nil {
			e.Log(event.LogLine{Level: "warn", Message: "context provider " + p.Name() + " was left out: " + err.Error(), RunID: runID, ErrorKind: string(fault.KindOf(err))})
		}
		return nil
	}
	items = items[:min(len(items), q.MaxResults)]
	for i := range items {
		it := &items[i]
		it.Provider = p.Name()
		it.ID, it.Source, it.Content = e.Redact(it.ID), e.Redact(it.Source), e.Redact(it.Content)
	}
	return items
}

// latest gives the text of the user's newest message.
func latest(messages []chat.Message) string {
	for _, m := range slices.Backward(messages) {
		if m.Role == chat.User {
			return m.Text()
		}
	}
	return ""
}
