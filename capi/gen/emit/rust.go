package emit

import (
	"fmt"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

// rust makes the generated files of bindings/rust: the function table of liba3s-sys, and
// of a3s-code-core the codes, operations, records, events and options.
func (s *source) rust(defs jsonschema.Definitions, digest string) ([]File, error) {
	const core = "bindings/rust/a3s-code-core/src/generated/"
	r := &rustTypes{defs: defs}
	if err := r.check(); err != nil {
		return nil, err
	}
	types, events, options := r.records(), r.events(), r.options(s.types.options)
	return []File{
		{"bindings/rust/liba3s-sys/src/generated.rs", s.rustTable(digest)},
		{core + "mod.rs", rustModules()},
		{core + "codes.rs", rustCodes()},
		{core + "operations.rs", s.rustOperations()},
		{core + "types.rs", types},
		{core + "events.rs", events},
		{core + "options.rs", options},
	}, r.err
}

// rustDoc writes text as a doc comment.
func rustDoc(w *writer, indent, text string) {
	text = strings.NewReplacer("[", `\[`, "<", `\<`).Replace(text)
	w.f("%s", wrap(text, indent+"/// ", 110))
}

func rustModules() []byte {
	w := &writer{}
	w.f("// %s\n//! What is made from the library's own types.\n\n", Mark)
	for _, name := range []string{"codes", "events", "operations", "options", "types"} {
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

// rustByHand names the definitions that are written by hand in Rust, with the properties
// they were written for; a change there must be followed.
var rustByHand = map[string]string{
	"AgentSessionStore":        "kind dir instance_id",
	"AgentWorkspaceBackend":    "kind root",
	"AgentArtifactStoreLimits": "max_artifacts max_bytes",
	"AgentHostEnv":             "sequential_id_prefix fixed_time_ms",
	"Policy":                   "allow deny ask default_decision enabled",
	"PolicyConfirmationPolicy": "enabled default_timeout_ms timeout_action yolo_lanes",
	"SessionRetention":         "unbounded max_runs_retained max_events_per_run max_event_bytes_per_run max_trace_events max_terminal_subagent_tasks",
	"ChatMessage":              "role content reasoning_content partial",
	"ChatBlock":                "type text id name input wire_id tool_use_id content is_error",
	"EventMetadata":            "run_id session_id sequence timestamp_ms",
	"FaultError":               "code status kind op message retryable details",
	"AgentOpen":                "source acl acl_path env cwd log_level limits",
	"ProcessLimits":            "gc_percent memory_bytes threads",
	"SessionOpen":              "workspace resume cwd options",
	"RunStart":                 "prompt history",
	"SessionResult":            "run_id text tool_calls_count prompt_tokens completion_tokens total_tokens verification_status pending_verification_count failed_verification_count verification_report_count verification_summary_text verification_summary",
	"EventHostRequest":         "request kind name op params session_id deadline_ms",
	"EventHostCancel":          "request reason",
}

// check compares the definitions written by hand with what the library has.
func (r *rustTypes) check() error {
	for name, want := range rustByHand {
		def := r.defs[name]
		if def == nil || def.Properties == nil {
			return fmt.Errorf("rust: there is no definition %s any more; take it out of bindings/rust and of rustByHand", name)
		}
		var have []string
		for p := def.Properties.Oldest(); p != nil; p = p.Next() {
			have = append(have, p.Key)
		}
		if got := strings.Join(have, " "); got != want {
			return fmt.Errorf("rust: %s has the properties %q and is written by hand in bindings/rust for %q; change it there, then in rustByHand", name, got, want)
		}
	}
	return nil
}
