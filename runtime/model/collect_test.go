package model

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"reflect"
	"testing"

	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/fault"
)

// seq yields chunks, then err if it is not nil.
func seq(err error, chunks ...Chunk) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		for _, c := range chunks {
			if !yield(c, nil) {
				return
			}
		}
		if err != nil {
			yield(Chunk{}, err)
		}
	}
}

func TestCollect(t *testing.T) {
	text := func(s string) Chunk { return Chunk{Kind: TextDelta, Text: s} }
	input := func(slot int, s string) Chunk { return Chunk{Kind: ToolInput, Slot: slot, Text: s} }
	start := func(slot int, id, name string) Chunk {
		return Chunk{Kind: ToolStart, Slot: slot, WireID: id, Name: name}
	}
	done := Chunk{Kind: Done, Usage: chat.Usage{TotalTokens: 3}, Stop: StopEnd, Meta: Meta{Provider: "p"}}
	overloaded := fault.Of(fault.CodeLLM, "x", "overloaded").Retry()
	assistant := func(reasoning string, blocks ...chat.Block) chat.Message {
		return chat.Message{Role: chat.Assistant, ReasoningContent: reasoning, Content: blocks}
	}
	partial := func(m chat.Message) Answer { m.Partial = true; return Answer{Message: m, Partial: true} }
	whole := func(m chat.Message) Answer {
		return Answer{Message: m, Usage: done.Usage, Stop: done.Stop, Meta: done.Meta}
	}
	tests := []struct {
		name string
		seq  iter.Seq2[Chunk, error]
		want Answer
		err  error
	}{
		{"text", seq(nil, text("a"), text(""), text("b"), done), whole(assistant("", chat.Block{Type: chat.Text, Text: "ab"})), nil},
		{"an empty answer", seq(nil, done), whole(assistant("")), nil},
		{"reasoning is apart", seq(nil, Chunk{Kind: ReasoningDelta, Text: "hm"}, text("a"), Chunk{Kind: ReasoningDelta, Text: "!"}, done), whole(assistant("hm!", chat.Block{Type: chat.Text, Text: "a"})), nil},
		{"a notice is no content", seq(nil, Chunk{Kind: Notice, Text: "cut"}, done), whole(assistant("")), nil},
		{"calls interleave, order stays", seq(nil, text("a"), start(0, "x", "f"), start(1, "", "g"), input(1, `{"b":`), input(0, `{}`), input(1, `1}`), text("z"), done),
			whole(assistant("", chat.Block{Type: chat.Text, Text: "a"}, chat.Block{Type: chat.ToolUse, WireID: "x", Name: "f", Input: json.RawMessage(`{}`)},
				chat.Block{Type: chat.ToolUse, Name: "g", Input: json.RawMessage(`{"b":1}`)}, chat.Block{Type: chat.Text, Text: "z"})), nil},
		{"malformed and empty input stays as it is", seq(nil, start(0, "x", "f"), input(0, `{"a`), start(1, "y", "g"), done),
			whole(assistant("", chat.Block{Type: chat.ToolUse, WireID: "x", Name: "f", Input: json.RawMessage(`{"a`)}, chat.Block{Type: chat.ToolUse, WireID: "y", Name: "g", Input: json.RawMessage(``)})), nil},
		{"what follows Done is not read", seq(overloaded, done, text("b")), whole(assistant("")), nil},
		{"an error keeps the text and drops the calls", seq(overloaded, text("a"), start(0, "x", "f"), input(0, "{}")), partial(assistant("", chat.Block{Type: chat.Text, Text: "a"})), overloaded},
		{"a bare end is incomplete", seq(nil, start(0, "x", "f")), partial(assistant("")), Incomplete("model.stream", "")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Collect(context.Background(), tt.seq, nil)
			if !reflect.DeepEqual(got, tt.want) {
				t.Fatalf("got  %+v\nwant %+v", got, tt.want)
			}
			if (tt.err == nil) != (err == nil) || err != nil && !reflect.DeepEqual(err, tt.err) {
				t.Fatalf("got error %v, want %v", err, tt.err)
			}
		})
	}
}

func TestCollectOnChunk(t *testing.T) {
	stop := errors.New("enough")
	var seen []string
	a, err := Collect(context.Background(), seq(nil, Chunk{Kind: TextDelta, Text: "a"}, Chunk{Kind: TextDelta, Text: "b"}, Chunk{Kind: Done}), func(c Chunk) error {
		seen = append(seen, c.Text)
		if c.Text == "b" {
			return stop
		}
		return nil
	})
	if err != stop || !a.Partial || a.Message.Text() != "a" || !reflect.DeepEqual(seen, []string{"a", "b"}) {
		t.Fatalf("got %+v, %v, %v", a, err, seen)
	}
}

func TestCollectCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Collect(ctx, seq(nil, Chunk{Kind: TextDelta, Text: "a"}), nil); fault.KindOf(err) != fault.Cancelled {
		t.Fatalf("got %v", err)
	}
}

func TestWireInput(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"nothing", " ", `{}`},
		{"an object stays byte for byte", `{"b": 1.0, "a": 12345678901234567890}`, `{"b": 1.0, "a": 12345678901234567890}`},
		{"cut", `{"a`, `{"__parse_error":"{\"a"}`},
		{"cut, stored as a string", `"{\"a"`, `{"__parse_error":"{\"a"}`},
		{"no object", `[1]`, `{"__parse_error":"[1]"}`},
		{"not UTF-8", "{\"a\":\"\xff\"}", `{"__parse_error":"{\"a\":\"�\"}"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := string(WireInput(json.RawMessage(tt.in))); got != tt.want {
				t.Fatalf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// OAI-06, OAI-07: a provider's id is used on the wire only while it tells calls apart.
func TestWireIDs(t *testing.T) {
	use := func(id, wire string) chat.Block { return chat.Block{Type: chat.ToolUse, ID: id, WireID: wire} }
	got := WireIDs([]chat.Message{
		{Role: chat.Assistant, Content: []chat.Block{use("t1", "ls:0"), use("t2", "unique")}},
		{Role: chat.Assistant, Content: []chat.Block{use("t3", "ls:0"), use("t4", "")}},
	})
	want := map[string]string{"t1": "t1", "t2": "unique", "t3": "t3", "t4": "t4"}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}

func TestEstimateText(t *testing.T) {
	tests := []struct {
		in   string
		want int
	}{{"", 0}, {"abcd", 1}, {"abcde", 2}, {"漢字", 2}, {"привет", 3}}
	for _, tt := range tests {
		if got := EstimateText(tt.in); got != tt.want {
			t.Errorf("%q: got %d, want %d", tt.in, got, tt.want)
		}
	}
}
