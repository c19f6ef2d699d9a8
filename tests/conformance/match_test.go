package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// positional says which fields of an event its line names by place, by type; the
// further facts are key=value.
var positional = map[string][]string{
	"agent_start": {"prompt"}, "turn_start": {"turn"}, "turn_end": {"turn"}, "text_delta": {"text"}, "reasoning_delta": {"text"},
	"tool_start": {"name"}, "tool_execution_start": {"name"}, "tool_end": {"name"}, "tool_output_delta": {"name", "delta"},
	"tool_input_delta": {"delta"}, "agent_end": {"text"}, "error": {"code"}, "confirmation_required": {"tool_name"},
	"permission_denied": {"tool_name"}, "confirmation_timeout": {"action_taken"}, "confirmation_received": {"approved"},
	"persistence_failed": {"operation"}, "budget_threshold_hit": {"resource", "kind"},
}

// ev is an event as every language sees it.
type ev struct {
	Version  int            `json:"version"`
	Type     string         `json:"type"`
	Payload  map[string]any `json:"payload"`
	Metadata map[string]any `json:"metadata"`
}

// facts is one line of want/events, or what stands behind a code in want/error.
type facts struct {
	text   string
	name   string
	places []any          // wanted values by place
	equal  map[string]any // wanted parts by dotted key
	match  map[string]*regexp.Regexp
}

var keyForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.]*[=~]`)

func parseFacts(line string) (*facts, error) {
	f := &facts{text: line, equal: map[string]any{}, match: map[string]*regexp.Regexp{}}
	rest := ""
	f.name, rest, _ = strings.Cut(strings.TrimSpace(line), " ")
	for rest = strings.TrimLeft(rest, " "); rest != ""; rest = strings.TrimLeft(rest, " ") {
		key := keyForm.FindString(rest)
		var v any
		var err error
		if v, rest, err = value(rest[len(key):]); err != nil {
			return nil, fmt.Errorf("%q: %v", line, err)
		}
		switch {
		case key == "":
			f.places = append(f.places, v)
		case strings.HasSuffix(key, "~"):
			s, _ := v.(string)
			re, err := regexp.Compile(s)
			if err != nil {
				return nil, fmt.Errorf("%q: %v", line, err)
			}
			f.match[key[:len(key)-1]] = re
		default:
			f.equal[key[:len(key)-1]] = v
		}
	}
	return f, nil
}

// value reads a JSON value, or a bare word, from the start of text.
func value(text string) (v any, rest string, err error) {
	if text != "" && strings.ContainsRune(`"[{`, rune(text[0])) {
		d := json.NewDecoder(strings.NewReader(text))
		if err := d.Decode(&v); err != nil {
			return nil, "", err
		}
		return v, text[d.InputOffset():], nil
	}
	word, rest, _ := strings.Cut(text, " ")
	if json.Unmarshal([]byte(word), &v) != nil {
		v = word
	}
	return v, rest, nil
}

// fits says whether an object has the facts; places names its positional fields.
func (f *facts) fits(obj map[string]any, places []string) bool {
	if len(f.places) > len(places) {
		return false
	}
	for i, v := range f.places {
		if !same(obj[places[i]], v) {
			return false
		}
	}
	for key, v := range f.equal {
		if diff(part(obj, key), v, "") != "" {
			return false
		}
	}
	for key, re := range f.match {
		s, ok := part(obj, key).(string)
		if !ok || !re.MatchString(s) {
			return false
		}
	}
	return true
}

// same compares a positional value: a bare word that reads as a number may be a text.
func same(got, want any) bool { return fmt.Sprint(got) == fmt.Sprint(want) && got != nil }

func (f *facts) fitsEvent(e ev) bool {
	return f.name == e.Type && f.fits(e.Payload, positional[e.Type])
}

// part looks a dotted key up.
func part(obj map[string]any, key string) any {
	if v, ok := obj[key]; ok {
		return v
	}
	head, tail, ok := strings.Cut(key, ".")
	if !ok {
		return nil
	}
	inner, _ := obj[head].(map[string]any)
	return part(inner, tail)
}

// diff compares got with the parts that want names, and says where they differ first;
// empty if they do not.
func diff(got, want any, at string) string {
	if absent(want) {
		if got != nil {
			return fmt.Sprintf("%s is %s, want it absent", at, short(got))
		}
		return ""
	}
	switch w := want.(type) {
	case map[string]any:
		if op, ok := operator(w); ok {
			return op(got, at)
		}
		g, ok := got.(map[string]any)
		if !ok {
			return fmt.Sprintf("%s is %s, want an object", at, short(got))
		}
		for _, k := range slices.Sorted(maps.Keys(w)) {
			if d := diff(g[k], w[k], at+"."+k); d != "" {
				return d
			}
		}
		return ""
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return fmt.Sprintf("%s is %s, want %d items", at, short(got), len(w))
		}
		for i := range w {
			if d := diff(g[i], w[i], fmt.Sprintf("%s[%d]", at, i)); d != "" {
				return d
			}
		}
		return ""
	}
	if !reflect.DeepEqual(got, want) {
		return fmt.Sprintf("%s is %s, want %s", at, short(got), short(want))
	}
	return ""
}

func absent(v any) bool {
	m, ok := v.(map[string]any)
	return ok && len(m) == 1 && m["$absent"] == true
}

// operator gives the comparison that an object with one $ key stands for.
func operator(w map[string]any) (func(got any, at string) string, bool) {
	if len(w) != 1 {
		return nil, false
	}
	if pattern, ok := w["$match"].(string); ok {
		return func(got any, at string) string {
			re, err := regexp.Compile(pattern)
			s, isText := got.(string)
			if err != nil || !isText || !re.MatchString(s) {
				return fmt.Sprintf("%s is %s, want a match of %s", at, short(got), pattern)
			}
			return ""
		}, true
	}
	if least, ok := w["$above"].(float64); ok {
		return func(got any, at string) string {
			if n, ok := got.(float64); !ok || n <= least {
				return fmt.Sprintf("%s is %s, want it above %v", at, short(got), least)
			}
			return ""
		}, true
	}
	for _, op := range []string{"$has", "$lacks"} {
		items, ok := w[op].([]any)
		if !ok {
			continue
		}
		return func(got any, at string) string {
			all, isList := got.([]any)
			for _, item := range items {
				there := slices.ContainsFunc(all, func(g any) bool { return diff(g, item, "") == "" })
				if !isList || there != (op == "$has") {
					return fmt.Sprintf("%s is %s: %s %s", at, short(got), op, short(item))
				}
			}
			return ""
		}, true
	}
	return nil, false
}

func short(v any) string {
	s := encode(v)
	if len(s) > 1500 {
		s = s[:1500] + "..."
	}
	return s
}

// encode writes JSON as people do, with < and & as they are.
func encode(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err.Error()
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// deltas are the events whose neighbours are joined: the field that grows, and what
// must be the same.
var deltas = map[string]struct {
	grows string
	same  []string
}{
	"text_delta": {"text", nil}, "reasoning_delta": {"text", nil}, "tool_input_delta": {"delta", []string{"id"}}, "tool_output_delta": {"delta", []string{"id"}},
}

// joined joins neighbouring deltas.
func joined(events []ev) []ev {
	var out []ev
	for _, e := range events {
		d, ok := deltas[e.Type]
		if n := len(out); ok && n > 0 && out[n-1].Type == e.Type && !slices.ContainsFunc(d.same, func(k string) bool { return out[n-1].Payload[k] != e.Payload[k] }) {
			last := out[n-1]
			last.Payload = maps.Clone(last.Payload)
			last.Payload[d.grows] = last.Payload[d.grows].(string) + e.Payload[d.grows].(string)
			out[n-1] = last
			continue
		}
		out = append(out, e)
	}
	return out
}

// compare checks events against the lines of want/events; "..." skips any number.
func compare(events []ev, text string) error {
	var lines []*facts
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		f, err := parseFacts(line)
		if err != nil {
			return err
		}
		lines = append(lines, f)
	}
	if i, j, ok := follow(events, lines); !ok {
		want := "the end"
		if j < len(lines) {
			want = lines[j].text
		}
		var all []string
		for k, e := range events {
			mark := "  "
			if k == i {
				mark = "> "
			}
			all = append(all, mark+describe(e))
		}
		return fmt.Errorf("want/events: from > on there is no %s\n%s", want, strings.Join(all, "\n"))
	}
	return nil
}

// follow matches events with lines; if they do not fit it says how far the lines came,
// and where.
func follow(events []ev, lines []*facts) (at, line int, ok bool) {
	var try func(i, j int) bool
	try = func(i, j int) bool {
		if j > line || j == line && line == 0 {
			at, line = i, j
		}
		switch {
		case j == len(lines):
			return i == len(events)
		case lines[j].name == "...":
			for k := i; k <= len(events); k++ {
				if try(k, j+1) {
					return true
				}
			}
			return false
		}
		return i < len(events) && lines[j].fitsEvent(events[i]) && try(i+1, j+1)
	}
	ok = try(0, 0)
	return at, line, ok
}

// describe writes an event as a line of want/events.
func describe(e ev) string {
	parts := []string{e.Type}
	for _, field := range positional[e.Type] {
		v := e.Payload[field]
		if s, ok := v.(string); ok && field != "text" && field != "delta" && field != "prompt" {
			parts = append(parts, s)
			continue
		}
		parts = append(parts, encode(v))
	}
	switch e.Type {
	case "tool_end":
		parts = append(parts, fmt.Sprintf("exit_code=%v", e.Payload["exit_code"]))
		if kind := part(e.Payload, "error_kind.type"); kind != nil {
			parts = append(parts, fmt.Sprintf("error_kind.type=%v", kind))
		}
	case "confirmation_received":
		if r, ok := e.Payload["reason"].(string); ok {
			parts = append(parts, "reason="+encode(r))
		}
	}
	return strings.Join(parts, " ")
}
