package model

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"github.com/a3s-lab/liba3s/runtime/chat"
)

// WireInput gives the arguments of a call in a form that every service accepts in a
// history: a JSON object. Nothing becomes {}; what is not an object, which the Gate has
// refused long ago, travels as text under "__parse_error".
func WireInput(raw json.RawMessage) json.RawMessage {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return json.RawMessage(`{}`)
	}
	if raw[0] == '{' && json.Valid(raw) && utf8.Valid(raw) {
		return raw
	}
	broken := string(bytes.ToValidUTF8(raw, []byte("\uFFFD")))
	_ = json.Unmarshal(raw, &broken) // stored as a JSON string, it is told as what it was
	text, err := json.Marshal(map[string]string{"__parse_error": broken})
	if err != nil { // a map of strings always encodes
		return json.RawMessage(`{}`)
	}
	return text
}

// WireIDs gives the id under which each call of a transcript travels, by the call's own
// ID: the provider's id as long as it is unique among messages, else the runtime's,
// since providers repeat ids or use the tool's name for one.
func WireIDs(messages []chat.Message) map[string]string {
	count := map[string]int{}
	each := func(do func(chat.Block)) {
		for _, m := range messages {
			for _, b := range m.Content {
				if b.Type == chat.ToolUse {
					do(b)
				}
			}
		}
	}
	each(func(b chat.Block) {
		if b.WireID != "" {
			count[b.WireID]++
		}
	})
	ids := map[string]string{}
	each(func(b chat.Block) {
		ids[b.ID] = b.ID
		if b.WireID != "" && count[b.WireID] == 1 || b.ID == "" {
			ids[b.ID] = b.WireID
		}
	})
	return ids
}

// Estimate reckons the tokens of a request when no provider's count is at hand.
func Estimate(req Request) int {
	n := EstimateText(req.System)
	for _, m := range req.Messages {
		n += 4 + EstimateText(m.ReasoningContent)
		for _, b := range m.Content {
			n += EstimateText(b.Text) + EstimateText(b.Name) + EstimateText(b.Input) + EstimateText(b.Content)
		}
	}
	for _, t := range req.Tools {
		n += 8 + EstimateText(t.Name) + EstimateText(t.Description) + EstimateText(t.Parameters)
	}
	return n
}

// EstimateText reckons the tokens of a text: about four letters of Latin script make
// one, while most other scripts need about one for each letter.
func EstimateText[T string | []byte | json.RawMessage](s T) int {
	quarter := 0
	for len(s) > 0 {
		if len(s) >= 8 { // by eights where all is ASCII
			w := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
				uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
			if w&0x8080808080808080 == 0 {
				quarter, s = quarter+8, s[8:]
				continue
			}
		}
		r, n := utf8.DecodeRuneInString(string(s[:min(len(s), utf8.UTFMax)]))
		quarter, s = quarter+weight(r), s[n:]
	}
	return (quarter + 3) / 4
}

// weight of a letter, in quarters of a token.
func weight(r rune) int {
	switch {
	case r < utf8.RuneSelf:
		return 1
	case r < 0x0530: // Latin with marks, Greek, Cyrillic
		return 2
	}
	return 4
}
