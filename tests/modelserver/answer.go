package modelserver

import (
	"encoding/json"
	"strings"
	"time"
)

// Answer is what the server says to one request. The zero value is an empty answer. It
// reads from JSON, so that tests in every language can write it.
type Answer struct {
	Reasoning string `json:"reasoning,omitempty"`
	Text      string `json:"text,omitempty"`
	Calls     []Call `json:"calls,omitempty"`
	// Stop replaces the reason for stopping, in the words of the wire.
	Stop string `json:"stop,omitempty"`
	// PromptTokens and CompletionTokens are told as usage.
	PromptTokens     int `json:"prompt_tokens,omitempty"`
	CompletionTokens int `json:"completion_tokens,omitempty"`

	// Raw is sent instead of a composed body, byte for byte.
	Raw string `json:"raw,omitempty"`
	// Status above 0 is sent with Raw as the body.
	Status int `json:"status,omitempty"`
	// Header is added to the answer's header.
	Header map[string]string `json:"header,omitempty"`

	// SplitBytes sends every byte on its own.
	SplitBytes bool `json:"split_bytes,omitempty"`
	// DelayMS waits before the first byte; it ends with the connection.
	DelayMS int64 `json:"delay_ms,omitempty"`
	// CutAfter stops after that many bytes of the body; below 0 before the first.
	CutAfter int `json:"cut_after,omitempty"`
	// Abort breaks the connection at the end or at the cut, instead of closing it.
	Abort bool `json:"abort,omitempty"`
	// KeepOpen keeps the connection open after the last byte until the client leaves.
	KeepOpen bool `json:"keep_open,omitempty"`

	// NoIndex leaves out the index of tool calls (OpenAI).
	NoIndex bool `json:"no_index,omitempty"`
	// NoIDs leaves out the ids of tool calls.
	NoIDs bool `json:"no_ids,omitempty"`
	// OddChoices adds chunks with null and with empty choices (OpenAI).
	OddChoices bool `json:"odd_choices,omitempty"`
	// NoFinish leaves out the reason for stopping and what follows it.
	NoFinish bool `json:"no_finish,omitempty"`
	// NoDone leaves out the terminator of the stream (OpenAI).
	NoDone bool `json:"no_done,omitempty"`
	// Tags puts the reasoning between tags into the content (Ollama).
	Tags bool `json:"tags,omitempty"`
}

// Call is a tool call of an answer.
type Call struct {
	ID   string `json:"id,omitempty"`
	Name string `json:"name"`
	// Arguments is JSON text, sent as it is.
	Arguments string `json:"arguments"`
}

func (a Answer) delay() time.Duration { return time.Duration(a.DelayMS) * time.Millisecond }

func (a Answer) stop(def string) string {
	if a.Stop != "" {
		return a.Stop
	}
	return def
}

func (a Answer) ids() []Call {
	calls := make([]Call, len(a.Calls))
	for i, c := range a.Calls {
		if a.NoIDs {
			c.ID = ""
		}
		calls[i] = c
	}
	return calls
}

// pieces cuts text into words with their blanks, and a word into two.
func pieces(text string) []string {
	var out []string
	for _, w := range strings.SplitAfter(text, " ") {
		if r := []rune(w); len(r) > 3 {
			out = append(out, string(r[:2]), string(r[2:]))
		} else if w != "" {
			out = append(out, w)
		}
	}
	return out
}

// obj is a JSON object to be sent.
type obj map[string]any

func (o obj) String() string {
	data, err := json.Marshal(o)
	if err != nil {
		panic(err) // a mistake in this package
	}
	return string(data)
}
