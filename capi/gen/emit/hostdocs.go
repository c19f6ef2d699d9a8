package emit

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/a3s-lab/liba3s/runtime/op"
)

// hostDocs makes docs/extensions.md.
func (s *source) hostDocs(defs jsonschema.Definitions) []byte {
	w := &writer{}
	w.f("<!-- %s -->\n\n# Host extensions\n\n", Mark)
	for _, p := range []string{
		"A host program supplies parts of the runtime: it registers an extension (`a3s_host_register`) with a kind and a description, reads `host_request` frames from the agent's control stream (`a3s_stream_open` on the agent), and answers each with `a3s_host_reply`, from any thread, after any number of `a3s_host_chunk` where the operation has chunks.",
		"An answer is `{\"result\": ...}` or `{\"error\": {\"type\", \"message\", \"kind\"?, \"retryable\"?, \"retry_after_ms\"?, \"details\"?}}`. Exactly one counts: a second or late one is NOT_FOUND. A `host_cancel` frame says that nobody waits any more. No answer in time, one that cannot be read, and a control stream that is closed have the outcome that the table names; without a control stream it comes at once.",
		"While the host thinks no lock is held, so it may use the library; a store alone must not wait for the session it keeps. Requests come in beside each other: answer them on threads of their own, or a slow one delays all.",
		"A name is 1 to 64 of the characters A-Z a-z 0-9 _ . : -, unique in its kind. `timeout_ms` in a description takes the place of the deadline. An answer, in bytes of JSON, and each chunk are bounded; a larger one counts as one that cannot be read. Early kinds are registered with the agent before the session that names them opens; the others may come and go while sessions are open.",
	} {
		w.f("%s\n", wrap(p, "", 100))
	}
	w.f("| kind | operations | chunks | deadline | answer up to | no answer | registered with |\n| --- | --- | --- | --- | --- | --- | --- |\n")
	for _, k := range op.HostKinds() {
		var ops, chunks, on []string
		for _, o := range k.Ops {
			ops = append(ops, o.Name)
			if o.Chunk != nil {
				chunks = append(chunks, o.Name)
			}
		}
		if k.Agent {
			on = append(on, "agent")
		}
		if k.Session {
			on = append(on, "session")
		}
		if k.Early {
			on = append(on, "early")
		}
		w.f("| [%s](#%s) | %s | %s | %s | %s | %s | %s |\n", k.Name, k.Name, strings.Join(ops, ", "), strings.Join(chunks, ", "), k.Deadline, size(k.MaxAnswer), cell(k.NoAnswer), strings.Join(on, ", "))
	}
	d := docs{w, defs}
	for _, k := range op.HostKinds() {
		w.f("\n## %s\n\n%s\n", k.Name, wrap(k.Doc, "", 100))
		d.fields("Description", k.Spec)
		for _, o := range k.Ops {
			w.f("### %s/%s\n\n%s\n", k.Name, o.Name, wrap(o.Doc, "", 100))
			d.fields("Parameters", o.Params)
			d.fields("Result", o.Result)
			d.fields("Chunk", o.Chunk)
		}
	}
	return append([]byte(strings.TrimRight(w.String(), "\n")), '\n')
}

// size writes a bound of whole KiB or MiB.
func size(bytes int) string {
	if bytes%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", bytes>>20)
	}
	return fmt.Sprintf("%d KiB", bytes>>10)
}

// docs writes definitions as tables.
type docs struct {
	*writer
	defs jsonschema.Definitions
}

// fields writes the fields of v's type.
func (d docs) fields(title string, v any) {
	if v == nil {
		return
	}
	def := d.defs[definition(reflect.TypeOf(v))]
	if def == nil || def.Properties == nil || def.Properties.Len() == 0 {
		d.f("%s: none.\n\n", title)
		return
	}
	d.f("%s:\n\n| field | type | what it is |\n| --- | --- | --- |\n", title)
	for p := def.Properties.Oldest(); p != nil; p = p.Next() {
		name, what := "`"+p.Key+"`", p.Value
		if !slices.Contains(def.Required, p.Key) {
			name += " ?"
		}
		text := what.Description
		for _, a := range what.AnyOf {
			text += a.Description
		}
		d.f("| %s | %s | %s |\n", name, cell(typeText(what)), cell(text))
	}
	d.f("\n")
}

// typeText names a type in a few words.
func typeText(s *jsonschema.Schema) string {
	switch {
	case s == nil:
		return "any"
	case s.Ref != "":
		return strings.TrimPrefix(s.Ref, "#/$defs/")
	case len(s.AnyOf) > 0:
		return typeText(s.AnyOf[0])
	case s.Type == "array":
		return "list of " + typeText(s.Items)
	case s.ContentEncoding != "":
		return s.ContentEncoding
	case s.Type == "object" && s.AdditionalProperties != nil && s.AdditionalProperties.Type != "":
		return fmt.Sprintf("object of %s", typeText(s.AdditionalProperties))
	case s.Type == "":
		return "any"
	}
	return s.Type
}
