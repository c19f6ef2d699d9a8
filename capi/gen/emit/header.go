package emit

import (
	"strings"

	"github.com/a3s-lab/liba3s/capi/gen/api"
	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/fault"
)

const columns = 96

// header makes include/a3s.h.
func (s *source) header() []byte {
	w := &writer{}
	w.f("/* %s\n *\n", Mark)
	w.f("%s", s.front)
	w.f(" */\n#ifndef A3S_H\n#define A3S_H\n\n#include <stddef.h>\n#include <stdint.h>\n\n")
	w.f("#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n")
	w.f("#define A3S_VERSION \"%s\"\n", s.version)
	w.f("#define A3S_ABI_MAJOR %d\n#define A3S_ABI_MINOR %d\n", s.api.ABI.Major, s.api.ABI.Minor)
	w.f("#define A3S_ABI_VERSION ((uint32_t)A3S_ABI_MAJOR << 16 | (uint32_t)A3S_ABI_MINOR)\n\n")
	for _, t := range s.api.Types {
		w.f("/** %s */\ntypedef %s %s;\n\n", t.Doc, t.C, t.Name)
	}
	w.f("%s", fixedTypes)
	s.constants(w)
	for _, n := range s.api.Nouns {
		w.f("/* ---- %s %s */\n\n", n.Name, strings.Repeat("-", columns-12-len(n.Name)))
		w.f("/*\n%s */\n\n", wrap(n.Doc, " * ", columns))
		for _, f := range n.Functions {
			function(w, f)
		}
	}
	w.f("#ifdef __cplusplus\n}\n#endif\n#endif /* A3S_H */\n")
	return w.Bytes()
}

const fixedTypes = `/** A text of the library: UTF-8, len bytes, then a NUL. Free it with a3s_buf_free. */
typedef struct a3s_buf {
	char *ptr;
	size_t len;
} a3s_buf;

/** Receives a batch of events, one JSON array of len bytes, not NUL-terminated. */
typedef void (*a3s_event_fn)(uintptr_t user_data, const char *json_array, size_t len);

/** Ends user_data; called exactly once. */
typedef void (*a3s_free_fn)(uintptr_t user_data);

/** As a length: the text ends with a NUL. */
#define A3S_NTS ((size_t)-1)

`

func (s *source) constants(w *writer) {
	w.f("/* Statuses. The numbers are fixed and never used for anything else. */\n")
	w.f("#define A3S_OK %d /* done */\n#define A3S_PENDING %d /* goes on in the background */\n", fault.OK, fault.Pending)
	for _, k := range fault.Kinds {
		w.f("#define A3S_%s (%d) /* %s */\n", k.Name, k.Status, k.Doc)
	}
	w.f("\n/* Codes of error objects. The set is open. */\n")
	for _, c := range fault.Codes {
		w.f("#define A3S_CODE_%s \"%s\" /* %s */\n", constant(string(c.Code)), c.Code, c.Doc)
	}
	w.f("\n/* Types of numbered events. The set is open. */\n")
	for _, r := range event.Catalogue {
		w.f("#define A3S_EVENT_%s \"%s\"\n", constant(r.Name), r.Name)
	}
	w.f("\n/* Types of unnumbered frames. The set is open. */\n")
	for _, r := range event.Frames {
		w.f("#define A3S_FRAME_%s \"%s\"\n", constant(r.Name), r.Name)
	}
	w.f("\n")
}

func function(w *writer, f api.Function) {
	w.f("/**\n%s *\n", wrap(f.Doc, " * ", columns))
	for _, p := range f.Params {
		w.f("%s", hanging(" * @"+p.Name+" ", p.Doc))
	}
	if len(f.Params) > 0 {
		w.f(" *\n")
	}
	fails := "never."
	if len(f.Fails) > 0 {
		names := make([]string, len(f.Fails))
		for i, n := range f.Fails {
			names[i] = n
			if strings.HasPrefix(n, "E_") {
				names[i] = "A3S_" + n
			}
		}
		fails = strings.Join(names, ", ") + "."
	}
	w.f("%s", hanging(" * Owns:    ", f.Owns))
	w.f("%s", hanging(" * Threads: ", f.Threads))
	w.f("%s", hanging(" * Fails:   ", fails))
	w.f(" * Since:   %s\n */\n%s;\n\n", f.Since, f.Decl())
}

// hanging writes text behind head, with its further lines indented.
func hanging(head, text string) string {
	const indent = " *          "
	lines := strings.SplitAfter(wrap(text, indent, columns), "\n")
	if len(lines) == 0 || lines[0] == "" {
		return head + "\n"
	}
	lines[0] = head + strings.TrimPrefix(lines[0], indent)
	return strings.Join(lines, "")
}
