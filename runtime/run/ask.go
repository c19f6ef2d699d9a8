package run

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/model"
	"github.com/a3s-lab/liba3s/runtime/record"
)

// ask makes one model call, telling its pieces. Retries before the first word lie in the
// client; after it a failure stands, since the same words must not come twice.
func (s *state) ask(ctx context.Context, turn int, req model.Request) (model.Answer, error) {
	if err := s.log.Write(ctx, record.Fact{Event: event.TurnStart{Turn: turn}}); err != nil {
		return model.Answer{}, err
	}
	t := &teller{state: s}
	reply, err := model.Collect(ctx, s.Model.Stream(ctx, req), func(c model.Chunk) error { return t.tell(ctx, c) })
	raw := t.name(reply.Message)
	reply.Message = s.scrub(raw)
	for i, b := range raw.Content {
		if b.Type == chat.ToolUse && (b.Name != reply.Message.Content[i].Name || !bytes.Equal(b.Input, reply.Message.Content[i].Input)) {
			s.tainted[b.ID] = true
		}
	}
	if err != nil {
		return reply, err
	}
	if len(reply.Message.Content) == 0 && reply.Message.ReasoningContent == "" { // case GLM-02
		return reply, fault.Of(fault.CodeLLM, "run.ask", "the model gave an empty answer; check that it takes tools (tool_call) and thinking (reasoning) as configured").With("stop", string(reply.Stop))
	}
	return reply, nil
}

// teller tells the chunks of one answer and gives its calls their ids.
type teller struct {
	*state
	ids   map[int]string // by slot
	order []string       // in the order the calls began
}

func (t *teller) tell(ctx context.Context, c model.Chunk) error {
	switch c.Kind {
	case model.TextDelta:
		return t.log.Delta(ctx, event.TextDelta{Text: c.Text})
	case model.ReasoningDelta:
		return t.log.Delta(ctx, event.ReasoningDelta{Text: c.Text})
	case model.ToolStart:
		return t.log.Write(ctx, record.Fact{Event: event.ToolStart{ID: t.id(c.Slot), Name: clean(c.Name)}})
	case model.ToolInput:
		return t.log.Delta(ctx, event.ToolInputDelta{ID: t.id(c.Slot), Delta: c.Text})
	case model.Notice:
		t.Log(event.LogLine{Level: "warn", Message: c.Text, RunID: t.in.RunID, ErrorKind: c.NoticeKind})
	}
	return nil
}

// id gives the id of the call in a slot; ids are the runtime's own, unique in the
// session whatever the provider sends (cases OAI-06, APRV-05).
func (t *teller) id(slot int) string {
	id, known := t.ids[slot]
	if !known {
		if t.ids == nil {
			t.ids = map[int]string{}
		}
		id = t.in.NewID()
		t.ids[slot] = id
		t.order = append(t.order, id)
	}
	return id
}

// name puts the ids into a collected message, whose calls are in the order they began.
// Arguments that are no JSON are kept as a JSON string, so that the message stays valid.
func (t *teller) name(m chat.Message) chat.Message {
	n := 0
	for i, b := range m.Content {
		if b.Type != chat.ToolUse {
			continue
		}
		b.ID = t.order[n]
		b.Name = clean(b.Name)
		b.Input = valid(b.Input)
		m.Content[i] = b
		n++
	}
	return m
}

// scrub takes the known secrets out of a message, so that what is shown, asked, kept and
// sent on is one and the same. A call that loses one is not run: without it it is another
// call, and with it it hands a credential of the configuration to a tool.
func (e *Engine) scrub(m chat.Message) chat.Message {
	m.ReasoningContent = e.Redact(m.ReasoningContent)
	m.Content = slices.Clone(m.Content)
	for i, b := range m.Content {
		b.Text, b.Content, b.Name = e.Redact(b.Text), e.Redact(b.Content), e.Redact(b.Name)
		if b.Input != nil {
			b.Input = json.RawMessage(e.Redact(string(b.Input)))
		}
		m.Content[i] = b
	}
	return m
}

// valid makes arguments storable: empty ones are {}, broken ones become a JSON string
// that the Gate refuses. Blanks between tokens go, as they do in the journal, so that a
// resumed session sends the same bytes.
func valid(args json.RawMessage) json.RawMessage {
	if len(args) == 0 {
		return json.RawMessage("{}")
	}
	var c bytes.Buffer
	if json.Compact(&c, args) == nil {
		return c.Bytes()
	}
	b, err := json.Marshal(string(args))
	if err != nil {
		return json.RawMessage(`""`)
	}
	return b
}

// clean makes a tool name from a model one that services take back in a history: the
// registry holds no other, so that a name it changes is unknown either way.
func clean(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, cut(name, maxName))
	if name == "" {
		return "unnamed"
	}
	return name
}

// maxName bounds the name of a tool, in bytes.
const maxName = 128

// cut shortens s to at most n bytes of whole characters.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
