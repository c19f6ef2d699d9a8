package emit

import (
	"github.com/a3s-lab/liba3s/runtime/agent"
	"github.com/a3s-lab/liba3s/runtime/op"
	"github.com/a3s-lab/liba3s/runtime/session"
)

// collect gathers the types of operations, requests and options.
func collect() types {
	t := types{requests: []named{
		{"AgentOpen", op.AgentOpen{}},
		{"SessionOpen", op.SessionOpen{}},
		{"SessionOptions", agent.Options{}},
		{"RunStart", op.RunStart{}},
		{"RunInput", op.RunInput{}},
		{"StreamOpen", op.StreamOpen{}},
	}, results: []named{
		{"RunResult", session.Result{}},
	}}
	for _, o := range op.Table() {
		t.ops = append(t.ops, operation{o.Name, o.On, o.Doc, o.Blocking, something(o.Params), something(o.Result)})
	}
	for _, o := range agent.OptionTable {
		t.options = append(t.options, option{o.Name, o.Type, o.Default, string(o.State), o.Doc})
	}
	return t
}

// something is v, or nil for the type that says "none".
func something(v any) any {
	if _, none := v.(op.None); none {
		return nil
	}
	return v
}
