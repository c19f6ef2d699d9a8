package builtin

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/workspace"
)

func numbered(from, to int) string {
	var b strings.Builder
	for i := from; i <= to; i++ {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	return b.String()
}

func TestRead(t *testing.T) {
	ws := newFiles(map[string]string{
		"f.txt": "one\ntwo\nthree\n", "crlf": "\uFEFFa\r\nb", "empty": "", "long": strings.Repeat("é", 1500) + "\nx\n",
		"many": numbered(1, 2500), "bin": "a\x00b", "latin": "caf\xe9\n", "big": strings.Repeat("a", maxFile+1), "odd\nname": "x\n",
	})
	e, _ := env(ws)
	at := func(path string, offset, requested, applied, returned int, next any, total, bytes int) map[string]any {
		return map[string]any{"source_anchors": []string{path}, "range": map[string]any{
			"offset": offset, "requested_limit": requested, "applied_limit": applied, "returned_lines": returned, "next_offset": next,
			"eof": next == nil, "total_lines": total, "limit_clamped": requested != applied, "output_bytes": bytes,
		}}
	}
	for _, c := range []struct {
		name, args, want string
		meta             map[string]any
	}{
		{"whole", `{"file_path":"f.txt"}`, "     1\tone\n     2\ttwo\n     3\tthree\n", at("f.txt", 0, 2000, 2000, 3, nil, 3, 35)},
		{"part", `{"file_path":"./x/../f.txt","offset":1,"limit":1}`, "     2\ttwo\n\n(lines 2-2 of 3; continue with offset=2)\n", at("f.txt", 1, 1, 1, 1, 2, 3, 53)},
		{"to the end", `{"file_path":"f.txt","offset":2.0}`, "     3\tthree\n", at("f.txt", 2, 2000, 2000, 1, nil, 3, 13)},
		{"at the end", `{"file_path":"f.txt","offset":3}`, "(end of file: f.txt has 3 lines)\n", at("f.txt", 3, 2000, 2000, 0, nil, 3, 33)},
		{"empty", `{"file_path":"empty"}`, "(end of file: empty has 0 lines)\n", at("empty", 0, 2000, 2000, 0, nil, 0, 33)},
		{"EDIT-02 mark and CRLF are not shown", `{"file_path":"crlf"}`, "     1\ta\n     2\tb\n", at("crlf", 0, 2000, 2000, 2, nil, 2, 18)},
		{"UTF8-02 long line", `{"file_path":"long"}`, "     1\t" + strings.Repeat("é", 1000) + "\n     2\tx\n\n(1 lines were cut to 2000 bytes)\n", at("long", 0, 2000, 2000, 2, nil, 2, 2051)},
	} {
		t.Run(c.name, func(t *testing.T) {
			equal(t, run(t, newRead(), e, c.args), chat.Result{Output: c.want, Metadata: c.meta})
		})
	}
	for _, c := range []struct{ name, args, kind, part string }{
		{"beyond the end", `{"file_path":"f.txt","offset":4}`, chat.InvalidArgument, "f.txt has 3 lines"},
		{"no file", `{"file_path":"no"}`, chat.NotFound, "no"},
		{"binary", `{"file_path":"bin"}`, chat.InvalidArgument, "binary"},
		{"not UTF-8", `{"file_path":"latin"}`, chat.InvalidArgument, "UTF-8"},
		{"too large", `{"file_path":"big"}`, chat.InvalidArgument, "limit"},
		{"outside", `{"file_path":"../../etc/passwd"}`, chat.InvalidArgument, "outside"},
		{"NUL", `{"file_path":"a\u0000b"}`, chat.InvalidArgument, "NUL"},
		{"both selectors", `{"file_path":"f.txt","files":[{"path":"f.txt"}]}`, chat.InvalidArgument, "either"},
		{"neither", `{}`, chat.InvalidArgument, "either"},
		{"offset beside files", `{"files":[{"path":"f.txt"}],"offset":1}`, chat.InvalidArgument, "per file"},
		{"limit too high", `{"file_path":"f.txt","limit":2001}`, chat.InvalidArgument, "maximum"},
		{"too many files", `{"files":[` + strings.Repeat(`{"path":"x"},`, 32) + `{"path":"y"}]}`, chat.InvalidArgument, "maxItems"},
		{"twice", `{"files":[{"path":"f.txt"},{"path":"./f.txt"}]}`, chat.InvalidArgument, "twice"},
	} {
		t.Run(c.name, func(t *testing.T) { refused(t, run(t, newRead(), e, c.args), c.kind, c.part) })
	}
	got := raw(t, newRead(), e, `{"file_path":"many","limit":9999}`)
	if r := got.Metadata["range"].(map[string]any); r["applied_limit"] != 2000 || r["limit_clamped"] != true || r["next_offset"] != 2000 {
		t.Errorf("without validation the limit is clamped: %v", r)
	}
}

func TestReadBatch(t *testing.T) {
	ws := newFiles(map[string]string{"a": "1\n2\n", "b": "3\n", "long": numbered(1, 500), "wide": strings.Repeat("x", 1900) + "\nend\n"})
	e, _ := env(ws)
	got := run(t, newRead(), e, `{"files":[{"path":"a"},{"path":"no"},{"path":"b","limit":1}]}`)
	out := "=== a ===\n     1\t1\n     2\t2\n\n=== no ===\nerror: no file \"no\"\n\n=== b ===\n     1\t3\n\n(Complete: all 3 files shown)"
	equal(t, got, chat.Result{Output: out, Metadata: map[string]any{"source_anchors": []string{"a", "b"}, "batch": map[string]any{
		"status": "partial_failure", "requested_files": 3, "successful_files": 2, "failed_files": 1, "completed_files": 2,
		"returned_lines": 3, "max_output_bytes": 65536, "output_bytes": len(out), "truncated": false, "continuation": []rest{},
	}}})

	got = run(t, newRead(), e, `{"files":[{"path":"no"}]}`)
	refused(t, got, chat.NotFound, "no")
	got = run(t, newRead(), e, `{"files":[{"path":"no"},{"path":"../x"}]}`)
	refused(t, got, chat.PartialFailure, "no")
	refused(t, run(t, newRead(), e, `{"files":[{"path":"wide"}],"max_output_bytes":1024}`), chat.InvalidArgument, "too small")

	// Following the continuation to its end shows every line once, each answer within
	// the budget.
	files := []rest{{Path: "a"}, {Path: "long", Offset: 3, Limit: 490}, {Path: "b"}, {Path: "long2"}}
	ws.data["long2"] = numbered(1, 300)
	var seen []string
	for step := 0; len(files) > 0; step++ {
		if step > 50 {
			t.Fatal("no end")
		}
		var list []string
		for _, f := range files {
			entry := fmt.Sprintf(`{"path":%q,"offset":%d`, f.Path, f.Offset)
			if f.Limit > 0 {
				entry += fmt.Sprintf(`,"limit":%d`, f.Limit)
			}
			list = append(list, entry+"}")
		}
		got := run(t, newRead(), e, `{"max_output_bytes":1500,"files":[`+strings.Join(list, ",")+`]}`)
		if got.ExitCode != 0 || len(got.Output) > 1500 {
			t.Fatalf("%d bytes: %s", len(got.Output), got.Output)
		}
		for line := range strings.Lines(got.Output) {
			if _, text, ok := strings.Cut(line, "\t"); ok {
				seen = append(seen, text)
			}
		}
		files = got.Metadata["batch"].(map[string]any)["continuation"].([]rest)
	}
	want := strings.SplitAfter("1\n2\n"+numbered(4, 493)+"3\n"+numbered(1, 300), "\n")
	if want = want[:len(want)-1]; !reflect.DeepEqual(seen, want) {
		t.Errorf("%d lines seen, want %d", len(seen), len(want))
	}
}

func TestWrite(t *testing.T) {
	ws := newFiles(map[string]string{"old": "a\n", "bom": "\uFEFFcafé\r\n", "big": strings.Repeat("a", maxEdit+1), ".git/x": ""})
	e, _ := env(ws)
	for _, c := range []struct {
		name, args, out, file, text string
		meta                        map[string]any
	}{
		{"new", `{"file_path":"d/new","content":"x\ny"}`, "Wrote 3 bytes (2 lines) to d/new", "d/new", "x\ny",
			map[string]any{"file_path": "d/new", "created": true, "after": "x\ny"}},
		{"replace", `{"file_path":"old","content":"b\n","mode":"overwrite","expected_offset":0}`, "Wrote 2 bytes (1 lines) to old", "old", "b\n",
			map[string]any{"file_path": "old", "created": false, "before": "a\n", "after": "b\n"}},
		{"empty", `{"file_path":"old","content":""}`, "Wrote 0 bytes (0 lines) to old", "old", "",
			map[string]any{"file_path": "old", "created": false, "before": "b\n", "after": ""}},
		{"EDIT-02 byte order mark", `{"file_path":"bom","content":"café\nthé\n"}`,
			"Wrote 14 bytes (2 lines) to bom; its byte order mark was kept; its line endings changed from CRLF to LF", "bom", "\uFEFFcafé\nthé\n",
			map[string]any{"file_path": "bom", "created": false, "before": "\uFEFFcafé\r\n", "after": "\uFEFFcafé\nthé\n"}},
		{"large", `{"file_path":"big","content":"b"}`, "Wrote 1 bytes (1 lines) to big; its old content was too large to be shown", "big", "b",
			map[string]any{"file_path": "big", "created": false, "after": "b"}},
		{"append", `{"file_path":"d/new","content":"é\n","mode":"append","expected_offset":3}`, "Appended 3 bytes to d/new, which has 6 bytes now", "d/new", "x\nyé\n",
			map[string]any{"file_path": "d/new", "mode": "append", "offset": 3, "appended_bytes": 3, "resulting_size": 6, "already_applied": false}},
		{"append again", `{"file_path":"d/new","content":"é\n","mode":"append","expected_offset":3}`, "d/new already ends with these 3 bytes; nothing written", "d/new", "x\nyé\n",
			map[string]any{"file_path": "d/new", "mode": "append", "offset": 3, "appended_bytes": 3, "resulting_size": 6, "already_applied": true}},
		{"append to nothing", `{"file_path":"log","content":"1\n","mode":"append","expected_offset":0}`, "Appended 2 bytes to log, which has 2 bytes now", "log", "1\n",
			map[string]any{"file_path": "log", "mode": "append", "offset": 0, "appended_bytes": 2, "resulting_size": 2, "already_applied": false}},
	} {
		t.Run(c.name, func(t *testing.T) {
			equal(t, run(t, newWrite(), e, c.args), chat.Result{Output: c.out, Metadata: c.meta})
			if ws.data[c.file] != c.text {
				t.Errorf("file %q, want %q", ws.data[c.file], c.text)
			}
		})
	}
	before := fmt.Sprint(ws.data)
	for _, c := range []struct{ name, args, kind, part string }{
		{"offset differs", `{"file_path":"log","content":"2\n","mode":"append","expected_offset":1}`, chat.InvalidArgument, "log has 2 bytes"},
		{"append without offset", `{"file_path":"log","content":"2\n","mode":"append"}`, chat.InvalidArgument, "expected_offset"},
		{"offset without append", `{"file_path":"log","content":"2\n","expected_offset":2}`, chat.InvalidArgument, "belongs to append"},
		{"mode", `{"file_path":"log","content":"2\n","mode":"prepend"}`, chat.InvalidArgument, "/mode"},
		{"no content", `{"file_path":"log"}`, chat.InvalidArgument, "content"},
		{"outside", `{"file_path":"/etc/x","content":""}`, chat.InvalidArgument, "outside"},
		{"root", `{"file_path":".","content":""}`, chat.InvalidArgument, "workspace itself"},
		{"S24 .git", `{"file_path":".git/hooks/x","content":""}`, chat.InvalidArgument, "protected"},
		{"S24 .a3s", `{"file_path":"sub/.a3s/x","content":""}`, chat.InvalidArgument, "protected"},
		{"S24 append", `{"file_path":".git/x","content":"x","mode":"append","expected_offset":0}`, chat.InvalidArgument, "protected"},
	} {
		t.Run(c.name, func(t *testing.T) { refused(t, run(t, newWrite(), e, c.args), c.kind, c.part) })
	}
	if fmt.Sprint(ws.data) != before {
		t.Error("a refused write wrote")
	}
	for _, args := range []string{`{"file_path":"log","content":"x"}`, `{"file_path":"log","content":"x","mode":"append","expected_offset":2}`} {
		ws.data["log"] = "1\n"
		e, _ := env(changing{ws, func() { ws.data["log"] = "somebody else" }})
		refused(t, run(t, newWrite(), e, args), chat.VersionConflict, "changed while")
		if ws.data["log"] != "somebody else" {
			t.Error("lost what somebody else wrote")
		}
	}
}

func TestLs(t *testing.T) {
	ws := newFiles(map[string]string{"b.txt": "12", "A.txt": strings.Repeat("x", 1536), "z/y/x": "1", "z/file": strings.Repeat("x", 3<<20), "odd\x1bname": ""})
	e, _ := env(ws)
	page := func(offset, limit, returned, total int, next any) map[string]any {
		return map[string]any{"page": map[string]any{
			"offset": offset, "requested_limit": limit, "applied_limit": limit, "returned_items": returned, "total_items": total,
			"next_cursor": next, "truncated": next != nil, "limit_clamped": false,
		}}
	}
	for _, c := range []struct {
		name, args, want string
		meta             map[string]any
	}{
		{"root", `{}`, "Directory: .\n\ndir           -  z/\nfile      1.5KB  A.txt\nfile         2B  b.txt\nfile         0B  odd\\x1bname\n\n4 of 4 entries\n", page(0, 200, 4, 4, nil)},
		{"below", `{"path":"z"}`, "Directory: z\n\ndir           -  y/\nfile      3.0MB  file\n\n2 of 2 entries\n", page(0, 200, 2, 2, nil)},
		{"first page", `{"limit":3}`, "Directory: .\n\ndir           -  z/\nfile      1.5KB  A.txt\nfile         2B  b.txt\n\n3 of 4 entries\nMore entries available; continue with cursor=3\n", page(0, 3, 3, 4, "3")},
		{"second page", `{"limit":3,"cursor":"3"}`, "Directory: .\n\nfile         0B  odd\\x1bname\n\n1 of 4 entries\n", page(3, 3, 1, 4, nil)},
	} {
		t.Run(c.name, func(t *testing.T) {
			equal(t, run(t, newLs(), e, c.args), chat.Result{Output: c.want, Metadata: c.meta})
		})
	}
	refused(t, run(t, newLs(), e, `{"path":"no"}`), chat.NotFound, "no")
	refused(t, run(t, newLs(), e, `{"path":".."}`), chat.InvalidArgument, "outside")
	for _, cursor := range []string{"5", "-1", "x"} {
		refused(t, run(t, newLs(), e, fmt.Sprintf(`{"cursor":%q}`, cursor)), chat.InvalidArgument, "cursor")
	}
	empty, _ := env(newFiles(nil))
	if got := run(t, newLs(), empty, `{}`); got.Output != "Directory: .\n\n(empty)\n" {
		t.Errorf("%q", got.Output)
	}
	for n, want := range map[int64]string{1023: "1023B", 1024: "1.0KB", 1 << 20: "1.0MB", 5 << 30: "5.0GB", 5000 << 30: "5000.0GB"} {
		if got := humanSize(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
	if got := entryLine(workspace.Info{Path: "d/l", Type: workspace.Link}); got != "link          -  l\n" {
		t.Errorf("%q", got)
	}
}

func TestCutAt(t *testing.T) {
	for n := range 12 {
		if got := cutAt("aé€😀z", n); len(got) > n || !utf8.ValidString(got) || len(got) < n-3 && n <= 11 {
			t.Errorf("%d: %q", n, got)
		}
	}
}
