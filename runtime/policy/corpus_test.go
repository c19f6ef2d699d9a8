package policy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// corpusCase is one "== name" section of tests/corpus/permissions.
type corpusCase struct {
	name      string
	policy    Policy
	root      string
	questions []question
}

type question struct{ what, arg, want, at string }

func readCorpus(t *testing.T) []corpusCase {
	files, err := filepath.Glob("../../tests/corpus/permissions/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no corpus: %v", err)
	}
	var cases []corpusCase
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(string(b), "\n") {
			if line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			if name, ok := strings.CutPrefix(line, "== "); ok {
				cases = append(cases, corpusCase{name: name, root: "/ws"})
				continue
			}
			c := &cases[len(cases)-1]
			word, rest, _ := strings.Cut(line, " ")
			if i := strings.LastIndex(rest, " -> "); i >= 0 {
				c.questions = append(c.questions, question{word, rest[:i], rest[i+4:], filepath.Base(file) + ": " + line})
				continue
			}
			switch word {
			case "allow":
				c.policy.Allow = append(c.policy.Allow, rest)
			case "deny":
				c.policy.Deny = append(c.policy.Deny, rest)
			case "ask":
				c.policy.Ask = append(c.policy.Ask, rest)
			case "default":
				c.policy.DefaultDecision = rest
			case "root":
				c.root = rest
			case "disabled":
				c.policy.Enabled = new(false)
			default:
				t.Fatalf("%s: cannot read %q", file, line)
			}
		}
	}
	return cases
}

func TestCorpus(t *testing.T) {
	asked := 0
	for _, c := range readCorpus(t) {
		t.Run(c.name, func(t *testing.T) {
			r, _, err := Compile(c.policy, Scope{Root: c.root})
			if err != nil {
				t.Fatal(err)
			}
			yesNo := map[bool]string{true: "yes", false: "no"}
			for _, q := range c.questions {
				asked++
				var got string
				switch q.what {
				case "visible":
					got = yesNo[r.Visible(q.arg)]
				case "mayread":
					got = yesNo[r.MayRead(q.arg)]
				default:
					ruling := r.Decide(CallView{Tool: q.what, Args: []byte(q.arg)})
					got = string(ruling.Decision)
					if ruling.Reason == "" {
						t.Errorf("%s: no reason", q.at)
					}
				}
				if got != q.want {
					t.Errorf("%s: got %s", q.at, got)
				}
			}
		})
	}
	if asked < 60 {
		t.Errorf("the corpus has only %d questions", asked)
	}
}
