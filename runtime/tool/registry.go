package tool

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/a3s-lab/liba3s/internal/schema"
	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/fault"
)

// maxDescription bounds what a tool says of itself, in bytes.
const maxDescription = 64 << 10

// isName says that every model service accepts a name; services with a shorter limit are
// their adapter's business.
func isName(s string) bool {
	odd := func(r rune) bool {
		return r >= utf8.RuneSelf || r != '_' && r != '-' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}
	return len(s) > 0 && len(s) <= 128 && strings.IndexFunc(s, odd) < 0
}

// Registry holds the tools of one session by name. It may be used concurrently.
type Registry struct {
	mu    sync.RWMutex
	tools map[string]entry // by lower-case name; guarded by mu
}

type entry struct {
	tool    Tool
	spec    chat.ToolSpec
	builtIn bool
}

// NewRegistry returns a registry of the built-in tools given. They can neither be
// removed nor have their names taken. Their specifications are the same in every session,
// so that a test checks them and not every open.
func NewRegistry(tools ...Tool) (*Registry, error) {
	r := &Registry{tools: map[string]entry{}}
	for _, t := range tools {
		if err := r.add(t, true); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Add registers a tool. A name that is taken, also in other case, is fault.Exists: rules
// match names without case, so two such tools could not be told apart. A specification
// that a model service would refuse is fault.Invalid.
func (r *Registry) Add(t Tool) error { return r.add(t, false) }

func (r *Registry) add(t Tool, builtIn bool) error {
	spec := t.Spec()
	if !builtIn {
		if err := checkSpec(spec); err != nil {
			return err
		}
	}
	key := strings.ToLower(spec.Name)
	r.mu.Lock()
	defer r.mu.Unlock()
	if old, ok := r.tools[key]; ok {
		what := "a tool"
		if old.builtIn {
			what = "a built-in tool"
		}
		return fault.New(fault.Exists, "tool.add", "%q is the name of %s; register %q under another name", old.spec.Name, what, spec.Name)
	}
	r.tools[key] = entry{t, spec, builtIn}
	return nil
}

// Remove takes a tool out by its exact name; fault.NotFound if there is none,
// fault.Denied for a built-in one. Calls that run go on.
func (r *Registry) Remove(name string) error {
	key := strings.ToLower(name)
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.tools[key]
	switch {
	case !ok || e.spec.Name != name:
		return fault.New(fault.NotFound, "tool.remove", "no tool %q", name)
	case e.builtIn:
		return fault.New(fault.Denied, "tool.remove", "%q is a built-in tool and stays", name)
	}
	delete(r.tools, key)
	return nil
}

// Get finds a tool by its name, in any case.
func (r *Registry) Get(name string) (Tool, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	e, ok := r.tools[strings.ToLower(name)]
	return e.tool, ok
}

// Specs gives what a model is told of all tools, sorted by name.
func (r *Registry) Specs() []chat.ToolSpec {
	r.mu.RLock()
	specs := make([]chat.ToolSpec, 0, len(r.tools))
	for _, e := range r.tools {
		specs = append(specs, e.spec)
	}
	r.mu.RUnlock()
	slices.SortFunc(specs, func(a, b chat.ToolSpec) int { return strings.Compare(a.Name, b.Name) })
	return specs
}

// Names gives the names of all tools, sorted.
func (r *Registry) Names() []string {
	specs := r.Specs()
	list := make([]string, len(specs))
	for i, s := range specs {
		list[i] = s.Name
	}
	return list
}

// checkSpec refuses what no model service would take.
func checkSpec(s chat.ToolSpec) error {
	if !isName(s.Name) {
		return fault.New(fault.Invalid, "tool.add", "tool name %q: use 1 to 128 of the characters A-Z a-z 0-9 _ -", s.Name)
	}
	if len(s.Description) > maxDescription || !utf8.ValidString(s.Description) {
		return fault.New(fault.Invalid, "tool.add", "description of tool %q: give at most %d bytes of UTF-8", s.Name, maxDescription)
	}
	if _, err := schema.Compile(s.Parameters); err != nil {
		return fault.New(fault.Invalid, "tool.add", "parameters of tool %q: %s", s.Name, fault.From("", err).Message)
	}
	var root map[string]json.RawMessage
	if err := json.Unmarshal(s.Parameters, &root); err != nil || string(root["type"]) != `"object"` {
		return fault.New(fault.Invalid, "tool.add", `parameters of tool %q: the root of the schema must have "type": "object"`, s.Name)
	}
	for _, word := range []string{"oneOf", "anyOf", "allOf", "enum", "const", "not"} {
		if _, ok := root[word]; ok {
			return fault.New(fault.Invalid, "tool.add", "parameters of tool %q: model services refuse %q at the root of the schema; put it below a property", s.Name, word)
		}
	}
	return nil
}
