package schema

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/invopop/jsonschema"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

// maxTypes bounds the types met in one struct: one that contains itself has no end, and a
// stack that has overflowed cannot be recovered.
const maxTypes = 4096

// Of gives the JSON schema of a Go struct, for tools written in Go: json tags name the
// properties, jsonschema tags describe them, fields without omitempty are required and
// unknown properties are refused.
func Of(v any) (json.RawMessage, error) {
	if v == nil {
		return nil, fault.New(fault.Invalid, "schema.of", "an interface is no struct: the parameters of a tool are an object")
	}
	met := 0
	r := jsonschema.Reflector{DoNotReference: true, Anonymous: true, Mapper: func(reflect.Type) *jsonschema.Schema {
		if met++; met > maxTypes {
			panic("it contains itself, or has too many fields")
		}
		return nil
	}}
	s, err := reflected(&r, v)
	if err != nil {
		return nil, fault.New(fault.Invalid, "schema.of", "%T has no JSON schema: %v", v, err)
	}
	s.Version = "" // providers reject what they do not know
	b, err := json.Marshal(s)
	if err != nil {
		return nil, fault.New(fault.Invalid, "schema.of", "%T has no JSON schema: %v", v, err)
	}
	var head struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(b, &head); err != nil || head.Type != "object" {
		return nil, fault.New(fault.Invalid, "schema.of", "%T is no struct: the parameters of a tool are an object", v)
	}
	return b, nil
}

// reflected keeps the panics of the reflector: it panics at what JSON cannot say.
func reflected(r *jsonschema.Reflector, v any) (s *jsonschema.Schema, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	return r.Reflect(v), nil
}
