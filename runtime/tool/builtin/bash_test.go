package builtin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/workspace"
)

func TestBash(t *testing.T) {
	meta := func(code any, total, captured int, more ...any) map[string]any {
		timedOut := slices.Contains(more, any("timed out"))
		m := map[string]any{"exit_code": code, "sandboxed": false, "output": map[string]any{
			"total_bytes": total, "captured_bytes": captured, "truncated": captured < total, "timed_out": timedOut}}
		if timedOut {
			m["timeout_ms"] = 120000
		}
		return m
	}
	background := meta(0, 3, 3)
	background["background_ended"] = 2
	for _, c := range []struct {
		name   string
		pieces []string
		exit   workspace.Exit
		err    error
		want   chat.Result
		told   []string
	}{
		{"good", []string{"a\n", "b"}, workspace.Exit{}, nil, chat.Result{Output: "a\nb", Metadata: meta(0, 3, 3)}, []string{"a\n", "b"}},
		{"silent", nil, workspace.Exit{}, nil, chat.Result{Metadata: meta(0, 0, 0)}, nil},
		{"fails", []string{"no"}, workspace.Exit{Code: 2}, nil, chat.Result{Output: "no", ExitCode: 1, Metadata: meta(2, 2, 2)}, []string{"no"}},
		{"fails silently", nil, workspace.Exit{Code: 2}, nil, chat.Result{Output: "[Command exited with code 2]", ExitCode: 1, Metadata: meta(2, 0, 0)}, nil},
		{"signal", nil, workspace.Exit{Code: -1}, nil, chat.Result{Output: "[Command ended by a signal]", ExitCode: 1, Metadata: meta(-1, 0, 0)}, nil},
		{"time-out", []string{"so far"}, workspace.Exit{Code: -1, TimedOut: true}, nil, chat.Result{
			Output: "so far\n[Command timed out after 120000ms]", ExitCode: 1, Metadata: meta(-1, 6, 6, "timed out"),
			Error: &chat.ErrorKind{Type: chat.TimedOut, Op: "bash", DurationMS: 120000}}, []string{"so far"}},
		{"cancelled", []string{"x\n"}, workspace.Exit{Code: -1, Cancelled: true}, nil, chat.Result{
			Output: "x\n[Command cancelled]", ExitCode: 1, Metadata: meta(-1, 2, 2), Error: &chat.ErrorKind{Type: chat.WasCancelled, Op: "bash"}}, []string{"x\n"}},
		{"background", []string{"ok\n"}, workspace.Exit{Background: 2}, nil, chat.Result{
			Output: "ok\n[2 background process(es) ended with the command]", Metadata: background}, []string{"ok\n"}},
		{"letters in pieces", []string{"\xc3", "\xa9\xf0\x9f", "\x98", "\x80!"}, workspace.Exit{}, nil, chat.Result{Output: "é😀!", Metadata: meta(0, 7, 7)}, []string{"é", "😀!"}},
		{"not UTF-8", []string{"a\xffb", "\xc3"}, workspace.Exit{}, nil, chat.Result{Output: "a\uFFFDb\uFFFD", Metadata: meta(0, 4, 4)}, []string{"a\uFFFDb", "\uFFFD"}},
		{"cannot run", nil, workspace.Exit{}, fault.New(fault.Unsupported, "x", "no shell here"), chat.Result{
			Output: "no shell here", ExitCode: 1, Metadata: map[string]any{"exit_code": nil, "sandboxed": false},
			Error: &chat.ErrorKind{Type: chat.Unsupported, Message: "no shell here"}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var asked workspace.Command
			e, told := env(running{newFiles(nil), func(_ context.Context, cmd workspace.Command, output func([]byte)) (workspace.Exit, error) {
				asked = cmd
				for _, p := range c.pieces {
					output([]byte(p))
				}
				return c.exit, c.err
			}})
			equal(t, run(t, newBash(), e, `{"command":"make"}`), c.want)
			if !slices.Equal(*told, c.told) {
				t.Errorf("told %q, want %q", *told, c.told)
			}
			if fmt.Sprint(asked) != fmt.Sprint(workspace.Command{Line: "make", Timeout: 2 * time.Minute}) {
				t.Errorf("asked %+v", asked)
			}
		})
	}
}

func TestBashTimeout(t *testing.T) {
	for _, c := range []struct {
		args string
		own  time.Duration
		want time.Duration
	}{
		{`{"command":"x"}`, 0, 2 * time.Minute},
		{`{"command":"x","timeout":5000}`, 0, 5 * time.Second},
		{`{"command":"x","timeout":5000.0}`, time.Second * 2, 2 * time.Second},
		{`{"command":"x","timeout":5000}`, time.Hour, 5 * time.Second},
		{`{"command":"x","timeout":1}`, 0, time.Second},
		{`{"command":"x","timeout":1}`, 300 * time.Millisecond, 300 * time.Millisecond},
		{`{"command":"x","timeout":9000000000000000000}`, 0, 24 * time.Hour},
	} {
		var got time.Duration
		e, _ := env(running{newFiles(nil), func(_ context.Context, cmd workspace.Command, _ func([]byte)) (workspace.Exit, error) {
			got = cmd.Timeout
			return workspace.Exit{}, nil
		}})
		e.Timeout = c.own
		if r := run(t, newBash(), e, c.args); r.ExitCode != 0 || got != c.want {
			t.Errorf("%s with %v: %v, want %v (%s)", c.args, c.own, got, c.want, r.Output)
		}
	}
	e, _ := env(running{newFiles(nil), nil})
	for _, args := range []string{`{"command":""}`, `{"command":" \n"}`, `{"command":"a\u0000b"}`, `{"command":"x","timeout":0}`, `{"command":"x","timeout":1.5}`, `{}`} {
		refused(t, run(t, newBash(), e, args), chat.InvalidArgument, "")
	}
	e, _ = env(newFiles(nil))
	refused(t, run(t, newBash(), e, `{"command":"x"}`), chat.Unsupported, "cannot run")
}

func TestBashCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	e, _ := env(running{newFiles(nil), func(ctx context.Context, _ workspace.Command, output func([]byte)) (workspace.Exit, error) {
		output([]byte("before"))
		cancel()
		return workspace.Exit{}, fault.From("workspace.run", ctx.Err())
	}})
	got, err := newBash().Run(ctx, e, json.RawMessage(`{"command":"x"}`))
	if err != nil || got.Output != "before\n[Command cancelled]" || got.Error.Type != chat.WasCancelled || got.Metadata["exit_code"] != -1 || got.ExitCode != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	ctx, cancel = context.WithDeadline(context.Background(), time.Unix(0, 0))
	defer cancel()
	e, _ = env(running{newFiles(nil), func(ctx context.Context, _ workspace.Command, _ func([]byte)) (workspace.Exit, error) {
		return workspace.Exit{Code: -1, Cancelled: true}, nil
	}})
	got, err = newBash().Run(ctx, e, json.RawMessage(`{"command":"x"}`))
	if err != nil || got.Error.Type != chat.TimedOut {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestBIG01: a command that prints without end costs no more memory than the quota, and
// the first and last of it are kept.
func TestBIG01(t *testing.T) {
	const total = 600 << 20
	piece := bytes.Repeat([]byte("0123456789abcde\n"), 4<<10)
	told, tells, widest := 0, 0, 0
	var during runtime.MemStats
	ws := running{newFiles(nil), func(_ context.Context, _ workspace.Command, output func([]byte)) (workspace.Exit, error) {
		output([]byte("first\n"))
		for n := 0; n < total; n += len(piece) {
			output(piece)
		}
		runtime.GC()
		runtime.ReadMemStats(&during)
		output([]byte("last\n"))
		return workspace.Exit{}, nil
	}}
	e, _ := env(ws)
	e.Emit = func(s string) {
		told += len(s)
		tells++
		widest = max(widest, len(s))
		if !utf8.ValidString(s) {
			t.Error("a piece is not UTF-8")
		}
	}
	var before runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	got := run(t, newBash(), e, `{"command":"yes"}`)
	if grown := int64(during.HeapAlloc) - int64(before.HeapAlloc); grown > 24<<20 {
		t.Errorf("%d MiB on the heap", grown>>20)
	}
	if widest > pieceMax || told > tellMax+2*pieceMax {
		t.Errorf("told %d bytes in %d pieces of up to %d", told, tells, widest)
	}
	if len(got.Output) > captureHead+captureTail+100 || !strings.HasPrefix(got.Output, "first\n") || !strings.HasSuffix(got.Output, "abcde\nlast\n") {
		t.Errorf("%d bytes kept", len(got.Output))
	}
	want := fmt.Sprintf("\n[%d bytes of output left out]\n", total+11-captureHead-captureTail)
	if got.Output[captureHead:captureHead+len(want)] != want {
		t.Errorf("%q", got.Output[captureHead:captureHead+len(want)])
	}
	out := got.Metadata["output"].(map[string]any)
	if out["total_bytes"] != int64(total+11) || out["captured_bytes"] != int64(captureHead+captureTail) || out["truncated"] != true {
		t.Errorf("%v", out)
	}
}

// TestBIG02: up to the quota everything is kept, however it comes.
func TestBIG02(t *testing.T) {
	all := strings.Repeat("é😀x", (captureHead+captureTail)/7)
	c := capture{emit: func(string) {}}
	for rest := []byte(all); len(rest) > 0; {
		n := min(len(rest), 32<<10-1)
		c.write(rest[:n])
		rest = rest[n:]
	}
	if text, n := c.text(); text != all || n != int64(len(all)) {
		t.Errorf("%d of %d bytes", n, len(all))
	}
	c.write([]byte("é😀é😀"))
	text, n := c.text()
	if !utf8.ValidString(text) || strings.ContainsRune(text, utf8.RuneError) || n > captureHead+captureTail || n < captureHead+captureTail-6 {
		t.Errorf("cut letters: %d bytes, valid %v", n, utf8.ValidString(text))
	}
}

// TestTold: what is told is the output, but for what a marker stands for, in pieces of
// whole letters.
func TestTold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var told []string
		c := capture{emit: func(s string) { told = append(told, s) }}
		// Start near the limit in half of the tries.
		var all strings.Builder
		if rapid.Bool().Draw(t, "near") {
			s := strings.Repeat("a", tellMax-rapid.IntRange(0, 40).Draw(t, "room"))
			c.write([]byte(s))
			all.WriteString(s)
		}
		parts := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "é", "€", "😀", "\n", strings.Repeat("ß", 5000)}), 0, 40).Draw(t, "parts")
		text := strings.Join(parts, "")
		all.WriteString(text)
		for rest := []byte(text); len(rest) > 0; {
			n := min(len(rest), rapid.IntRange(1, 9000).Draw(t, "n"))
			c.write(rest[:n])
			rest = rest[n:]
		}
		c.end()
		got := strings.Join(told, "")
		for _, p := range told {
			if len(p) > pieceMax || p == "" || strings.ContainsRune(p, utf8.RuneError) {
				t.Fatalf("piece of %d bytes %q", len(p), p[:min(len(p), 20)])
			}
		}
		head, tail, cut := strings.Cut(got, " bytes not shown while the command ran]\n")
		if !cut {
			if got != all.String() {
				t.Fatalf("told %d bytes of %d", len(got), all.Len())
			}
			return
		}
		at := strings.LastIndex(head, "\n[")
		var left int
		fmt.Sscan(head[at+2:], &left)
		if head = head[:at]; head+all.String()[len(head):len(head)+left]+tail != all.String() {
			t.Fatalf("told %d and %d of %d bytes, %d said to be left out", len(head), len(tail), all.Len(), left)
		}
	})
}

func TestArtifactRead(t *testing.T) {
	content := "ab€cd\nline\n" + strings.Repeat("x", 100_000)
	e, _ := env(newFiles(nil))
	e.Artifact = func(_ context.Context, uri string) (string, error) {
		if uri == "a3s://x" {
			return content, nil
		}
		return "", fault.New(fault.NotFound, "artifact.get", "no artifact %q", uri)
	}
	meta := func(offset, requested, applied, returned int, next any) map[string]any {
		return map[string]any{"artifact_uri": "a3s://x", "range": map[string]any{
			"offset": offset, "requested_limit": requested, "applied_limit": applied, "returned_bytes": returned, "next_offset": next,
			"eof": next == nil, "total_bytes": len(content), "limit_clamped": requested != applied,
		}}
	}
	end := len(content)
	for _, c := range []struct {
		name, args, want string
		meta             map[string]any
	}{
		{"start", `{"uri":"a3s://x","limit":5}`, "ab€\n\n(bytes 0-5 of 100013; continue with offset=5)\n", meta(0, 5, 5, 5, 5)},
		{"UTF8-02 not through a letter", `{"uri":"a3s://x","limit":4}`, "ab\n\n(bytes 0-2 of 100013; continue with offset=2)\n", meta(0, 4, 4, 2, 2)},
		{"at least one letter", `{"uri":"a3s://x","offset":2,"limit":1}`, "€c\n\n(bytes 2-6 of 100013; continue with offset=6)\n", meta(2, 1, 4, 4, 6)},
		{"from inside a letter", `{"uri":"a3s://x","offset":3,"limit":4}`, "€c\n\n(bytes 2-6 of 100013; continue with offset=6)\n", meta(2, 4, 4, 4, 6)},
		{"to the end", fmt.Sprintf(`{"uri":"a3s://x","offset":%d}`, end-3), "xxx", meta(end-3, 65536, 65536, 3, nil)},
		{"at the end", fmt.Sprintf(`{"uri":"a3s://x","offset":%d}`, end), "(end of artifact: 100013 bytes)\n", meta(end, 65536, 65536, 0, nil)},
	} {
		t.Run(c.name, func(t *testing.T) {
			equal(t, run(t, newArtifactRead(), e, c.args), chat.Result{Output: c.want, Metadata: c.meta})
		})
	}
	got := run(t, newArtifactRead(), e, `{"uri":"a3s://x","limit":98304}`)
	if len(got.Output) > 102_400 {
		t.Errorf("%d bytes become an artifact again", len(got.Output))
	}
	refused(t, run(t, newArtifactRead(), e, `{"uri":"a3s://y"}`), chat.NotFound, "no artifact")
	refused(t, run(t, newArtifactRead(), e, fmt.Sprintf(`{"uri":"a3s://x","offset":%d}`, end+1)), chat.InvalidArgument, "beyond the end")
	refused(t, run(t, newArtifactRead(), e, `{"uri":"a3s://x","limit":98305}`), chat.InvalidArgument, "/limit")
}
