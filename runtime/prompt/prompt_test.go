package prompt_test

import (
	"context"
	"encoding/json"
	"iter"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/model"
	"github.com/a3s-lab/liba3s/runtime/prompt"
	"github.com/a3s-lab/liba3s/runtime/workspace/mem"
)

func builder(t *testing.T, files map[string]string) *prompt.Builder {
	t.Helper()
	ws, err := mem.Open(t.Context(), mem.Config{Name: "w", Files: files})
	if err != nil {
		t.Fatal(err)
	}
	return &prompt.Builder{Workspace: ws, SessionID: "s"}
}

func TestSystemPromptOrder(t *testing.T) {
	b := builder(t, map[string]string{"AGENTS.md": "  Use tabs.\n"})
	b.Slots = prompt.Slots{Role: "You are a poet.", Guidelines: "Be brief.", ResponseStyle: "In verse.", Extra: "The end."}
	got, err := b.System(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	at := -1
	for _, part := range []string{"You are a poet.\n", "Workspace: mem:w", "## Boundaries", "## Answers\nIn verse.", "## Project notes (from AGENTS.md)\nUse tabs.", "## Guidelines\nBe brief.", "The end."} {
		i := strings.Index(got, part)
		if i <= at {
			t.Errorf("%q is at %d, behind %d, in:\n%s", part, i, at, got)
		}
		at = i
	}
	if strings.Contains(got, "You are a coding agent") || strings.Contains(got, "Answer in plain words") {
		t.Errorf("a slot that was filled is there twice:\n%s", got)
	}
	plain, err := builder(t, nil).System(t.Context())
	if err != nil || !strings.HasPrefix(plain, "You are a coding agent") || !strings.Contains(plain, "Answer in plain words") || strings.Contains(plain, "Project notes") {
		t.Errorf("%v:\n%s", err, plain)
	}
}

func TestNotesNeverStopASession(t *testing.T) {
	cases := map[string]struct{ text, want string }{
		"empty":          {"", ""},
		"no text":        {"a\xff\xfe", ""},
		"too large":      {strings.Repeat("x", 2<<20), ""},
		"cut in a glyph": {strings.Repeat("é", 20<<10), strings.Repeat("é", 16<<10)},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := builder(t, map[string]string{"AGENTS.md": c.text}).System(t.Context())
			if err != nil || !utf8.ValidString(got) {
				t.Fatal(err)
			}
			_, notes, _ := strings.Cut(got, "## Project notes (from AGENTS.md)\n")
			if notes != c.want {
				t.Errorf("%d bytes of notes, want %d", len(notes), len(c.want))
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := builder(t, nil).System(ctx); err == nil {
		t.Error("a cancelled context was not told")
	}
}

func TestRequestRefusesWhatCannotFit(t *testing.T) {
	b := builder(t, nil)
	b.Window = 100
	big := []chat.Message{chat.Say(chat.User, strings.Repeat("word ", 200))}
	_, err := b.Request("", big, nil)
	f := fault.From("", err)
	if f == nil || f.Code != fault.CodeContext || f.Details["window"] != 100 || f.Details["tokens"].(int) < 200 {
		t.Errorf("%v %v", err, f)
	}
	if b.Fits(big[0]) == nil || b.Fits(chat.Say(chat.User, "x")) != nil {
		t.Error("fits")
	}
	if _, err := b.Request("", append(big, chat.Say(chat.User, "x")), nil); err != nil {
		t.Errorf("older messages can be compacted: %v", err)
	}
	b.Window = 0
	if _, err := b.Request("", big, nil); err != nil {
		t.Errorf("an unknown window: %v", err)
	}
}

// talk makes n exchanges: prompt, a call, its outcome and an answer.
func talk(n int, size int, role chat.Role) []chat.Message {
	var all []chat.Message
	for i := range n {
		id := string(rune('a' + i))
		all = append(all,
			chat.Say(chat.User, "prompt "+id),
			chat.Message{Role: chat.Assistant, ReasoningContent: "thought " + id, Content: []chat.Block{{Type: chat.ToolUse, ID: id, Name: "read", Input: json.RawMessage(`{"n":1}`)}}},
			chat.Message{Role: role, Content: []chat.Block{{Type: chat.ToolResult, ToolUseID: id, Content: strings.Repeat("output "+id+" ", size)}}},
			chat.Say(chat.Assistant, "answer "+id))
	}
	return all
}

// summariser answers with text and keeps the request.
type summariser struct {
	text string
	err  error
	got  model.Request
}

func (s *summariser) Stream(_ context.Context, req model.Request) iter.Seq2[model.Chunk, error] {
	s.got = req
	return func(yield func(model.Chunk, error) bool) {
		if s.err != nil {
			yield(model.Chunk{}, s.err)
			return
		}
		if yield(model.Chunk{Kind: model.TextDelta, Text: s.text}, nil) {
			yield(model.Chunk{Kind: model.Done}, nil)
		}
	}
}

func TestCompactKeepsPairsAndTheInstruction(t *testing.T) {
	for _, role := range []chat.Role{chat.Tool, chat.User} { // older programs put outcomes into messages of the user
		for n := 2; n <= 26; n++ {
			b := builder(t, nil)
			b.Window, b.Compaction = 4000, prompt.Compaction{On: true, Threshold: 0.5}
			messages := talk(n, 40, role)
			m := &summariser{text: "the sum"}
			before := append([]chat.Message(nil), messages...)
			c, err := b.Compact(t.Context(), m, "system", messages, nil)
			if err != nil || c == nil {
				t.Fatalf("%s, %d exchanges: %v %v", role, n, c, err)
			}
			if !reflect.DeepEqual(messages, before) {
				t.Fatal("the transcript was changed")
			}
			if want := append(append([]chat.Message(nil), c.With...), messages[c.Count:]...); !reflect.DeepEqual(c.Messages, want) {
				t.Fatalf("%d: %+v", n, c)
			}
			open := map[string]bool{}
			prompts := 0
			for _, msg := range c.Messages {
				for _, call := range msg.Calls() {
					open[call.ID] = true
				}
				for _, blk := range msg.Content {
					if blk.Type == chat.ToolResult && !open[blk.ToolUseID] {
						t.Fatalf("%s, %d exchanges: the outcome %s lost its call", role, n, blk.ToolUseID)
					}
				}
				if msg.Text() == "prompt "+string(rune('a'+n-1)) {
					prompts++
				}
			}
			if prompts != 1 {
				t.Errorf("%s, %d exchanges: the latest instruction is there %d times", role, n, prompts)
			}
			if !strings.HasPrefix(c.With[0].Text(), "Summary of the conversation so far:") || c.Summary != "the sum" || c.Percent <= 0 {
				t.Errorf("%+v", c)
			}
		}
	}
}

func TestCompactAsksPlainly(t *testing.T) {
	b := builder(t, nil)
	b.Window, b.Compaction = 3000, prompt.Compaction{On: true, Threshold: 0.5}
	m := &summariser{text: "the sum"}
	messages := talk(5, 300, chat.Tool)
	if _, err := b.Compact(t.Context(), m, "system", messages, []chat.ToolSpec{{Name: "x"}}); err != nil {
		t.Fatal(err)
	}
	text := m.got.Messages[0].Text()
	if len(m.got.Messages) != 1 || len(m.got.Tools) != 0 || len(text) > 9000+100 || !strings.Contains(text, "bytes left out") {
		t.Errorf("%d messages, %d tools, %d bytes", len(m.got.Messages), len(m.got.Tools), len(text))
	}
	for _, part := range []string{"user: prompt a", "assistant, thinking: thought a", "call read", "output e", "answer e"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing", part)
		}
	}
}

func TestCompactThatCannotHelp(t *testing.T) {
	b := builder(t, nil)
	b.Window, b.Compaction = 4000, prompt.Compaction{On: true, Threshold: 0.5}
	if c, err := b.Compact(t.Context(), &summariser{text: "x"}, "", talk(1, 1, chat.Tool)[:2], nil); c != nil || err != nil {
		t.Errorf("two messages: %v, %v", c, err)
	}
	cases := map[string]*summariser{"an error": {err: fault.Of(fault.CodeLLM, "x", "no")}, "nothing said": {text: "  "}, "longer than before": {text: strings.Repeat("very ", 9000)}}
	for name, m := range cases {
		if c, err := b.Compact(t.Context(), m, "", talk(3, 5, chat.Tool), nil); err == nil || c != nil {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
}

func TestDue(t *testing.T) {
	cases := []struct {
		on           bool
		window, used int
		want         bool
	}{{true, 100, 79, false}, {true, 100, 80, true}, {false, 100, 500, false}, {true, 0, 1 << 30, false}}
	for _, c := range cases {
		b := &prompt.Builder{Window: c.window, Compaction: prompt.Compaction{On: c.on, Threshold: 0.8}}
		if b.Due(c.used) != c.want {
			t.Errorf("%+v", c)
		}
	}
}

func TestPruneProtectsTheNewestOutput(t *testing.T) {
	b := &prompt.Builder{Window: 4000} // a quarter is protected: about 4000 letters
	messages := []chat.Message{
		{Role: chat.Tool, Content: []chat.Block{{Type: chat.ToolResult, ToolUseID: "1", Content: strings.Repeat("a", 3000)}}},
		{Role: chat.User, Content: []chat.Block{{Type: chat.ToolResult, ToolUseID: "2", Content: strings.Repeat("b", 3000)}}},
		{Role: chat.Tool, Content: []chat.Block{{Type: chat.ToolResult, ToolUseID: "3", Content: strings.Repeat("c", 2000)}}},
		{Role: chat.Tool, Content: []chat.Block{{Type: chat.ToolResult, ToolUseID: "4", Content: "short"}}},
		chat.Say(chat.Assistant, strings.Repeat("d", 9000)),
	}
	got := b.Prune(messages)
	sizes := func(m []chat.Message) (all []int) {
		for _, x := range m {
			all = append(all, len(x.Content[0].Content))
		}
		return all
	}
	if s := sizes(got); s[3] != 5 || s[2] != 2000 || s[1] >= 3000 || s[1] < 1900 || s[0] > 200 || !strings.Contains(got[0].Content[0].Content, "removed") || !strings.Contains(got[1].Content[0].Content, "left out") {
		t.Errorf("%v", s)
	}
	if s := sizes(messages); s[0] != 3000 || s[1] != 3000 || got[4].Text() != messages[4].Text() {
		t.Errorf("the transcript was changed: %v", s)
	}
}
