package builtin

import (
	"context"
	_ "embed" // artifact_read.md
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/tool"
)

const (
	artifactDefault = 65_536
	artifactMax     = 98_304
)

//go:embed artifact_read.md
var artifactReadDoc string

const artifactReadParameters = `{"type":"object","additionalProperties":false,"required":["uri"],"properties":{
"uri":{"type":"string","minLength":1,"maxLength":1024,"description":"URI of the artifact, a3s://..."},
"offset":{"type":"integer","minimum":0,"description":"Byte to start at; 0 unless given."},
"limit":{"type":"integer","minimum":1,"maximum":98304,"description":"Bytes to show; 65536 unless given."}}}`

type artifactReadTool struct{ base }

var artifactReadBase = describe("artifact_read", artifactReadDoc, artifactReadParameters)

func newArtifactRead() tool.Tool {
	return artifactReadTool{artifactReadBase}
}

type artifactReadArgs struct {
	URI    string `json:"uri"`
	Offset *whole `json:"offset"`
	Limit  *whole `json:"limit"`
}

// Effects: it touches nothing but the session's own records.
func (artifactReadTool) Effects(json.RawMessage) chat.Effects {
	return chat.Effects{Own: true, Idempotent: true}
}

// Run gives a part of the artifact, from and to the edges of characters.
func (artifactReadTool) Run(ctx context.Context, env tool.Env, args json.RawMessage) (chat.Result, error) {
	a, err := decode[artifactReadArgs](args)
	if err != nil {
		return failed("artifact_read", "", err), nil
	}
	content, err := env.Artifact(ctx, a.URI)
	if err != nil {
		return failed("artifact_read", a.URI, err), nil
	}
	from, want := a.Offset.or(0), a.Limit.or(artifactDefault)
	if from < 0 || from > len(content) {
		return failed("artifact_read", a.URI, invalid("offset %d is beyond the end: the artifact has %d bytes", from, len(content))), nil
	}
	for from > 0 && from < len(content) && !utf8.RuneStart(content[from]) {
		from--
	}
	limit := min(max(want, utf8.UTFMax), artifactMax) // at least one character
	part := cutAt(content[from:], limit)
	to := from + len(part)
	var next any
	out := part
	if to < len(content) {
		next = to
		if !strings.HasSuffix(out, "\n") {
			out += "\n"
		}
		out += fmt.Sprintf("\n(bytes %d-%d of %d; continue with offset=%d)\n", from, to, len(content), to)
	} else if part == "" {
		out = fmt.Sprintf("(end of artifact: %d bytes)\n", len(content))
	}
	return chat.Result{Output: out, Metadata: map[string]any{
		"artifact_uri": a.URI,
		"range": map[string]any{
			"offset": from, "requested_limit": want, "applied_limit": limit, "returned_bytes": len(part),
			"next_offset": next, "eof": to == len(content), "total_bytes": len(content), "limit_clamped": limit != want,
		},
	}}, nil
}
