package chat_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/a3s-lab/liba3s/runtime/chat"
)

func TestAnswerJoinsTheToolMessageAtTheEnd(t *testing.T) {
	call := chat.Message{Role: chat.Assistant, Content: []chat.Block{{Type: chat.ToolUse, ID: "a", Name: "ls"}, {Type: chat.ToolUse, ID: "b", Name: "ls"}}}
	first := chat.Answer([]chat.Message{call}, "a", "one", false)
	copied := append([]chat.Message(nil), first...)
	both := chat.Answer(first, "b", "two", true)
	want := []chat.Message{call, {Role: chat.Tool, Content: []chat.Block{{Type: chat.ToolResult, ToolUseID: "a", Content: "one"}, {Type: chat.ToolResult, ToolUseID: "b", Content: "two", IsError: true}}}}
	if !reflect.DeepEqual(both, want) {
		t.Errorf("%+v", both)
	}
	if len(copied[1].Content) != 1 {
		t.Errorf("a copy of the transcript was changed: %+v", copied)
	}
	other := chat.Answer(copied, "b", "else", false)
	if both[1].Content[1].Content != "two" || other[1].Content[1].Content != "else" {
		t.Error("two transcripts share their end")
	}
}

func TestCheck(t *testing.T) {
	block := func(b chat.Block) chat.Message { return chat.Message{Role: chat.User, Content: []chat.Block{b}} }
	cases := []struct {
		name string
		m    chat.Message
		ok   bool
	}{
		{"text", chat.Say(chat.User, "x"), true},
		{"empty", chat.Message{Role: chat.Assistant}, true},
		{"no role", chat.Message{}, false},
		{"another role", chat.Say("system", "x"), false},
		{"a call", block(chat.Block{Type: chat.ToolUse, ID: "a", Name: "ls", Input: json.RawMessage(`{}`)}), true},
		{"a call without id", block(chat.Block{Type: chat.ToolUse, Name: "ls"}), false},
		{"a call without name", block(chat.Block{Type: chat.ToolUse, ID: "a"}), false},
		{"a result", block(chat.Block{Type: chat.ToolResult, ToolUseID: "a"}), true},
		{"another block", block(chat.Block{Type: "image"}), false},
	}
	for _, c := range cases {
		if err := c.m.Check(); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestTextAndCalls(t *testing.T) {
	m := chat.Message{Role: chat.Assistant, ReasoningContent: "hm", Content: []chat.Block{
		{Type: chat.Text, Text: "a"}, {Type: chat.ToolUse, ID: "1", WireID: "w", Name: "ls", Input: json.RawMessage(`{}`)}, {Type: chat.Text, Text: "b"}, {Type: chat.ToolResult, Content: "c"},
	}}
	if m.Text() != "ab" {
		t.Error(m.Text())
	}
	if want := []chat.Call{{ID: "1", WireID: "w", Name: "ls", Args: json.RawMessage(`{}`)}}; !reflect.DeepEqual(m.Calls(), want) {
		t.Errorf("%+v", m.Calls())
	}
}

func TestUsageAdds(t *testing.T) {
	u := chat.Usage{PromptTokens: 1, CompletionTokens: 2, TotalTokens: 3, CacheReadTokens: 4, CacheWriteTokens: 5}
	if got, want := u.Add(u), (chat.Usage{PromptTokens: 2, CompletionTokens: 4, TotalTokens: 6, CacheReadTokens: 8, CacheWriteTokens: 10}); got != want {
		t.Errorf("%+v", got)
	}
}

func TestEffectsAreReadOnlyWithoutWriteExecNetwork(t *testing.T) {
	for e, want := range map[string]bool{`{}`: true, `{"read":true,"idempotent":true}`: true, `{"write":true}`: false, `{"exec":true}`: false, `{"network":true}`: false} {
		var eff chat.Effects
		if err := json.Unmarshal([]byte(e), &eff); err != nil {
			t.Fatal(err)
		}
		if eff.ReadOnly() != want {
			t.Errorf("%s: %v", e, eff.ReadOnly())
		}
	}
}
