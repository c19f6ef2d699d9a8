package builtin

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/tool"
)

// sections reads a corpus file: prose, then "-- name --" and its lines.
func sections(t *testing.T, file string) map[string]string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	out, name := map[string]string{}, "doc"
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "-- ") && strings.HasSuffix(line, " --\n") {
			name = strings.TrimSuffix(line[3:], " --\n")
			out[name] = ""
			continue
		}
		out[name] += line
	}
	return out
}

// literal joins the JSON strings of a section, one a line.
func literal(t *testing.T, section string) []string {
	t.Helper()
	var list []string
	for line := range strings.Lines(section) {
		var s string
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		list = append(list, s)
	}
	return list
}

func TestEditCorpus(t *testing.T) {
	list, err := filepath.Glob("../../../tests/corpus/edits/*.txt")
	if err != nil || len(list) < 20 {
		t.Fatalf("corpus of %d files, %v", len(list), err)
	}
	for _, file := range list {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			s := sections(t, file)
			before := strings.Join(literal(t, s["file"]), "")
			want := before
			if w, ok := s["want"]; ok {
				want = strings.Join(literal(t, w), "")
			}
			ws := newFiles(map[string]string{"f.txt": before})
			e, _ := env(ws)
			var args map[string]any
			if err := json.Unmarshal([]byte(s["args"]), &args); err != nil {
				t.Fatal(err)
			}
			args["file_path"] = "f.txt"
			text, _ := json.Marshal(args)
			got := raw(t, newEdit(), e, string(text))
			if ws.data["f.txt"] != want {
				t.Errorf("file\n%q\nwant\n%q", ws.data["f.txt"], want)
			}
			for _, part := range literal(t, s["error"]) {
				refused(t, got, chat.InvalidArgument, part)
			}
			if s["error"] == "" && got.ExitCode != 0 {
				t.Errorf("refused: %s", got.Output)
			}
			count, _ := strconv.Atoi(strings.TrimSpace(s["count"]))
			if n, ok := got.Metadata["replacement_count"]; ok && n != count {
				t.Errorf("%v replacements, want %d", n, count)
			}
		})
	}
}

func TestEditResult(t *testing.T) {
	ws := newFiles(map[string]string{"d/f": "a\nb\na\n"})
	e, _ := env(ws)
	equal(t, run(t, newEdit(), e, `{"file_path":"d/f","old_string":"a","new_string":"c","replace_all":true,"expected_replacements":2.0}`), chat.Result{
		Output: "Replaced 2 occurrence(s) in d/f",
		Metadata: map[string]any{
			"file_path": "d/f", "before": "a\nb\na\n", "after": "c\nb\nc\n", "dry_run": false,
			"replacement_count": 2, "expected_replacements": 2, "max_replacements": nil,
		},
	})
	equal(t, run(t, newEdit(), e, `{"file_path":"d/f","old_string":"b","new_string":"","dry_run":true,"max_replacements":1}`), chat.Result{
		Output: "Dry run: 1 occurrence(s) would be replaced in d/f; nothing was written",
		Metadata: map[string]any{
			"file_path": "d/f", "before": "c\nb\nc\n", "after": "c\n\nc\n", "dry_run": true,
			"replacement_count": 1, "expected_replacements": nil, "max_replacements": 1,
		},
	})
	if ws.data["d/f"] != "c\nb\nc\n" {
		t.Errorf("%q", ws.data["d/f"])
	}
	got := run(t, newEdit(), e, `{"file_path":"d/f","old_string":"c","new_string":"x"}`)
	refused(t, got, chat.InvalidArgument, "more than once (2 times: lines 1, 3)")
	if got.Metadata["replacement_count"] != 2 || got.Metadata["before"] != nil {
		t.Errorf("%v", got.Metadata)
	}
}

func TestEditRefuses(t *testing.T) {
	for _, c := range []struct{ name, args, kind, part string }{
		{"no file", `{"file_path":"no","old_string":"a","new_string":"b"}`, chat.NotFound, "no"},
		{"outside", `{"file_path":"../x","old_string":"a","new_string":"b"}`, chat.InvalidArgument, "outside"},
		{"S24 .git", `{"file_path":".git/config","old_string":"a","new_string":"b"}`, chat.InvalidArgument, "protected"},
		{"S24 through another spelling", `{"file_path":"x/../.GIT/config","old_string":"a","new_string":"b"}`, chat.InvalidArgument, "protected"},
		{"binary", `{"file_path":"bin","old_string":"a","new_string":"b"}`, chat.InvalidArgument, "binary"},
		{"not UTF-8", `{"file_path":"latin","old_string":"a","new_string":"b"}`, chat.InvalidArgument, "UTF-8"},
		{"too large", `{"file_path":"big","old_string":"a","new_string":"b"}`, chat.InvalidArgument, "limit"},
		{"empty old", `{"file_path":"f","old_string":"","new_string":"b"}`, chat.InvalidArgument, "minLength"},
		{"unknown key", `{"file_path":"f","old_string":"a","new_string":"b","all":true}`, chat.InvalidArgument, "all"},
		{"JSON-04", `{"file_path":"f","old_string":"a","new_st`, chat.InvalidArgument, "not JSON"},
		{"grows beyond all bounds", fmt.Sprintf(`{"file_path":"many","old_string":"a","new_string":%q,"replace_all":true}`, strings.Repeat("b", 1<<20)), chat.InvalidArgument, "grow over"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ws := newFiles(map[string]string{
				"f": "a", ".git/config": "a", "bin": "a\x00", "latin": "a\xe9", "big": strings.Repeat("a", maxEdit+1), "many": strings.Repeat("a", 1000),
			})
			e, _ := env(ws)
			refused(t, run(t, newEdit(), e, c.args), c.kind, c.part)
			if ws.data[".git/config"] != "a" || ws.data["f"] != "a" {
				t.Error("written all the same")
			}
		})
	}
}

func TestEditConflict(t *testing.T) {
	ws := newFiles(map[string]string{"f": "a\n"})
	e, _ := env(changing{ws, func() { ws.data["f"] = "somebody else's a\n" }})
	got := run(t, newEdit(), e, `{"file_path":"f","old_string":"a","new_string":"b"}`)
	equal(t, got, chat.Result{
		Output:   "f changed while it was being worked on; nothing written. Read it again, then repeat the call if it still makes sense",
		ExitCode: 1,
		Error:    &chat.ErrorKind{Type: chat.VersionConflict, Path: "f", Expected: version("a\n"), Actual: version("somebody else's a\n")},
	})
	if ws.data["f"] != "somebody else's a\n" {
		t.Errorf("%q", ws.data["f"])
	}
}

func TestEffects(t *testing.T) {
	for _, c := range []struct {
		tool tool.Tool
		args string
		want chat.Effects
	}{
		{newRead(), `{"file_path":"a"}`, chat.Effects{Read: true, Idempotent: true, Paths: []string{"a"}}},
		{newRead(), `{"files":[{"path":"a"},{"path":"b"}]}`, chat.Effects{Read: true, Idempotent: true, Paths: []string{"a", "b"}}},
		{newWrite(), `{"file_path":"a","content":""}`, chat.Effects{Write: true, Idempotent: true, Paths: []string{"a"}}},
		{newEdit(), `{"file_path":"a","old_string":"x","new_string":"y"}`, chat.Effects{Read: true, Write: true, Paths: []string{"a"}}},
		{newEdit(), `{"file_path":"a","old_string":"x","new_string":"y","dry_run":true}`, chat.Effects{Read: true, Idempotent: true, Paths: []string{"a"}}},
		{newEdit(), `{`, chat.Effects{Read: true, Write: true}},
		{newLs(), `{}`, chat.Effects{Read: true, Idempotent: true, Paths: []string{"."}}},
		{newGrep(), `{"pattern":"x","path":"a"}`, chat.Effects{Read: true, Idempotent: true, Paths: []string{"a"}}},
		{newGlob(), `{"pattern":"x"}`, chat.Effects{Read: true, Idempotent: true, Paths: []string{"."}}},
		{newBash(), `{"command":"true"}`, chat.Effects{Read: true, Write: true, Exec: true, Network: true}},
		{newArtifactRead(), `{"uri":"x"}`, chat.Effects{Own: true, Idempotent: true}},
	} {
		if got := c.tool.Effects(json.RawMessage(c.args)); fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s %s: %+v, want %+v", c.tool.Spec().Name, c.args, got, c.want)
		}
	}
}

// FuzzReplace: whatever is matched, the result is text, what is outside the match stays,
// and putting the old text back gives a file that reads the same.
func FuzzReplace(f *testing.F) {
	for _, s := range [][3]string{
		{"one\r\ntwo\r\n", "one\ntwo", "ONE\nTWO"}, {"\uFEFFa\n", "a", "b"}, {"a–b\u00a0c\r\n", "a-b c", "a-b d"},
		{"aaa", "aa", "b"}, {"é\r\nè\n", "\n", ""}, {"“x”", "\"x\"", "“y”"}, {"a\r\r\n", "\r\n", "\r"},
	} {
		f.Add(s[0], s[1], s[2])
	}
	f.Fuzz(func(t *testing.T, content, old, with string) {
		if !utf8.ValidString(content) || !utf8.ValidString(old) || !utf8.ValidString(with) || lines(old) == lines(with) {
			return
		}
		m := find(content, old)
		if len(m.spans) == 0 {
			// Half a CRLF is no place of its own.
			if !strings.Contains(old, "\r") && strings.Contains(strings.TrimPrefix(content, bom), old) && strings.TrimPrefix(old, bom) != "" {
				t.Fatalf("%q not found in %q", old, content)
			}
			_ = nearest(content, old)
			return
		}
		pos := 0
		for _, s := range m.spans {
			if s.from < pos || s.to <= s.from || s.to > len(content) {
				t.Fatalf("spans %v of %d bytes", m.spans, len(content))
			}
			if got := foldText(content[s.from:s.to], m.typographic).text; got != m.old.text {
				t.Fatalf("span %q folds to %q, want %q", content[s.from:s.to], got, m.old.text)
			}
			pos = s.to
		}
		after, err := m.replace(content, with)
		if err != nil {
			return
		}
		if !utf8.ValidString(after) {
			t.Fatalf("%q is not UTF-8", after)
		}
		first, last := m.spans[0], m.spans[len(m.spans)-1]
		if !strings.HasPrefix(after, content[:first.from]) || !strings.HasSuffix(after, content[last.to:]) {
			t.Fatalf("%q changed outside of %v to %q", content, m.spans, after)
		}
	})
}
