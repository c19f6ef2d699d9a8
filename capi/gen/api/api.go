// Package api reads capi/api.json, the one source of the C surface: every function
// with its result, parameters and words. It checks the description, and gives the C
// prototypes; writing files is emit's part. Floor 12: it imports nothing of the project.
package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
)

// API is the C surface.
type API struct {
	ABI   Version `json:"abi"`
	Types []Type  `json:"types"`
	Nouns []Noun  `json:"nouns"`
}

// Version of the ABI. A new function raises Minor; nothing ever raises Major.
type Version struct {
	Major int `json:"major"`
	Minor int `json:"minor"`
}

// Number is the version as a3s_abi_version gives it.
func (v Version) Number() int { return v.Major<<16 | v.Minor }

// Type is a name for a number.
type Type struct {
	Name string `json:"name"`
	C    string `json:"c"`
	Doc  string `json:"doc"`
}

// Noun is one section of the header.
type Noun struct {
	Name      string     `json:"name"`
	Doc       string     `json:"doc"`
	Functions []Function `json:"functions"`
}

// Function is one exported function.
type Function struct {
	Name   string  `json:"name"`
	Result string  `json:"result"`
	Params []Param `json:"params"`
	Doc    string  `json:"doc"`
	// Owns, Threads, Fails and Since are the four fixed lines under the prose.
	Owns    string   `json:"owns"`
	Threads string   `json:"threads"`
	Fails   []string `json:"fails"`
	Since   string   `json:"since"`
	// Blocking says that the function may wait: not for an event loop, not under a
	// host's global lock.
	Blocking bool `json:"blocking"`
	// Pure functions are C alone; they work in a forked child.
	Pure bool `json:"pure"`
	// Hand functions are written by hand behind the generated fork guard.
	Hand bool `json:"hand"`
	// Finalizer and FinalizerArg name the parameters of a clean-up function that must
	// be called even if the library cannot be entered.
	Finalizer    string `json:"finalizer"`
	FinalizerArg string `json:"finalizer_arg"`
}

// Param is one parameter.
type Param struct {
	Name string `json:"name"`
	Type string `json:"type"`
	Doc  string `json:"doc"`
	// Out is written by the function; an error leaves it zero.
	Out bool `json:"out"`
	// Optional says that NULL is accepted.
	Optional bool `json:"optional"`
}

// Load reads and checks the description at path.
func Load(path string) (*API, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	a, err := Parse(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return a, nil
}

// Parse decodes and checks a description. Unknown keys are refused.
func Parse(b []byte) (*API, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	var a API
	if err := d.Decode(&a); err != nil {
		return nil, err
	}
	return &a, a.check()
}

// Functions gives all functions in the order of the header.
func (a *API) Functions() []Function {
	var all []Function
	for _, n := range a.Nouns {
		all = append(all, n.Functions...)
	}
	return all
}

// Decl is the declaration without a semicolon, such as "void a3s_buf_free(a3s_buf *buf)".
func (f Function) Decl() string {
	if len(f.Params) == 0 {
		return join(f.Result, f.Name) + "(void)"
	}
	parts := make([]string, len(f.Params))
	for i, p := range f.Params {
		parts[i] = join(p.Type, p.Name)
	}
	return join(f.Result, f.Name) + "(" + strings.Join(parts, ", ") + ")"
}

// Prototype is the declaration without parameter names; the ABI lock keeps it.
func (f Function) Prototype() string {
	types := []string{"void"}
	if len(f.Params) > 0 {
		types = types[:0]
	}
	for _, p := range f.Params {
		types = append(types, p.Type)
	}
	return join(f.Result, f.Name) + "(" + strings.Join(types, ", ") + ")"
}

// join puts a name behind a type; a pointer's star stays with the name.
func join(typ, name string) string {
	if strings.HasSuffix(typ, "*") {
		return typ + name
	}
	return typ + " " + name
}

// Known C types of parameters and results.
var known = map[string]bool{
	"void": true, "int32_t": true, "uint32_t": true, "int64_t": true, "uint64_t": true,
	"size_t": true, "uintptr_t": true, "const char *": true, "char *": true,
	"a3s_handle": true, "a3s_status": true, "a3s_event_fn": true, "a3s_free_fn": true,
	"a3s_buf *": true, "a3s_handle *": true, "uint64_t *": true, "size_t *": true,
}

var (
	functionName = regexp.MustCompile(`^a3s_[a-z]+(_[a-z]+)*$`)
	failName     = regexp.MustCompile(`^E_[A-Z]+$|^and what `)
	sinceForm    = regexp.MustCompile(`^[0-9]+\.[0-9]+$`)
)

func (a *API) check() error {
	seen := map[string]bool{}
	for _, f := range a.Functions() {
		if seen[f.Name] {
			return fmt.Errorf("%s: described twice", f.Name)
		}
		seen[f.Name] = true
		if err := f.check(); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	return nil
}

func (f Function) check() error {
	switch {
	case !functionName.MatchString(f.Name):
		return fmt.Errorf("the name must look like a3s_noun_verb")
	case !known[f.Result]:
		return fmt.Errorf("unknown result type %q", f.Result)
	case f.Doc == "" || f.Owns == "" || f.Threads == "":
		return fmt.Errorf("doc, owns and threads must be given")
	case !sinceForm.MatchString(f.Since):
		return fmt.Errorf("since is %q; write major.minor", f.Since)
	}
	for _, w := range f.Fails {
		if !failName.MatchString(w) {
			return fmt.Errorf("unknown failure %q", w)
		}
	}
	out := false
	for _, p := range f.Params {
		switch {
		case !known[p.Type] || p.Type == "void":
			return fmt.Errorf("parameter %s: unknown type %q", p.Name, p.Type)
		case p.Doc == "":
			return fmt.Errorf("parameter %s: doc is missing", p.Name)
		case out && !p.Out:
			return fmt.Errorf("parameter %s: outputs come last", p.Name)
		}
		out = out || p.Out
	}
	return nil
}
