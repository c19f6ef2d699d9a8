package schema

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

// Limits of a schema and of what is said about arguments that break it.
const (
	MaxSchema   = 256 << 10
	maxProblems = 8
	maxProblem  = 512
	maxMessage  = 4 << 10
	maxKept     = 512 // compiled schemas
)

// Schema is a compiled JSON Schema. It may be used concurrently.
type Schema struct{ compiled *jsonschema.Schema }

// kept holds compiled schemas by the digest of their text. What is in it depends on
// the text alone, so sharing it between agents tells nobody anything.
var kept = struct {
	sync.Mutex
	schemas map[[sha256.Size]byte]*Schema
}{schemas: map[[sha256.Size]byte]*Schema{}}

// Compile gives the compiled form of a schema, from the cache if it was seen before.
// A reference to anything outside the schema is refused, nothing is ever fetched.
func Compile(text json.RawMessage) (*Schema, error) {
	if len(text) > MaxSchema {
		return nil, fault.New(fault.Invalid, "schema.compile", "schema of %d bytes, the limit is %d", len(text), MaxSchema)
	}
	key := sha256.Sum256(text)
	kept.Lock()
	s := kept.schemas[key]
	kept.Unlock()
	if s != nil {
		return s, nil
	}
	s, err := compile(text)
	if err != nil {
		return nil, err
	}
	kept.Lock()
	defer kept.Unlock()
	if len(kept.schemas) >= maxKept {
		clear(kept.schemas)
	}
	kept.schemas[key] = s
	return s, nil
}

const place = "schema:///root"

var english = message.NewPrinter(language.English)

func compile(text []byte) (*Schema, error) {
	if err := (Bounds{Size: MaxSchema, Depth: 128}).Check(text); err != nil {
		return nil, err
	}
	doc, err := decode(text)
	if err != nil {
		return nil, fault.New(fault.Invalid, "schema.compile", "schema is not JSON: %v", err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(nowhere{})
	if err := c.AddResource(place, doc); err != nil {
		return nil, unfit(err)
	}
	compiled, err := c.Compile(place)
	if err != nil {
		return nil, unfit(err)
	}
	return &Schema{compiled}, nil
}

// unfit says why a text is no schema, in the words of its author.
func unfit(err error) error {
	var foreign *fault.Error
	var broken *jsonschema.ValidationError
	what := oneLine(err)
	var meta *jsonschema.SchemaValidationError
	var load *jsonschema.LoadURLError
	switch {
	case errors.As(err, &load) && errors.As(load.Err, &foreign):
		what = foreign.Message
	case errors.As(err, &meta) && errors.As(meta.Err, &broken):
		what = "no schema of draft 2020-12: " + strings.Join(problems(broken, nil), "; ")
	}
	return fault.New(fault.Invalid, "schema.compile", "%s", what)
}

// nowhere refuses to load.
type nowhere struct{}

func (nowhere) Load(url string) (any, error) {
	return nil, fault.New(fault.Invalid, "schema.compile", "reference to %q: schemas are not loaded from elsewhere", url)
}

// Validate checks arguments against the schema text: Compile and Schema.Validate in one.
func Validate(text, args json.RawMessage) error {
	s, err := Compile(text)
	if err != nil {
		return err
	}
	return s.Validate(args)
}

// Validate refuses arguments that break Arguments, are not one JSON object, or do not
// fit the schema. The error is fault.Invalid; its message is at most 8 entries
// "<json pointer or $>: <reason>" joined by "; ". Of repeated keys the last one counts.
func (s *Schema) Validate(args json.RawMessage) error {
	if err := Arguments.Check(args); err != nil {
		return refuse([]string{"$: " + fault.From("", err).Message})
	}
	value, err := decode(args)
	if err != nil {
		return refuse([]string{"$: not JSON: " + oneLine(err)})
	}
	if _, ok := value.(map[string]any); !ok {
		return refuse([]string{"$: the arguments must be a JSON object"})
	}
	err = s.compiled.Validate(value)
	if err == nil {
		return nil
	}
	var broken *jsonschema.ValidationError
	if !errors.As(err, &broken) {
		return refuse([]string{"$: " + oneLine(err)})
	}
	return refuse(problems(broken, nil))
}

func refuse(list []string) error {
	return fault.New(fault.Invalid, "schema.validate", "%s", cut(strings.Join(list, "; "), maxMessage)).With("problems", list)
}

// problems appends the leaves of e, which are the reasons a caller can act on.
func problems(e *jsonschema.ValidationError, list []string) []string {
	if len(list) == maxProblems {
		return list
	}
	if len(e.Causes) == 0 {
		reason := e.ErrorKind.LocalizedString(english)
		return append(list, cut(pointer(e.InstanceLocation)+": "+reason, maxProblem))
	}
	for _, c := range e.Causes {
		list = problems(c, list)
	}
	return list
}

func pointer(tokens []string) string {
	if len(tokens) == 0 {
		return "$"
	}
	var b strings.Builder
	for _, t := range tokens {
		b.WriteByte('/')
		b.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(t))
	}
	return b.String()
}

// decode reads exactly one JSON value, numbers kept as text.
func decode(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, errors.New("empty text")
		}
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("text after the JSON value")
	}
	return v, nil
}

func oneLine(err error) string {
	return cut(strings.Join(strings.Fields(err.Error()), " "), maxProblem)
}

// cut shortens s to at most max bytes at the edge of a character.
func cut(s string, max int) string {
	if len(s) <= max {
		return s
	}
	max -= len("...")
	for max > 0 && !utf8.RuneStart(s[max]) {
		max--
	}
	return s[:max] + "..."
}
