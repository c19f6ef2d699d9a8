package ollama

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/a3s-lab/liba3s/runtime/chat"
)

const (
	openTag  = "<think>"
	closeTag = "</think>"
	// maxUnopened is how much content is held back for a closing tag whose opening one
	// was part of the prompt.
	maxUnopened = 4 << 10
	// maxBare bounds a call that is written as text.
	maxBare = 256 << 10
)

// thinking parts content into reasoning and answer by the tags that older servers leave
// in it. Tags may be split over chunks; an opening tag counts only at the very start, so
// that an answer about such tags stays whole.
type thinking struct {
	// expected says that reasoning may come without an opening tag.
	expected bool
	state    thinkState
	buf      string
}

type thinkState uint8

const (
	atStart thinkState = iota
	inside
	after // behind the closing tag, before the answer's first letter
	answering
)

// add gives the reasoning and the answer text that s completes.
func (t *thinking) add(s string) (reasoning, content string) {
	t.buf += s
	for {
		switch t.state {
		case atStart:
			if !t.begin(&reasoning) {
				return reasoning, content
			}
		case inside:
			if !t.close(&reasoning) {
				return reasoning, content
			}
		case after:
			if t.buf = strings.TrimLeft(t.buf, " \t\r\n"); t.buf == "" {
				return reasoning, content
			}
			t.state = answering
		case answering:
			content, t.buf = content+t.buf, ""
			return reasoning, content
		}
	}
}

// begin leaves the start state once it is clear what the content is.
func (t *thinking) begin(reasoning *string) bool {
	trimmed := strings.TrimLeft(t.buf, " \t\r\n")
	if rest, ok := strings.CutPrefix(trimmed, openTag); ok {
		t.state, t.buf = inside, rest
		return true
	}
	if strings.HasPrefix(openTag, trimmed) { // also while there is nothing
		return false
	}
	if before, rest, ok := strings.Cut(t.buf, closeTag); ok {
		*reasoning += before
		t.state, t.buf = after, rest
		return true
	}
	if t.expected && len(t.buf) < maxUnopened {
		return false
	}
	t.state = answering
	return true
}

// close looks for the closing tag and keeps back what may be its beginning.
func (t *thinking) close(reasoning *string) bool {
	if before, rest, ok := strings.Cut(t.buf, closeTag); ok {
		*reasoning += before
		t.state, t.buf = after, rest
		return true
	}
	keep := 0
	for n := min(len(closeTag)-1, len(t.buf)); n > 0; n-- {
		if strings.HasSuffix(t.buf, closeTag[:n]) {
			keep = n
			break
		}
	}
	*reasoning += t.buf[:len(t.buf)-keep]
	t.buf = t.buf[len(t.buf)-keep:]
	return false
}

// end gives what was held back.
func (t *thinking) end() (reasoning, content string) {
	if t.state == inside {
		reasoning = t.buf
	} else if t.state == atStart {
		content = t.buf
	}
	t.buf, t.state = "", answering
	return reasoning, content
}

// sniffer holds back text that may be a call written as bare JSON (case OLL-01). It
// lets go as soon as the text cannot be one.
type sniffer struct {
	on    bool
	tools map[string]bool
	buf   string
}

func newSniffer(tools []chat.ToolSpec) sniffer {
	s := sniffer{on: len(tools) > 0, tools: map[string]bool{}}
	for _, t := range tools {
		s.tools[t.Name] = true
	}
	return s
}

// add gives the part of the text that is known to be text.
func (s *sniffer) add(text string) string {
	if !s.on {
		return text
	}
	s.buf += text
	if s.possible() {
		return ""
	}
	return s.stop()
}

// stop ends the search and gives what was held back.
func (s *sniffer) stop() string {
	text := s.buf
	s.on, s.buf = false, ""
	return text
}

// end gives the calls that the held text is, or the text.
func (s *sniffer) end() ([]toolCall, string) {
	on := s.on
	text := s.stop()
	s.on = on // the reasoning may still be searched
	if calls, ok := s.parse(text); on && ok {
		return calls, ""
	}
	return nil, text
}

// inside finds marked calls in reasoning.
func (s *sniffer) inside(thoughts string) []toolCall {
	_, marked, ok := strings.Cut(thoughts, "<tool_call>")
	if !ok {
		return nil
	}
	calls, _ := s.parse("<tool_call>" + marked)
	return calls
}

// possible says whether the held text may still become a call.
func (s *sniffer) possible() bool {
	t := strings.TrimLeft(s.buf, " \t\r\n")
	if len(s.buf) > maxBare {
		return false
	}
	for _, mark := range []string{"<tool_call>", "```"} {
		if strings.HasPrefix(mark, t) {
			return true
		}
		if strings.HasPrefix(t, mark) {
			lang, rest, _ := strings.Cut(t, "\n")
			return mark != "```" || rest == "" && len(lang) < 12 || possibleObject(strings.TrimLeft(rest, " \t\r\n"))
		}
	}
	return possibleObject(strings.TrimLeft(t, "[ \t\r\n"))
}

// possibleObject judges by the first key of an object.
func possibleObject(t string) bool {
	if t == "" {
		return true
	}
	if t[0] != '{' {
		return false
	}
	key := strings.TrimLeft(t[1:], " \t\r\n")
	if key == "" {
		return true
	}
	name, _, closed := strings.Cut(key[1:], `"`)
	return key[0] == '"' && (!closed || callKeys[name])
}

// callKeys are the words of a call in the dialects in use.
var callKeys = map[string]bool{"name": true, "parameters": true, "arguments": true, "type": true, "function": true, "id": true}

// parse reads text that is nothing but calls of known tools.
func (s *sniffer) parse(text string) ([]toolCall, bool) {
	t := strings.TrimSpace(text)
	if rest, ok := strings.CutPrefix(t, "```"); ok {
		_, rest, _ = strings.Cut(rest, "\n")
		t = strings.TrimSuffix(strings.TrimSpace(rest), "```")
	}
	var calls []toolCall
	for t = strings.TrimSpace(t); t != ""; {
		// Only marks between values are marks; inside one they are the model's words.
		t = strings.TrimSpace(strings.TrimPrefix(t, "<tool_call>"))
		d := json.NewDecoder(strings.NewReader(t))
		var raw json.RawMessage
		if d.Decode(&raw) != nil {
			return nil, false
		}
		t = strings.TrimSpace(t[d.InputOffset():])
		t = strings.TrimSpace(strings.TrimPrefix(t, "</tool_call>"))
		list := []json.RawMessage{raw}
		if raw[0] == '[' && json.Unmarshal(raw, &list) != nil {
			return nil, false
		}
		for _, one := range list {
			c, ok := s.one(one)
			if !ok {
				return nil, false
			}
			calls = append(calls, c)
		}
	}
	return calls, len(calls) > 0
}

// one reads an object that is a call and nothing else.
func (s *sniffer) one(raw json.RawMessage) (toolCall, bool) {
	var shape struct {
		ID         string          `json:"id"`
		Type       string          `json:"type"`
		Name       string          `json:"name"`
		Parameters json.RawMessage `json:"parameters"`
		Arguments  json.RawMessage `json:"arguments"`
		Function   json.RawMessage `json:"function"`
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if d.Decode(&shape) != nil {
		return toolCall{}, false
	}
	if len(shape.Function) > 0 && shape.Function[0] == '{' && shape.Name == "" {
		return s.one(shape.Function)
	}
	args := shape.Arguments
	if args == nil {
		args = shape.Parameters
	}
	if !s.tools[shape.Name] || args == nil {
		return toolCall{}, false
	}
	return toolCall{shape.ID, function{shape.Name, args}}, true
}
