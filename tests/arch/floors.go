// Package arch holds the floors of the source tree: which package may import which,
// and which calls are made in one place only. The table is the law; the test of this
// package reads the tree with go/parser and says what breaks it and how to cure it.
// It belongs to no floor and nothing imports it.
package arch

// floor is one row of the table. Names are relative to the module; * stands for one
// name, ** for any number of them.
type floor struct {
	number  int
	pkg     string
	imports []string // of this project
	foreign bool     // may import third parties
}

const (
	acl, agent, artifact, chat   = "runtime/acl", "runtime/agent", "runtime/artifact", "runtime/chat"
	event, faults, host, memory  = "runtime/event", "runtime/fault", "runtime/host", "runtime/memory"
	model, op, policy, prompt    = "runtime/model", "runtime/op", "runtime/policy", "runtime/prompt"
	record, run, session, skill  = "runtime/record", "runtime/run", "runtime/session", "runtime/skill"
	store, tool, workspace       = "runtime/store", "runtime/tool", "runtime/workspace"
	id, safego, schemas, tape    = "internal/id", "internal/safego", "internal/schema", "internal/tape"
	shell, anyInternal, anything = "internal/shell", "internal/**", "**"
)

// floors is read from the top; the first row that fits a package counts.
var floors = []floor{
	{number: 0, pkg: faults},
	{number: 1, pkg: anyInternal, imports: []string{faults}, foreign: true},
	{number: 1, pkg: chat, imports: []string{faults}},
	{number: 1, pkg: acl, imports: []string{faults}},
	{number: 2, pkg: host, imports: []string{faults, safego}},
	{number: 2, pkg: event, imports: []string{faults, chat}},
	{number: 2, pkg: model, imports: []string{faults, chat}},
	{number: 2, pkg: workspace, imports: []string{faults, chat}},
	{number: 3, pkg: host + "/*", imports: []string{faults, safego, host}},
	{number: 3, pkg: record, imports: []string{faults, chat, event}},
	{number: 3, pkg: memory, imports: []string{faults, chat}},
	{number: 3, pkg: skill, imports: []string{faults, chat, workspace}},
	{number: 3, pkg: policy, imports: []string{faults, chat, workspace, shell}},
	{number: 3, pkg: tool, imports: []string{faults, chat, workspace, schemas}},
	{number: 4, pkg: store, imports: []string{faults, record}},
	{number: 4, pkg: prompt, imports: []string{faults, chat, model, workspace, skill, memory}},
	{number: 5, pkg: artifact, imports: []string{faults, record, store}},
	{number: 6, pkg: run, imports: []string{faults, chat, event, record, model, policy, tool, prompt, artifact}},
	{number: 7, pkg: session, imports: []string{faults, chat, event, record, store, policy, tool, artifact, run, id, safego, tape}},

	// Back-ends: their port, what the port may import, internal/* and third parties;
	// never a sibling. Those called host reach the desk too. Suites of a port sit here
	// as well.
	{number: 8, pkg: model + "/host", imports: []string{model, faults, chat, anyInternal, host}, foreign: true},
	{number: 8, pkg: model + "/*", imports: []string{model, faults, chat, anyInternal}, foreign: true},
	{number: 8, pkg: workspace + "/host", imports: []string{workspace, faults, chat, anyInternal, host}, foreign: true},
	{number: 8, pkg: workspace + "/*", imports: []string{workspace, faults, chat, anyInternal}, foreign: true},
	{number: 8, pkg: store + "/host", imports: []string{store, faults, record, anyInternal, host}, foreign: true},
	{number: 8, pkg: store + "/*", imports: []string{store, faults, record, anyInternal}, foreign: true},
	{number: 8, pkg: tool + "/host", imports: []string{tool, faults, chat, workspace, anyInternal, host}, foreign: true},
	{number: 8, pkg: tool + "/*", imports: []string{tool, faults, chat, workspace, anyInternal}, foreign: true},
	{number: 8, pkg: memory + "/host", imports: []string{memory, faults, chat, anyInternal, host}, foreign: true},
	{number: 8, pkg: memory + "/*", imports: []string{memory, faults, chat, anyInternal}, foreign: true},
	{number: 8, pkg: policy + "/host", imports: []string{policy, faults, chat, workspace, anyInternal, host}, foreign: true},
	{number: 8, pkg: prompt + "/host", imports: []string{prompt, faults, chat, model, workspace, skill, memory, anyInternal, host}, foreign: true},

	// agent is the only importer of back-ends; op and what lies above are not below it.
	{number: 9, pkg: agent, imports: []string{"runtime/**", anyInternal}},
	{number: 10, pkg: op, imports: []string{faults, chat, event, record, host, agent, session, tape}},
	{number: 11, pkg: ".", imports: []string{op, agent, session, event, record, chat, faults, host, model, workspace, memory, policy, tool, store}},
	{number: 12, pkg: "capi", imports: []string{op, event, host, faults, safego, tape}},
	{number: 12, pkg: "capi/gen/**", imports: []string{"capi/gen/**", op, event, record, faults}, foreign: true},
	{number: 12, pkg: "capi/gen", imports: []string{"capi/gen/**", op, event, record, faults}, foreign: true},
	{number: 12, pkg: "cmd/a3s/**", imports: []string{"cmd/a3s/**", ".", op, event, faults}, foreign: true},
	{number: 12, pkg: "cmd/a3s", imports: []string{"cmd/a3s/**", ".", op, event, faults}, foreign: true},

	// Outside the building: they may look anywhere.
	{number: 13, pkg: "tests/**", imports: []string{anything}, foreign: true},
	{number: 13, pkg: "examples/**", imports: []string{".", event}},
}

// forbidden are imports that a wide row would let through.
var forbidden = []exception{
	{agent, op, "op lies above agent"},
}

// exception is an import outside the table, with the reason why it stays.
type exception struct{ pkg, imports, why string }

var exceptions = []exception{
	{"runtime/model/zhipu", "runtime/model/openai", "the wire of Zhipu is that of OpenAI with other quirks"},

	// Every goroutine starts through safego, so whoever needs one needs it.
	{"runtime/run", safego, "read-only calls of a turn run in parallel"},
	{"internal/proc", safego, "pipes of a child process are drained while it runs"},
	{"internal/search", safego, "files are searched in parallel"},
	{tape, safego, "what is no longer in memory is read beside its reader"},

	{"internal/search", "internal/ignore", "a walk leaves out what .gitignore names"},
	{"runtime/artifact", chat, "what it bounds is the result of a call"},
	{"runtime/artifact", "internal/diff", "the preview of a changed file is a diff"},
	{"runtime/store/storetest", chat, "snapshots of the suite hold messages"},
	{op, schemas, "requests are held to the bounds of JSON that tool arguments are held to"},
	{".", tape, "a stream of the Go package reads a cursor of the tape"},
	{".", "internal/safego", "a tool that is a Go function runs on a goroutine of its own"},
	{".", "internal/schema", "the parameters of such a tool are a Go struct"},
	{"capi", "golang.org/x/sys/unix", "the descriptors it hands to event loops are written with bare system calls"},
	{"capi/gen/emit", agent, "the types of options are read by reflection"},
	{"capi/gen/emit", session, "the types of results are read by reflection"},
}
