package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/a3s-lab/liba3s/runtime/event"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/host"
	modelhost "github.com/a3s-lab/liba3s/runtime/model/host"
	policyhost "github.com/a3s-lab/liba3s/runtime/policy/host"
	prompthost "github.com/a3s-lab/liba3s/runtime/prompt/host"
	"github.com/a3s-lab/liba3s/runtime/session"
	storehost "github.com/a3s-lab/liba3s/runtime/store/host"
	toolhost "github.com/a3s-lab/liba3s/runtime/tool/host"
	workspacehost "github.com/a3s-lab/liba3s/runtime/workspace/host"
)

// HostKind is one line of the table of what a host can supply. A new kind is its file
// and its line; documentation, schema and the types of the bindings come from here.
type HostKind struct {
	// Name, such as "tool".
	Name string
	// Doc says what it is, in one or two sentences.
	Doc string
	// Agent and Session say what it may be registered with.
	Agent, Session bool
	// Early kinds must be registered before the session that names them opens; the
	// others work in open sessions too.
	Early bool
	// Deadline of one request where neither description nor session says otherwise.
	Deadline time.Duration
	// MaxAnswer bounds one answer in bytes of JSON; a chunk may have as many. 0 is
	// host.DefaultResult.
	MaxAnswer int
	// NoAnswer says what becomes of a request without an answer in time.
	NoAnswer string
	// Spec is the zero value of the description's type.
	Spec any
	// Ops are the operations of its requests.
	Ops []HostOp

	// open makes the one thing that serves all sessions; nil where there is none.
	open func(ctx context.Context, r *registration) (any, error)
	// attach brings it into an open session; nil where it is looked up when it is needed.
	attach func(a *Agent, ctx context.Context, r *registration, s *session.Session) (detach func() error, err error)
	// start begins what runs beside sessions; nil where there is nothing.
	start func(a *Agent, r *registration) (stop func())
}

// HostOp is an operation of a kind.
type HostOp struct {
	Name string
	Doc  string
	// Params, Result and Chunk are zero values of the Go types that the JSON has. A nil
	// Result is an empty one; a nil Chunk says that there are no chunks.
	Params, Result, Chunk any
}

// HostKinds gives the table, in the order of the documentation.
func HostKinds() []HostKind {
	kinds := slices.Clone(hostKinds)
	for i := range kinds {
		kinds[i].MaxAnswer = cmp.Or(kinds[i].MaxAnswer, host.DefaultResult)
	}
	return kinds
}

var hostKinds = []HostKind{
	{
		Name: "tool", Doc: "A tool that the model can call.", Agent: true, Session: true,
		Deadline: toolhost.Deadline, MaxAnswer: toolhost.MaxAnswer, NoAnswer: "a failed result of type timeout", Spec: toolhost.ToolSpec{},
		Ops:    []HostOp{{"call", "Run a call; chunks are output while it runs.", toolhost.ToolCallRequest{}, toolhost.ToolResult{}, toolhost.ToolChunk{}}},
		attach: (*Agent).attachTool,
	},
	{
		Name: "model", Doc: "A model, used under the name host/NAME in option model or default_model. A failure may say that it is retryable, or of kind incomplete if the answer was cut.", Agent: true, Early: true,
		Deadline: modelhost.Deadline, MaxAnswer: modelhost.MaxAnswer, NoAnswer: "LLM_ERROR, retryable", Spec: modelhost.ModelSpec{},
		Ops: []HostOp{
			{"stream", "Answer a conversation in chunks; the result ends the answer.", modelhost.ModelRequest{}, modelhost.ModelResult{}, modelhost.ModelChunk{}},
			{"complete", "Answer a conversation at once; asked of a model with stream = false.", modelhost.ModelRequest{}, modelhost.ModelResult{}, nil},
		},
	},
	{
		Name: "permission", Doc: "A permission checker. With a permission_policy the strictest word of both counts; without one its word takes the place of the default.", Agent: true, Session: true,
		Deadline: policyhost.Deadline, MaxAnswer: policyhost.MaxAnswer, NoAnswer: "check: deny; expose: hidden", Spec: policyhost.PermissionSpec{},
		Ops: []HostOp{
			{"check", "Judge a call before it runs.", policyhost.PermissionCheck{}, policyhost.PermissionDecision{}, nil},
			{"expose", "Say whether the model is told of a tool; asked once a run for each tool.", policyhost.PermissionExpose{}, policyhost.PermissionVisible{}, nil},
		},
	},
	{
		Name: "context", Doc: "A context provider: what it knows of a prompt is quoted in the system prompt as untrusted data.", Agent: true, Session: true,
		Deadline: prompthost.Deadline, MaxAnswer: prompthost.MaxAnswer, NoAnswer: "left out and logged", Spec: prompthost.ContextSpec{},
		Ops: []HostOp{{"query", "Give background to a prompt; asked at the start of a run.", prompthost.ContextQuery{}, prompthost.ContextResult{}, nil}},
	},
	{
		Name: "command", Doc: "A slash command, answered without a model.", Agent: true, Session: true,
		Deadline: commandDeadline, MaxAnswer: maxCommandText, NoAnswer: "an error text as the answer", Spec: CommandSpec{},
		Ops:    []HostOp{{"run", "Answer the command.", CommandRequest{}, CommandResult{}, nil}},
		attach: (*Agent).attachCommand,
	},
	{
		Name: "store", Doc: "A session store, named by option session_store {kind: host, name}. Facts and snapshots are texts that the host hands back as they were; it is asked while a session writes, so its answer must not wait for that session.", Agent: true, Early: true,
		Deadline: storehost.Deadline, MaxAnswer: storehost.MaxAnswer, NoAnswer: "SESSION_ERROR", Spec: storehost.StoreSpec{},
		Ops: []HostOp{
			{"load", "Give the snapshot of a session and the facts that follow it, or a blob.", storehost.StoreLoad{}, storehost.StoreLoaded{}, nil},
			{"append", "Keep more facts of a session, or a blob.", storehost.StoreAppend{}, nil, nil},
			{"save", "Put a snapshot in the place of the former one and of all facts, at once.", storehost.StoreSave{}, nil, nil},
			{"delete", "Remove a session with all that is kept of it, or a blob.", storehost.StoreDelete{}, nil, nil},
			{"list", "Give the ids of the sessions with a snapshot or a fact.", storehost.StoreList{}, storehost.StoreListed{}, nil},
		},
		open: func(ctx context.Context, r *registration) (any, error) {
			return storehost.Open(ctx, storehost.Config{Spec: *r.spec.(*storehost.StoreSpec), Line: r.line})
		},
	},
	{
		Name: "workspace", Doc: "A workspace, named by option workspace_backend {kind: host, name}. Paths are clean and below its root; a failure may name its kind: not_found, conflict, denied, invalid, limit, exists, unsupported or io.", Agent: true, Early: true,
		Deadline: workspacehost.Deadline, MaxAnswer: workspacehost.MaxAnswer, NoAnswer: "a failed result of type timeout", Spec: workspacehost.WorkspaceSpec{},
		Ops: []HostOp{
			{"stat", "Describe what is at a path, or fail with kind not_found.", workspacehost.WorkspacePath{}, workspacehost.WorkspaceEntry{}, nil},
			{"list", "Give the entries of a folder.", workspacehost.WorkspacePath{}, workspacehost.WorkspaceList{}, nil},
			{"read", "Give a whole file with its version.", workspacehost.WorkspaceRead{}, workspacehost.WorkspaceFile{}, nil},
			{"write", "Replace a whole file, on a condition.", workspacehost.WorkspaceWrite{}, workspacehost.WorkspaceWritten{}, nil},
			{"remove", "Remove a file.", workspacehost.WorkspacePath{}, nil, nil},
			{"run", "Run a shell command in the root; asked of a workspace with run = true.", workspacehost.WorkspaceCommand{}, workspacehost.WorkspaceExit{}, workspacehost.WorkspaceOutput{}},
			{"search", "Find files by name or lines by content; asked of a workspace with search = true.", workspacehost.WorkspaceSearch{}, workspacehost.WorkspaceFound{}, nil},
		},
	},
	{
		Name: "log", Doc: "A receiver of log lines, beside the log frames of the control stream. Lines that it does not take in time are dropped.", Agent: true, Session: true,
		Deadline: logDeadline, MaxAnswer: host.DefaultResult, NoAnswer: "dropped", Spec: LogSpec{},
		Ops:  []HostOp{{"write", "Take a line.", event.LogLine{}, nil, nil}},
		open: openLogSink, start: startLogSink,
	},
	{
		Name: "transport", Doc: "The HTTP of a provider, named by its key transport = \"host/NAME\". The requests carry the provider's key in their headers, since the host must send it: treat them as a secret.", Agent: true, Early: true,
		Deadline: modelhost.Deadline, MaxAnswer: modelhost.MaxPiece, NoAnswer: "LLM_ERROR, retryable", Spec: modelhost.TransportSpec{},
		Ops: []HostOp{{"round_trip", "Send a request and give its response, in chunks or at once.", modelhost.TransportRequest{}, modelhost.TransportResponse{}, modelhost.TransportChunk{}}},
	},
}

// unbuiltKinds are kinds of the contract that this version does not have.
var unbuiltKinds = []string{"hook", "budget", "memory", "security"}

// kindNamed finds a line of the table.
func kindNamed(name string) (*HostKind, error) {
	for i := range hostKinds {
		if hostKinds[i].Name == name {
			return &hostKinds[i], nil
		}
	}
	var names []string
	for _, k := range hostKinds {
		names = append(names, k.Name)
	}
	what := "there is no host extension of kind %q; use one of %s"
	if slices.Contains(unbuiltKinds, name) {
		what = "host extensions of kind %q are not built in this version; use one of %s"
	}
	return nil, fault.New(fault.Unsupported, "host.register", what, name, strings.Join(names, ", ")).With("kind", name)
}

// extension is what every description can do: the common part, and the check of its own.
type extension interface {
	Extends() host.Extension
	Check() error
}

// decode reads a description; unknown names are refused. What it gives is a pointer to
// the kind's type.
func (k *HostKind) decode(spec json.RawMessage) (extension, error) {
	v := reflect.New(reflect.TypeOf(k.Spec)).Interface()
	err := strictly(spec, v)
	if err == nil && !json.Valid(spec) { // a decoder stops at the end of the first value
		err = errors.New("something follows the object")
	}
	if err != nil {
		reason, what := fault.BadValue, err.Error()
		var t *json.UnmarshalTypeError
		if errors.As(err, &t) {
			reason, what = fault.BadType, fault.Misfit(cmp.Or(t.Field, "it"), t)
		}
		return nil, fault.New(fault.Invalid, "host.register", "the description of a %s: %s", k.Name, strings.TrimPrefix(what, "json: ")).With("field", "spec").With("reason", reason)
	}
	e, ok := v.(extension)
	if !ok {
		return nil, fault.New(fault.Internal, "host.register", "%T describes no extension", v)
	}
	return e, e.Check()
}

// place refuses a kind where it makes no sense; sid is empty for an agent.
func (k *HostKind) place(sid string) error {
	switch {
	case sid == "" && k.Agent, sid != "" && k.Session:
		return nil
	case k.Early:
		return fault.New(fault.Invalid, "host.register", "a %s is registered with the agent, before the session that names it opens", k.Name).With("kind", k.Name)
	case sid == "":
		return fault.New(fault.Invalid, "host.register", "a %s is registered with a session, not with an agent", k.Name).With("kind", k.Name)
	}
	return fault.New(fault.Invalid, "host.register", "a %s is registered with an agent, not with a session", k.Name).With("kind", k.Name)
}
