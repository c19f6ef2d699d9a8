package emit

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/a3s-lab/liba3s/runtime/op"
)

// spelling turns the name of a definition into the name of a TypeScript type, and a key
// into a property.
type spelling struct {
	typ func(string) string
	key func(string) string
	// asked says that the type is a request's: what is false when it is left out may be
	// left out.
	asked bool
}

// same leaves names as the library writes them.
var same = spelling{typ: func(s string) string { return s }, key: func(s string) string { return s }}

// nodeType writes one definition: an object as an interface, anything else as an alias.
func nodeType(w *writer, def *jsonschema.Schema, called string, sp spelling) {
	w.f("/** %s */\n", jsdoc(cmp.Or(def.Description, called+".")))
	if def.Type != "object" || def.Properties == nil {
		w.f("export type %s = %s;\n\n", called, nodeName(def, sp))
		return
	}
	w.f("export interface %s {\n", called)
	for p := def.Properties.Oldest(); p != nil; p = p.Next() {
		nodeField(w, sp.key(p.Key), nodeName(p.Value, sp), p.Value.Description, slices.Contains(def.Required, p.Key) && !(sp.asked && p.Value.Type == "boolean"))
	}
	w.f("}\n\n")
}

func nodeField(w *writer, key, typ, words string, required bool) {
	if words != "" {
		w.f("  /** %s */\n", jsdoc(words))
	}
	mark := "?"
	if required {
		mark = ""
	}
	w.f("  %s%s: %s;\n", property(key), mark, typ)
}

// jsdoc keeps a text inside its comment.
func jsdoc(text string) string { return strings.ReplaceAll(text, "*/", "* /") }

var identifier = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$]*$`)

func property(key string) string {
	if identifier.MatchString(key) {
		return key
	}
	return quote(key)
}

// nodeName gives the TypeScript type of a schema.
func nodeName(s *jsonschema.Schema, sp spelling) string {
	switch {
	case s.Ref != "":
		return sp.typ(strings.TrimPrefix(s.Ref, "#/$defs/"))
	case len(s.AnyOf) > 0:
		parts := make([]string, len(s.AnyOf))
		for i, p := range s.AnyOf {
			parts[i] = nodeName(p, sp)
		}
		return strings.Join(slices.Compact(parts), " | ")
	case len(s.Enum) > 0 && s.Type == "string":
		parts := make([]string, len(s.Enum))
		for i, v := range s.Enum {
			parts[i] = quote(fmt.Sprint(v))
		}
		return strings.Join(parts, " | ")
	case s.Type == "array" && s.Items != nil:
		item := nodeName(s.Items, sp)
		if strings.Contains(item, "|") {
			item = "(" + item + ")"
		}
		return item + "[]"
	case s.Type == "object" && s.Properties == nil:
		if v := s.AdditionalProperties; v != nil && v != jsonschema.FalseSchema && v != jsonschema.TrueSchema {
			return "Record<string, " + nodeName(v, sp) + ">"
		}
		return "Record<string, unknown>"
	}
	return cmp.Or(nodeNames[s.Type], "unknown")
}

var nodeNames = map[string]string{
	"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null", "array": "unknown[]",
	// the words of the option table
	"list of strings": "string[]", "list": "unknown[]", "object": "object",
}

// nodeOptions writes SessionOptions and the types below it in JavaScript's spelling.
// Options that this version refuses are left out, so that a type checker finds them.
func (s *source) nodeOptions(w *writer, defs jsonschema.Definitions) {
	options := defs["AgentOptions"]
	names := map[string]string{}
	for _, o := range s.types.options {
		if p, ok := options.Properties.Get(o.Name); ok && p.Ref != "" {
			def := strings.TrimPrefix(p.Ref, "#/$defs/")
			names[def] = o.Type
			if !identifier.MatchString(o.Type) || strings.HasPrefix(o.Type, "Local") { // classes of the binding, written by hand
				names[def] = strings.TrimPrefix(def, "Agent")
			}
		}
	}
	sp := spelling{func(n string) string { return cmp.Or(names[n], n) }, camel, true}
	w.f("/** What a session may do and how. What is left out keeps the default of the agent or the library. */\nexport interface SessionOptions {\n")
	for _, o := range s.types.options {
		typ := cmp.Or(nodeNames[o.Type], "object")
		if p, ok := options.Properties.Get(o.Name); ok {
			typ = nodeName(p, sp)
		}
		words := strings.ToUpper(o.Doc[:1]) + o.Doc[1:] + ". Default: " + o.Default + "."
		switch o.State {
		case "works":
		case "default only":
			words += " Only the default, or what means off, is accepted in this version."
		default:
			continue
		}
		nodeField(w, camel(o.Name), typ, words, false)
	}
	w.f("}\n")
	for _, o := range s.types.options {
		if p, ok := options.Properties.Get(o.Name); ok && p.Ref != "" {
			def := strings.TrimPrefix(p.Ref, "#/$defs/")
			w.f("\n")
			var b writer
			nodeType(&b, defs[def], names[def], sp)
			w.f("%s\n", strings.TrimRight(b.String(), "\n"))
		}
	}
}

// nodeHostKinds writes HostKinds: what a host may supply, with the types of every
// operation. A part that an operation does not have is never.
func nodeHostKinds(w *writer) {
	named := func(v any, none string) string {
		if v == nil {
			return none
		}
		return nodeName(newReflector().add(v), same)
	}
	w.f("/** What a host may supply: the description of each kind, and its operations. */\nexport interface HostKinds {\n")
	for _, k := range op.HostKinds() {
		w.f("  /** %s */\n  %s: {\n    spec: %s;\n    ops: {\n", jsdoc(k.Doc), k.Name, named(k.Spec, "never"))
		for _, o := range k.Ops {
			w.f("      /** %s */\n      %s: { params: %s; result: %s; chunk: %s };\n", jsdoc(o.Doc), property(o.Name),
				named(o.Params, "Record<string, never>"), named(o.Result, "Record<string, never> | void"), named(o.Chunk, "never"))
		}
		w.f("    };\n  };\n")
	}
	w.f("}\n\n")
}
