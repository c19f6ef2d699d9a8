package artifact

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/record"
)

// blobs is a store.Blobs in memory.
type blobs struct {
	mu   sync.Mutex
	data map[string]string
	fail error
}

func newBlobs() *blobs { return &blobs{data: map[string]string{}} }

func (b *blobs) Put(_ context.Context, name string, data []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fail == nil {
		b.data[name] = string(data)
	}
	return b.fail
}

func (b *blobs) Get(_ context.Context, name string) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if d, ok := b.data[name]; ok {
		return []byte(d), nil
	}
	return nil, fault.New(fault.NotFound, "blobs", "no blob %q", name)
}

func (b *blobs) Delete(_ context.Context, name string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fail == nil {
		delete(b.data, name)
	}
	return b.fail
}

func (b *blobs) texts() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Sorted(maps.Values(b.data))
}

func hide(s string) string { return strings.ReplaceAll(s, "s3cret", "[hidden]") }

const abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

func TestPut(t *testing.T) {
	ctx := context.Background()
	for _, name := range []string{"memory", "blobs"} {
		t.Run(name, func(t *testing.T) {
			conf := Config{Redact: hide}
			kept := newBlobs()
			if name == "blobs" {
				conf.Blobs = kept
			}
			s := New(conf)
			got, err := s.Put(ctx, "a.b/c", "abc")
			want := record.Artifact{
				ArtifactID: "tool-output:a_b_c:" + abc, ArtifactURI: "a3s://tool-output/a_b_c/" + abc,
				ToolName: "a_b_c", OriginalBytes: 3,
			}
			if err != nil || got != want {
				t.Fatalf("got %+v, %v\nwant %+v", got, err, want)
			}
			if id, uri := Name("a.b/c", "abc"); id != want.ArtifactID || uri != want.ArtifactURI {
				t.Error(id, uri)
			}
			secret, _ := s.Put(ctx, "x", "key s3cret\xff")
			content, err := s.Get(ctx, secret.ArtifactURI)
			if err != nil || content != "key [hidden]\uFFFD" {
				t.Errorf("got %q, %v", content, err)
			}
			want.Content = "abc"
			secret.Content = content
			all, err := s.All(ctx)
			if err != nil || !reflect.DeepEqual(all, []record.Artifact{want, secret}) {
				t.Errorf("all %+v, %v", all, err)
			}
			if _, err := s.Get(ctx, "a3s://tool-output/x/nope"); fault.KindOf(err) != fault.NotFound {
				t.Error(err)
			}
			if name == "blobs" && !reflect.DeepEqual(kept.texts(), []string{"abc", content}) {
				t.Errorf("blobs %q", kept.texts())
			}
		})
	}
}

func TestEviction(t *testing.T) {
	ctx := context.Background()
	kept := newBlobs()
	s := New(Config{Blobs: kept, MaxCount: 3, MaxBytes: 10})
	check := func(step string, want ...string) {
		t.Helper()
		all, err := s.All(ctx)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, a := range all {
			got = append(got, a.ToolName+":"+a.Content)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", step, got, want)
		}
	}
	put := func(tool, content string) {
		t.Helper()
		if _, err := s.Put(ctx, tool, content); err != nil {
			t.Fatal(err)
		}
	}
	put("a", "1")
	put("b", "1")
	put("c", "2")
	check("full", "a:1", "b:1", "c:2")
	put("a", "1")
	check("again is newest", "b:1", "c:2", "a:1")
	put("d", "3")
	check("count", "c:2", "a:1", "d:3")
	if got := kept.texts(); !slices.Equal(got, []string{"1", "2", "3"}) {
		t.Errorf("a blob that another artifact names must stay: %q", got)
	}
	put("e", "12345678")
	check("bytes", "a:1", "d:3", "e:12345678")
	put("f", "1234567890ab")
	check("larger than the limit", "f:1234567890ab")
	if got := kept.texts(); !slices.Equal(got, []string{"1234567890ab"}) {
		t.Errorf("blobs left behind: %q", got)
	}
	kept.fail = errors.New("disk full")
	if _, err := s.Put(ctx, "g", "x"); err == nil {
		t.Error("a failed write must be told")
	}
	check("nothing lost by a failed write", "f:1234567890ab")
	kept.fail = nil
	kept.data[slices.Collect(maps.Keys(kept.data))[0]] = "other text"
	if _, err := s.All(ctx); fault.KindOf(err) != fault.IO {
		t.Errorf("damaged blob: %v", err)
	}
}

// TestStaleBlobs: a blob that could not be deleted is deleted later, unless it is
// needed again.
func TestStaleBlobs(t *testing.T) {
	ctx := context.Background()
	kept := newBlobs()
	s := New(Config{Blobs: kept, MaxCount: 1})
	refuse := &refusing{blobs: kept}
	s.conf.Blobs = refuse
	for _, c := range []string{"1", "2", "3", "1"} {
		if _, err := s.Put(ctx, "t", c); err != nil {
			t.Fatal(err)
		}
	}
	if got := kept.texts(); !slices.Equal(got, []string{"1", "2", "3"}) {
		t.Fatalf("%q", got)
	}
	refuse.open = true
	if _, err := s.Put(ctx, "t", "1"); err != nil {
		t.Fatal(err)
	}
	if got := kept.texts(); !slices.Equal(got, []string{"1"}) {
		t.Errorf("%q", got)
	}
}

// refusing refuses to delete until it is open.
type refusing struct {
	*blobs
	open bool
}

func (r *refusing) Delete(ctx context.Context, name string) error {
	if !r.open {
		return errors.New("no")
	}
	return r.blobs.Delete(ctx, name)
}

func TestRestore(t *testing.T) {
	ctx := context.Background()
	kept := newBlobs()
	old := New(Config{Blobs: kept})
	a, _ := old.Put(ctx, "read", "kept as a blob")
	task := record.Artifact{ArtifactID: "task-output:1", ArtifactURI: "a3s://tasks/s/runs/1/output", ToolName: "task", Content: "s3cret of a task", OriginalBytes: 16}
	lost := record.Artifact{ArtifactID: "x", ArtifactURI: "a3s://tool-output/x/y", ToolName: "x", OriginalBytes: 5}

	s := New(Config{Blobs: kept, Redact: hide})
	if err := s.Restore(ctx, []record.Artifact{a, task, lost}); err != nil {
		t.Fatal(err)
	}
	all, err := s.All(ctx)
	if err != nil {
		t.Fatal(err)
	}
	a.Content, task.Content = "kept as a blob", "[hidden] of a task"
	if want := []record.Artifact{a, task, lost}; !reflect.DeepEqual(all, want) {
		t.Errorf("got  %+v\nwant %+v", all, want)
	}
	if _, err := s.Get(ctx, lost.ArtifactURI); fault.KindOf(err) != fault.NotFound {
		t.Error(err)
	}
	lost.OriginalBytes = -1
	if err := s.Restore(ctx, []record.Artifact{lost}); fault.From("", err).Code != fault.CodeSerialization {
		t.Error(err)
	}
}

func TestConcurrent(t *testing.T) {
	ctx := context.Background()
	s := New(Config{Blobs: newBlobs(), MaxCount: 4})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 50 {
				rec, err := s.Put(ctx, "t", fmt.Sprint(g, i%7))
				if err != nil {
					t.Error(err)
				}
				if _, err := s.Get(ctx, rec.ArtifactURI); err != nil && fault.KindOf(err) != fault.NotFound {
					t.Error(err)
				}
				if _, err := s.All(ctx); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	all, err := s.All(ctx)
	if err != nil || len(all) != 4 {
		t.Errorf("%d left, %v", len(all), err)
	}
}

func TestBoundOutput(t *testing.T) {
	ctx := context.Background()
	long := strings.Repeat("a", MaxOutput-1) + "é" + strings.Repeat("b", 10)
	for _, c := range []struct {
		name, tool, output string
		preview            string // before the last line; empty if nothing is cut
		full               string
	}{
		{"at the limit", "read", strings.Repeat("a", MaxOutput), "", ""},
		{"UTF8-02", "read", long, long[:MaxOutput-1] + "\n[Output cut: the first 102399 of 102411 bytes are shown]", long},
		{"shell keeps the end", "bash", strings.Repeat("h", shellHead) + "x" + strings.Repeat("t", MaxOutput-shellHead),
			strings.Repeat("h", shellHead) + "\n[Output cut: 102400 of 102401 bytes are shown, the rest was here]\n" + strings.Repeat("t", MaxOutput-shellHead),
			strings.Repeat("h", shellHead) + "x" + strings.Repeat("t", MaxOutput-shellHead)},
		{"secret across the cut", "read", strings.Repeat("a", MaxOutput-3) + "s3cret",
			strings.Repeat("a", MaxOutput-3) + "[hi\n[Output cut: the first 102400 of 102405 bytes are shown]", strings.Repeat("a", MaxOutput-3) + "[hidden]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := New(Config{Redact: hide})
			in := chat.Result{Output: c.output, ExitCode: 1, Metadata: map[string]any{"k": "v"}}
			got, kept, err := s.Bound(ctx, c.tool, in)
			if err != nil {
				t.Fatal(err)
			}
			want, records := in, []record.Artifact(nil)
			if c.preview != "" {
				rec, _ := New(Config{}).Put(ctx, c.tool, c.full)
				rec.ShownBytes = min(MaxOutput, int64(strings.Index(c.preview+"\n[Output", "\n[Output")))
				if c.tool == "bash" {
					rec.ShownBytes = MaxOutput
				}
				records = []record.Artifact{rec}
				want.Output = c.preview + "\n[Full output artifact: " + rec.ArtifactURI + "]"
				want.Metadata = map[string]any{"k": "v", "artifact": map[string]any{
					"artifact_id": rec.ArtifactID, "artifact_uri": rec.ArtifactURI, "original_bytes": rec.OriginalBytes, "shown_bytes": rec.ShownBytes,
				}}
				if full, err := s.Get(ctx, rec.ArtifactURI); err != nil || full != c.full {
					t.Errorf("kept %d bytes, %v", len(full), err)
				}
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got  ...%q %v\nwant ...%q %v", last(got.Output), got.Metadata, last(want.Output), want.Metadata)
			}
			if !reflect.DeepEqual(kept, records) {
				t.Errorf("records %+v, want %+v", kept, records)
			}
			if !utf8.ValidString(got.Output) {
				t.Error("not UTF-8")
			}
			if !reflect.DeepEqual(in.Metadata, map[string]any{"k": "v"}) {
				t.Error("the metadata given was changed")
			}
		})
	}
}

func last(s string) string { return s[max(0, len(s)-200):] }

func TestBoundTellsWhatIsNotKept(t *testing.T) {
	full := newBlobs()
	full.fail = errors.New("disk full")
	got, kept, err := New(Config{Blobs: full}).Bound(context.Background(), "read", chat.Result{Output: strings.Repeat("a", MaxOutput+1)})
	if err == nil || kept != nil || !strings.HasSuffix(got.Output, "\n[The full output could not be kept]") || len(got.Output) > MaxOutput+200 {
		t.Errorf("%v %v %q", err, kept, last(got.Output))
	}
}

func TestBoundChange(t *testing.T) {
	ctx := context.Background()
	s := New(Config{Redact: hide})
	got, kept, err := s.Bound(ctx, "edit", chat.Result{Metadata: map[string]any{"file_path": "f", "before": "one\n", "after": "s3cret\n"}})
	want := map[string]any{"file_path": "f", "before": "one\n", "after": "[hidden]\n", "change": map[string]any{
		"compacted":    false,
		"before":       map[string]any{"bytes": int64(4), "sha256": digest("one\n"), "artifact": nil},
		"after":        map[string]any{"bytes": int64(9), "sha256": digest("[hidden]\n"), "artifact": nil},
		"unified_diff": "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-one\n+[hidden]\n",
		"diff_omitted": false,
	}}
	if err != nil || kept != nil || !reflect.DeepEqual(got.Metadata, want) {
		t.Errorf("got  %v %v %v\nwant %v", got.Metadata, kept, err, want)
	}

	got, _, _ = s.Bound(ctx, "write", chat.Result{Metadata: map[string]any{"file_path": "f", "after": "new\n"}})
	if before, ok := got.Metadata["before"]; ok || got.Metadata["change"].(map[string]any)["before"] != nil {
		t.Errorf("a new file has no before: %v", before)
	}

	big := strings.Repeat("line\n", 20_000)
	got, kept, err = s.Bound(ctx, "edit", chat.Result{Metadata: map[string]any{"file_path": "f", "before": big, "after": "x" + big}})
	if err != nil || len(kept) != 2 || kept[0].ToolName != "edit-before" || kept[1].ToolName != "edit-after" {
		t.Fatalf("%+v %v", kept, err)
	}
	change := got.Metadata["change"].(map[string]any)
	wantChange := map[string]any{
		"compacted":    true,
		"before":       map[string]any{"bytes": int64(len(big)), "sha256": digest(big), "artifact": reference(kept[0])},
		"after":        map[string]any{"bytes": int64(len(big) + 1), "sha256": digest("x" + big), "artifact": reference(kept[1])},
		"unified_diff": "--- a/f\n+++ b/f\n@@ -1,4 +1,4 @@\n-line\n+xline\n line\n line\n line\n",
		"diff_omitted": false,
	}
	if !reflect.DeepEqual(change, wantChange) {
		t.Errorf("got  %v\nwant %v", change, wantChange)
	}
	if b := got.Metadata["before"].(string); b != big[:4096]+"\n[91808 bytes left out]\n"+big[len(big)-4096:] {
		t.Errorf("before: %d bytes", len(b))
	}
	if full, err := s.Get(ctx, kept[1].ArtifactURI); err != nil || full != "x"+big {
		t.Error(err)
	}
}

func reference(r record.Artifact) map[string]any {
	return map[string]any{"artifact_id": r.ArtifactID, "artifact_uri": r.ArtifactURI, "original_bytes": r.OriginalBytes, "shown_bytes": r.ShownBytes}
}
