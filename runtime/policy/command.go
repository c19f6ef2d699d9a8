package policy

import (
	"path"
	"strings"
)

// Bounds of what is looked into of one command.
const (
	maxPieces   = 4096
	maxCommand  = 1 << 20
	maxUnfolded = 4 // bash -c inside bash -c
)

// command adds a shell command: its pieces for deny and ask, and, when it is one
// simple command by its text, the whole of it for allow.
func (s *subject) command(text string) {
	text = strings.TrimSpace(text)
	s.wide = append(s.wide, text)
	if len(text) > maxCommand {
		s.blind = true
		return
	}
	if cut := s.look(text, map[string]bool{text: true}, 0); cut.control {
		s.narrow = append(s.narrow, nil) // a group that no pattern matches
	} else {
		s.narrow = append(s.narrow, []string{text})
	}
}

// look adds the pieces of a shell text.
func (s *subject) look(text string, seen map[string]bool, depth int) *cutter {
	cut := &cutter{text: text}
	cut.run()
	s.pieces(cut, seen, depth)
	// A quote that never ends may be no quote at all; what it would swallow is looked at
	// line by line.
	if cut.unclosed && strings.Contains(text, "\n") {
		cut.lines = append(cut.lines, strings.Split(text, "\n")...)
	}
	for _, l := range cut.lines {
		if s.blind {
			break
		}
		s.look(l, seen, depth)
	}
	return cut
}

// pieces adds the spellings of every piece.
func (s *subject) pieces(cut *cutter, seen map[string]bool, depth int) {
	s.blind = s.blind || cut.overflow
	put := func(t string) {
		if t != "" && !seen[t] {
			seen[t] = true
			s.wide = append(s.wide, t)
		}
	}
	for _, p := range cut.pieces {
		if len(s.wide) > maxPieces {
			s.blind = true
			return
		}
		put(strings.TrimSpace(p.raw))
		for words := p.words; len(words) > 0; words = unwrap(words) {
			put(strings.Join(words, " "))
			if base := path.Base(words[0]); base != words[0] {
				put(strings.TrimRight(base+" "+strings.Join(words[1:], " "), " "))
			}
			for _, inner := range scripts(words) {
				if depth == maxUnfolded {
					s.blind = true
					return
				}
				s.look(inner, seen, depth+1)
			}
		}
	}
}

// wrappers start another command: which of their options take a value, and how many
// words come before the command.
var wrappers = map[string]struct {
	valued string
	before int
}{
	"env": {valued: "-u -C --unset --chdir"}, "nohup": {}, "command": {}, "builtin": {}, "exec": {valued: "-a"},
	"sudo": {valued: "-u -g -h -p -C -r -t -U -D -R -T --user --group --host --prompt --chdir"},
	"doas": {valued: "-u -C"}, "timeout": {valued: "-k -s --kill-after --signal", before: 1},
	"nice": {valued: "-n --adjustment"}, "ionice": {valued: "-c -n --class --classdata"}, "setsid": {}, "function": {before: 1}, "stdbuf": {valued: "-i -o -e"},
	"time": {valued: "-f -o"}, "xargs": {valued: "-n -I -P -L -d -s -a -E"}, "busybox": {}, "chroot": {before: 1},
}

var keywords = map[string]bool{
	"{": true, "!": true, "if": true, "then": true, "elif": true, "else": true,
	"while": true, "until": true, "do": true, "coproc": true,
}

// unwrap gives the command that words start with one wrapper taken away; nil if there
// is none to take.
func unwrap(words []string) []string {
	if keywords[words[0]] || assignment(words[0]) {
		return words[1:]
	}
	w, ok := wrappers[path.Base(words[0])]
	if !ok {
		return nil
	}
	rest := words[1:]
	for len(rest) > 0 && strings.HasPrefix(rest[0], "-") {
		option := rest[0]
		rest = rest[1:]
		if option == "--" {
			break
		}
		if len(rest) > 0 && strings.Contains(" "+w.valued+" ", " "+option+" ") {
			rest = rest[1:]
		}
	}
	if len(rest) < w.before {
		return nil
	}
	return rest[w.before:]
}

func assignment(word string) bool {
	name, _, ok := strings.Cut(word, "=")
	if !ok || name == "" || name[0] >= '0' && name[0] <= '9' {
		return false
	}
	return strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789_+") == ""
}

// scripts gives the shell texts among the arguments of a simple command.
func scripts(words []string) []string {
	var found []string
	switch path.Base(words[0]) {
	case "sh", "bash", "dash", "zsh", "ksh":
		for i, w := range words[1:] {
			if strings.HasPrefix(w, "-") && !strings.HasPrefix(w, "--") && strings.Contains(w, "c") && i+2 < len(words) {
				return []string{words[i+2]}
			}
		}
	case "eval":
		return []string{strings.Join(words[1:], " ")}
	case "find":
		for i, w := range words {
			switch w {
			case "-exec", "-execdir", "-ok", "-okdir":
				found = append(found, strings.Join(words[i+1:], " "))
			case "-delete":
				found = append(found, "rm")
			}
		}
	case "env":
		for i, w := range words {
			if (w == "-S" || w == "--split-string") && i+1 < len(words) {
				found = append(found, strings.Join(words[i+1:], " "))
			}
		}
	}
	return found
}
