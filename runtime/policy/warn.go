package policy

import (
	"fmt"
	"slices"
	"strings"
)

// warnings looks for rules that do not do what their author may expect.
func (r *Rules) warnings(tools []string) []Warning {
	var found []Warning
	if r.disabled && len(r.deny)+len(r.allow)+len(r.ask) > 0 {
		return append(found, Warning{Message: "enabled is false: no rule is in force and every call is allowed"})
	}
	lists := []struct {
		as    Decision
		rules []rule
	}{{Deny, r.deny}, {Allow, r.allow}, {Ask, r.ask}}
	seen := map[string]Decision{}
	for _, list := range lists {
		for i := range list.rules {
			ru := &list.rules[i]
			warn := func(message string) {
				if message != "" {
					found = append(found, Warning{ru.text, message})
				}
			}
			key := ru.tool + "(" + ru.argument
			if first, again := seen[key]; again {
				warn(fmt.Sprintf("repeats a rule of %s, which decides", first))
			} else {
				seen[key] = list.as
				warn(r.unreachable(ru, list.as))
			}
			warn(shape(ru))
			warn(vain(ru, list.as))
			warn(unknown(ru, tools))
		}
	}
	return found
}

// shape finds rules that read as a name although a pattern was meant.
func shape(r *rule) string {
	if strings.ContainsAny(r.tool, "()") {
		return "the parentheses do not balance, so it is taken for a tool of this name; write Tool(pattern)"
	}
	if strings.ContainsAny(r.tool, " \t:/") {
		return "no tool has such a name; put the pattern in parentheses: Tool(pattern)"
	}
	if depth := strings.Count(r.argument, "(") - strings.Count(r.argument, ")"); depth != 0 {
		return "the parentheses inside the pattern do not balance"
	}
	return ""
}

// vain finds patterns that match nothing, or less than they seem to.
func vain(r *rule, as Decision) string {
	if r.any {
		return ""
	}
	c := classOf(r.tool)
	prefix := strings.HasSuffix(r.argument, ":*")
	written := pathPattern("", r.argument)
	switch {
	case r.argument == "":
		return "an empty pattern matches nothing; leave the parentheses out to cover every call"
	case c.ofPaths() && as == Allow && slices.Contains(strings.Split(strings.TrimSuffix(written, ":*"), "/"), ".."):
		return `it can match nothing: paths are compared without ".."`
	case c.ofPaths() && as == Allow && !prefix && strings.HasSuffix(written, "/") && written != "/":
		return fmt.Sprintf("it can match nothing: no path ends with /; write %s**", written)
	case c.ofPaths() && strings.HasPrefix(written, "~"):
		return "~ is not expanded; write the absolute path"
	case c == shell && as == Allow && commandControls(strings.TrimSuffix(r.argument, ":*")):
		return "it can match nothing: a command with separators, substitutions or redirects always asks"
	case c == shell && as == Deny && strings.Contains(r.argument, " -"):
		command, _, _ := strings.Cut(r.argument, " ")
		return fmt.Sprintf("it compares text: the same options in another order or spelling are not denied; bash(%s:*) denies them all", command)
	}
	return ""
}

func commandControls(text string) bool {
	c := cutter{text: strings.TrimSpace(text)}
	c.run()
	return c.control
}

// unreachable finds rules that an earlier list decides for.
func (r *Rules) unreachable(ru *rule, as Decision) string {
	over := func(list []rule) string {
		for i := range list {
			if o := &list[i]; o != ru && o.any && (o.tool == ru.tool || ru.glob == nil && o.names(ru.tool)) {
				return o.text
			}
		}
		return ""
	}
	if as != Deny {
		if o := over(r.deny); o != "" {
			return fmt.Sprintf("it is never reached: the deny rule %q covers every call", o)
		}
	}
	if as == Ask {
		if o := over(r.allow); o != "" {
			return fmt.Sprintf("it is never reached: the allow rule %q covers every call, and allow goes before ask", o)
		}
	}
	return ""
}

// unknown finds rules about tools that are not there. Tools of MCP servers come and
// go, so rules about those are left alone.
func unknown(r *rule, tools []string) string {
	if tools == nil || strings.HasPrefix(r.tool, "mcp__") || shape(r) != "" || slices.ContainsFunc(tools, r.names) {
		return ""
	}
	return "no tool of this session has such a name"
}
