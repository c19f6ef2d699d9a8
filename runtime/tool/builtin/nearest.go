package builtin

import (
	"fmt"
	"strings"
)

// Bounds of the search for what an old string may have meant.
const (
	nearLines   = 200_000 // of the file
	nearOld     = 200     // lines of the old string
	nearCompare = 20_000  // lines compared letter by letter
	nearWidth   = 200     // bytes of a line compared, or shown
	nearShown   = 6       // lines
)

// nearest shows the lines of a file that an old string which is not in it is most like;
// empty if it is like none.
func nearest(content, old string) string {
	in := strings.SplitN(strings.TrimPrefix(content, bom), "\n", nearLines+1)
	in = in[:min(len(in), nearLines)]
	if len(in) > 0 && in[len(in)-1] == "" {
		in = in[:len(in)-1] // what follows the last line break is no line
	}
	want := strings.SplitN(strings.Trim(lines(old), "\n"), "\n", nearOld+1)
	want = want[:min(len(want), nearOld)]
	at, ok := byLines(in, want)
	if !ok {
		at, ok = byLetters(in, want)
	}
	if !ok {
		return ""
	}
	var b strings.Builder
	b.WriteString(" The nearest lines are:\n")
	spaces := true
	for i := at; i < min(at+len(want), len(in)); i++ {
		line := strings.TrimSuffix(in[i], "\r")
		spaces = spaces && strings.TrimSpace(line) == strings.TrimSpace(want[i-at])
		if i < at+nearShown {
			fmt.Fprintf(&b, "%6d\t%s\n", i+1, cutAt(line, nearWidth))
		}
	}
	if spaces {
		b.WriteString("They differ from old_string in white space only.\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// byLines finds the place where most lines are the same but for white space around
// them; long lines count more.
func byLines(in, want []string) (at int, ok bool) {
	index := map[string]int{}
	for j, w := range want {
		w = strings.TrimSpace(w)
		if _, seen := index[w]; !seen && len(w) >= 3 {
			index[w] = j
		}
	}
	votes, best := map[int]int{}, 0
	for i, line := range in {
		line = strings.TrimSpace(line)
		j, ok := index[line]
		if !ok || j > i {
			continue
		}
		votes[i-j] += len(line)
		if votes[i-j] > best {
			at, best = i-j, votes[i-j]
		}
	}
	return at, best > 0
}

// byLetters finds the line that shares most groups of three bytes with the longest line
// wanted, if it shares about half of them.
func byLetters(in, want []string) (at int, ok bool) {
	longest := 0
	for j, w := range want {
		if len(strings.TrimSpace(w)) > len(strings.TrimSpace(want[longest])) {
			longest = j
		}
	}
	groups := grams(want[longest])
	best := 0.45
	for i, line := range in[:min(len(in), nearCompare)] {
		have := grams(line)
		shared := 0
		for g := range have {
			if groups[g] {
				shared++
			}
		}
		if alike := 2 * float64(shared) / float64(len(have)+len(groups)+1); alike > best && i >= longest {
			at, best, ok = i-longest, alike, true
		}
	}
	return at, ok
}

func grams(line string) map[string]bool {
	line = cutAt(strings.TrimSpace(line), nearWidth)
	set := map[string]bool{}
	for i := 0; i+3 <= len(line); i++ {
		set[line[i:i+3]] = true
	}
	return set
}
