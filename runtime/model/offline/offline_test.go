package offline

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/model"
)

func ask(t *testing.T, req model.Request) model.Answer {
	t.Helper()
	c, err := Open(context.Background(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	a, err := model.Collect(context.Background(), c.Stream(context.Background(), req), nil)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func specs(names ...string) (tools []chat.ToolSpec) {
	for _, n := range names {
		tools = append(tools, chat.ToolSpec{Name: n})
	}
	return tools
}

func TestSignificant(t *testing.T) {
	tests := []struct {
		prompt string
		want   []string
	}{
		{"Where does this project parse its configuration? Do not change files.", []string{"parse", "config"}},
		{"Explain parse_args in internal/sse/lines.go and MaxEvent", []string{"parse_args", "internal/sse/lines.go", "MaxEvent"}},
		{"parsers parsing parser", []string{"parser", "pars"}},
		{"What is it?", nil},
		{"wo ist die Größe", []string{"ist", "die", "größe"}},
		{"alpha beta gamma delta epsilon", []string{"alpha", "beta", "gamma", "delta"}},
	}
	for _, tt := range tests {
		t.Run(tt.prompt, func(t *testing.T) {
			var got []string
			for _, w := range significant(tt.prompt) {
				got = append(got, w.stem)
			}
			if !reflect.DeepEqual(got, tt.want) {
				t.Fatalf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestSearch(t *testing.T) {
	tests := []struct {
		name  string
		tools []string
		want  []string
	}{
		{"both", []string{"read", "grep", "glob"}, []string{`grep {"pattern":"retry","-i":true}`, `grep {"pattern":"limit","-i":true}`, `glob {"pattern":"**/*{retry,limit}*"}`}},
		{"only what is offered", []string{"glob"}, []string{`glob {"pattern":"**/*{retry,limit}*"}`}},
		{"nothing", []string{"read"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := ask(t, model.Request{Tools: specs(tt.tools...), Messages: []chat.Message{chat.Say(chat.User, "Where is the retry limit?")}})
			var got []string
			for _, c := range a.Message.Calls() {
				got = append(got, c.Name+" "+string(c.Args))
			}
			if !reflect.DeepEqual(got, tt.want) {
				t.Fatalf("got %q, want %q", got, tt.want)
			}
			if tt.want == nil && !strings.Contains(a.Message.Text(), "No search tool") {
				t.Fatalf("got %q", a.Message.Text())
			}
		})
	}
}

// TestConversation plays all three turns with results as the tools write them.
func TestConversation(t *testing.T) {
	results := map[string]string{
		`grep {"pattern":"retry","-i":true}`:                           ">net/retry.go:12: func Retry(limit int) {\n>net/retry_test.go:3: // retry\n>README.md:4: retry a lot\n3 matches in 3 files\n",
		`grep {"pattern":"limit","-i":true}`:                           ">net/retry.go:12: func Retry(limit int) {\n>README.md:9: no limit\n2 matches in 2 files\n",
		`glob {"pattern":"**/*{retry,limit}*"}`:                        "net/retry.go\nnet/retry_test.go\n\n2 of 2 file(s) shown",
		`read {"file_path":"net/retry.go","offset":8,"limit":12}`:      "    11\t// Retry retries.\n    12\tfunc Retry(limit int) {\n\ncontinue with offset=13",
		`read {"file_path":"README.md","offset":0,"limit":12}`:         "     4\tretry a lot\n",
		`read {"file_path":"README.md","offset":5,"limit":12}`:         "     9\tno limit\n",
		`read {"file_path":"net/retry_test.go","offset":0,"limit":12}`: "     3\t// retry\n",
	}
	req := model.Request{Tools: specs("read", "grep", "glob"), Messages: []chat.Message{chat.Say(chat.User, "old"), chat.Say(chat.Assistant, "old"), chat.Say(chat.User, "Where is the retry limit?")}}
	turns := 0
	var last model.Answer
	for turns < 4 {
		last = ask(t, req)
		if again := ask(t, req); !reflect.DeepEqual(again, last) {
			t.Fatalf("the same request gave %+v and %+v", last, again)
		}
		turns++
		calls := last.Message.Calls()
		if len(calls) == 0 {
			break
		}
		reply := last.Message
		answers := chat.Message{Role: chat.Tool}
		for i, c := range calls {
			id := fmt.Sprintf("%d-%d", turns, i)
			reply.Content[i].ID = id
			text, ok := results[c.Name+" "+string(c.Args)]
			if !ok || !json.Valid(c.Args) {
				t.Fatalf("unexpected call %s %s", c.Name, c.Args)
			}
			answers.Content = append(answers.Content, chat.Block{Type: chat.ToolResult, ToolUseID: id, Content: text})
		}
		req.Messages = append(req.Messages, reply, answers)
	}
	want := `This is an offline search, not a model: it only looks for the words of the prompt.

Searched for "retry", "limit".

Best matches:
- net/retry.go:12  func Retry(limit int) {
- README.md:9  no limit
- README.md:4  retry a lot
- net/retry_test.go:3  // retry

Files by name:
- net/retry.go
- net/retry_test.go

net/retry.go:
    11	// Retry retries.
    12	func Retry(limit int) {

README.md:
     9	no limit
`
	if turns != 3 || last.Message.Text() != want || last.Stop != model.StopEnd {
		t.Fatalf("after %d turns:\n%s", turns, last.Message.Text())
	}
}

func TestFailedAndEmptySearch(t *testing.T) {
	msg := func(content string, failed bool) []chat.Message {
		return []chat.Message{
			chat.Say(chat.User, "Where is the retry limit?"),
			{Role: chat.Assistant, Content: []chat.Block{{Type: chat.ToolUse, ID: "1", Name: "grep"}}},
			{Role: chat.Tool, Content: []chat.Block{{Type: chat.ToolResult, ToolUseID: "1", Content: content, IsError: failed}}},
		}
	}
	tools := specs("read", "grep")
	if got := ask(t, model.Request{Tools: tools, Messages: msg("no matches", false)}).Message.Text(); !strings.HasSuffix(got, "Nothing was found for \"retry\", \"limit\".\n") {
		t.Fatalf("got %q", got)
	}
	if got := ask(t, model.Request{Tools: tools, Messages: msg("permission denied", true)}).Message.Text(); !strings.HasSuffix(got, "\ngrep failed: permission denied\n") {
		t.Fatalf("got %q", got)
	}
	if got := ask(t, model.Request{Tools: tools, Messages: []chat.Message{chat.Say(chat.User, "What is it?")}}).Message.Text(); !strings.Contains(got, "no word to search for") {
		t.Fatalf("got %q", got)
	}
	if got := ask(t, model.Request{}).Message.Text(); !strings.Contains(got, "no word") {
		t.Fatalf("got %q", got)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	c, _ := Open(ctx, Config{})
	if _, err := model.Collect(ctx, c.Stream(ctx, model.Request{}), nil); fault.KindOf(err) != fault.Cancelled {
		t.Fatalf("got %v", err)
	}
}
