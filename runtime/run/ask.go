package run

import (
	"context"
	"encoding/json"

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
	if err != nil {
		return reply, err
	}
	reply.Message = t.name(reply.Message)
	if len(reply.Message.Content) == 0 && reply.Message.ReasoningContent == "" { // case GLM-02
		return reply, fault.Of(fault.CodeLLM, "run.ask", "the model gave an empty answer; check that it takes tools (tool_call) and thinking (reasoning) as configured").With("stop", string(reply.Stop))
	}
	return reply, nil
}

// teller tells the chunks of one answer and gives its calls their ids.
type teller struct {
	*state
	ids []string // by slot
}

func (t *teller) tell(ctx context.Context, c model.Chunk) error {
	switch c.Kind {
	case model.TextDelta:
		return t.log.Delta(ctx, event.TextDelta{Text: c.Text})
	case model.ReasoningDelta:
		return t.log.Delta(ctx, event.ReasoningDelta{Text: c.Text})
	case model.ToolStart:
		return t.log.Write(ctx, record.Fact{Event: event.ToolStart{ID: t.id(c.Slot), Name: c.Name}})
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
	for slot >= len(t.ids) {
		t.ids = append(t.ids, t.in.NewID())
	}
	return t.ids[slot]
}

// name puts the ids into a collected message, whose calls are in slot order. Arguments
// that are no JSON are kept as a JSON string, so that the message stays valid.
func (t *teller) name(m chat.Message) chat.Message {
	slot := 0
	for i, b := range m.Content {
		if b.Type != chat.ToolUse {
			continue
		}
		b.ID = t.id(slot)
		b.Name = clean(b.Name)
		b.Input = valid(b.Input)
		m.Content[i] = b
		slot++
	}
	return m
}

// valid makes arguments storable: empty ones are {}, broken ones become a JSON string
// that the Gate refuses.
func valid(args json.RawMessage) json.RawMessage {
	switch {
	case len(args) == 0:
		return json.RawMessage("{}")
	case json.Valid(args):
		return args
	}
	b, err := json.Marshal(string(args))
	if err != nil {
		return json.RawMessage(`""`)
	}
	return b
}

// clean bounds a tool name from a model.
func clean(name string) string {
	if len(name) > 128 {
		return name[:128]
	}
	return name
}
