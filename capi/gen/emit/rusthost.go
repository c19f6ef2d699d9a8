package emit

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/a3s-lab/liba3s/runtime/op"
)

// rustHostByHand names the kinds whose types are written by hand in Rust.
var rustHostByHand = []string{"tool"}

// hostName gives the Rust name of a definition that only host extensions use: they have a
// module of their own, so the prefix of the package is dropped.
func hostName(def string) string {
	for _, prefix := range []string{"Host", "Agent", "Session", "Event"} {
		if name, ok := strings.CutPrefix(def, prefix); ok {
			return name
		}
	}
	return def
}

// rustHost writes what host extensions are described with, asked and give.
type rustHost struct {
	*rustTypes
	w    *writer
	done []string
}

func (r *rustTypes) host() []byte {
	h := &rustHost{rustTypes: r, w: &writer{}}
	h.w.f("// %s\n//! What host extensions are described with, are asked, and give.\n\n", Mark)
	h.w.f("use std::collections::BTreeMap;\n\nuse serde::{Deserialize, Serialize};\nuse serde_json::{Map, Value};\n\nuse super::types::*;\nuse crate::message::Message;\n")
	for _, k := range op.HostKinds() {
		if slices.Contains(rustHostByHand, k.Name) {
			continue
		}
		h.define(definitionOf(k.Spec), spec)
		for _, o := range k.Ops {
			h.define(definitionOf(o.Params), asked)
			h.define(definitionOf(o.Result), given)
			h.define(definitionOf(o.Chunk), given)
		}
	}
	return h.w.Bytes()
}

func definitionOf(v any) string {
	if v == nil {
		return ""
	}
	return definition(reflect.TypeOf(v))
}

// role says who makes the values of a type: fields may be added to all of them, which must
// not break what a program writes.
type role int

const (
	spec  role = iota // the program makes it; what it leaves out has a meaning of its own
	given             // the program makes it
	asked             // the library makes it
)

// define writes a definition, once, and those that it refers to.
func (h *rustHost) define(name string, of role) {
	def := h.defs[name]
	if def == nil || def.Properties == nil || def.Properties.Len() == 0 || slices.Contains(h.done, name) || handNamed(name) {
		return
	}
	h.done = append(h.done, name)
	w := h.w
	w.f("\n")
	word, _, _ := strings.Cut(def.Description, " ")
	rustDoc(w, "", rustWords(def.Description, word))
	w.f("#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]\n")
	if of == asked {
		w.f("#[non_exhaustive]\n")
	}
	w.f("pub struct %s {\n", hostName(name))
	for _, key := range keys(def) {
		h.field(def, key, of)
	}
	w.f("}\n")
	if of == spec {
		w.f("\nimpl<S: Into<String>> From<S> for %s {\n    fn from(name: S) -> Self {\n        Self { name: name.into(), ..Self::default() }\n    }\n}\n", hostName(name))
	}
	for p := def.Properties.Oldest(); p != nil; p = p.Next() {
		for _, s := range []*jsonschema.Schema{p.Value, p.Value.Items} {
			if s != nil && s.Ref != "" {
				h.define(strings.TrimPrefix(s.Ref, "#/$defs/"), of)
			}
		}
	}
}

// handNamed says whether a definition has its Rust type elsewhere.
func handNamed(def string) bool {
	_, ok := rustHandNames[def]
	return ok || slices.ContainsFunc(rustNames, func(n struct{ def, name string }) bool { return n.def == def })
}

// field writes one field. What may be left out is None, false, or empty; in a description
// false is not the same as nothing.
func (h *rustHost) field(def *jsonschema.Schema, key string, of role) {
	s, _ := def.Properties.Get(key)
	typ, bytes := h.fieldType(s)
	required := slices.Contains(def.Required, key)
	name, serde := key, []string{"default"}
	if key == "type" {
		name, serde = "kind", []string{`rename = "type"`, "default"}
	}
	collection, _, _ := strings.Cut(typ, "<")
	switch {
	case bytes && required:
		serde = append(serde, `with = "crate::base64"`)
	case bytes:
		typ, serde = "Option<Vec<u8>>", append(serde, `with = "crate::base64::option"`, `skip_serializing_if = "Option::is_none"`)
	case collection == "Vec" || collection == "BTreeMap":
		serde = append(serde, `deserialize_with = "crate::wire::or_default"`)
		if !required {
			serde = append(serde, `skip_serializing_if = "`+collection+`::is_empty"`)
		}
	case required:
	case typ == "bool" && of != spec:
		serde = append(serde, `skip_serializing_if = "crate::wire::is_false"`)
	default:
		typ, serde = "Option<"+typ+">", append(serde, `skip_serializing_if = "Option::is_none"`)
	}
	rustDoc(h.w, "    ", rustWords(cmp.Or(s.Description, described(s)), key))
	h.w.f("    #[serde(%s)]\n    pub %s: %s,\n", strings.Join(serde, ", "), name, typ)
}

// fieldType gives the type of a property, and whether it is bytes, which travel in base64.
// A property that may be null is one that the library wants to see given.
func (h *rustHost) fieldType(s *jsonschema.Schema) (typ string, bytes bool) {
	for _, p := range s.AnyOf {
		if p.Type != "null" {
			return h.fieldType(p)
		}
	}
	switch {
	case s.ContentEncoding == "base64":
		return "Vec<u8>", true
	case s.Ref != "" && !handNamed(strings.TrimPrefix(s.Ref, "#/$defs/")):
		return hostName(strings.TrimPrefix(s.Ref, "#/$defs/")), false
	case s.Items != nil:
		item, _ := h.fieldType(s.Items)
		return "Vec<" + item + ">", false
	case s.AdditionalProperties != nil && s.AdditionalProperties.Type != "":
		value, _ := h.fieldType(s.AdditionalProperties)
		return "BTreeMap<String, " + value + ">", false
	}
	return h.name(s), false
}

// described gives the words of a property that may be null.
func described(s *jsonschema.Schema) string {
	for _, p := range s.AnyOf {
		if p.Description != "" {
			return p.Description
		}
	}
	return ""
}
