package emit

import (
	"reflect"

	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/record"
)

// types is everything that has a JSON form.
type types struct {
	ops      []operation
	requests []named
	results  []named
	options  []option
}

// operation is one row of the operation table.
type operation struct {
	Name     string
	On       string // "agent", "session" or "run"
	Doc      string
	Blocking bool
	Params   any // zero value, nil for none
	Result   any // zero value, nil for none
}

// named is a type under the name that the header's words use.
type named struct {
	Name  string
	Value any
}

// option is one row of the option table.
type option struct {
	Name    string `json:"name"`
	Type    string `json:"type"`
	Default string `json:"default"`
	State   string `json:"state"`
	Doc     string `json:"doc"`
}

// records are the stored shapes that results are made of.
var records = []named{
	{"RecordSnapshot", record.Snapshot{}},
	{"RecordRunSnapshot", record.RunSnapshot{}},
	{"RecordRunRecord", record.RunRecord{}},
	{"RecordStoredEvent", record.StoredEvent{}},
	{"RecordArtifact", record.Artifact{}},
	{"RecordTraceEvent", record.TraceEvent{}},
	{"EventEnvelope", event.Envelope{}},
	{"FaultError", faultError{}},
}

// faultError is the JSON form of fault.Error, which encodes itself.
type faultError struct {
	Code      fault.Code     `json:"code"`
	Status    fault.Status   `json:"status"`
	Kind      fault.Kind     `json:"kind"`
	Op        string         `json:"op,omitempty"`
	Message   string         `json:"message"`
	Retryable bool           `json:"retryable"`
	Details   map[string]any `json:"details,omitempty"`
}

var faultErrorType = reflect.TypeFor[fault.Error]()
