package agent

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/policy"
	"github.com/a3s-lab/liba3s/runtime/session"
)

// Options are the options of a session. A nil field keeps the default.
type Options struct {
	// Model as "provider/model"; the configuration's default_model otherwise.
	Model *string `json:"model,omitempty"`
	// Temperature of the model, applied only together with Model.
	Temperature *float64 `json:"temperature,omitempty"`
	// ThinkingBudget in tokens, applied only together with Model.
	ThinkingBudget *int `json:"thinking_budget,omitempty"`
	// LLMAPITimeoutMS bounds one model call in milliseconds.
	LLMAPITimeoutMS *int `json:"llm_api_timeout_ms,omitempty"`
	// Role takes the place of the first line of the system prompt.
	Role *string `json:"role,omitempty"`
	// Guidelines are appended to the system prompt.
	Guidelines *string `json:"guidelines,omitempty"`
	// ResponseStyle takes the place of the section on answers.
	ResponseStyle *string `json:"response_style,omitempty"`
	// Extra is appended last.
	Extra *string `json:"extra,omitempty"`
	// PlanningMode is auto, enabled or disabled.
	PlanningMode *string `json:"planning_mode,omitempty"`
	// MaxToolRounds of one run.
	MaxToolRounds *int `json:"max_tool_rounds,omitempty"`
	// MaxParseRetries is how many malformed calls in a row a run survives.
	MaxParseRetries *int `json:"max_parse_retries,omitempty"`
	// ToolTimeoutMS bounds one tool call.
	ToolTimeoutMS *int `json:"tool_timeout_ms,omitempty"`
	// CircuitBreakerThreshold is how often in a row a model call may fail.
	CircuitBreakerThreshold *int `json:"circuit_breaker_threshold,omitempty"`
	// DuplicateToolCallThreshold is how many identical calls in a row are too many.
	DuplicateToolCallThreshold *int `json:"duplicate_tool_call_threshold,omitempty"`
	// MaxExecutionTimeMS bounds a whole run.
	MaxExecutionTimeMS *int `json:"max_execution_time_ms,omitempty"`
	// AutoCompact turns compaction of the transcript on.
	AutoCompact *bool `json:"auto_compact,omitempty"`
	// AutoCompactThreshold is the share of the window that triggers it.
	AutoCompactThreshold *float64 `json:"auto_compact_threshold,omitempty"`
	// MaxContextTokens is the window used for compaction.
	MaxContextTokens *int `json:"max_context_tokens,omitempty"`
	// ArtifactStoreLimits bound the artifacts kept.
	ArtifactStoreLimits *ArtifactStoreLimits `json:"artifact_store_limits,omitempty"`
	// PermissionPolicy decides which calls may run.
	PermissionPolicy *policy.Policy `json:"permission_policy,omitempty"`
	// ConfirmationPolicy says whether and how the host is asked.
	ConfirmationPolicy *policy.ConfirmationPolicy `json:"confirmation_policy,omitempty"`
	// WorkspaceBackend is where the files are; the local folder otherwise.
	WorkspaceBackend *WorkspaceBackend `json:"workspace_backend,omitempty"`
	// SessionStore keeps the session beyond the process.
	SessionStore *SessionStore `json:"session_store,omitempty"`
	// AutoSave saves after every run of the session's own transcript.
	AutoSave *bool `json:"auto_save,omitempty"`
	// Journal false keeps saved snapshots only, as 6.x did.
	Journal *bool `json:"journal,omitempty"`
	// StallTimeoutMS is how long a run without a store waits for a slow reader.
	StallTimeoutMS *int `json:"stall_timeout_ms,omitempty"`
	// SessionID names the session; generated otherwise.
	SessionID *string `json:"session_id,omitempty"`
	// HostEnv fixes ids and clock.
	HostEnv *HostEnv `json:"host_env,omitempty"`
	// TenantID is an opaque label.
	TenantID *string `json:"tenant_id,omitempty"`
	// Principal is an opaque label.
	Principal *string `json:"principal,omitempty"`
	// AgentTemplateID is an opaque label.
	AgentTemplateID *string `json:"agent_template_id,omitempty"`
	// CorrelationID is an opaque label.
	CorrelationID *string `json:"correlation_id,omitempty"`
	// RetentionLimits bound what is kept of runs in memory and snapshot.
	RetentionLimits *session.Retention `json:"retention_limits,omitempty"`
}

// ArtifactStoreLimits bound the artifacts of a session.
type ArtifactStoreLimits struct {
	MaxArtifacts *int   `json:"max_artifacts,omitempty"`
	MaxBytes     *int64 `json:"max_bytes,omitempty"`
}

// WorkspaceBackend names a workspace: kind "local" with a root, or kind "host" with the
// name under which the host registered it; the session's own folder then has no part in it.
type WorkspaceBackend struct {
	Kind string `json:"kind"`
	Root string `json:"root,omitempty"`
	Name string `json:"name,omitempty"`
}

// SessionStore names a store: kind "file" with dir, kind "memory" with instance_id, or
// kind "host" with the name under which the host registered it.
type SessionStore struct {
	Kind       string `json:"kind"`
	Dir        string `json:"dir,omitempty"`
	InstanceID string `json:"instance_id,omitempty"`
	Name       string `json:"name,omitempty"`
}

// HostEnv fixes ids and clock, so that the same script gives the same journal.
type HostEnv struct {
	SequentialIDPrefix *string `json:"sequential_id_prefix,omitempty"`
	FixedTimeMS        *int64  `json:"fixed_time_ms,omitempty"`
}

// State is what this version does with an option.
type State string

// The states.
const (
	Works       State = "works"
	DefaultOnly State = "default only" // its default or "off" is accepted, anything else refused
	Refused     State = "refused"
)

// Option is one line of the option table; the documentation is generated from it.
type Option struct {
	Name    string
	Type    string
	Default string
	State   State
	Doc     string
	accept  []string // the JSON values of a DefaultOnly option
}

// OptionTable holds every option of the contract and ours.
var OptionTable = []Option{
	{"model", "string", "default_model", Works, "model of this session as provider/model; host/NAME is a model that the host registered", nil},
	{"temperature", "number", "the provider's", Works, "sampling temperature; applied only if model is set too", nil},
	{"thinking_budget", "integer", "the configuration's", Works, "tokens for reasoning; applied only if model is set too", nil},
	{"llm_logprobs", "boolean", "false", DefaultOnly, "log probabilities of an OpenAI-compatible model", []string{"false"}},
	{"llm_top_logprobs", "integer", "none", Refused, "number of log probabilities", nil},
	{"llm_api_timeout_ms", "integer", "none", Works, "time limit of one model call in milliseconds", nil},
	{"role", "string", "none", Works, "takes the place of the first line of the system prompt", nil},
	{"guidelines", "string", "none", Works, "appended to the system prompt", nil},
	{"response_style", "string", "none", Works, "takes the place of the section on answers", nil},
	{"extra", "string", "none", Works, "appended last to the system prompt", nil},
	{"planning_mode", "string", "auto", Works, "auto (behaves as disabled) or disabled; enabled is refused", nil},
	{"planning", "boolean", "none", DefaultOnly, "older form of planning_mode", []string{"false"}},
	{"goal_tracking", "boolean", "false", DefaultOnly, "goal extraction and checks", []string{"false"}},
	{"max_tool_rounds", "integer", "50", Works, "tool rounds of one run", nil},
	{"max_parse_retries", "integer", "2", Works, "malformed calls in a row before the run fails", nil},
	{"tool_timeout_ms", "integer", "none", Works, "time limit of one tool call; running out is a failed result", nil},
	{"circuit_breaker_threshold", "integer", "3", Works, "failed attempts in a row of one model call before the run fails", nil},
	{"duplicate_tool_call_threshold", "integer", "3", Works, "identical calls in a row before they are refused", nil},
	{"max_execution_time_ms", "integer", "none", Works, "time limit of a whole run", nil},
	{"continuation_enabled", "boolean", "true", DefaultOnly, "follow-up when the model stops early; behaves as off", []string{"true", "false"}},
	{"max_continuation_turns", "integer", "3", DefaultOnly, "follow-ups of one run", []string{"3", "0"}},
	{"auto_compact", "boolean", "false", Works, "replace older messages by a summary when the window fills", nil},
	{"auto_compact_threshold", "number", "0.8", Works, "share of the window that triggers compaction, above 0 and up to 1", nil},
	{"max_context_tokens", "integer", "the model's, else 200000", Works, "window used for compaction", nil},
	{"artifact_store_limits", "ArtifactStoreLimits", "256 artifacts, 16 MiB", Works, "bounds of the artifacts kept", nil},
	{"permission_policy", "PermissionPolicy", "none", Works, "which calls may run", nil},
	{"confirmation_policy", "ConfirmationPolicy", "disabled", Works, "whether and how the host is asked", nil},
	{"security_provider", "object", "none", Refused, "pattern redaction and taint tracking", nil},
	{"skill_dirs", "list of strings", "[]", DefaultOnly, "folders of skills", []string{"[]"}},
	{"builtin_skills", "boolean", "false", DefaultOnly, "compatibility flag", []string{"false", "true"}},
	{"inline_skills", "list", "[]", DefaultOnly, "skills given as text", []string{"[]"}},
	{"enforce_active_skill_tool_restrictions", "boolean", "false", DefaultOnly, "skills limit tools", []string{"false"}},
	{"agent_dirs", "list of strings", "[]", DefaultOnly, "folders of agents", []string{"[]"}},
	{"worker_agents", "list", "[]", DefaultOnly, "agents given as data", []string{"[]"}},
	{"auto_delegation", "AutoDelegationConfig", "off", DefaultOnly, "delegation by the runtime", []string{`{"enabled":false}`, "false"}},
	{"auto_parallel", "boolean", "true", DefaultOnly, "automatic fan-out; there is nothing to fan out", []string{"true", "false"}},
	{"manual_delegation_enabled", "boolean", "true", DefaultOnly, "task tools; there are none to expose", []string{"true", "false"}},
	{"max_parallel_tasks", "integer", "8", DefaultOnly, "parallel delegated tasks", []string{"8"}},
	{"queue_config", "SessionQueueConfig", "none", Refused, "lane queue", nil},
	{"search_config", "SearchConfig", "none", Refused, "web search", nil},
	{"budget_guard", "object", "none", Refused, "budget checks by the host", nil},
	{"memory_store", "FileMemoryStore", "none", Refused, "long-term memory", nil},
	{"remote_git", "RemoteGitBackendConfig", "none", Refused, "git over HTTP", nil},
	{"trajectory_path", "string", "none", Refused, "JSONL trajectory", nil},
	{"trajectory_mode", "string", "off", DefaultOnly, "JSONL trajectory", []string{`"off"`}},
	{"trajectory_max_text_bytes", "integer", "none", Refused, "JSONL trajectory", nil},
	{"trajectory_include_messages", "boolean", "none", Refused, "JSONL trajectory", nil},
	{"workspace_backend", "LocalWorkspaceBackend or HostWorkspaceBackend", "local", Works, "where the files are: {\"kind\": \"local\", \"root\"}, or {\"kind\": \"host\", \"name\"} for a workspace that the host registered", nil},
	{"session_store", "FileSessionStore, MemorySessionStore or HostSessionStore", "the configuration's sessions_dir, else none", Works, "keeps the session beyond the process: {\"kind\": \"file\", \"dir\"}, {\"kind\": \"memory\", \"instance_id\"}, or {\"kind\": \"host\", \"name\"} for a store that the host registered", nil},
	{"auto_save", "boolean", "false", Works, "save after every run of the session's own transcript", nil},
	{"journal", "boolean", "true", Works, "with a store: keep every fact, so that an unsaved session resumes; false keeps saved snapshots only", nil},
	{"stall_timeout_ms", "integer", "60000", Works, "how long a run without a store waits for a slow reader before events are lost to it", nil},
	{"session_id", "string", "generated", Works, "name of the session, up to 128 bytes", nil},
	{"host_env", "HostEnvConfig", "the system", Works, "fixed ids and clock, for the same journal every time", nil},
	{"tenant_id", "string", "none", Works, "opaque label", nil},
	{"principal", "string", "none", Works, "opaque label", nil},
	{"agent_template_id", "string", "none", Works, "opaque label", nil},
	{"correlation_id", "string", "none", Works, "opaque label", nil},
	{"retention_limits", "RetentionLimits", "64 runs, 2048 events and 8 MiB a run, 8192 traces", Works, "what is kept of runs in memory and snapshot", nil},
}

// DecodeOptions reads the options of a request. Unknown names are refused: a typo must
// not switch governance off.
func DecodeOptions(b json.RawMessage) (*Options, error) {
	o := new(Options)
	if len(b) == 0 || string(b) == "null" {
		return o, nil
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(b, &all); err != nil {
		return nil, fault.Option("options", fault.BadType, "must be an object")
	}
	for _, name := range slices.Sorted(maps.Keys(all)) { // in order, so that the first mistake is always the same
		raw := all[name]
		if string(raw) == "null" {
			continue
		}
		works, err := admit(name, raw)
		if err != nil {
			return nil, err
		}
		if !works {
			continue
		}
		one, err := json.Marshal(map[string]json.RawMessage{name: raw})
		if err != nil {
			return nil, fault.Option(name, fault.BadValue, "%v", err)
		}
		if err := strictly(one, o); err != nil {
			return nil, refuse(name, err)
		}
	}
	return o, o.check()
}

// admit looks an option up in the table.
func admit(name string, raw json.RawMessage) (works bool, err error) {
	i := slices.IndexFunc(OptionTable, func(o Option) bool { return o.Name == name })
	if i < 0 {
		return false, fault.Option(name, fault.BadValue, "there is no such option")
	}
	switch o := OptionTable[i]; o.State {
	case DefaultOnly:
		var c bytes.Buffer
		if err := json.Compact(&c, raw); err != nil {
			return false, fault.Option(name, fault.BadValue, "%v", err)
		}
		if !slices.Contains(o.accept, c.String()) && !off(c.Bytes()) {
			return false, fault.Option(name, fault.BadValue, "only %s is accepted: this part is not built in this version", strings.Join(o.accept, " or "))
		}
		return false, nil
	case Refused:
		return false, fault.Option(name, fault.BadValue, "this part is not built in this version; leave it unset")
	}
	return true, nil
}

// off recognises an object that is switched off, such as AutoDelegationConfig().
func off(raw []byte) bool {
	var o struct {
		Enabled *bool `json:"enabled"`
	}
	return bytes.HasPrefix(raw, []byte("{")) && json.Unmarshal(raw, &o) == nil && o.Enabled != nil && !*o.Enabled
}

// strictly decodes JSON and refuses names that v does not have.
func strictly(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	return d.Decode(v)
}

// refuse explains a value of the wrong type.
func refuse(name string, err error) error {
	var t *json.UnmarshalTypeError
	if errors.As(err, &t) {
		if number, ok := strings.CutPrefix(t.Value, "number "); ok && !strings.ContainsAny(number, ".eE") {
			return fault.Option(name, fault.BadValue, "%s is out of range", number)
		}
		return fault.Option(name, fault.BadType, "%s", fault.Misfit(within(name, t.Field), t))
	}
	return fault.Option(name, fault.BadValue, "%v", err)
}

// within is the place of a field in an option; "it" is the whole.
func within(option, field string) string {
	if field == option {
		return "it"
	}
	return cmp.Or(strings.TrimPrefix(field, option+"."), "it")
}

// check holds the bounds of single options.
func (o *Options) check() error {
	positive := map[string]*int{
		"llm_api_timeout_ms": o.LLMAPITimeoutMS, "max_tool_rounds": o.MaxToolRounds, "tool_timeout_ms": o.ToolTimeoutMS,
		"max_execution_time_ms": o.MaxExecutionTimeMS, "max_context_tokens": o.MaxContextTokens, "stall_timeout_ms": o.StallTimeoutMS,
		"circuit_breaker_threshold": o.CircuitBreakerThreshold, "duplicate_tool_call_threshold": o.DuplicateToolCallThreshold,
	}
	for _, name := range slices.Sorted(maps.Keys(positive)) {
		if v := positive[name]; v != nil && *v <= 0 {
			return fault.Option(name, fault.BadValue, "must be above 0, got %d", *v)
		}
	}
	switch {
	case o.MaxParseRetries != nil && *o.MaxParseRetries < 0:
		return fault.Option("max_parse_retries", fault.BadValue, "must not be negative, got %d", *o.MaxParseRetries)
	case o.ThinkingBudget != nil && *o.ThinkingBudget < 0:
		return fault.Option("thinking_budget", fault.BadValue, "must not be negative, got %d", *o.ThinkingBudget)
	case o.Temperature != nil && (math.IsNaN(*o.Temperature) || *o.Temperature < 0 || *o.Temperature > 2):
		return fault.Option("temperature", fault.BadValue, "must be from 0 to 2, got %v", *o.Temperature)
	case o.AutoCompactThreshold != nil && (*o.AutoCompactThreshold <= 0 || *o.AutoCompactThreshold > 1):
		return fault.Option("auto_compact_threshold", fault.BadValue, "must be above 0 and at most 1, got %v", *o.AutoCompactThreshold)
	}
	return o.checkParts()
}

func (o *Options) checkParts() error {
	if err := o.checkPlaces(); err != nil {
		return err
	}
	if a := o.ArtifactStoreLimits; a != nil && (a.MaxArtifacts != nil && *a.MaxArtifacts <= 0 || a.MaxBytes != nil && *a.MaxBytes <= 0) {
		return fault.Option("artifact_store_limits", fault.BadValue, "limits must be above 0")
	}
	if r := o.RetentionLimits; r != nil && min(int64(r.MaxRunsRetained), int64(r.MaxEventsPerRun), r.MaxEventBytesPerRun, int64(r.MaxTraceEvents), int64(r.MaxTerminalSubagentTasks)) < 0 {
		return fault.Option("retention_limits", fault.BadValue, "limits must not be negative")
	}
	return o.planning()
}

// checkPlaces holds what workspace and store need.
func (o *Options) checkPlaces() error {
	if w := o.WorkspaceBackend; w != nil {
		switch {
		case w.Kind == "host" && w.Name == "":
			return fault.Option("workspace_backend", fault.BadValue, "kind \"host\" needs the name of a registered workspace")
		case w.Kind == "host" && w.Root != "":
			return fault.Option("workspace_backend", fault.BadValue, "kind \"host\" takes no root: it is part of what was registered")
		case w.Kind == "local" && w.Name != "":
			return fault.Option("workspace_backend", fault.BadValue, "kind \"local\" takes no name")
		case w.Kind != "local" && w.Kind != "host":
			return fault.Option("workspace_backend", fault.BadValue, "kind %q is not built in this version; use \"local\" or \"host\"", w.Kind)
		}
	}
	s := o.SessionStore
	if s == nil {
		return nil
	}
	switch {
	case s.Kind == "file" && s.Dir == "":
		return fault.Option("session_store", fault.BadValue, "kind \"file\" needs a dir")
	case s.Kind == "memory" && s.InstanceID == "":
		return fault.Option("session_store", fault.BadValue, "kind \"memory\" needs an instance_id: sessions of the same id share a store")
	case s.Kind == "host" && s.Name == "":
		return fault.Option("session_store", fault.BadValue, "kind \"host\" needs the name of a registered store")
	case s.Kind != "file" && s.Kind != "memory" && s.Kind != "host":
		return fault.Option("session_store", fault.BadValue, "kind %q is not built in this version; use \"file\", \"memory\" or \"host\"", s.Kind)
	}
	return nil
}

// planning accepts the words of the contract and refuses what is not built.
func (o *Options) planning() error {
	if o.PlanningMode == nil {
		return nil
	}
	switch word := strings.ToLower(strings.TrimSpace(*o.PlanningMode)); word {
	case "auto":
	case "disabled", "disable", "off", "false":
	case "enabled", "enable", "on", "force", "forced", "true":
		return fault.Option("planning_mode", fault.BadValue, "Invalid planning_mode %q: planning is not built in this version; use \"auto\" or \"disabled\"", *o.PlanningMode)
	default:
		return fault.Option("planning_mode", fault.BadValue, "Invalid planning_mode %q: use \"auto\", \"enabled\" or \"disabled\"", *o.PlanningMode)
	}
	return nil
}

// or gives the value behind p, or d.
func or[T any](p *T, d T) T {
	if p == nil {
		return d
	}
	return *p
}
