package emit

import "github.com/a3s-lab/liba3s/runtime/op"

// hostKindRow is one kind of host extension in a3s.schema.json.
type hostKindRow struct {
	Kind string `json:"kind"`
	Doc  string `json:"doc"`
	// Agent, Session: what it may be registered with. Early: before a session opens.
	Agent      bool        `json:"agent"`
	Session    bool        `json:"session"`
	Early      bool        `json:"early"`
	DeadlineMS int64       `json:"deadline_ms"`
	NoAnswer   string      `json:"no_answer"`
	Spec       any         `json:"spec"`
	Ops        []hostOpRow `json:"ops"`
}

// hostOpRow is one operation of a kind.
type hostOpRow struct {
	Op     string `json:"op"`
	Doc    string `json:"doc"`
	Params any    `json:"params"`
	Result any    `json:"result"`
	Chunk  any    `json:"chunk,omitempty"`
}

// hostKinds reflects the table of host extensions; strict gets what the library decodes.
func (r *reflector) hostKinds(strict *[]string) []hostKindRow {
	decoded := func(v any) any {
		at := r.add(v)
		*strict = append(*strict, at.Ref)
		return at
	}
	decoded(op.HostAnswer{})
	var rows []hostKindRow
	for _, k := range op.HostKinds() {
		row := hostKindRow{
			Kind: k.Name, Doc: k.Doc, Agent: k.Agent, Session: k.Session, Early: k.Early,
			DeadlineMS: k.Deadline.Milliseconds(), NoAnswer: k.NoAnswer, Spec: decoded(k.Spec),
		}
		for _, o := range k.Ops {
			x := hostOpRow{Op: o.Name, Doc: o.Doc, Params: r.add(o.Params), Result: emptyObject}
			if o.Result != nil {
				x.Result = decoded(o.Result)
			}
			if o.Chunk != nil {
				x.Chunk = decoded(o.Chunk)
			}
			row.Ops = append(row.Ops, x)
		}
		rows = append(rows, row)
	}
	return rows
}
