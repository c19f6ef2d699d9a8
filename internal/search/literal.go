package search

import (
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// need is a condition that costs little to check: every line that matches contains one
// of these texts. Without texts there is no condition.
type need struct {
	texts []string
	fold  bool // the texts are lower case and are looked for in lower-cased data
	whole bool // and every line that contains one matches
}

// Bounds of what is worked out from an expression.
const (
	maxTexts = 16
	maxText  = 64
)

// needOf finds the best condition of an expression.
func needOf(re *syntax.Regexp) need {
	e := examine(re)
	n := better(e.best, usable(e.exact, e.isExact))
	if n.whole && slices.ContainsFunc(n.texts, func(t string) bool { return strings.ContainsAny(t, "\r\n") }) {
		n.whole = false
	}
	return n
}

// set is texts of which an expression matches exactly one.
type set struct {
	texts  []string
	fold   bool // in any case
	assert bool // and something else holds at its place, such as a word's end
}

// examined is what is known of an expression.
type examined struct {
	exact   set
	isExact bool
	best    need // of the parts that are not exact
}

func exactly(texts ...string) examined { return examined{exact: set{texts: texts}, isExact: true} }

func examine(re *syntax.Regexp) examined {
	switch re.Op {
	case syntax.OpEmptyMatch:
		return exactly("")
	case syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return examined{exact: set{texts: []string{""}, assert: true}, isExact: true}
	case syntax.OpLiteral:
		if slices.Contains(re.Rune, utf8.RuneError) {
			return examined{} // it matches any byte that is no UTF-8
		}
		if len(re.Rune) > maxText {
			return examined{best: usable(literalSet(re, re.Rune[:maxText]), true).part()}
		}
		return examined{exact: literalSet(re, re.Rune), isExact: true}
	case syntax.OpCharClass:
		return examineClass(re)
	case syntax.OpCapture:
		return examine(re.Sub[0])
	case syntax.OpQuest:
		e := examine(re.Sub[0])
		if e.isExact && len(e.exact.texts) < maxTexts {
			e.exact.texts = append([]string{""}, e.exact.texts...)
			return examined{exact: e.exact, isExact: true}
		}
	case syntax.OpPlus:
		return examined{best: examine(re.Sub[0]).need().part()}
	case syntax.OpRepeat:
		if re.Min >= 1 {
			return examined{best: examine(re.Sub[0]).need().part()}
		}
	case syntax.OpConcat:
		return examineConcat(re.Sub)
	case syntax.OpAlternate:
		return examineAlternate(re.Sub)
	}
	return examined{}
}

func (e examined) need() need { return better(e.best, usable(e.exact, e.isExact)) }

// part says that the condition is only necessary.
func (n need) part() need {
	n.whole = false
	return n
}

func literalSet(re *syntax.Regexp, runes []rune) set {
	text := string(runes)
	if re.Flags&syntax.FoldCase != 0 {
		return set{texts: []string{strings.Map(lowerASCII, text)}, fold: true}
	}
	return set{texts: []string{text}}
}

func lowerASCII(r rune) rune {
	if 'A' <= r && r <= 'Z' {
		return r + 'a' - 'A'
	}
	return r
}

func examineClass(re *syntax.Regexp) examined {
	var e examined
	for i := 0; i+1 < len(re.Rune); i += 2 {
		for r := re.Rune[i]; r <= re.Rune[i+1]; r++ {
			if len(e.exact.texts) == 4 || r == utf8.RuneError || r == unicode.MaxRune {
				return examined{}
			}
			e.exact.texts = append(e.exact.texts, string(r))
		}
	}
	e.isExact = len(e.exact.texts) > 0
	return e
}

func examineConcat(subs []*syntax.Regexp) examined {
	run := set{texts: []string{""}}
	out := examined{isExact: true}
	for _, sub := range subs {
		e := examine(sub)
		if !e.isExact {
			out.isExact = false
			out.best = better(out.best, usable(run, true).part())
			out.best = better(out.best, e.best.part())
			run = set{texts: []string{""}}
			continue
		}
		out.best = better(out.best, usable(e.exact, len(subs) > 1).part())
		joined, ok := join(run, e.exact)
		if !ok {
			out.isExact = false
			out.best = better(out.best, usable(run, true).part())
			joined = e.exact
		}
		run = joined
	}
	if out.isExact {
		out.exact = run
		return out
	}
	out.best = better(out.best, usable(run, true).part())
	return out
}

// join puts every text of b behind every text of a.
func join(a, b set) (set, bool) {
	if len(a.texts)*len(b.texts) > maxTexts {
		return set{}, false
	}
	out := set{fold: a.fold || b.fold, assert: a.assert || b.assert}
	for _, x := range a.texts {
		for _, y := range b.texts {
			if len(x)+len(y) > maxText {
				return set{}, false
			}
			out.texts = append(out.texts, x+y)
		}
	}
	out.lower(a.fold != b.fold)
	return out, true
}

// lower makes all texts lower case after sets with and without regard to case met.
func (s *set) lower(mixed bool) {
	if !mixed {
		return
	}
	for i, t := range s.texts {
		s.texts[i] = strings.Map(lowerASCII, t)
	}
}

func examineAlternate(subs []*syntax.Regexp) examined {
	out := examined{isExact: true}
	var all need
	every := true
	for i, sub := range subs {
		e := examine(sub)
		n := e.need()
		every = every && len(n.texts) > 0 && len(all.texts)+len(n.texts) <= maxTexts
		if every {
			mixed := i > 0 && all.fold != n.fold
			all.texts, all.fold = append(all.texts, n.texts...), all.fold || n.fold
			if mixed {
				s := set{texts: all.texts}
				s.lower(true)
				if u := usable(set{texts: s.texts, fold: true}, true); len(u.texts) > 0 {
					all = u
				} else {
					every = false
				}
			}
		}
		out.isExact = out.isExact && e.isExact && len(out.exact.texts)+len(e.exact.texts) <= maxTexts
		if out.isExact {
			mixed := i > 0 && out.exact.fold != e.exact.fold
			out.exact.texts = append(out.exact.texts, e.exact.texts...)
			out.exact.fold = out.exact.fold || e.exact.fold
			out.exact.assert = out.exact.assert || e.exact.assert
			out.exact.lower(mixed)
		}
	}
	if out.isExact {
		return out
	}
	if every {
		return examined{best: all.part()}
	}
	return examined{}
}

// usable makes a condition of a set. When case does not count, only ASCII letters but k
// and s can be looked for: the Kelvin sign and the long s fold to these two.
func usable(s set, ok bool) need {
	if !ok || len(s.texts) == 0 {
		return need{}
	}
	n := need{texts: s.texts, fold: s.fold, whole: !s.fold && !s.assert}
	if s.fold {
		n.texts = make([]string, len(s.texts))
		for i, t := range s.texts {
			n.texts[i] = longestSafe(t)
		}
	}
	if slices.Contains(n.texts, "") {
		return need{}
	}
	slices.Sort(n.texts)
	n.texts = slices.Compact(n.texts)
	return n
}

func longestSafe(t string) string {
	best, start := "", 0
	for i := 0; i <= len(t); i++ {
		if i < len(t) && t[i] < utf8.RuneSelf && t[i] != 'k' && t[i] != 's' {
			continue
		}
		if i-start > len(best) {
			best = t[start:i]
		}
		start = i + 1
	}
	return best
}

// better prefers long texts and few of them.
func better(a, b need) need {
	if b.score() > a.score() {
		return b
	}
	return a
}

func (n need) score() int {
	if len(n.texts) == 0 {
		return 0
	}
	shortest := maxText
	for _, t := range n.texts {
		l := len(t)
		if strings.TrimSpace(t) == "" {
			l = 1 // blanks are everywhere
		}
		shortest = min(shortest, l)
	}
	return max(1, 4*min(shortest, 8)-2*(len(n.texts)-1)+min(shortest, 20))
}
