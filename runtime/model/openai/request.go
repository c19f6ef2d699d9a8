package openai

import (
	"encoding/json"
	"maps"
	"strings"

	api "github.com/sashabaranov/go-openai"

	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/model"
)

// request is the body. The outer fields hide those of the library's type, which cannot
// say a temperature of zero, or "no content" and "empty content" apart.
type request struct {
	api.ChatCompletionRequest
	Messages    []message `json:"messages"`
	Temperature *float64  `json:"temperature,omitempty"`
}

// message is one entry of the transcript on the wire.
type message struct {
	Role string `json:"role"`
	// Content is null on an assistant message that only calls tools: strict gateways
	// refuse an empty text beside calls (case OAI-05).
	Content *string `json:"content"`
	// ReasoningContent is always there on assistant messages; some thinking models
	// refuse a history without it.
	ReasoningContent *string        `json:"reasoning_content,omitempty"`
	ToolCalls        []api.ToolCall `json:"tool_calls,omitempty"`
	ToolCallID       string         `json:"tool_call_id,omitempty"`
}

// body makes the request body.
func (c *Client) body(req model.Request) (any, error) {
	r := request{Messages: messages(req)}
	r.Model = c.cfg.Model
	r.Stream = c.cfg.Stream
	if c.cfg.Stream {
		r.StreamOptions = &api.StreamOptions{IncludeUsage: true}
	}
	if !c.cfg.NoTemperature {
		r.Temperature = req.Temperature
	}
	// OpenAI itself renamed the bound; the services that imitate it know the old name.
	if strings.HasSuffix(c.url.Hostname(), "api.openai.com") {
		r.MaxCompletionTokens = req.MaxTokens
	} else {
		//lint:ignore SA1019 the new name is unknown to the services that imitate OpenAI
		r.MaxTokens = req.MaxTokens
	}
	for _, t := range req.Tools {
		r.Tools = append(r.Tools, tool(t))
	}
	if len(c.cfg.Extra) == 0 {
		return r, nil
	}
	data, err := json.Marshal(r)
	if err != nil {
		return nil, fault.Of(fault.CodeInternal, op, "encode the request: %v", err)
	}
	all := map[string]any{}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, fault.Of(fault.CodeInternal, op, "encode the request: %v", err)
	}
	for name, value := range fields {
		all[name] = value
	}
	maps.Copy(all, c.cfg.Extra)
	return all, nil
}

func tool(t chat.ToolSpec) api.Tool {
	parameters := t.Parameters
	if len(parameters) == 0 {
		parameters = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return api.Tool{Type: api.ToolTypeFunction, Function: &api.FunctionDefinition{Name: t.Name, Description: t.Description, Parameters: parameters}}
}

// messages maps the transcript. Every tool result is sent once, under the id of its call.
func messages(req model.Request) []message {
	out := []message{}
	if req.System != "" {
		out = append(out, message{Role: api.ChatMessageRoleSystem, Content: &req.System})
	}
	ids := model.WireIDs(req.Messages)
	answered := map[string]bool{}
	for _, m := range req.Messages {
		if m.Role == chat.Assistant {
			if a, ok := assistant(m, ids); ok {
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
			content := b.Content
			out = append(out, message{Role: api.ChatMessageRoleTool, Content: &content, ToolCallID: id})
		}
		if text := m.Text(); text != "" {
			out = append(out, message{Role: api.ChatMessageRoleUser, Content: &text})
		}
	}
	return out
}

// assistant maps one answer of the model; an empty one is left out.
func assistant(m chat.Message, ids map[string]string) (message, bool) {
	a := message{Role: api.ChatMessageRoleAssistant, ReasoningContent: &m.ReasoningContent}
	for _, call := range m.Calls() {
		id := ids[call.ID]
		a.ToolCalls = append(a.ToolCalls, api.ToolCall{ID: id, Type: api.ToolTypeFunction,
			Function: api.FunctionCall{Name: call.Name, Arguments: string(model.WireInput(call.Args))}})
	}
	text := m.Text()
	if text != "" || len(a.ToolCalls) == 0 {
		a.Content = &text
	}
	return a, text != "" || len(a.ToolCalls) > 0 || m.ReasoningContent != ""
}
