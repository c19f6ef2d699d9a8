package script

import (
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

// Bounds of a script; it may come from a repository.
const (
	maxScript = 16 << 20
	maxWait   = 24 * time.Hour
)

type verb string

const (
	say    verb = "say"
	think  verb = "think"
	call   verb = "call"
	wait   verb = "wait"
	expect verb = "expect"
	fail   verb = "fail"
	end    verb = "end"
)

// turn is what one call of the model plays.
type turn []step

// step is one line.
type step struct {
	verb verb
	line int
	text string // of say, think, call (the arguments), expect, fail
	tool string
	kind string
	wait time.Duration
	re   *regexp.Regexp
}

// parse reads a script into turns.
func parse(text string) ([]turn, error) {
	if len(text) > maxScript {
		return nil, fault.Of(fault.CodeConfig, op, "the script is larger than %d bytes", maxScript)
	}
	if !utf8.ValidString(text) {
		return nil, fault.Of(fault.CodeConfig, op, "the script is not valid UTF-8")
	}
	var turns []turn
	var open turn
	failed := false // the step before closed its turn; an end after it closes nothing more
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimLeft(strings.TrimRight(line, "\r\n"), " \t")
		if line == "" || line[0] == '#' {
			continue
		}
		s, err := parseStep(line, n)
		if err != nil {
			return nil, err
		}
		if s.verb == end {
			if !failed {
				turns = append(turns, open)
			}
			open, failed = nil, false
			continue
		}
		open = append(open, s)
		if failed = s.verb == fail; failed {
			turns, open = append(turns, open), nil
		}
	}
	if len(open) > 0 {
		turns = append(turns, open)
	}
	return turns, nil
}

func parseStep(line string, n int) (step, error) {
	word, rest, _ := strings.Cut(line, " ")
	s := step{verb: verb(word), line: n, text: rest}
	bad := func(format string, args ...any) (step, error) {
		return step{}, fault.Of(fault.CodeConfig, op, "line %d: "+format, append([]any{n}, args...)...).With("line", n)
	}
	switch s.verb {
	case say, think:
		return s, nil
	case call:
		s.tool, s.text, _ = strings.Cut(strings.TrimLeft(rest, " "), " ")
		s.text = strings.TrimSpace(s.text)
		if s.tool == "" {
			return bad("call needs the name of a tool")
		}
		return s, nil
	case wait:
		ms, err := strconv.ParseInt(strings.TrimSpace(rest), 10, 64)
		if err != nil || ms < 0 || ms > maxWait.Milliseconds() {
			return bad("wait needs a number of milliseconds, not %q", rest)
		}
		s.wait = time.Duration(ms) * time.Millisecond
		return s, nil
	case expect:
		re, err := regexp.Compile(rest)
		if err != nil {
			return bad("expect needs a regular expression: %v", err)
		}
		s.re = re
		return s, nil
	case fail:
		s.kind, s.text, _ = strings.Cut(strings.TrimLeft(rest, " "), " ")
		if !knownKind(s.kind) {
			return bad("fail needs an error kind, retryable, cut or context, not %q", s.kind)
		}
		if s.text == "" {
			s.text = "the script fails here"
		}
		return s, nil
	case end:
		if strings.TrimSpace(rest) != "" {
			return bad("end stands alone, not before %q", rest)
		}
		return s, nil
	}
	return bad("unknown step %q; steps are say, think, call, wait, expect, fail and end", word)
}

func knownKind(kind string) bool {
	switch kind {
	case "retryable", "cut", "context":
		return true
	}
	for _, row := range fault.Kinds {
		if string(row.Kind) == kind {
			return true
		}
	}
	return false
}
