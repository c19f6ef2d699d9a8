package emit

import (
	"maps"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/a3s-lab/liba3s/runtime/op"
)

// nodeHosts are the types in which JavaScript speaks with what it supplies: a definition
// of the wire and its name there. Those with bytes are written by hand.
var nodeHosts = map[string]string{
	"ChatEffects":            "Effects",
	"ChatMessage":            "Message", // written by hand
	"ChatToolSpec":           "ToolDefinition",
	"ChatUsage":              "TokenUsage",
	"EventLogLine":           "LogLine",
	"HostContextItem":        "ContextItem",
	"HostContextQuery":       "ContextQuery",
	"HostModelChunk":         "ModelChunk",
	"HostModelRequest":       "ModelRequest",
	"HostModelResult":        "ModelResult",
	"HostModelToolCall":      "ModelToolCall",
	"HostPermissionCheck":    "PermissionCheck",
	"HostPermissionDecision": "PermissionDecision",
	"HostPermissionExpose":   "PermissionExpose",
	"HostWorkspaceEntry":     "WorkspaceEntry",
	"HostWorkspaceFound":     "WorkspaceFound",
	"HostWorkspaceGlob":      "WorkspaceGlob",
	"HostWorkspaceGrep":      "WorkspaceGrep",
	"HostWorkspaceLine":      "WorkspaceLine",
	"HostWorkspaceMatch":     "WorkspaceMatch",
	"HostWorkspaceSearch":    "WorkspaceSearch",
	"HostWorkspaceStats":     "WorkspaceStats",
}

// nodeHostTypes makes lib/types/hosts.d.ts.
func nodeHostTypes(defs jsonschema.Definitions) []byte {
	w := &writer{}
	w.f("// %s\n\n", Mark)
	w.f("// What the library asks of the parts that a program supplies, and what they answer, in\n// JavaScript's spelling.\n\nimport type { Message } from './results.js';\n\n")
	sp := spelling{func(n string) string { return nodeHosts[n] }, camel, false}
	for _, name := range slices.Sorted(maps.Keys(nodeHosts)) {
		if called := nodeHosts[name]; called != "Message" {
			nodeType(w, defs[name], called, sp)
		}
	}
	return []byte(strings.TrimRight(w.String(), "\n") + "\n")
}

// nodeOpaque gives the keys below which an object is somebody's own: its keys are not
// the library's to spell.
func nodeOpaque(defs jsonschema.Definitions) []string {
	opaque, seen := map[string]bool{}, map[string]bool{}
	var look func(s *jsonschema.Schema)
	look = func(s *jsonschema.Schema) {
		if s == nil {
			return
		}
		if s.Ref != "" {
			if name := strings.TrimPrefix(s.Ref, "#/$defs/"); !seen[name] {
				seen[name] = true
				look(defs[name])
			}
			return
		}
		for _, part := range append(s.AnyOf, s.Items) {
			look(part)
		}
		for p := s.Properties.Oldest(); p != nil; p = p.Next() {
			if typ := nodeName(p.Value, same); typ == "unknown" || strings.HasPrefix(typ, "Record<") {
				opaque[p.Key] = true
			}
			look(p.Value)
		}
	}
	for _, k := range op.HostKinds() {
		for _, o := range k.Ops {
			for _, v := range []any{o.Params, o.Result, o.Chunk} {
				if v != nil {
					look(newReflector().add(v))
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(opaque))
}
