package ignore

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		patterns, path string
		want           bool // a trailing slash in path makes a folder of it
	}{
		{"foo", "foo", true}, {"foo", "a/foo", true}, {"foo", "foo/", true}, {"foo", "foob", false},
		{"foo/", "foo", false}, {"foo/", "a/foo/", true},
		{"/foo", "foo", true}, {"/foo", "a/foo", false},
		{"a/b", "a/b", true}, {"a/b", "x/a/b", false},
		{"*.o", "x.o", true}, {"*.o", "a/.o", true}, {"*.o", "x.o.c", false}, {"*.tar.gz", "x.tar.gz", true},
		{"*.o\n!x.o", "x.o", false}, {"!x.o\n*.o", "x.o", true},
		{"**/foo", "foo", true}, {"**/foo", "a/b/foo", true},
		{"foo/**", "foo", false}, {"foo/**", "foo/a/b", true},
		{"a/**/b", "a/b", true}, {"a/**/b", "a/x/y/b", true}, {"a/**/b", "a/xb", false},
		{"a**b", "axxb", true}, {"x/a**b", "x/a/b", false},
		{"*", "x", true}, {"/*", "a/x", false}, {"**", "a/x", true},
		{"a?c", "abc", true}, {"a?c", "a/c", false}, {"x?", "xä", false},
		{"[a-c]x", "bx", true}, {"[!a-c]x", "bx", false}, {"[^a-c]x", "dx", true}, {"[]x]", "]", true}, {"[[:digit:]]", "7", true}, {"[[:nope:]]", "n", false},
		{"[a-]x", "-x", true}, {"[a", "[a", false}, {`\[a`, "[a", true}, {`[\]]`, "]", true},
		{"#x", "#x", false}, {`\#x`, "#x", true}, {`\!x`, "!x", true},
		{"x  ", "x", true}, {`x\ `, "x ", true}, {`x\  `, "x ", true}, {"x\t", "x", false}, {"x\r", "x", true},
		{`x\`, "x", false}, {`x\`, `x\`, false},
		{"\xef\xbb\xbfx", "x", true}, {"", "x", false}, {"/", "x", false}, {"!", "x", false}, {"x//", "x/", false},
	} {
		p, dir := strings.CutSuffix(c.path, "/")
		var s *Stack
		if got := s.Push(".", Parse([]byte(c.patterns))).Ignored(p, dir); got != c.want {
			t.Errorf("%q, %q: %v, want %v", c.patterns, c.path, got, c.want)
		}
	}
}

// TestGit compares with git on made-up trees and patterns.
func TestGit(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatalf("this test needs git: %v", err)
	}
	for seed := range uint64(25) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { compare(t, git, rand.New(rand.NewPCG(seed, 7))) })
	}
}

func compare(t *testing.T, git string, rnd *rand.Rand) {
	root := t.TempDir()
	command := func(in string, args ...string) string {
		cmd := exec.Command(git, args...)
		cmd.Dir, cmd.Stdin = root, strings.NewReader(in)
		cmd.Env = []string{"HOME=" + root, "GIT_CONFIG_NOSYSTEM=1", "PATH=/usr/bin:/bin"}
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		if err := cmd.Run(); err != nil && cmd.ProcessState.ExitCode() != 1 {
			t.Fatalf("git %v: %v: %s", args, err, errs.String())
		}
		return out.String()
	}
	command("", "init", "-q")
	paths := tree(t, root, rnd)
	rules := map[string]string{}
	for _, dir := range append([]string{"."}, paths...) {
		if fi, err := os.Stat(filepath.Join(root, dir)); err != nil || !fi.IsDir() || dir != "." && rnd.IntN(3) > 0 {
			continue
		}
		rules[dir] = patterns(rnd)
		if err := os.WriteFile(filepath.Join(root, dir, ".gitignore"), []byte(rules[dir]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	exclude := patterns(rnd)
	if err := os.WriteFile(filepath.Join(root, ".git/info/exclude"), []byte(exclude), 0o644); err != nil {
		t.Fatal(err)
	}
	var stack *Stack
	var got []string
	walk(root, ".", stack.Push(".", Parse([]byte(exclude))), rules, false, &got)
	out := command(strings.Join(paths, "\x00"), "check-ignore", "--no-index", "-z", "--stdin")
	want := strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
	if out == "" {
		want = nil
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("exclude %q\nrules %q\n got %q\nwant %q", exclude, rules, got, want)
	}
}

// tree makes folders and files with names of few letters and gives their paths.
func tree(t *testing.T, root string, rnd *rand.Rand) []string {
	names := []string{"a", "b", "ab", "a.b", "b.c", ".a", "a b", "a ", "[a]", "c-", "!a", "#a", "ä", "*"}
	var paths []string
	var grow func(dir string, depth int)
	grow = func(dir string, depth int) {
		for _, n := range names {
			if rnd.IntN(2) == 0 {
				continue
			}
			p := path.Join(dir, n)
			paths = append(paths, p)
			full := filepath.Join(root, p)
			var err error
			if depth < 3 && rnd.IntN(3) == 0 {
				err = os.Mkdir(full, 0o755)
				grow(p, depth+1)
			} else {
				err = os.WriteFile(full, nil, 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	grow(".", 0)
	return paths
}

func patterns(rnd *rand.Rand) string {
	pieces := []string{"a", "b", "ab", ".", "c", "*", "**", "?", "/", "/", "/**/", "**/", "[a-b]", "[!a]", "[^b.]", `\a`, `\*`, `\ `, " ", "[[:alpha:]]", "-", "ä", `\`, "[]a]", "[a-", "[a/b]", "[", "]", "[[:x:]]", "[[:alpha]", "***"}
	var b strings.Builder
	for range 1 + rnd.IntN(5) {
		if rnd.IntN(4) == 0 {
			b.WriteByte('!')
		}
		if rnd.IntN(20) == 0 {
			b.WriteByte('#')
		}
		for n := range 1 + rnd.IntN(4) {
			piece := pieces[rnd.IntN(len(pieces))]
			// git takes a literal start off before it looks at the stars, so that
			// "a**/" is more for it than its manual says. We follow the manual.
			if n > 0 && strings.HasPrefix(piece, "*") && !strings.HasSuffix(b.String(), "/") {
				piece = "*"
				if strings.HasSuffix(b.String(), "*") {
					piece = ""
				}
			}
			b.WriteString(piece)
		}
		b.WriteString([]string{"\n", "\n", "/\n", " \n", "\r\n"}[rnd.IntN(5)])
	}
	return b.String()
}

func walk(root, dir string, s *Stack, rules map[string]string, all bool, out *[]string) {
	s = s.Push(dir, Parse([]byte(rules[dir])))
	entries, _ := os.ReadDir(filepath.Join(root, dir))
	for _, e := range entries {
		if e.Name() == ".git" || e.Name() == ".gitignore" {
			continue
		}
		p := path.Join(dir, e.Name())
		out2 := all || s.Ignored(p, e.IsDir())
		if out2 {
			*out = append(*out, p)
		}
		if e.IsDir() {
			walk(root, p, s, rules, out2, out)
		}
	}
}

// FuzzParse holds that no text of patterns breaks or stalls the matcher.
func FuzzParse(f *testing.F) {
	f.Add("a/**/b\n!*.o\n[a-z]/\n", "a/x/b")
	f.Add("**/**/**/*a*a*a*a*b", "a/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")
	f.Add("[[:x:]\\", "[")
	f.Fuzz(func(t *testing.T, patterns, p string) {
		p = path.Clean(p)
		r := Parse([]byte(patterns))
		if len(r.list) > strings.Count(patterns, "\n")+1 {
			t.Errorf("%d rules from %q", len(r.list), patterns)
		}
		r.match(p, false)
		r.match(p, true)
	})
}

func BenchmarkIgnored(b *testing.B) {
	var s *Stack
	var text strings.Builder
	for i := range 50 {
		fmt.Fprintf(&text, "name%d\n*.ext%d\n/top%d/\n", i, i, i)
	}
	s = s.Push(".", Parse([]byte(text.String())))
	for b.Loop() {
		s.Ignored("src/some/folder/file.go", false)
	}
}
