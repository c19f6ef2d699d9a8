package artifact

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"unicode/utf8"

	"github.com/a3s-lab/liba3s/internal/diff"
	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/record"
)

// What a transcript holds of one result, in bytes.
const (
	MaxOutput  = 102_400
	shellHead  = 65_536 // of MaxOutput, when the end matters as much as the start
	maxChange  = 65_536 // before and after together
	maxSide    = 8_192  // of either, when they are larger
	maxUnified = 32_768
)

// Bound makes a tool's result fit a transcript. Output over MaxOutput is kept as an
// artifact and becomes a preview that ends with its URI; the full before and after of
// a changed file become artifacts with previews and a diff. It returns the records of
// what was kept, without contents, for the journal, in the order they were kept.
//
// On an error something could not be kept: the result is bounded all the same, says
// so, and can be used; the error is for the log. Output and the two texts are redacted,
// other metadata is not. The metadata given is not changed.
func (s *Store) Bound(ctx context.Context, tool string, r chat.Result) (chat.Result, []record.Artifact, error) {
	r.Metadata = maps.Clone(r.Metadata)
	b := bounding{s: s, ctx: ctx, tool: tool}
	b.change(&r)
	b.output(&r)
	return r, b.kept, b.err
}

// bounding is one call of Bound.
type bounding struct {
	s    *Store
	ctx  context.Context
	tool string
	kept []record.Artifact
	err  error // the first
}

// keep gives the reference for metadata, nil if the text could not be kept.
func (b *bounding) keep(tool, content string, shown int) map[string]any {
	rec, err := b.s.put(b.ctx, tool, content, shown)
	if err != nil {
		if b.err == nil {
			b.err = err
		}
		return nil
	}
	b.kept = append(b.kept, rec)
	return map[string]any{
		"artifact_id": rec.ArtifactID, "artifact_uri": rec.ArtifactURI,
		"original_bytes": rec.OriginalBytes, "shown_bytes": rec.ShownBytes,
	}
}

func (b *bounding) output(r *chat.Result) {
	full := b.s.conf.Redact(text(r.Output)) // before the cut: half a secret is not recognised any more
	if len(full) <= MaxOutput {
		r.Output = full
		return
	}
	preview, shown := cut(b.tool, full)
	ref := b.keep(b.tool, full, shown)
	if ref == nil {
		r.Output = preview + "\n[The full output could not be kept]"
		return
	}
	if r.Metadata == nil {
		r.Metadata = map[string]any{}
	}
	r.Metadata["artifact"] = ref
	r.Output = fmt.Sprintf("%s\n[Full output artifact: %s]", preview, ref["artifact_uri"])
}

// cut gives what is shown of a long output, with a marker, and how many of its bytes
// that is. Of a shell's output the end is shown too: that is where it failed.
func cut(tool, full string) (string, int) {
	if !strings.EqualFold(tool, "bash") {
		head := prefix(full, MaxOutput)
		return fmt.Sprintf("%s\n[Output cut: the first %d of %d bytes are shown]", head, len(head), len(full)), len(head)
	}
	head, tail := prefix(full, shellHead), suffix(full, MaxOutput-shellHead)
	shown := len(head) + len(tail)
	return fmt.Sprintf("%s\n[Output cut: %d of %d bytes are shown, the rest was here]\n%s", head, shown, len(full), tail), shown
}

// change looks after the texts of a file before and after a tool changed it.
func (b *bounding) change(r *chat.Result) {
	after, ok := r.Metadata["after"].(string)
	path, named := r.Metadata["file_path"].(string)
	if !ok || !named {
		return
	}
	before, existed := r.Metadata["before"].(string)
	before, after = b.s.conf.Redact(text(before)), b.s.conf.Redact(text(after))
	unified, omitted := diff.Unified(path, before, after, maxUnified)
	change := map[string]any{"compacted": false, "unified_diff": unified, "diff_omitted": omitted, "before": nil, "after": side(after)}
	if existed {
		change["before"] = side(before)
	}
	if len(before)+len(after) > maxChange {
		change["compacted"] = true
		if existed {
			before = b.compact("before", before, change["before"].(map[string]any))
		}
		after = b.compact("after", after, change["after"].(map[string]any))
	}
	if existed {
		r.Metadata["before"] = before
	}
	r.Metadata["after"], r.Metadata["change"] = after, change
}

func side(content string) map[string]any {
	return map[string]any{"bytes": int64(len(content)), "sha256": digest(content), "artifact": nil}
}

// compact keeps one side and gives its preview.
func (b *bounding) compact(name, content string, side map[string]any) string {
	preview, shown := content, len(content)
	if len(content) > maxSide {
		head, tail := prefix(content, maxSide/2), suffix(content, maxSide/2)
		shown = len(head) + len(tail)
		preview = fmt.Sprintf("%s\n[%d bytes left out]\n%s", head, len(content)-shown, tail)
	}
	if ref := b.keep(b.tool+"-"+name, content, shown); ref != nil {
		side["artifact"] = ref
	}
	return preview
}

// prefix and suffix give at most n bytes of s, cut at the edge of a character.
func prefix(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

func suffix(s string, n int) string {
	if len(s) <= n {
		return s
	}
	at := len(s) - n
	for at < len(s) && !utf8.RuneStart(s[at]) {
		at++
	}
	return s[at:]
}
