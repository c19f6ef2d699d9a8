package policy

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// rule is one compiled line of a policy.
type rule struct {
	text     string // as written
	tool     string // lower case
	glob     glob   // over names, if tool has * or ?
	server   string // of mcp__server: what the names of its tools start with
	argument string // the pattern as written; empty with any
	any      bool   // covers every call of the tool
	// patterns by class; a glob over names may meet every class.
	patterns [searchPath + 1]pattern
}

func parseRule(text string, as Decision, root string) (rule, error) {
	trimmed := strings.TrimSpace(text)
	switch {
	case trimmed == "":
		return rule{}, badPolicy("a rule of %s is empty", as)
	case len(text) > maxRuleBytes:
		return rule{}, badPolicy("a rule of %s has %d bytes; the limit is %d", as, len(text), maxRuleBytes)
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return rule{}, badPolicy("rule %q of %s is not valid text", text, as)
	}
	if as != Allow {
		if err := slip(trimmed, text, as); err != nil {
			return rule{}, err
		}
	}
	r := rule{text: text, any: true}
	name := trimmed
	if before, after, ok := strings.Cut(trimmed, "("); ok && strings.HasSuffix(after, ")") {
		name, r.argument = before, strings.TrimSuffix(after, ")")
		r.any = r.argument != "" && strings.Trim(r.argument, "*") == ""
	}
	r.tool = strings.ToLower(strings.TrimSpace(name))
	if r.tool == "" {
		return rule{}, badPolicy("rule %q of %s names no tool; write Tool or Tool(pattern)", text, as)
	}
	b := breadth(as != Allow)
	if strings.ContainsAny(r.tool, "*?") {
		r.glob = parts(r.tool, true, narrow)
	} else if rest, ok := strings.CutPrefix(r.tool, "mcp__"); ok && rest != "" {
		r.server = r.tool
		if b == narrow {
			r.server = strings.TrimRight(r.tool, "_") + "__" // not also mcp__github for mcp__git
		}
	}
	for c := range r.patterns {
		argument := r.argument
		if class(c).ofPaths() {
			argument = pathPattern(root, argument)
		}
		r.patterns[c] = compile(argument, class(c), b)
		r.patterns[c].any = r.any
	}
	return r, nil
}

// slip refuses what would match nothing where something is to be closed: a slip must not
// open it.
func slip(trimmed, text string, as Decision) error {
	name, pattern, scoped := strings.Cut(trimmed, "(")
	switch {
	case scoped && (pattern == ")" || !strings.HasSuffix(pattern, ")")):
		return badPolicy("rule %q of %s has no whole pattern; write Tool or Tool(pattern)", text, as)
	case strings.HasPrefix(pattern, "(") && strings.Count(trimmed, "(") != strings.Count(trimmed, ")"):
		return badPolicy("the parentheses of rule %q of %s do not pair; write Tool(pattern), and ? where the pattern begins with half a pair", text, as)
	}
	for _, c := range strings.TrimSpace(name) {
		if c != '_' && c != '-' && c != '*' && c != '?' && (c >= utf8.RuneSelf || !unicode.IsLetter(c) && !unicode.IsDigit(c)) {
			return badPolicy("rule %q of %s names no tool: a name has letters, digits, _ and -, and * or ? in their place; write Tool or Tool(pattern)", text, as)
		}
	}
	return nil
}

func (r *rule) patternFor(c class) *pattern { return &r.patterns[c] }

// names says whether the rule is about a tool.
func (r *rule) names(tool string) bool {
	switch {
	case r.glob != nil:
		return r.glob.match(strings.ToLower(tool), narrow)
	case strings.EqualFold(r.tool, tool):
		return true
	}
	return r.server != "" && len(tool) >= len(r.server) && strings.EqualFold(tool[:len(r.server)], r.server)
}

// pathPattern writes a pattern the way cleaned paths are written.
func pathPattern(root, p string) string {
	p = strings.ReplaceAll(p, `\`, "/")
	for strings.Contains(p, "//") {
		p = strings.ReplaceAll(p, "//", "/")
	}
	for strings.HasPrefix(p, "./") {
		p = p[2:]
		if p == "" {
			return "."
		}
	}
	if path.IsAbs(root) {
		if p == root {
			return "."
		}
		p = strings.TrimPrefix(p, strings.TrimSuffix(root, "/")+"/")
	}
	return p
}
