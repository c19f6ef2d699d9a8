package search

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path"
	"reflect"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"go.uber.org/goleak"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func always() bool { return true }

// naive finds the matching lines by asking the expression for each.
func naive(re *regexp.Regexp, data []byte) (out []string) {
	lines := bytes.Split(data, []byte("\n"))
	if n := len(lines); len(lines[n-1]) == 0 {
		lines = lines[:n-1]
	}
	for _, l := range lines {
		if l = bytes.TrimSuffix(l, []byte("\r")); re.Match(l) {
			out = append(out, string(l))
		}
	}
	return out
}

func matching(t *testing.T, pattern string, ignoreCase bool, data []byte) (out []string) {
	t.Helper()
	m, err := compile(pattern, ignoreCase)
	if err != nil {
		t.Fatal(err)
	}
	var s scratch
	m.lines(data, &s, always, func(start, end int) bool {
		out = append(out, string(data[start:end]))
		return true
	})
	return out
}

// TestLines compares the shortcuts with the plain expression.
func TestLines(t *testing.T) {
	text := []byte("package main\nfunc (r *Reader) Read(p []byte)\r\n\nTODO: x\nfixme FIXME\n\tDEADLOCK dead\u212Aloc\u212A \u017Fet\nabcabc\n" +
		"caf\xe9 latin\nstra\u00dfe STRASSE\n0123-45\n  \n\u212A\nend of file")
	for _, p := range []string{
		"", "^", "$", "^$", ".", "main", "^main", "main$", "^package main$", "TODO|FIXME", "(TODO|FIXME):", "todo", "(?i)todo", "(?i)k", "(?i)set", "(?i)s.t", "(?i)deadlock",
		"(?i:d)ead", `func \(\w+ \*?Reader\) Read`, `\bdead\b`, `\Bead`, `(abc)+`, `(abc){2}`, `a{0}b`, `[0-9]{4}-[0-9]{2}`, `[Tt]odo|[Ff]ixme`, `x?y?z?main`, `a*`, `\s+$`, `^\s*$`,
		`\n`, `main\n`, `[^a]`, `\x{e9}`, `\x{fffd}`, `[\x{fffd}]`, `.\x{fffd}.`, `latin`, `(?s).`, `(?m)^end`, `\Apackage`, `file\z`, `stra(ß|ss)e`, `(?i)strasse`, `(?i)straße`, `\pL+`, `\p{Greek}`, `[[:upper:]]{4}`,
		`a|b|c|d|e|f|g|h|i|j|k|l|m|n|o|p|q|r`, `(a|b)(c|d)(e|f)(g|h)(i|j)`, `(?U)a+b`, `\QTODO:\E`, `^(package|func)`, `(?:)`, `[^\n]*x`, `(?-s).main`, "\r", "Read.*\r?$", `(?i)[k]`, `(?i)ſet`, `[a-c]x|TODO|`, `x{3,}`, `\w+\s\w+\s`,
	} {
		for _, fold := range []bool{false, true} {
			full := p
			if fold {
				full = "(?i)" + p
			}
			if got, want := matching(t, p, fold, text), naive(regexp.MustCompile(full), text); !slices.Equal(got, want) {
				t.Errorf("%q, fold %v:\n got %q\nwant %q", p, fold, got, want)
			}
		}
	}
}

// TestLinesRandom does it with made-up expressions and texts.
func TestLinesRandom(t *testing.T) {
	for seed := range uint64(1500) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		pattern := expression(rnd, 3)
		re, err := regexp.Compile(pattern)
		if err != nil {
			continue
		}
		text := randomText(rnd)
		if got, want := matching(t, pattern, false, text), naive(re, text); !slices.Equal(got, want) {
			t.Fatalf("seed %d: %q in %q:\n got %q\nwant %q", seed, pattern, text, got, want)
		}
	}
}

func randomText(rnd *rand.Rand) []byte {
	pieces := []string{"a", "b", "ab", "k", "K", "S", "\u212A", "\u017F", " ", "\n", "\n", "\r\n", "\r", "é", "\xe9", "ß", "_", "-", "0", "\u2028", "😀", "\xff"}
	var b bytes.Buffer
	for range rnd.IntN(60) {
		b.WriteString(pieces[rnd.IntN(len(pieces))])
	}
	return b.Bytes()
}

func expression(rnd *rand.Rand, depth int) string {
	atoms := []string{"a", "b", "k", "S", "ab", "ba", ".", "[ab]", "[^a]", `\w`, `\b`, `\B`, "^", "$", " ", "é", "[é-ß]", `\s`, `\W`, "😀", `[\x{80}-\x{10ffff}]`, `\x{fffd}`, "-", "(?i:k)", "(?i:s)", `[^\x00-\x7f]`, `\A`, `\z`, "\r", `\pL`, "(?s:.)", "(?m:^)", "(?m:$)"}
	if depth == 0 {
		return atoms[rnd.IntN(len(atoms))]
	}
	switch rnd.IntN(9) {
	case 0:
		return expression(rnd, depth-1) + "|" + expression(rnd, depth-1)
	case 1:
		return "(?:" + expression(rnd, depth-1) + ")" + []string{"*", "+", "?", "{2}", "{1,3}", "*?"}[rnd.IntN(6)]
	case 2:
		return "(?i:" + expression(rnd, depth-1) + ")"
	case 3:
		return "(" + expression(rnd, depth-1) + ")"
	case 4:
		return expression(rnd, 0)
	}
	return expression(rnd, depth-1) + expression(rnd, depth-1)
}

func FuzzLines(f *testing.F) {
	f.Add(`\bk+[^a]|ſ$`, false, []byte("k\u212A\nſ\r\n"))
	f.Add("(?i)straße", true, []byte("STRASSE\nstraße"))
	f.Fuzz(func(t *testing.T, pattern string, fold bool, text []byte) {
		full := pattern
		if fold {
			full = "(?i)" + pattern
		}
		re, err := regexp.Compile(full)
		if err != nil || len(pattern) > 100 || len(text) > 1000 {
			return
		}
		if got, want := matching(t, pattern, fold, text), naive(re, text); !slices.Equal(got, want) {
			t.Fatalf("%q in %q:\n got %q\nwant %q", pattern, text, got, want)
		}
	})
}

func TestNeed(t *testing.T) {
	for pattern, want := range map[string]need{
		"unsafe.Pointer":              {texts: []string{"Pointer"}},
		"hello":                       {texts: []string{"hello"}, whole: true},
		"TODO|FIXME":                  {texts: []string{"FIXME", "TODO"}, whole: true},
		"(?i)deadlock":                {texts: []string{"deadloc"}, fold: true},
		"(?i)kiss":                    {texts: []string{"i"}, fold: true},
		"(?i)ks":                      {},
		`func \(\w+ \*?Reader\) Read`: {texts: []string{"Reader) Read"}},
		`^func `:                      {texts: []string{"func "}},
		`\w+`:                         {},
		`foo|`:                        {},
		`(foo|bar)+baz?`:              {texts: []string{"bar", "foo"}},
		`[Tt]odo`:                     {texts: []string{"todo"}, fold: true},
		`x*abc`:                       {texts: []string{"abc"}},
		"a\nb":                        {texts: []string{"a\nb"}},
	} {
		tree, err := syntax.Parse(pattern, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		if got := needOf(tree); !reflect.DeepEqual(got, want) && !(len(got.texts) == 0 && len(want.texts) == 0) {
			t.Errorf("%q: %+v, want %+v", pattern, got, want)
		}
	}
}

func TestLower(t *testing.T) {
	var all []byte
	for i := range 256 {
		all = append(all, byte(i), byte(i*7))
	}
	for n := range 20 {
		data := all[n:]
		want := bytes.Map(lowerASCII, data)
		if !utf8.Valid(data) {
			want = nil
			for _, c := range data {
				want = append(want, byte(lowerASCII(rune(c))))
			}
		}
		if got := lower(nil, data); !bytes.Equal(got, want) {
			t.Errorf("from %d: %q, want %q", n, got, want)
		}
	}
}

// texts is a tree of a map.
type texts map[string]string

func (m texts) ReadDir(dir string) ([]Entry, error) {
	seen := map[string]Entry{}
	for p := range m {
		if dir != "." && !strings.HasPrefix(p, dir+"/") {
			continue
		}
		name, rest, more := strings.Cut(below(dir, p), "/")
		_ = rest
		seen[name] = Entry{Name: name, Dir: more, File: !more}
	}
	var out []Entry
	for _, e := range seen {
		out = append(out, e)
	}
	return out, nil
}

func (m texts) Stat(p string) (Info, error) {
	if p == "." {
		return Info{Entry: Entry{Dir: true}}, nil
	}
	if text, ok := m[p]; ok {
		return Info{Entry: Entry{Name: path.Base(p), File: true}, Size: int64(len(text))}, nil
	}
	for q := range m {
		if strings.HasPrefix(q, p+"/") {
			return Info{Entry: Entry{Dir: true}}, nil
		}
	}
	return Info{}, fs.ErrNotExist
}

func (m texts) ReadFile(p string, _ *[]byte, max int64, keep func([]byte) bool) ([]byte, error) {
	switch text, ok := m[p]; {
	case !ok:
		return nil, fs.ErrNotExist
	case text == "panic":
		panic(p)
	case text == "secret":
		return nil, fs.ErrPermission
	case int64(len(text)) > max:
		return nil, ErrTooLarge
	default:
		keep([]byte(text[:min(len(text), HeadSize)]))
		return []byte(text), nil
	}
}

func TestOrder(t *testing.T) {
	m := texts{}
	var want []string
	for _, p := range []string{"a", "a-b/x", "a.b", "a/x", "a0", "ab/c", "b/a/z", "b/a-z", "é", "\xff"} {
		m[p+"f"] = "x"
		want = append(want, p+"f")
	}
	slices.Sort(want)
	var got []string
	for f, err := range Glob(context.Background(), m, GlobQuery{Base: ".", Pattern: "**"}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, f.Path)
	}
	if !slices.Equal(got, want) {
		t.Errorf("order %q, want %q", got, want)
	}
}

// TestManyLines checks that a search with more lines than its queues hold goes on in
// order, and that its memory is bounded by a reader that looks.
func TestManyLines(t *testing.T) {
	m := texts{}
	for i := range 100 {
		m[fmt.Sprintf("d%02d/f%03d", i%13, i)] = strings.Repeat("a line of text\n", 2000)
	}
	n, last := 0, ""
	stats, err := Grep(context.Background(), m, GrepQuery{Base: ".", Pattern: "line"}, func(l Line) bool {
		if l.Path < last {
			t.Fatalf("%q after %q", l.Path, last)
		}
		if l.Path != last && n%2000 != 0 || l.Number != n%2000+1 {
			t.Fatalf("line %d of %q is hit %d", l.Number, l.Path, n)
		}
		n, last = n+1, l.Path
		return true
	})
	if n != 100*2000 || err != nil || stats.Files != 100 {
		t.Errorf("%d hits, %v, %+v", n, err, stats)
	}
}

func TestFailures(t *testing.T) {
	m := texts{"a": "x", "b": "secret", "c": "x", "d": strings.Repeat("x", MaxFile+1)}
	n := 0
	stats, err := Grep(context.Background(), m, GrepQuery{Base: ".", Pattern: "x"}, func(Line) bool { n++; return true })
	if n != 2 || err != nil || stats.Unreadable != 1 || stats.TooLarge != 1 {
		t.Errorf("%d hits, %v, %+v", n, err, stats)
	}
	m["b"] = "panic"
	if _, err := Grep(context.Background(), m, GrepQuery{Base: ".", Pattern: "x"}, func(Line) bool { return true }); fault.KindOf(err) != fault.Internal {
		t.Errorf("a panic gives %v", err)
	}
	allow := func(string) bool { panic("rule") }
	if _, err := Grep(context.Background(), texts{"a": "x"}, GrepQuery{Base: ".", Pattern: "x", Allow: allow}, func(Line) bool { return true }); fault.KindOf(err) != fault.Internal {
		t.Errorf("a panic of a rule gives %v", err)
	}
}

func TestPrune(t *testing.T) {
	for _, c := range []struct {
		base, pattern, dir string
		want               bool
	}{
		{".", "**/*.go", "a/b", true}, {".", "*.go", "a", false}, {".", "a/*.go", "a", true}, {".", "a/*.go", "ab", false}, {".", "a/*.go", "a/b", false},
		{".", "a/**", "a/b/c", true}, {".", "a/b/**", "a", true}, {".", "a/b/**", "a/bc", false}, {"x", "a/*", "x/a", true}, {"x", "a/*", "x/b", false},
		{".", "{a,b}/c/*", "b/c", true}, {".", "{a/b,c}/*", "a/b", true}, {".", "a/b.go", "a", true}, {".", "a/b.go", "b", false},
	} {
		if got := prune(c.base, c.pattern)(c.dir); got != c.want {
			t.Errorf("base %q, pattern %q, folder %q: %v", c.base, c.pattern, c.dir, got)
		}
	}
}
