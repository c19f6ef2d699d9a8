package modelserver

import (
	"encoding/json"
	"strings"
)

// openAI composes an answer of /v1/chat/completions.
func openAI(a Answer, model string, stream bool) (body, contentType string) {
	if !stream {
		return openAIWhole(a, model), "application/json"
	}
	var b strings.Builder
	event := func(o obj) { b.WriteString("data: " + o.String() + "\n\n") }
	chunk := func(delta obj, finish any) {
		event(obj{"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1700000000, "model": model,
			"choices": []obj{{"index": 0, "delta": delta, "finish_reason": finish}}})
	}
	odd := func() {
		if a.OddChoices {
			event(obj{"id": "chatcmpl-1", "model": model, "choices": nil})
			event(obj{"id": "chatcmpl-1", "model": model, "choices": []obj{}})
		}
	}
	odd()
	chunk(obj{"role": "assistant", "content": ""}, nil)
	for _, p := range pieces(a.Reasoning) {
		chunk(obj{"reasoning_content": p}, nil)
	}
	for _, p := range pieces(a.Text) {
		chunk(obj{"content": p}, nil)
	}
	odd()
	for i, c := range a.ids() {
		half := len(c.Arguments) / 2
		for n, part := range []string{"", c.Arguments[:half], c.Arguments[half:]} {
			d := obj{"function": obj{"arguments": part}}
			if n == 0 {
				d["type"], d["function"] = "function", obj{"name": c.Name, "arguments": part}
				if c.ID != "" {
					d["id"] = c.ID
				}
			}
			if !a.NoIndex {
				d["index"] = i
			}
			chunk(obj{"tool_calls": []obj{d}}, nil)
		}
	}
	if a.NoFinish {
		return b.String(), "text/event-stream"
	}
	chunk(obj{}, a.stop(openAIStop(a)))
	event(obj{"id": "chatcmpl-1", "model": model, "choices": []obj{}, "usage": openAIUsage(a)})
	if !a.NoDone {
		b.WriteString("data: [DONE]\n\n")
	}
	return b.String(), "text/event-stream"
}

func openAIWhole(a Answer, model string) string {
	message := obj{"role": "assistant", "content": a.Text}
	if a.Reasoning != "" {
		message["reasoning_content"] = a.Reasoning
	}
	var calls []obj
	for _, c := range a.ids() {
		d := obj{"type": "function", "function": obj{"name": c.Name, "arguments": c.Arguments}}
		if c.ID != "" {
			d["id"] = c.ID
		}
		calls = append(calls, d)
	}
	if calls != nil {
		message["tool_calls"] = calls
	}
	return obj{"id": "chatcmpl-1", "object": "chat.completion", "model": model, "usage": openAIUsage(a),
		"choices": []obj{{"index": 0, "message": message, "finish_reason": a.stop(openAIStop(a))}}}.String()
}

func openAIStop(a Answer) string {
	if len(a.Calls) > 0 {
		return "tool_calls"
	}
	return "stop"
}

func openAIUsage(a Answer) obj {
	return obj{"prompt_tokens": a.PromptTokens, "completion_tokens": a.CompletionTokens, "total_tokens": a.PromptTokens + a.CompletionTokens}
}

// ollama composes an answer of /api/chat.
func ollama(a Answer, model string, stream bool) (body, contentType string) {
	if a.Tags && a.Reasoning != "" {
		a.Text, a.Reasoning = "<think>"+a.Reasoning+"</think>"+a.Text, ""
	}
	var calls []obj
	for _, c := range a.ids() {
		d := obj{"function": obj{"name": c.Name, "arguments": json.RawMessage(c.Arguments)}}
		if c.ID != "" {
			d["id"] = c.ID
		}
		calls = append(calls, d)
	}
	end := obj{"model": model, "created_at": "2026-01-01T00:00:00Z", "done": true, "done_reason": a.stop("stop"),
		"prompt_eval_count": a.PromptTokens, "eval_count": a.CompletionTokens, "message": obj{"role": "assistant", "content": ""}}
	if !stream {
		message := obj{"role": "assistant", "content": a.Text, "thinking": a.Reasoning}
		if calls != nil {
			message["tool_calls"] = calls
		}
		end["message"] = message
		return end.String(), "application/json"
	}
	var b strings.Builder
	line := func(message obj) {
		message["role"] = "assistant"
		b.WriteString(obj{"model": model, "created_at": "2026-01-01T00:00:00Z", "done": false, "message": message}.String() + "\n")
	}
	for _, p := range pieces(a.Reasoning) {
		line(obj{"content": "", "thinking": p})
	}
	for _, p := range pieces(a.Text) {
		line(obj{"content": p})
	}
	if calls != nil {
		line(obj{"content": "", "tool_calls": calls})
	}
	if !a.NoFinish {
		b.WriteString(end.String() + "\n")
	}
	return b.String(), "application/x-ndjson"
}

// anthropic composes an answer of /v1/messages.
func anthropic(a Answer, model string, stream bool) (body, contentType string) {
	stop := "end_turn"
	if len(a.Calls) > 0 {
		stop = "tool_use"
	}
	stop = a.stop(stop)
	head := obj{"id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": []obj{}, "stop_reason": nil,
		"usage": obj{"input_tokens": a.PromptTokens, "output_tokens": 0}}
	if !stream {
		var blocks []obj
		if a.Reasoning != "" {
			blocks = append(blocks, obj{"type": "thinking", "thinking": a.Reasoning, "signature": "sig"})
		}
		if a.Text != "" {
			blocks = append(blocks, obj{"type": "text", "text": a.Text})
		}
		for _, c := range a.ids() {
			blocks = append(blocks, obj{"type": "tool_use", "id": c.ID, "name": c.Name, "input": json.RawMessage(c.Arguments)})
		}
		head["content"], head["stop_reason"] = blocks, stop
		head["usage"] = obj{"input_tokens": a.PromptTokens, "output_tokens": a.CompletionTokens}
		return head.String(), "application/json"
	}
	var b strings.Builder
	event := func(name string, o obj) {
		o["type"] = name
		b.WriteString("event: " + name + "\ndata: " + o.String() + "\n\n")
	}
	event("message_start", obj{"message": head})
	n := 0
	block := func(start obj, deltas ...obj) {
		event("content_block_start", obj{"index": n, "content_block": start})
		for _, d := range deltas {
			event("content_block_delta", obj{"index": n, "delta": d})
		}
		event("content_block_stop", obj{"index": n})
		n++
	}
	deltas := func(kind, field, text string) (all []obj) {
		for _, p := range pieces(text) {
			all = append(all, obj{"type": kind, field: p})
		}
		return all
	}
	if a.Reasoning != "" {
		block(obj{"type": "thinking", "thinking": "", "signature": ""},
			append(deltas("thinking_delta", "thinking", a.Reasoning), obj{"type": "signature_delta", "signature": "sig"})...)
	}
	if a.Text != "" {
		block(obj{"type": "text", "text": ""}, deltas("text_delta", "text", a.Text)...)
	}
	for _, c := range a.ids() {
		block(obj{"type": "tool_use", "id": c.ID, "name": c.Name, "input": obj{}}, deltas("input_json_delta", "partial_json", c.Arguments)...)
	}
	if !a.NoFinish {
		event("message_delta", obj{"delta": obj{"stop_reason": stop}, "usage": obj{"output_tokens": a.CompletionTokens}})
		event("message_stop", obj{})
	}
	return b.String(), "text/event-stream"
}
