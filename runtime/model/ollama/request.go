package ollama

import (
	"encoding/json"

	api "github.com/ollama/ollama/api"

	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/model"
)

// request is the body. The outer fields hide those of the library's type, which would
// drop schema words it does not know and round large numbers in arguments.
type request struct {
	api.ChatRequest
	Messages []message `json:"messages"`
	Tools    []tool    `json:"tools,omitempty"`
}

type message struct {
	api.Message
	ToolCalls []toolCall `json:"tool_calls,omitempty"`
}

type toolCall struct {
	ID       string   `json:"id,omitempty"`
	Function function `json:"function"`
}

type function struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

type tool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
}

// window is the context size to ask for. It is never left to the server (case OLL-05).
func (c *Client) window(req model.Request) int {
	switch {
	case c.cfg.Window > 0:
		return c.cfg.Window
	case req.Window > 0:
		return req.Window
	}
	return DefaultWindow
}

// body makes the request body.
func (c *Client) body(req model.Request) (any, error) {
	no := false
	r := request{Messages: c.messages(req)}
	r.Model = c.cfg.Model
	r.Stream = &c.cfg.Stream
	// Better an error than a conversation that lost its beginning without a word. Older
	// servers ignore both.
	r.Truncate, r.Shift = &no, &no
	r.Options = map[string]any{"num_ctx": c.window(req)}
	if req.Temperature != nil && !c.cfg.NoTemperature {
		r.Options["temperature"] = *req.Temperature
	}
	if req.MaxTokens > 0 {
		r.Options["num_predict"] = req.MaxTokens
	}
	if c.cfg.Reasoning {
		r.Think = &api.ThinkValue{Value: true}
	}
	for _, t := range req.Tools {
		var w tool
		w.Type = "function"
		w.Function.Name, w.Function.Description, w.Function.Parameters = t.Name, t.Description, t.Parameters
		if len(t.Parameters) == 0 {
			w.Function.Parameters = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		r.Tools = append(r.Tools, w)
	}
	return r, nil
}

// messages maps the transcript. Every tool result is sent once, under the id of its call.
func (c *Client) messages(req model.Request) []message {
	out := []message{}
	if req.System != "" {
		out = append(out, message{Message: api.Message{Role: "system", Content: req.System}})
	}
	ids := model.WireIDs(req.Messages)
	names, answered := map[string]string{}, map[string]bool{}
	for _, m := range req.Messages {
		if m.Role == chat.Assistant {
			a := message{Message: api.Message{Role: "assistant", Content: m.Text()}}
			if c.cfg.Reasoning {
				a.Thinking = m.ReasoningContent
			}
			for _, call := range m.Calls() {
				names[call.ID] = call.Name
				a.ToolCalls = append(a.ToolCalls, toolCall{ids[call.ID], function{call.Name, model.WireInput(call.Args)}})
			}
			if a.Content != "" || len(a.ToolCalls) > 0 || a.Thinking != "" {
				out = append(out, a)
			}
			continue
		}
		for _, b := range m.Content {
			if b.Type != chat.ToolResult || answered[b.ToolUseID] {
				continue
			}
			answered[b.ToolUseID] = true
			id, ok := ids[b.ToolUseID]
			if !ok {
				id = b.ToolUseID
			}
			out = append(out, message{Message: api.Message{Role: "tool", Content: b.Content, ToolName: names[b.ToolUseID], ToolCallID: id}})
		}
		if t := m.Text(); t != "" {
			out = append(out, message{Message: api.Message{Role: "user", Content: t}})
		}
	}
	return out
}
