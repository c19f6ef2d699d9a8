package offline

import (
	"cmp"
	"math"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

const (
	maxWords   = 4
	maxHits    = 8
	maxPerFile = 3
	maxFiles   = 8
)

// word is one word of the prompt worth searching for.
type word struct {
	stem string
	// exact marks an identifier or a path, which is worth more than a plain word.
	exact bool
}

// Compiled when the first prompt is looked at: few programs use this model.
var (
	sentence = lazily(`[.!?;]\s+|\n`)
	// command opens a sentence that tells how to work, not what to look for.
	command = lazily(`(?i)^\s*(please\s+)?(do\s+not|don't|dont|never|without)\b`)
	token   = lazily(`[\p{L}\p{N}_][\p{L}\p{N}_./:-]*`)
)

func lazily(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

// significant gives the words of a prompt that are worth a search, identifiers first,
// otherwise in their order.
func significant(prompt string) []word {
	var exact, plain []word
	seen := map[string]bool{}
	for _, s := range sentence().Split(prompt, -1) {
		if command().MatchString(s) {
			continue
		}
		for _, t := range token().FindAllString(s, -1) {
			t = strings.TrimRight(t, "./:-")
			w := word{stem: t, exact: isIdentifier(t)}
			if !w.exact {
				w.stem = stem(strings.ToLower(t))
			}
			if utf8.RuneCountInString(w.stem) < 3 || !w.exact && stopWords[strings.ToLower(t)] || seen[strings.ToLower(w.stem)] {
				continue
			}
			seen[strings.ToLower(w.stem)] = true
			if w.exact {
				exact = append(exact, w)
			} else {
				plain = append(plain, w)
			}
		}
	}
	all := append(exact, plain...)
	return all[:min(len(all), maxWords)]
}

// isIdentifier tells names of things in code from words of prose.
func isIdentifier(t string) bool {
	if strings.ContainsAny(t, "_./:") {
		return true
	}
	for i, r := range t {
		if i > 0 && unicode.IsUpper(r) || unicode.IsDigit(r) {
			return true
		}
	}
	return false
}

// stem cuts a word of prose so that its relatives match: "configuration" finds "config".
func stem(t string) string {
	for _, r := range t {
		if r >= utf8.RuneSelf {
			return t
		}
	}
	if len(t) >= 9 {
		return t[:6]
	}
	for _, suffix := range []string{"ing", "ies", "es", "ed", "s"} {
		if cut, ok := strings.CutSuffix(t, suffix); ok && len(cut) >= 4 {
			return cut
		}
	}
	return t
}

// hit is one line that grep found.
type hit struct {
	path  string
	line  int
	text  string
	score float64
}

var (
	grepLine   = lazily(`^>\s?(.+?):(\d+):\s?(.*)$`)
	definition = lazily(`^\s*(export\s+|pub\s+|public\s+|private\s+|static\s+|async\s+)*(func|def|class|fn|type|struct|interface|enum|trait|function|const|#define)\b`)
)

// best ranks what the greps found: files that hold several of the words, definitions
// and telling names first.
func (s state) best() []hit {
	lines := map[string]*hit{}
	words := map[string]map[int]bool{} // path -> words it holds
	n := 0
	for _, r := range s.results {
		if r.tool != "grep" {
			continue
		}
		i := min(n, max(len(s.words)-1, 0)) // the greps come in the order of the words
		n++
		if r.failed {
			continue
		}
		found := grepHits(r.text)
		for _, h := range found {
			key := h.path + ":" + strconv.Itoa(h.line)
			if lines[key] == nil {
				lines[key] = &h
			}
			// A word that is everywhere says little.
			lines[key].score += s.weight(i) / math.Log2(2+float64(len(found)))
			if words[h.path] == nil {
				words[h.path] = map[int]bool{}
			}
			words[h.path][i] = true
		}
	}
	var all []hit
	for _, h := range lines {
		h.score *= s.factor(*h, len(words[h.path]))
		all = append(all, *h)
	}
	slices.SortFunc(all, func(a, b hit) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.path, b.path), cmp.Compare(a.line, b.line))
	})
	perFile := map[string]int{}
	return slices.Collect(func(yield func(hit) bool) {
		left := maxHits
		for _, h := range all {
			if perFile[h.path]++; perFile[h.path] > maxPerFile || left == 0 {
				continue
			}
			left--
			if !yield(h) {
				return
			}
		}
	})
}

func (s state) weight(i int) float64 {
	if i < len(s.words) && s.words[i].exact {
		return 2
	}
	return 1
}

func (s state) factor(h hit, distinct int) float64 {
	f := float64(distinct)
	if definition().MatchString(h.text) {
		f *= 2
	}
	name := strings.ToLower(path.Base(h.path))
	for _, w := range s.words {
		if strings.Contains(name, strings.ToLower(w.stem)) {
			f *= 1.5
			break
		}
	}
	if strings.Contains(name, "test") || strings.Contains(h.path, "testdata/") {
		f *= 0.5
	}
	return f
}

func grepHits(text string) []hit {
	var found []hit
	for l := range strings.Lines(text) {
		m := grepLine().FindStringSubmatch(strings.TrimRight(l, "\r\n"))
		if m == nil {
			continue
		}
		n, err := strconv.Atoi(m[2])
		if err != nil {
			continue
		}
		found = append(found, hit{path: m[1], line: n, text: strings.TrimSpace(m[3])})
	}
	return found
}

// named gives the files that glob found, up to the blank line that ends the list.
func (s state) named() []string {
	var files []string
	for _, r := range s.results {
		if r.tool != "glob" || r.failed {
			continue
		}
		list, trailer, _ := strings.Cut(r.text, "\n\n")
		if !strings.Contains(trailer, "shown") {
			continue // a message that nothing was found
		}
		for l := range strings.Lines(list) {
			if l = strings.TrimSpace(l); l != "" && len(files) < maxFiles {
				files = append(files, l)
			}
		}
	}
	return files
}

// excerpt keeps the numbered lines of a read result.
func excerpt(text string) string {
	var b strings.Builder
	for l := range strings.Lines(text) {
		num, _, ok := strings.Cut(l, "\t")
		if _, err := strconv.Atoi(strings.TrimSpace(num)); !ok || err != nil {
			continue
		}
		b.WriteString(short(strings.TrimRight(l, "\r\n"), 200) + "\n")
	}
	return b.String()
}

// short cuts s to n bytes at a letter's edge.
func short(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

var stopWords = func() map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(`
a about above add after again all also am an and any anything are as at be because been before being below between both but
by call called can cannot change check code codebase could describe did display do does doing down during each every explain
few file files find folder for from further get give had has have having he help her here him his how i if implement implemented
in into is it its just know let like list located location look make many may me might more most must my need no nor not now of
off on once one only or other our out over own please print program project read repo repository same see she should show so
some something source such summarize take tell than that the their them then there these they thing this those through to too
under until up use used uses using very want was we were what when where which while who whom why will with without work works
workspace would write you your`) {
		m[w] = true
	}
	return m
}()
