package schema

import (
	"encoding/json"

	"github.com/invopop/jsonschema"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

// Of gives the JSON schema of a Go struct, for tools written in Go: json tags name the
// properties, jsonschema tags describe them, fields without omitempty are required and
// unknown properties are refused.
func Of(v any) (json.RawMessage, error) {
	r := jsonschema.Reflector{DoNotReference: true, Anonymous: true}
	s := r.Reflect(v)
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
