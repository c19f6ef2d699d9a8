// Package offline stands in for a model when there is none: it searches the workspace
// for the words of the prompt with the tools that are offered, and answers with file and
// line references taken from their results. It never claims to be a model. It owns the
// choice of words and the ranking; the searching is done by real tools, behind the same
// gate as for any model. Floor 8: a back-end of model.
package offline

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"regexp"
	"strings"

	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/model"
)

const op = "model.offline"

// Config of the offline search. The zero value is usable.
type Config struct {
	// Model is the name the answers carry; empty is "search".
	Model string
}

// Client searches. It keeps nothing between calls: all it knows is in the request, so
// the same request always gives the same answer. Its methods may be called concurrently.
type Client struct{ model string }

var _ model.Client = (*Client)(nil)

// Open makes a client.
func Open(_ context.Context, cfg Config) (*Client, error) {
	if cfg.Model == "" {
		cfg.Model = "search"
	}
	return &Client{cfg.Model}, nil
}

// Stream gives at most three turns for a prompt: search, look at the best places, answer.
func (c *Client) Stream(ctx context.Context, req model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		text, calls := answer(req)
		stop := model.StopEnd
		if len(calls) > 0 {
			stop = model.StopTools
		}
		for line := range strings.Lines(text) {
			if ctx.Err() != nil {
				yield(model.Chunk{}, fault.From(op, ctx.Err()))
				return
			}
			if !yield(model.Chunk{Kind: model.TextDelta, Text: line}, nil) {
				return
			}
		}
		for slot, call := range calls {
			if !yield(model.Chunk{Kind: model.ToolStart, Slot: slot, Name: call.Name}, nil) ||
				!yield(model.Chunk{Kind: model.ToolInput, Slot: slot, Text: string(call.Args)}, nil) {
				return
			}
		}
		yield(model.Chunk{Kind: model.Done, Stop: stop, Meta: model.Meta{Provider: "offline", RequestModel: c.model, ResponseModel: c.model}}, nil)
	}
}

// state is what the transcript tells about the current prompt.
type state struct {
	words   []word
	offered map[string]bool
	rounds  int // answers given to this prompt so far
	results []result
}

// result is the outcome of one of our calls.
type result struct {
	tool, text string
	path       string // of a read
	failed     bool
}

func answer(req model.Request) (text string, calls []chat.Call) {
	s := read(req)
	switch s.rounds {
	case 0:
		if calls = s.search(); len(calls) > 0 {
			return "", calls
		}
	case 1:
		if calls = s.look(); len(calls) > 0 {
			return "", calls
		}
	}
	return s.report(), nil
}

// read takes the transcript apart: the last prompt, and what came after it.
func read(req model.Request) state {
	s := state{offered: map[string]bool{}}
	for _, t := range req.Tools {
		s.offered[t.Name] = true
	}
	last := -1
	for i, m := range req.Messages {
		if m.Role == chat.User && m.Text() != "" {
			last = i
		}
	}
	if last < 0 {
		return s
	}
	s.words = significant(req.Messages[last].Text())
	calls := map[string]chat.Block{}
	for _, m := range req.Messages[last+1:] {
		if m.Role == chat.Assistant {
			s.rounds++
		}
		for _, b := range m.Content {
			switch b.Type {
			case chat.ToolUse:
				calls[b.ID] = b
			case chat.ToolResult:
				call := calls[b.ToolUseID]
				var args struct {
					Path string `json:"file_path"`
				}
				_ = json.Unmarshal(call.Input, &args) // our own words; without a path there is no heading
				s.results = append(s.results, result{call.Name, b.Content, args.Path, b.IsError})
			}
		}
	}
	return s
}

// search proposes the first calls: one grep a word, and a glob for file names.
func (s state) search() []chat.Call {
	var calls []chat.Call
	if s.offered["grep"] {
		for _, w := range s.words {
			calls = append(calls, propose("grep", struct {
				Pattern string `json:"pattern"`
				Fold    bool   `json:"-i"`
			}{regexp.QuoteMeta(w.stem), true}))
		}
	}
	var stems []string
	for _, w := range s.words {
		if !strings.ContainsAny(w.stem, "/{}[]*?,\\") {
			stems = append(stems, w.stem)
		}
	}
	if s.offered["glob"] && len(stems) > 0 {
		pattern := "**/*" + stems[0] + "*"
		if len(stems) > 1 {
			pattern = "**/*{" + strings.Join(stems, ",") + "}*"
		}
		calls = append(calls, propose("glob", struct {
			Pattern string `json:"pattern"`
		}{pattern}))
	}
	return calls
}

// look proposes to read around the best places.
func (s state) look() []chat.Call {
	if !s.offered["read"] {
		return nil
	}
	var calls []chat.Call
	seen := map[string]bool{}
	for _, h := range s.best() {
		if seen[h.path] || len(calls) == 2 {
			continue
		}
		seen[h.path] = true
		calls = append(calls, propose("read", struct {
			Path   string `json:"file_path"`
			Offset int    `json:"offset"`
			Limit  int    `json:"limit"`
		}{h.path, max(h.line-4, 0), 12}))
	}
	return calls
}

func propose(tool string, args any) chat.Call {
	data, err := json.Marshal(args)
	if err != nil { // the arguments are ours and always encode
		data = []byte("{}")
	}
	return chat.Call{Name: tool, Args: data}
}

// report writes the answer.
func (s state) report() string {
	var b strings.Builder
	b.WriteString("This is an offline search, not a model: it only looks for the words of the prompt.\n\n")
	hits, files := s.best(), s.named()
	switch {
	case len(s.words) == 0:
		b.WriteString("The prompt holds no word to search for. Name an identifier, a file or a topic.\n")
		return b.String()
	case s.rounds == 0:
		b.WriteString("No search tool (grep or glob) is available in this session, so nothing was searched.\n")
		return b.String()
	case len(hits) == 0 && len(files) == 0:
		fmt.Fprintf(&b, "Nothing was found for %s.\n", s.quoted())
	default:
		fmt.Fprintf(&b, "Searched for %s.\n", s.quoted())
	}
	if len(hits) > 0 {
		b.WriteString("\nBest matches:\n")
		for _, h := range hits {
			fmt.Fprintf(&b, "- %s:%d  %s\n", h.path, h.line, short(h.text, 160))
		}
	}
	if len(files) > 0 {
		b.WriteString("\nFiles by name:\n")
		for _, f := range files {
			fmt.Fprintf(&b, "- %s\n", f)
		}
	}
	for _, r := range s.results {
		if r.failed {
			fmt.Fprintf(&b, "\n%s failed: %s\n", r.tool, short(r.text, 300))
		} else if r.tool == "read" {
			fmt.Fprintf(&b, "\n%s:\n%s", r.path, excerpt(r.text))
		}
	}
	return b.String()
}

func (s state) quoted() string {
	var q []string
	for _, w := range s.words {
		q = append(q, fmt.Sprintf("%q", w.stem))
	}
	return strings.Join(q, ", ")
}
