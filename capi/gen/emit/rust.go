package emit

import (
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

// rust makes the generated files of bindings/rust: the function table of liba3s-sys, and
// of a3s-code-core the codes, operations, records, events and options.
func (s *source) rust(defs jsonschema.Definitions, digest string) []File {
	const core = "bindings/rust/a3s-code-core/src/generated/"
	r := &rustTypes{defs: defs}
	return []File{
		{"bindings/rust/liba3s-sys/src/generated.rs", s.rustTable(digest)},
		{core + "mod.rs", rustModules()},
		{core + "codes.rs", rustCodes()},
		{core + "operations.rs", s.rustOperations()},
		{core + "types.rs", r.records()},
		{core + "events.rs", r.events()},
		{core + "options.rs", r.options(s.types.options)},
		{core + "host.rs", r.host()},
	}
}

// rustDoc writes text as a doc comment.
func rustDoc(w *writer, indent, text string) {
	text = strings.NewReplacer("[", `\[`, "<", `\<`).Replace(text)
	w.f("%s", wrap(text, indent+"/// ", 110))
}

func rustModules() []byte {
	w := &writer{}
	w.f("// %s\n//! What is made from the library's own types.\n\n", Mark)
	for _, name := range []string{"codes", "events", "host", "operations", "options", "types"} {
		w.f("pub mod %s;\n", name)
	}
	return w.Bytes()
}

// Rust's names for the C types of the header.
var rustC = map[string]string{
	"int32_t": "i32", "uint32_t": "u32", "int64_t": "i64", "uint64_t": "u64", "size_t": "usize", "uintptr_t": "usize",
	"const char *": "*const c_char", "char *": "*mut c_char", "a3s_buf *": "*mut a3s_buf", "a3s_handle *": "*mut a3s_handle",
	"uint64_t *": "*mut u64", "size_t *": "*mut usize",
}

func rustCType(c string) string {
	if t, ok := rustC[c]; ok {
		return t
	}
	return c
}

func (s *source) rustTable(digest string) []byte {
	w := &writer{}
	w.f("// %s\nuse crate::{a3s_buf, a3s_event_fn, a3s_free_fn};\nuse std::ffi::c_char;\n\n", Mark)
	w.f("/// Version of the project this crate was made from.\npub const A3S_VERSION: &str = %s;\n", quote(s.version))
	w.f("/// Version of the C interface: major \\<\\< 16 | minor.\npub const A3S_ABI_VERSION: u32 = %d;\n", s.api.ABI.Number())
	w.f("/// SHA-256 of `a3s.schema.json`.\npub const A3S_SCHEMA_SHA256: &str = %s;\n\n", quote(digest))
	for _, t := range s.api.Types {
		rustDoc(w, "", t.Doc)
		w.f("pub type %s = %s;\n", t.Name, rustCType(t.C))
	}
	w.f("\n/// Done.\npub const A3S_OK: a3s_status = %d;\n/// Goes on in the background.\npub const A3S_PENDING: a3s_status = %d;\n", fault.OK, fault.Pending)
	for _, k := range fault.Kinds {
		rustDoc(w, "", sentence(k.Doc))
		w.f("pub const A3S_%s: a3s_status = %d;\n", k.Name, k.Status)
	}
	w.f("\ntable! {\n")
	for _, f := range s.api.Functions() {
		rustDoc(w, "    ", f.Doc)
		w.f("    ///\n")
		for _, p := range f.Params {
			rustDoc(w, "    ", "- `"+p.Name+"`: "+p.Doc)
		}
		rustDoc(w, "    ", "- owns: "+f.Owns)
		rustDoc(w, "    ", "- threads: "+f.Threads)
		w.f("    fn %s%s;\n", f.Name, rustSignature(f.Params, f.Result))
	}
	w.f("}\n")
	return w.Bytes()
}

func rustCodes() []byte {
	w := &writer{}
	w.f("// %s\n//! Codes and kinds of errors. Both sets are open.\n\n", Mark)
	for _, c := range fault.Codes {
		rustDoc(w, "", sentence(c.Doc))
		w.f("pub const %s: &str = %s;\n", constant(string(c.Code)), quote(string(c.Code)))
	}
	w.f("\n/// Code, kind and status of errors as this crate finds them itself.\npub(crate) const TABLE: &[(&str, &str, i32)] = &[\n")
	status := map[fault.Kind]fault.Status{}
	for _, k := range fault.Kinds {
		status[k.Kind] = k.Status
	}
	for _, c := range fault.Codes {
		w.f("    (%s, %s, %d),\n", quote(string(c.Code)), quote(string(c.Kind)), status[c.Kind])
	}
	w.f("];\n\n/// Natures of a failure.\npub mod kinds {\n")
	for _, k := range fault.Kinds {
		rustDoc(w, "    ", sentence(k.Doc))
		w.f("    pub const %s: &str = %s;\n", constant(string(k.Kind)), quote(string(k.Kind)))
	}
	w.f("}\n")
	return w.Bytes()
}

func (s *source) rustOperations() []byte {
	w := &writer{}
	w.f("// %s\n//! The operations that `a3s_call` reaches.\n#![allow(dead_code)]\n\n", Mark)
	w.f("/// An operation: its name, and whether it may wait.\n#[derive(Debug, Clone, Copy)]\npub(crate) struct Operation {\n    pub(crate) name: &'static std::ffi::CStr,\n    pub(crate) blocking: bool,\n}\n\n")
	for _, o := range s.types.ops {
		rustDoc(w, "", o.Doc)
		w.f("pub(crate) const %s: Operation = Operation { name: c%s, blocking: %t };\n", constant(o.Name), quote(o.Name), o.Blocking)
	}
	return w.Bytes()
}

// sentence makes a phrase of the tables one.
func sentence(text string) string {
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:] + "."
}
