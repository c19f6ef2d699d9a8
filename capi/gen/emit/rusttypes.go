package emit

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/a3s-lab/liba3s/capi/gen/api"
	"github.com/a3s-lab/liba3s/runtime/event"
)

func rustSignature(params []api.Param, result string) string {
	parts := make([]string, len(params))
	for i, p := range params {
		name := p.Name
		if name == "fn" { // a word of the language
			name = "r#fn"
		}
		parts[i] = name + ": " + rustCType(p.Type)
	}
	if result == "void" {
		return "(" + strings.Join(parts, ", ") + ")"
	}
	return "(" + strings.Join(parts, ", ") + ") -> " + rustCType(result)
}

// rustNames gives the definitions that are written as records, by their Rust names.
var rustNames = []struct{ def, name string }{
	{"ChatUsage", "TokenUsage"},
	{"ChatErrorKind", "ToolErrorKind"},
	{"ChatEffects", "Effects"},
	{"ChatToolSpec", "ToolDefinition"},
	{"EventVerificationSummary", "VerificationSummary"},
	{"RecordRunSnapshot", "RunSnapshot"},
	{"RecordTraceEvent", "TraceEvent"},
	{"RecordArtifact", "ToolArtifact"},
	{"SessionActiveTool", "ActiveTool"},
	{"SessionCommand", "CommandInfo"},
	{"SessionPending", "PendingConfirmation"},
	{"SessionToolResult", "ToolResult"},
	{"SessionInfo", "SessionInfo"},
	{"AgentInfo", "AgentInfo"},
}

// Definitions written by hand, by their Rust names.
var rustHandNames = map[string]string{
	"AgentSessionStore": "SessionStore", "AgentWorkspaceBackend": "WorkspaceBackend", "AgentArtifactStoreLimits": "ArtifactStoreLimits",
	"AgentHostEnv": "HostEnvConfig", "Policy": "PermissionPolicy", "PolicyConfirmationPolicy": "ConfirmationPolicy",
	"SessionRetention": "RetentionLimits", "ChatMessage": "Message", "HostPermissionDecision": "Verdict",
}

type rustTypes struct {
	defs jsonschema.Definitions
	// unnamed lists the definitions that rustNames lacks; a test says so, since until then
	// plain JSON does.
	unnamed []string
}

// name gives the Rust type of a schema.
func (r *rustTypes) name(s *jsonschema.Schema) string {
	switch {
	case s.Ref != "":
		def := strings.TrimPrefix(s.Ref, "#/$defs/")
		for _, n := range rustNames {
			if n.def == def {
				return n.name
			}
		}
		if name, ok := rustHandNames[def]; ok {
			return name
		}
		r.unnamed = append(r.unnamed, def)
		return "Value"
	case len(s.AnyOf) > 0:
		for _, p := range s.AnyOf {
			if p.Type != "null" {
				return "Option<" + r.name(p) + ">"
			}
		}
	case s.Type == "array" && s.Items != nil:
		return "Vec<" + r.name(s.Items) + ">"
	case s.Type == "object":
		return "Map<String, Value>"
	}
	return cmp.Or(map[string]string{"string": "String", "integer": "i64", "number": "f64", "boolean": "bool", "array": "Vec<Value>"}[s.Type], "Value")
}

// field writes one field of a record or of an event. What may be left out is None,
// false, or empty.
func (r *rustTypes) field(w *writer, indent, vis string, def *jsonschema.Schema, key string) {
	s, _ := def.Properties.Get(key)
	typ := r.name(s)
	required := slices.Contains(def.Required, key)
	var serde []string
	name := key
	if key == "type" {
		name, serde = "kind", append(serde, `rename = "type"`)
	}
	switch {
	case strings.HasPrefix(typ, "Vec<"):
		serde = append(serde, `default, deserialize_with = "crate::wire::or_default"`)
		if !required {
			serde = append(serde, `skip_serializing_if = "Vec::is_empty"`)
		}
	case required || strings.HasPrefix(typ, "Option<"):
		serde = append(serde, "default")
	case typ == "bool":
		serde = append(serde, `default, skip_serializing_if = "crate::wire::is_false"`)
	default:
		typ = "Option<" + typ + ">"
		serde = append(serde, `default, skip_serializing_if = "Option::is_none"`)
	}
	rustDoc(w, indent, rustWords(s.Description, key))
	w.f("%s#[serde(%s)]\n", indent, strings.Join(serde, ", "))
	w.f("%s%s%s: %s,\n", indent, vis, name, typ)
}

func keys(def *jsonschema.Schema) []string {
	var all []string
	for p := def.Properties.Oldest(); p != nil; p = p.Next() {
		all = append(all, p.Key)
	}
	return all
}

// rustWords makes words of a Go comment: without the Go name in front, or of the key if
// there is none.
func rustWords(text, key string) string {
	first, rest, ok := strings.Cut(text, " ")
	next, _, _ := strings.Cut(rest, " ")
	if ok && rest != "" && strings.EqualFold(first, strings.ReplaceAll(key, "_", "")) && !slices.Contains([]string{"of", "and", "they"}, next) {
		text = rest
		for _, verb := range []string{"is ", "are "} {
			text = strings.TrimPrefix(text, verb)
		}
	}
	if text == "" {
		text = strings.ReplaceAll(key, "_", " ")
		for _, unit := range []string{"ms", "id"} {
			if head, ok := strings.CutSuffix(text, " "+unit); ok {
				text = map[string]string{"ms": head + " in milliseconds", "id": "id of the " + head}[unit]
			}
		}
	}
	text = strings.ToUpper(text[:1]) + text[1:]
	if !strings.HasSuffix(text, ".") {
		text += "."
	}
	return text
}

// records writes what operations give.
func (r *rustTypes) records() []byte {
	w := &writer{}
	w.f("// %s\n//! What operations give. A reader ignores fields it does not know.\n\nuse serde::{Deserialize, Serialize};\nuse serde_json::{Map, Value};\n", Mark)
	for _, n := range rustNames {
		def := r.defs[n.def]
		if def == nil || def.Properties == nil {
			r.unnamed = append(r.unnamed, n.def)
			continue
		}
		w.f("\n")
		word, _, _ := strings.Cut(def.Description, " ")
		rustDoc(w, "", rustWords(def.Description, word))
		w.f("#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]\n#[non_exhaustive]\npub struct %s {\n", n.name)
		for _, key := range keys(def) {
			r.field(w, "    ", "pub ", def, key)
		}
		w.f("}\n")
	}
	return w.Bytes()
}

// rustVariant gives the variant of an event type: the contract's names for the first and
// the last event of a run, else the wire name in camel case.
func rustVariant(name string) string {
	name = strings.TrimPrefix(name, "agent_")
	var b strings.Builder
	for _, part := range strings.Split(name, "_") {
		b.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return b.String()
}

// few is how many fields an event may have to be matched without "..": such an event
// stays as it is.
const few = 2

// events writes the list that the enum of events is made of.
func (r *rustTypes) events() []byte {
	w := &writer{}
	w.f("// %s\n//! The events of a run, in the order a run meets them.\n\nuse serde_json::{Map, Value};\n\nuse super::types::*;\n\n", Mark)
	w.f("/// Version of the event envelope.\npub const EVENT_ENVELOPE_V1_VERSION: u32 = %d;\n\n", event.Version)
	w.f("/// The names of the catalogue in canonical order.\npub const AGENT_EVENT_TYPES_V1: &[&str] = &[\n")
	for _, row := range event.Catalogue {
		w.f("    %s,\n", quote(row.Name))
	}
	w.f("];\n\ncrate::event::events! {\n")
	for _, row := range slices.Concat(event.Catalogue, event.Frames) {
		if slices.ContainsFunc(event.Frames, func(f event.Row) bool { return f.Name == row.Name }) && row.Name != "gap" {
			continue // these come on an agent's stream only, which this binding reads itself
		}
		name := definition(reflect.TypeOf(row.Payload))
		def := r.defs[name]
		word, _, _ := strings.Cut(def.Description, " ")
		rustDoc(w, "    ", rustWords(def.Description, word))
		if def.Properties.Len() > few {
			w.f("    #[non_exhaustive]\n")
		}
		w.f("    %s => %s {\n", quote(row.Name), rustVariant(row.Name))
		for _, key := range keys(def) {
			r.field(w, "        ", "", def, key)
		}
		w.f("    }\n")
	}
	w.f("}\n")
	return w.Bytes()
}

// options writes the session's options: those that work by their types, the others by
// the words of the option table, so that the library says why it refuses them.
func (r *rustTypes) options(table []option) []byte {
	w := &writer{}
	w.f("// %s\n//! The options of a session.\n\nuse serde_json::{Map, Value};\n\nuse crate::options::*;\n\n", Mark)
	w.f("crate::options::options! {\n")
	works := r.defs["AgentOptions"]
	for _, o := range table {
		typ := map[string]string{"string": "String", "integer": "u64", "number": "f64", "boolean": "bool", "list of strings": "Vec<String>"}[o.Type]
		if s, ok := works.Properties.Get(o.Name); ok && typ == "" {
			typ = r.name(s)
		}
		doc := sentence(o.Doc)
		if o.Default != "" {
			doc += " Default: " + o.Default + "."
		}
		if o.State != "works" {
			doc += " In this version: " + o.State + "."
		}
		rustDoc(w, "    ", doc)
		// A number as it is written has no type that converts by itself.
		typ = cmp.Or(typ, "Value")
		given := "impl Into<" + typ + ">"
		if typ == "u64" || typ == "f64" || typ == "bool" {
			given = typ
		}
		w.f("    %s: %s = with_%s(%s),\n", o.Name, typ, o.Name, given)
	}
	w.f("}\n")
	return w.Bytes()
}
