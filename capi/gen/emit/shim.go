package emit

import (
	"fmt"
	"strings"

	"github.com/a3s-lab/liba3s/capi/gen/api"
	"github.com/a3s-lab/liba3s/runtime/fault"
)

// private makes capi/a3sgo.h: what Go exports to the shim, and what the shim gives Go.
// The shim and the Go files include it, so that a drifted prototype does not compile.
func (s *source) private() []byte {
	w := &writer{}
	w.f("/* %s\n * Private: between shim.c and the Go exports. */\n", Mark)
	w.f("#ifndef A3SGO_H\n#define A3SGO_H\n\n#include \"a3s.h\"\n\n")
	w.f("/* cgo drops const; behind a name it stays. */\ntypedef const char a3s_cchar;\n\n")
	w.f("/* Exported by Go. */\nextern char *a3s_go_build_info(void);\n")
	for _, f := range s.api.Functions() {
		if !f.Pure && !f.Hand {
			w.f("extern %s;\n", goDecl(f))
		}
	}
	w.f(`
/* Exported by the shim. */
extern void a3s_c_error(const char *json, size_t len);
extern void a3s_c_deliver(a3s_event_fn fn, uintptr_t user_data, const char *json, size_t len, a3s_handle stream);
extern void a3s_c_finalize(a3s_free_fn fn, uintptr_t user_data, a3s_handle stream);
extern a3s_handle a3s_c_inside(void);
extern size_t a3s_c_length(const char *text, size_t max);
extern int a3s_c_fill(a3s_buf *out, const char *text, size_t len);

#endif
`)
	return w.Bytes()
}

func goName(name string) string { return "a3s_go_" + strings.TrimPrefix(name, "a3s_") }

func goDecl(f api.Function) string {
	f.Name = goName(f.Name)
	f.Params = append([]api.Param(nil), f.Params...)
	for i, p := range f.Params {
		if p.Type == "const char *" {
			f.Params[i].Type = "a3s_cchar *"
		}
	}
	return f.Decl()
}

// shim makes capi/shim.c: the hand-written part between its constants and the fork
// guards of all exports.
func (s *source) shim(digest string) []byte {
	w := &writer{}
	w.f("/* %s\n * From capi/api.json and capi/gen/shim.c.txt. */\n", Mark)
	kinds := map[string]fault.KindRow{}
	for _, k := range fault.Kinds {
		kinds[k.Name] = k
	}
	for _, name := range []string{"INVALID", "FORKED", "ABI", "IO"} {
		k := kinds["E_"+name]
		w.f("#define ERROR_%s_HEAD \"{\\\"code\\\":\\\"%s\\\",\\\"status\\\":%d,\\\"kind\\\":\\\"%s\\\"\"\n", name, k.Code, k.Status, k.Kind)
	}
	w.f("#define ERROR_JSON(kind, op, message) ERROR_##kind##_HEAD \",\\\"op\\\":\\\"\" op \"\\\",\\\"message\\\":\\\"\" message \"\\\",\\\"retryable\\\":false}\"\n")
	w.f("#define BUILD_JSON \"{\\\"version\\\":\\\"%s\\\",\\\"abi\\\":\\\"%d.%d\\\",\\\"schema\\\":\\\"%s\\\"}\"\n\n", s.version, s.api.ABI.Major, s.api.ABI.Minor, digest)
	w.f("%s", s.hand)
	w.f("\n/* ---- generated: names and fork guards ------------------------------------------- */\n\n")
	w.f("const char *a3s_status_name(a3s_status status) {\n\tswitch (status) {\n")
	w.f("\tcase A3S_OK: return \"OK\";\n\tcase A3S_PENDING: return \"PENDING\";\n")
	for _, k := range fault.Kinds {
		w.f("\tcase A3S_%s: return \"%s\";\n", k.Name, k.Name)
	}
	w.f("\tdefault: return \"UNKNOWN\";\n\t}\n}\n\n")
	w.f("static a3s_status in_forked_child(const char *json) { return fail(A3S_E_FORKED, json); }\n")
	w.f("#define IN_FORKED_CHILD(op) in_forked_child(ERROR_JSON(FORKED, op, \"%s\"))\n", forkedMessage)
	for _, f := range s.api.Functions() {
		if !f.Pure {
			guard(w, f)
		}
	}
	return w.Bytes()
}

const forkedMessage = "the library does not work in a forked child: use spawn, or load it after the fork"

// guard writes one exported function.
func guard(w *writer, f api.Function) {
	w.f("\n%s {\n\tif (forked) {\n", f.Decl())
	for _, p := range f.Params {
		if !p.Out {
			continue
		}
		zero := fmt.Sprintf("*%s = 0;", p.Name)
		if p.Type == "a3s_buf *" {
			zero = fmt.Sprintf("*%s = (a3s_buf){NULL, 0};", p.Name)
		}
		w.f("\t\tif (%s != NULL)\n\t\t\t%s\n", p.Name, zero)
	}
	if f.Finalizer != "" {
		w.f("\t\tif (%s != NULL)\n\t\t\t%s(%s);\n", f.Finalizer, f.Finalizer, f.FinalizerArg)
	}
	w.f("\t\treturn IN_FORKED_CHILD(\"%s\");\n\t}\n", f.Name)
	target := goName(f.Name)
	if f.Hand {
		target = "a3s_c_" + strings.TrimPrefix(f.Name, "a3s_")
	}
	names := make([]string, len(f.Params))
	for i, p := range f.Params {
		names[i] = p.Name
	}
	w.f("\treturn %s(%s);\n}\n", target, strings.Join(names, ", "))
}

// versionScript makes capi/a3s.map: one node for every minor version.
func (s *source) versionScript() []byte {
	w := &writer{}
	w.f("# %s\n", Mark)
	var order []string
	nodes := map[string][]string{}
	for _, f := range s.api.Functions() {
		if nodes[f.Since] == nil {
			order = append(order, f.Since)
		}
		nodes[f.Since] = append(nodes[f.Since], f.Name)
	}
	sortVersions(order)
	before := ""
	for _, v := range order {
		w.f("A3S_%s {\nglobal:\n", v)
		for _, name := range nodes[v] {
			w.f("\t%s;\n", name)
		}
		if before == "" {
			w.f("local:\n\t*;\n")
		}
		w.f("}%s;\n", before)
		before = " A3S_" + v
	}
	return w.Bytes()
}

// build makes capi/build.go, the constants of this build.
func (s *source) build(digest string) []byte {
	w := &writer{}
	w.f("// %s\n\npackage main\n\n", Mark)
	w.f("const (\n\tversion    = %q\n\tabi        = \"%d.%d\"\n\tschemaHash = %q\n)\n", s.version, s.api.ABI.Major, s.api.ABI.Minor, digest)
	return w.Bytes()
}
