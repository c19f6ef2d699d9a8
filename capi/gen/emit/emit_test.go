package emit

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/a3s-lab/liba3s/runtime/event"
)

const root = "../../.."

func TestFresh(t *testing.T) {
	files, err := All(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(f.Path)))
		if err != nil || !bytes.Equal(b, f.Data) {
			t.Errorf("%s is stale; run: ./build.sh gen", f.Path)
		}
		if !bytes.Contains(f.Data[:min(400, len(f.Data))], []byte(Mark)) {
			t.Errorf("%s does not say that it is generated", f.Path)
		}
	}
}

func TestSameBytesTwice(t *testing.T) {
	first, err := All(root)
	if err != nil {
		t.Fatal(err)
	}
	second, err := All(root)
	if err != nil {
		t.Fatal(err)
	}
	for i := range first {
		if !bytes.Equal(first[i].Data, second[i].Data) {
			t.Errorf("%s differs between two runs", first[i].Path)
		}
	}
}

func TestLockMayOnlyGrow(t *testing.T) {
	s, err := read(root)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		change func(*source)
		ok     bool
	}{
		"as it is":         {func(*source) {}, true},
		"no lock yet":      {func(s *source) { s.lock = "" }, true},
		"a function added": {func(s *source) { s.lock = s.lock[:strings.LastIndex(s.lock, "status")] }, true},
		"a function gone":  {func(s *source) { s.lock += "function 1.0 a3s_gone 0000000000000000\n" }, false},
		"a number changed": {func(s *source) { s.lock = strings.Replace(s.lock, "E_HANDLE -2", "E_HANDLE -3", 1) }, false},
		"prototype changed": {func(s *source) {
			s.lock = regexp.MustCompile(`a3s_close [0-9a-f]+`).ReplaceAllString(s.lock, "a3s_close 0000000000000000")
		}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := *s
			tt.change(&c)
			if _, err := c.abiLock(); (err == nil) != tt.ok {
				t.Errorf("got %v", err)
			}
		})
	}
}

// Every reference of the schema leads somewhere, and every event has a definition.
func TestSchemaHangsTogether(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(root, "include", "a3s.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Events []struct{ Type string }
		Defs   map[string]json.RawMessage `json:"$defs"`
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`"#/\$defs/([^"]*)"`).FindAllStringSubmatch(string(b), -1) {
		if doc.Defs[m[1]] == nil {
			t.Errorf("no definition of %s", m[1])
		}
	}
	if len(doc.Events) != len(event.Catalogue) {
		t.Errorf("got %d events, want %d", len(doc.Events), len(event.Catalogue))
	}
}

func TestWrap(t *testing.T) {
	got := wrap("one two  three\nfour", " * ", 10)
	if want := " * one two\n * three\n * four\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestVersionsInOrder(t *testing.T) {
	v := []string{"1.10", "1.2", "1.0"}
	sortVersions(v)
	if got := strings.Join(v, " "); got != "1.0 1.2 1.10" {
		t.Errorf("got %s", got)
	}
}

func TestPythonLiteral(t *testing.T) {
	for in, want := range map[string]string{`a"b`: `"a\"b"`, "<&>": `"<&>"`, "ä\n": `"ä\n"`} {
		if got := quote(in); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
