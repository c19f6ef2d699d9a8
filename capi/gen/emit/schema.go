package emit

import (
	"bytes"
	"encoding/json"
	"fmt"
	gopath "path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/record"
)

const module = "github.com/a3s-lab/liba3s"

// document is a3s.schema.json. Only $defs is JSON Schema; the rest says which
// definition is used where.
type document struct {
	Schema     string                 `json:"$schema"`
	Title      string                 `json:"title"`
	Comment    string                 `json:"$comment"`
	Version    string                 `json:"version"`
	ABI        string                 `json:"abi"`
	Requests   map[string]ref         `json:"requests"`
	Results    map[string]ref         `json:"results"`
	Operations []operationRow         `json:"operations"`
	Events     []eventRow             `json:"events"`
	Frames     []eventRow             `json:"frames"`
	Kinds      []kindRow              `json:"kinds"`
	Codes      []codeRow              `json:"codes"`
	Options    []option               `json:"options"`
	HostKinds  []hostKindRow          `json:"host_kinds"`
	Defs       jsonschema.Definitions `json:"$defs"`
}

type ref struct {
	Ref string `json:"$ref,omitempty"`
}

type operationRow struct {
	Name     string `json:"name"`
	On       string `json:"on"`
	Doc      string `json:"doc"`
	Blocking bool   `json:"blocking"`
	Params   any    `json:"params"`
	Result   any    `json:"result"`
}

type eventRow struct {
	Type    string `json:"type"`
	Payload any    `json:"payload"`
}

type kindRow struct {
	Kind   fault.Kind   `json:"kind"`
	Status fault.Status `json:"status"`
	Name   string       `json:"name"`
	Code   fault.Code   `json:"code"`
	Doc    string       `json:"doc"`
}

type codeRow struct {
	Code fault.Code `json:"code"`
	Kind fault.Kind `json:"kind"`
	Doc  string     `json:"doc"`
}

// reflector turns Go types into definitions.
type reflector struct {
	jsonschema.Reflector
	names map[string]reflect.Type // every struct that was met
	defs  jsonschema.Definitions
}

// schema makes include/a3s.schema.json and gives its definitions.
func (s *source) schema(root string) ([]byte, jsonschema.Definitions, error) {
	r := newReflector()
	if err := r.comments(root); err != nil {
		return nil, nil, err
	}
	doc := document{
		Schema:   jsonschema.Version,
		Title:    "libA3S",
		Comment:  Mark,
		Version:  s.version,
		ABI:      fmt.Sprintf("%d.%d", s.api.ABI.Major, s.api.ABI.Minor),
		Requests: map[string]ref{},
		Results:  map[string]ref{},
		Options:  s.types.options,
	}
	var strict []string // the roots of what the library decodes
	for _, q := range s.types.requests {
		at := r.add(q.Value)
		doc.Requests[q.Name] = ref{at.Ref}
		strict = append(strict, at.Ref)
	}
	for _, q := range s.types.results {
		doc.Results[q.Name] = ref{r.add(q.Value).Ref}
	}
	for _, o := range s.types.ops {
		row := operationRow{Name: o.Name, On: o.On, Doc: o.Doc, Blocking: o.Blocking, Params: emptyObject, Result: anyObject}
		if o.Params != nil {
			at := r.add(o.Params)
			row.Params = at
			strict = append(strict, at.Ref)
		}
		if o.Result != nil {
			row.Result = r.add(o.Result)
		}
		doc.Operations = append(doc.Operations, row)
	}
	for _, e := range event.Catalogue {
		doc.Events = append(doc.Events, eventRow{e.Name, r.add(e.Payload)})
	}
	for _, e := range event.Frames {
		doc.Frames = append(doc.Frames, eventRow{e.Name, r.add(e.Payload)})
	}
	doc.HostKinds = r.hostKinds(&strict)
	for _, n := range records {
		r.add(n.Value)
	}
	for _, k := range fault.Kinds {
		doc.Kinds = append(doc.Kinds, kindRow{k.Kind, k.Status, k.Name, k.Code, k.Doc})
	}
	for _, c := range fault.Codes {
		doc.Codes = append(doc.Codes, codeRow{c.Code, c.Kind, c.Doc})
	}
	doc.Defs = r.finish(strict)
	b, err := json.MarshalIndent(doc, "", " ")
	return append(bytes.ReplaceAll(b, []byte(`\u003c`), []byte("<")), '\n'), doc.Defs, err
}

var (
	emptyObject = map[string]any{"type": "object", "additionalProperties": false}
	anyObject   = map[string]any{"type": "object"}
)

func newReflector() *reflector {
	r := &reflector{names: map[string]reflect.Type{}, defs: jsonschema.Definitions{}}
	r.Anonymous = true
	r.AllowAdditionalProperties = true
	r.Namer = func(t reflect.Type) string {
		name := definition(t)
		if t.Kind() == reflect.Struct {
			r.names[name] = t
		}
		return name
	}
	r.Mapper = func(t reflect.Type) *jsonschema.Schema {
		switch t {
		case faultErrorType:
			return &jsonschema.Schema{Ref: "#/$defs/FaultError"}
		case reflect.TypeFor[record.SubagentTask]():
			return &jsonschema.Schema{Type: "object"}
		}
		return nil
	}
	return r
}

// definition names a type by its package and its own name, without saying a word
// twice; operations and the generator's own types go by their name alone.
func definition(t reflect.Type) string {
	if t.Name() == "" || t.PkgPath() == "" {
		return t.Name()
	}
	name := strings.ToUpper(t.Name()[:1]) + t.Name()[1:]
	pkg := gopath.Base(t.PkgPath())
	if pkg == "op" || pkg == "emit" || pkg == "." {
		return name
	}
	pkg = strings.ToUpper(pkg[:1]) + pkg[1:]
	if strings.HasPrefix(name, pkg) {
		return name
	}
	return pkg + name
}

// add reflects the type of v and gives the schema that refers to it.
func (r *reflector) add(v any) *jsonschema.Schema {
	t := reflect.TypeOf(v)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == faultErrorType {
		return &jsonschema.Schema{Ref: "#/$defs/FaultError"}
	}
	s := r.ReflectFromType(t)
	for name, def := range s.Definitions {
		r.defs[name] = def
	}
	s.Definitions, s.Version = nil, ""
	return s
}

// commented are the packages whose types have a JSON form.
var commented = []string{
	"runtime/chat", "runtime/event", "runtime/record", "runtime/fault", "runtime/host", "runtime/session", "runtime/agent", "runtime/op",
	"runtime/tool/host", "runtime/model/host", "runtime/policy/host", "runtime/prompt/host", "runtime/store/host", "runtime/workspace/host",
}

// comments reads the words of all types under runtime/.
func (r *reflector) comments(root string) error {
	abs, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	for _, dir := range commented {
		if err := r.AddGoComments("at", filepath.Join(abs, dir), jsonschema.WithFullComment()); err != nil {
			return err
		}
	}
	words := map[string]string{}
	for key, text := range r.CommentMap {
		rel, ok := strings.CutPrefix(key, gopath.Join("at", filepath.ToSlash(abs)))
		if ok {
			words[module+rel] = strings.Join(strings.Fields(text), " ")
		}
	}
	r.CommentMap = words
	return nil
}

// finish says what reflection alone does not: pointers of results may be null, and what is
// only ever decoded by the library takes no unknown keys.
func (r *reflector) finish(strict []string) jsonschema.Definitions {
	requests := r.closure(strict)
	for name, t := range r.names {
		if def := r.defs[name]; def != nil && def.Properties != nil && !requests[name] {
			nullable(def, t)
		}
	}
	var others []string
	for name := range r.defs {
		if !requests[name] {
			others = append(others, "#/$defs/"+name)
		}
	}
	shared := r.closure(others)
	for name := range requests {
		if def := r.defs[name]; !shared[name] && def.Type == "object" && def.Properties != nil {
			def.AdditionalProperties = jsonschema.FalseSchema
		}
	}
	return r.defs
}

func nullable(def *jsonschema.Schema, t reflect.Type) {
	for f := range fields(t) {
		tag, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Type.Kind() != reflect.Pointer || strings.Contains(opts, "omitempty") || strings.Contains(opts, "omitzero") {
			continue
		}
		if p, ok := def.Properties.Get(tag); ok {
			def.Properties.Set(tag, &jsonschema.Schema{AnyOf: []*jsonschema.Schema{p, {Type: "null"}}})
		}
	}
}

func fields(t reflect.Type) func(func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for _, f := range reflect.VisibleFields(t) {
			if !f.Anonymous && f.IsExported() && !yield(f) {
				return
			}
		}
	}
}

// closure gives the names of all definitions reachable from refs.
func (r *reflector) closure(refs []string) map[string]bool {
	seen := map[string]bool{}
	for len(refs) > 0 {
		name := strings.TrimPrefix(refs[0], "#/$defs/")
		refs = refs[1:]
		if def := r.defs[name]; def != nil && !seen[name] {
			seen[name] = true
			refs = append(refs, references(def)...)
		}
	}
	return seen
}

func references(s *jsonschema.Schema) []string {
	if s == nil {
		return nil
	}
	var out []string
	if s.Ref != "" {
		out = append(out, s.Ref)
	}
	parts := slices.Concat(s.AnyOf, s.AllOf, s.OneOf, []*jsonschema.Schema{s.Items, s.AdditionalProperties})
	if s.Properties != nil {
		for p := s.Properties.Oldest(); p != nil; p = p.Next() {
			parts = append(parts, p.Value)
		}
	}
	for _, p := range parts {
		out = append(out, references(p)...)
	}
	return out
}
