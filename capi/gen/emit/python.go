package emit

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/fault"
)

// python makes bindings/python/a3s_code/_generated.py: what every import of the package
// needs.
func (s *source) python(digest string) []byte {
	w := &writer{}
	w.f("# %s\n", Mark)
	w.f("%s", pythonHead)
	w.f("VERSION: Final = %s\n", quote(s.version))
	w.f("ABI_MAJOR: Final = %d\nABI_MINOR: Final = %d\nABI_VERSION: Final = %d\n", s.api.ABI.Major, s.api.ABI.Minor, s.api.ABI.Number())
	w.f("SCHEMA_SHA256: Final = %s\n\n\n", quote(digest))
	pythonStatuses(w)
	s.pythonFunctions(w)
	pythonEvents(w)
	w.f("SESSION_OPTION_NAMES: Final[tuple[str, ...]] = (\n")
	for _, o := range s.types.options {
		w.f("    %s,\n", quote(o.Name))
	}
	w.f(")\n\n\n")
	return append(bytes.TrimRight(w.Bytes(), "\n"), '\n')
}

// pythonTypes makes bindings/python/a3s_code/types.py, which costs nothing until somebody
// imports it.
func (s *source) pythonTypes(defs jsonschema.Definitions) ([]byte, error) {
	w := &writer{}
	w.f("# %s\n", Mark)
	w.f("%s", pythonTypesHead)
	pythonCodes(w)
	for _, name := range slices.Sorted(maps.Keys(defs)) {
		if err := pythonType(w, name, defs[name]); err != nil {
			return nil, err
		}
	}
	s.pythonOperations(w)
	s.pythonOptions(w)
	return w.Bytes(), nil
}

const pythonHead = `"""Tables of libA3S: statuses, codes, C prototypes, events."""

from __future__ import annotations

TYPE_CHECKING = False  # as typing has it, which takes as long to load as this package
if TYPE_CHECKING:
    from typing import Final


`

const pythonTypesHead = `"""Types of libA3S: the JSON objects it takes and gives, its operations, its options.

JSON objects are TypedDicts. They describe what a value has at least: the library may add
fields, so a reader ignores what it does not know.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypedDict, Union

if TYPE_CHECKING:
    from typing_extensions import NotRequired


`

// quote writes a Python string literal; JSON's form is one.
func quote(s string) string {
	b, _ := json.Marshal(s) // a string always encodes
	return strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(b))
}

func pythonStatuses(w *writer) {
	w.f("class Status:\n    \"\"\"Status numbers of the C interface; below 0 is an error.\"\"\"\n\n")
	w.f("    OK: Final = %d\n    PENDING: Final = %d\n", fault.OK, fault.Pending)
	for _, k := range fault.Kinds {
		w.f("    %s: Final = %d\n", k.Name, k.Status)
	}
	w.f("\n\nKINDS: Final[dict[str, int]] = {\n")
	for _, k := range fault.Kinds {
		w.f("    %s: Status.%s,\n", quote(string(k.Kind)), k.Name)
	}
	w.f("}\n\"\"\"Kind of a failure to its status.\"\"\"\n\nCODES: Final[dict[str, str]] = {\n")
	for _, c := range fault.Codes {
		w.f("    %s: %s,\n", quote(string(c.Code)), quote(string(c.Kind)))
	}
	w.f("}\n\"\"\"Error code to its default kind. The set is open.\"\"\"\n\n")
}

func pythonCodes(w *writer) {
	w.f("ErrorCode = Literal[\n")
	for _, c := range fault.Codes {
		w.f("    %s,\n", quote(string(c.Code)))
	}
	w.f("]\n\"\"\"The error codes that this version knows.\"\"\"\n\nCodeErrorCode = Union[ErrorCode, str]\n")
	w.f("\"\"\"A stable error code such as 'SESSION_BUSY'. The set is open.\"\"\"\n\n\n")
}

func (s *source) pythonFunctions(w *writer) {
	w.f("FUNCTIONS: Final[tuple[tuple[str, str, tuple[str, ...], bool], ...]] = (\n")
	for _, f := range s.api.Functions() {
		params := make([]string, len(f.Params))
		for i, p := range f.Params {
			params[i] = quote(p.Type)
		}
		tuple := "(" + strings.Join(params, ", ") + ")"
		if len(params) == 1 {
			tuple = "(" + params[0] + ",)"
		}
		w.f("    (%s, %s, %s, %s),\n", quote(f.Name), quote(f.Result), tuple, boolean(f.Blocking))
	}
	w.f(")\n\"\"\"The C functions: name, C types of the result and of the parameters, whether it may block.\"\"\"\n\n")
}

func boolean(b bool) string {
	if b {
		return "True"
	}
	return "False"
}

func pythonEvents(w *writer) {
	w.f("EVENT_ENVELOPE_V1_VERSION: Final = %d\n\n\n", event.Version)
	w.f("class EventType:\n    \"\"\"Types of numbered events, as strings. The set is open.\"\"\"\n\n")
	for _, r := range event.Catalogue {
		w.f("    %s: Final = %s\n", constant(r.Name), quote(r.Name))
	}
	w.f("    START: Final = \"agent_start\"\n    END: Final = \"agent_end\"\n\n")
	w.f("    @staticmethod\n    def values() -> list[str]:\n        \"\"\"All types in canonical order.\"\"\"\n        return list(AGENT_EVENT_TYPES_V1)\n\n\n")
	tuple := func(name string, rows []event.Row) {
		w.f("%s: Final[tuple[str, ...]] = (\n", name)
		for _, r := range rows {
			w.f("    %s,\n", quote(r.Name))
		}
		w.f(")\n\n")
	}
	tuple("AGENT_EVENT_TYPES_V1", event.Catalogue)
	tuple("FRAME_TYPES", event.Frames)
	w.f("\n")
}

// Words that cannot be a field of a class.
var pythonKeywords = map[string]bool{
	"from": true, "class": true, "async": true, "await": true, "import": true, "global": true,
	"pass": true, "in": true, "is": true, "not": true, "and": true, "or": true, "if": true,
	"else": true, "for": true, "while": true, "return": true, "with": true, "as": true, "def": true,
}

// pythonType writes one definition: an object as a TypedDict, anything else as an alias.
func pythonType(w *writer, name string, def *jsonschema.Schema) error {
	if def.Type != "object" || def.Properties == nil {
		typ, err := pythonName(def)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		w.f("%s = %s\n\n\n", name, typ)
		return nil
	}
	required := map[string]bool{}
	for _, k := range def.Required {
		required[k] = true
	}
	class := true
	var keys, kinds, words []string
	for p := def.Properties.Oldest(); p != nil; p = p.Next() {
		typ, err := pythonName(p.Value)
		if err != nil {
			return fmt.Errorf("%s.%s: %w", name, p.Key, err)
		}
		if !required[p.Key] {
			typ = "NotRequired[" + typ + "]"
		}
		class = class && !pythonKeywords[p.Key]
		keys, kinds, words = append(keys, p.Key), append(kinds, typ), append(words, p.Value.Description)
	}
	if !class {
		w.f("%s = TypedDict(\n    %s,\n    {\n", name, quote(name))
		for i, k := range keys {
			w.f("        %s: %s,\n", quote(k), quote(kinds[i]))
		}
		w.f("    },\n)\n\n\n")
		return nil
	}
	w.f("class %s(TypedDict):\n    %s\n", name, docstring(cmp.Or(def.Description, name+".")))
	for i, k := range keys {
		w.f("\n    %s: %s\n", k, kinds[i])
		if words[i] != "" {
			w.f("    %s\n", docstring(words[i]))
		}
	}
	w.f("\n\n")
	return nil
}

// docstring writes a docstring; its text holds no quotes or backslashes of its own.
func docstring(text string) string {
	text = strings.NewReplacer(`\`, `\\`, `"`, `'`).Replace(text)
	return `"""` + text + `"""`
}

// pythonName gives the annotation for a schema.
func pythonName(s *jsonschema.Schema) (string, error) {
	switch {
	case s.Ref != "":
		return strings.TrimPrefix(s.Ref, "#/$defs/"), nil
	case len(s.AnyOf) > 0:
		parts := make([]string, len(s.AnyOf))
		for i, p := range s.AnyOf {
			typ, err := pythonName(p)
			if err != nil {
				return "", err
			}
			parts[i] = typ
		}
		return strings.Join(slices.Compact(parts), " | "), nil
	case len(s.Enum) > 0 && s.Type == "string":
		parts := make([]string, len(s.Enum))
		for i, v := range s.Enum {
			parts[i] = quote(fmt.Sprint(v))
		}
		return "Literal[" + strings.Join(parts, ", ") + "]", nil
	case s.Type == "array" && s.Items != nil:
		item, err := pythonName(s.Items)
		return "list[" + item + "]", err
	case s.Type == "object" && s.Properties == nil:
		if v := s.AdditionalProperties; v != nil && v != jsonschema.FalseSchema && v != jsonschema.TrueSchema {
			item, err := pythonName(v)
			return "dict[str, " + item + "]", err
		}
		return "dict[str, Any]", nil
	}
	if name, ok := pythonNames[s.Type]; ok {
		return name, nil
	}
	return "", fmt.Errorf("no Python type for a schema of type %q", s.Type)
}

var pythonNames = map[string]string{
	"": "Any", "string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None", "array": "list[Any]",
}

func (s *source) pythonOperations(w *writer) {
	w.f("class Operation(NamedTuple):\n    \"\"\"An operation that a3s_call reaches: its handle, its types, whether it may block.\"\"\"\n\n")
	w.f("    name: str\n    on: Literal[\"agent\", \"session\", \"run\"]\n    params: str\n    result: str\n    blocking: bool\n    doc: str\n\n\n")
	w.f("OPERATIONS: Final[dict[str, Operation]] = {\n")
	for _, o := range s.types.ops {
		w.f("    %s: Operation(%s, %s, %s, %s, %s, %s),\n", quote(o.Name), quote(o.Name), quote(o.On),
			quote(typeName(o.Params)), quote(typeName(o.Result)), boolean(o.Blocking), quote(o.Doc))
	}
	w.f("}\n\n\n")
}

// typeName gives the annotation of an operation's parameters or result.
func typeName(v any) string {
	if v == nil {
		return "None"
	}
	name, err := pythonName(newReflector().add(v))
	if err != nil {
		return "Any"
	}
	return name
}

func (s *source) pythonOptions(w *writer) {
	w.f("class Option(NamedTuple):\n    \"\"\"A session option and its state.\"\"\"\n\n")
	w.f("    name: str\n    type: str\n    default: str\n    state: str\n    doc: str\n\n\n")
	w.f("SESSION_OPTIONS: Final[tuple[Option, ...]] = (\n")
	for _, o := range s.types.options {
		w.f("    Option(%s, %s, %s, %s, %s),\n", quote(o.Name), quote(o.Type), quote(o.Default), quote(o.State), quote(o.Doc))
	}
	w.f(")\n")
}
