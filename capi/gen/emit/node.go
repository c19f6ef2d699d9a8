package emit

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/a3s-lab/liba3s/capi/gen/api"
	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/fault"
)

// node makes the generated files of bindings/node: the function table of the addon, the
// tables that the JavaScript reads, and the declarations.
func (s *source) node(defs jsonschema.Definitions, digest string) ([]File, error) {
	types, err := s.nodeTypes(defs)
	if err != nil {
		return nil, err
	}
	return []File{
		{"bindings/node/src/generated.h", s.nodeTable()},
		{"bindings/node/lib/generated.js", s.nodeTables(defs, digest)},
		{"bindings/node/lib/generated.d.ts", types},
		{"bindings/node/lib/types/hosts.d.ts", nodeHostTypes(defs)},
	}, nil
}

const nodeTableHead = `
#ifndef A3S_NODE_GENERATED_H
#define A3S_NODE_GENERATED_H

#include "a3s.h"

/* Every function of the library; a table of pointers is made of it. */
#define A3S_FUNCTIONS(F)`

const nodeTableTypes = `
typedef struct a3s_table {
#define F(name) __typeof__(a3s_##name) *name;
	A3S_FUNCTIONS(F)
#undef F
} a3s_table;

/* One argument as it came from JavaScript. */
typedef struct a3s_arg {
	uint64_t number;
	char *text;
	size_t len;
} a3s_arg;

/* One call: what goes in and what comes out. */
typedef struct a3s_job {
	a3s_arg in[A3S_MOST_ARGS];
	int64_t status; /* or the number that the function returns */
	uint64_t number;
	a3s_buf text;
	const char *words;
} a3s_job;

/*
 * A function as JavaScript calls it. in: h handle, u number of a call or request, i small
 * number, s text with a length, z text that ends with a NUL. out: h handle, u number,
 * t text, w static words, n the returned number itself, - nothing. fails: a status below 0
 * is an error; such a function can also be called on another thread.
 */
typedef struct a3s_entry {
	const char *name;
	const char *in;
	char out;
	int fails;
	void (*invoke)(const a3s_table *, a3s_job *);
} a3s_entry;
`

// nodeTable makes src/generated.h.
func (s *source) nodeTable() []byte {
	w := &writer{}
	w.f("/* %s */\n%s", Mark, nodeTableHead)
	var entries []nodeEntry
	most := 0
	for _, f := range s.api.Functions() {
		w.f(" \\\n\tF(%s)", strings.TrimPrefix(f.Name, "a3s_"))
		if e, ok := nodeFunction(f); ok {
			entries = append(entries, e)
			most = max(most, len(e.in))
		}
	}
	w.f("\n\n#define A3S_MOST_ARGS %d\n%s", most, nodeTableTypes)
	for _, e := range entries {
		w.f("\nstatic void invoke_%s(const a3s_table *t, a3s_job *j)\n{\n\t%s\n}\n", e.c, e.call)
	}
	w.f("\nstatic const a3s_entry a3s_entries[] = {\n")
	for _, e := range entries {
		w.f("\t{\"%s\", \"%s\", '%c', %d, invoke_%s},\n", camel(e.c), e.in, e.out, number(e.fails), e.c)
	}
	w.f("};\n\n#endif /* A3S_NODE_GENERATED_H */\n")
	return w.Bytes()
}

// nodeEntry is a function as JavaScript calls it.
type nodeEntry struct {
	c     string // without a3s_
	in    string
	out   byte
	fails bool
	call  string // the C statement
}

// nodeFunction describes f by its types. Functions that take a caller's buffer or a
// callback are written by hand in the addon, and so is the freeing of texts.
func nodeFunction(f api.Function) (nodeEntry, bool) {
	e := nodeEntry{c: strings.TrimPrefix(f.Name, "a3s_"), out: '-', fails: f.Result == "a3s_status"}
	var args []string
	for i := 0; i < len(f.Params); i++ {
		p := f.Params[i]
		at := fmt.Sprintf("j->in[%d]", len(e.in))
		switch {
		case p.Out && (p.Type == "a3s_handle *" || p.Type == "uint64_t *"):
			args, e.out = append(args, "&j->number"), 'u'
			if p.Type == "a3s_handle *" {
				e.out = 'h'
			}
		case p.Out && p.Type == "a3s_buf *":
			args, e.out = append(args, "&j->text"), 't'
		case p.Type == "a3s_handle":
			args, e.in = append(args, at+".number"), e.in+"h"
		case p.Type == "uint64_t":
			args, e.in = append(args, at+".number"), e.in+"u"
		case p.Type == "int32_t", p.Type == "uint32_t", p.Type == "a3s_status":
			args, e.in = append(args, "("+p.Type+")"+at+".number"), e.in+"i"
		case p.Type == "const char *" && i+1 < len(f.Params) && f.Params[i+1].Type == "size_t":
			args, e.in = append(args, at+".text", at+".len"), e.in+"s"
			i++
		case p.Type == "const char *":
			args, e.in = append(args, at+".text"), e.in+"z"
		default:
			return e, false
		}
	}
	call := fmt.Sprintf("t->%s(%s);", e.c, strings.Join(args, ", "))
	switch f.Result {
	case "void":
		e.call = call
	case "const char *":
		e.out, e.call = 'w', "j->words = "+call
	case "a3s_status":
		e.call = "j->status = " + call
	case "int32_t": // a number, or a status below 0
		e.out, e.fails, e.call = 'n', true, "j->status = "+call
	default:
		e.out, e.call = 'n', "j->status = "+call
	}
	return e, true
}

// camel turns a_name into aName.
func camel(name string) string {
	parts := strings.Split(name, "_")
	for i := 1; i < len(parts); i++ {
		if parts[i] != "" {
			parts[i] = strings.ToUpper(parts[i][:1]) + parts[i][1:]
		}
	}
	return strings.Join(parts, "")
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}

// nodeTables makes lib/generated.js.
func (s *source) nodeTables(defs jsonschema.Definitions, digest string) []byte {
	w := &writer{}
	w.f("// %s\n'use strict';\n\n", Mark)
	w.f("exports.VERSION = %s;\nexports.ABI_VERSION = %d;\n", quote(s.version), s.api.ABI.Number())
	w.f("exports.SCHEMA_SHA256 = %s;\n\n", quote(digest))
	w.f("// Status numbers of the C interface; below 0 is an error.\nexports.Status = Object.freeze({\n  OK: %d,\n  PENDING: %d,\n", fault.OK, fault.Pending)
	for _, k := range fault.Kinds {
		w.f("  %s: %d,\n", k.Name, k.Status)
	}
	w.f("});\n\n// Kind of a failure to its status.\nexports.KINDS = Object.freeze({\n")
	for _, k := range fault.Kinds {
		w.f("  %s: %d,\n", k.Kind, k.Status)
	}
	w.f("});\n\n// Error code to its default kind. The set is open.\nexports.CODES = Object.freeze({\n")
	for _, c := range fault.Codes {
		w.f("  %s: %s,\n", c.Code, quote(string(c.Kind)))
	}
	w.f("});\n\nexports.EVENT_ENVELOPE_V1_VERSION = %d;\n\n", event.Version)
	w.f("// Types of numbered events. The set is open.\nexports.EventType = Object.freeze({\n")
	for _, r := range event.Catalogue {
		w.f("  %s: %s,\n", constant(r.Name), quote(r.Name))
	}
	w.f("  START: \"agent_start\",\n  END: \"agent_end\",\n});\n\n")
	w.f("// The catalogue in canonical order.\nexports.AGENT_EVENT_TYPES_V1 = Object.freeze([\n")
	for _, r := range event.Catalogue {
		w.f("  %s,\n", quote(r.Name))
	}
	w.f("]);\n\n// Operations that may wait, so that they are started and not called.\nexports.BLOCKING = new Set([\n")
	for _, o := range s.types.ops {
		if o.Blocking {
			w.f("  %s,\n", quote(o.Name))
		}
	}
	w.f("]);\n\n// Keys whose values are somebody's own: what lies below them is not respelled.\nexports.OPAQUE = new Set([\n")
	for _, key := range nodeOpaque(defs) {
		w.f("  %s,\n", quote(key))
	}
	w.f("]);\n")
	return w.Bytes()
}

// nodeTypes makes lib/generated.d.ts.
func (s *source) nodeTypes(defs jsonschema.Definitions) ([]byte, error) {
	w := &writer{}
	w.f("// %s\n\n", Mark)
	w.f("// JSON objects as the library writes and reads them. They describe what a value has at\n")
	w.f("// least: the library may add fields, so a reader ignores what it does not know.\n\n")
	w.f("/** A stable code of an error of the library. The set is open. */\nexport type ErrorCode =\n")
	for _, c := range fault.Codes {
		w.f("  | %s\n", quote(string(c.Code)))
	}
	w.f("  | (string & {});\n\n/** The nature of a failure. */\nexport type ErrorKind =\n")
	for _, k := range fault.Kinds {
		w.f("  | %s\n", quote(string(k.Kind)))
	}
	w.f("  | (string & {});\n\n/** Types of numbered events. The set is open. */\nexport declare const EventType: {\n")
	for _, r := range event.Catalogue {
		w.f("  readonly %s: %s;\n", constant(r.Name), quote(r.Name))
	}
	w.f("  readonly START: \"agent_start\";\n  readonly END: \"agent_end\";\n};\n\n")
	payloads := func(name, doc string, rows []event.Row) {
		w.f("/** %s */\nexport interface %s {\n", doc, name)
		for _, r := range rows {
			w.f("  %s: %s;\n", r.Name, nodeName(newReflector().add(r.Payload), same))
		}
		w.f("}\n\n")
	}
	payloads("EventPayloads", "The payload of every type of event.", event.Catalogue)
	payloads("FramePayloads", "The payload of every unnumbered frame.", event.Frames)
	nodeHostKinds(w)
	for _, name := range slices.Sorted(maps.Keys(defs)) {
		nodeType(w, defs[name], name, same)
	}
	s.nodeOptions(w, defs)
	return w.Bytes(), nil
}
