package emit

import (
	"strings"
	"testing"
)

// rustByHand names the definitions that are written by hand in Rust, with the properties
// they were written for.
var rustByHand = map[string]string{
	"AgentSessionStore":        "kind dir instance_id name",
	"AgentWorkspaceBackend":    "kind root name",
	"AgentArtifactStoreLimits": "max_artifacts max_bytes",
	"AgentHostEnv":             "sequential_id_prefix fixed_time_ms",
	"Policy":                   "allow deny ask default_decision enabled",
	"PolicyConfirmationPolicy": "enabled default_timeout_ms timeout_action yolo_lanes",
	"SessionRetention":         "unbounded max_runs_retained max_events_per_run max_event_bytes_per_run max_trace_events max_terminal_subagent_tasks",
	"ChatMessage":              "role content reasoning_content partial",
	"ChatBlock":                "type text id name input wire_id tool_use_id content is_error",
	"EventMetadata":            "run_id session_id sequence timestamp_ms",
	"FaultError":               "code status kind op message retryable details",
	"AgentOpen":                "source acl acl_path env cwd log_level limits",
	"ProcessLimits":            "gc_percent memory_bytes threads",
	"SessionOpen":              "workspace resume cwd options",
	"RunStart":                 "prompt history",
	"SessionResult":            "run_id text tool_calls_count prompt_tokens completion_tokens total_tokens verification_status pending_verification_count failed_verification_count verification_report_count verification_summary_text verification_summary",
	"EventHostRequest":         "request kind name op params session_id deadline_ms",
	"EventHostCancel":          "request reason",
	"EventGap":                 "run_id from to",
	"HostPermissionDecision":   "decision reason",
	"HostToolSpec":             "name timeout_ms description parameters read_only",
	"HostToolCallRequest":      "args call_id",
	"HostToolResult":           "output exit_code metadata error_kind",
	"HostToolChunk":            "delta",
	"HostFailure":              "type message kind retryable retry_after_ms details",
}

// A definition that changed must be followed in bindings/rust, then here.
func TestRustByHand(t *testing.T) {
	s, err := read(root)
	if err != nil {
		t.Fatal(err)
	}
	_, defs, err := s.schema(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range rustByHand {
		def := defs[name]
		if def == nil || def.Properties == nil {
			t.Errorf("there is no definition %s any more", name)
			continue
		}
		if got := strings.Join(keys(def), " "); got != want {
			t.Errorf("%s has the properties %q; bindings/rust was written for %q", name, got, want)
		}
	}
	r := &rustTypes{defs: defs}
	r.records()
	r.events()
	r.options(s.types.options)
	r.host()
	if len(r.unnamed) > 0 {
		t.Errorf("give these definitions names in rustNames: %s", strings.Join(r.unnamed, " "))
	}
}

func TestRustWords(t *testing.T) {
	tests := []struct{ text, key, want string }{
		{"Pending is an open question", "Pending", "An open question."},
		{"Usage counts tokens.", "Usage", "Counts tokens."},
		{"SessionID names the child session.", "session_id", "Names the child session."},
		{"Name of the extension.", "name", "Name of the extension."},
		{"", "tool_id", "Id of the tool."},
		{"", "duration_ms", "Duration in milliseconds."},
		{"", "name", "Name."},
		{"0 with a question", "remaining_ms", "0 with a question."},
	}
	for _, tt := range tests {
		if got := rustWords(tt.text, tt.key); got != tt.want {
			t.Errorf("rustWords(%q, %q) = %q, want %q", tt.text, tt.key, got, tt.want)
		}
	}
}

func TestRustVariant(t *testing.T) {
	for name, want := range map[string]string{"agent_start": "Start", "agent_end": "End", "text_delta": "TextDelta", "error": "Error"} {
		if got := rustVariant(name); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
