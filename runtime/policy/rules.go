package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

// Policy is the permission_policy of a session.
//
// A rule is Tool or Tool(pattern). Tool is compared without case; with * or ? it is a
// glob over names; mcp__server stands for every tool of that server. Without a pattern,
// or with *, a rule covers every call of the tool. A pattern that ends with :* is a
// plain prefix; any other is a glob over the whole text, in which ** matches anything.
//
// The text is, for bash, the command; for read, write, edit, patch and download the
// path (every path of read's files); for ls the path; for grep and glob the place they
// search (deny and ask rules also see what they search for); for any other tool the
// arguments as compact JSON with sorted names. In a path * and ? do not cross /, and a
// path is compared relative to the workspace, so that src/** covers ./src/a and the
// absolute path of the same file; deny and ask rules see the path as written too. In
// a command * crosses everything. Paths are compared by their text: what a link
// leads to is judged by the workspace.
//
// Deny goes before allow, allow before ask, ask before DefaultDecision. Where a text
// leaves room, deny and ask rules err towards matching, allow rules towards not.
//
// Commands are judged by a light reading, not by a full parse. A deny or ask rule is
// tried against the whole command and against every part between separators (; & |
// line ends, substitutions, subshells, here-documents), as written and with quotes,
// redirects and leading wrappers (VAR=x, env, sudo, timeout, nohup, xargs, sh -c, ...)
// taken away. An allow rule with a pattern never matches a command with more than one
// part, a substitution or a redirect: such a command asks. Not covered: variables,
// aliases and globs that spell a command, other spellings of its options, files that
// a redirect writes, and what a program does once it runs.
type Policy struct {
	Allow []string `json:"allow,omitempty"`
	Deny  []string `json:"deny,omitempty"`
	Ask   []string `json:"ask,omitempty"`
	// DefaultDecision is "allow", "deny" or "ask"; empty is "ask".
	DefaultDecision string `json:"default_decision,omitempty"`
	// Enabled false allows everything; nil is true, so that a policy that does not
	// mention it is in force.
	Enabled *bool `json:"enabled,omitempty"`
}

// UnmarshalJSON reads a policy. A rule is a text or {"rule": text}; a name that is not
// one of the policy's is an error, so that a typing mistake switches nothing off.
func (p *Policy) UnmarshalJSON(b []byte) error {
	var wire struct {
		Allow           []ruleText `json:"allow"`
		Deny            []ruleText `json:"deny"`
		Ask             []ruleText `json:"ask"`
		DefaultDecision *string    `json:"default_decision"`
		Enabled         *bool      `json:"enabled"`
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&wire); err != nil {
		return fmt.Errorf("permission_policy: %w", err)
	}
	*p = Policy{Allow: plain(wire.Allow), Deny: plain(wire.Deny), Ask: plain(wire.Ask), Enabled: wire.Enabled}
	if wire.DefaultDecision != nil {
		p.DefaultDecision = *wire.DefaultDecision
	}
	return nil
}

type ruleText string

func (r *ruleText) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) == nil && !bytes.Equal(b, []byte("null")) {
		*r = ruleText(text)
		return nil
	}
	var object struct {
		Rule *string `json:"rule"`
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&object); err != nil || object.Rule == nil {
		return fmt.Errorf(`a rule is a text or {"rule": text}`)
	}
	*r = ruleText(*object.Rule)
	return nil
}

func plain(rules []ruleText) []string {
	var texts []string
	for _, r := range rules {
		texts = append(texts, string(r))
	}
	return texts
}

// Scope is what rules are compiled for.
type Scope struct {
	// Root is the absolute path of the workspace; empty or a name such as "mem:" if it
	// has none.
	Root string
	// Tools are the names of the session's tools, for warnings only; nil skips those.
	Tools []string
	// Resolve gives the path that is really reached through links; nil where there are
	// none.
	Resolve func(path string) (string, error)
}

// Warning says that a rule does not do what its author may expect.
type Warning struct {
	Rule    string // the rule as written, empty for the whole policy
	Message string
}

// String gives the warning in one line.
func (w Warning) String() string {
	if w.Rule == "" {
		return "permission_policy: " + w.Message
	}
	return fmt.Sprintf("permission_policy: rule %q: %s", w.Rule, w.Message)
}

// Rules is a compiled Policy. It does not change and may be used concurrently.
type Rules struct {
	root             string
	resolve          func(path string) (string, error)
	disabled         bool
	fallback         Decision
	deny, allow, ask []rule
	reads            reads
}

// CallView is what rules see of a call.
type CallView struct {
	Tool string
	Args json.RawMessage
}

// Ruling is what rules say of a call.
type Ruling struct {
	Decision Decision
	// Reason says why, for people and for the model.
	Reason string
	// Rule is the rule that decided, empty for the default.
	Rule string
}

// Bounds of a policy.
const (
	maxRules     = 10_000
	maxRuleBytes = 4096
)

// Compile checks a policy and makes it ready. The error is a *fault.Error for the
// option permission_policy.
func Compile(p Policy, s Scope) (*Rules, []Warning, error) {
	r := &Rules{root: s.Root, resolve: s.Resolve, disabled: p.Enabled != nil && !*p.Enabled}
	if path.IsAbs(s.Root) {
		r.root = path.Clean(s.Root)
	}
	switch d := Decision(strings.ToLower(strings.TrimSpace(p.DefaultDecision))); d {
	case "":
		r.fallback = Ask
	case Allow, Ask, Deny:
		r.fallback = d
	default:
		return nil, nil, badPolicy("default_decision %q is none of allow, deny, ask", p.DefaultDecision)
	}
	if n := len(p.Allow) + len(p.Deny) + len(p.Ask); n > maxRules {
		return nil, nil, badPolicy("%d rules; the limit is %d", n, maxRules)
	}
	for _, list := range []struct {
		texts []string
		into  *[]rule
		as    Decision
	}{{p.Deny, &r.deny, Deny}, {p.Allow, &r.allow, Allow}, {p.Ask, &r.ask, Ask}} {
		for _, text := range list.texts {
			rule, err := parseRule(text, list.as, r.root)
			if err != nil {
				return nil, nil, err
			}
			*list.into = append(*list.into, rule)
		}
	}
	r.reads = r.readRules()
	return r, r.warnings(s.Tools), nil
}

func badPolicy(format string, args ...any) error {
	return fault.Option("permission_policy", fault.BadValue, format, args...)
}

// Decide says what the rules say of a call.
func (r *Rules) Decide(call CallView) Ruling {
	if r.disabled {
		return Ruling{Decision: Allow, Reason: "the permission policy is disabled"}
	}
	s := r.read(call)
	for i := range r.deny {
		if d := &r.deny[i]; d.names(call.Tool) && s.meets(d.patternFor(s.class)) {
			return Ruling{Deny, fmt.Sprintf("blocked by the permission rule %q", d.text), d.text}
		}
	}
	if a := r.allowing(call.Tool, &s); a != nil {
		return Ruling{Allow, fmt.Sprintf("allowed by the permission rule %q", a.text), a.text}
	}
	for i := range r.ask {
		if a := &r.ask[i]; a.names(call.Tool) && s.meets(a.patternFor(s.class)) {
			return Ruling{Ask, fmt.Sprintf("the permission rule %q asks", a.text), a.text}
		}
	}
	return Ruling{Decision: r.fallback, Reason: byDefault[r.fallback]}
}

var byDefault = map[Decision]string{
	Allow: "allowed by the default of the permission policy",
	Deny:  "blocked by permission policy: no rule allows it",
	Ask:   "no permission rule covers it",
}

// allowing gives an allow rule that covers the call. Of several files each needs one.
func (r *Rules) allowing(tool string, s *subject) *rule {
	var last *rule
	for i := range r.allow {
		if a := &r.allow[i]; a.any && a.names(tool) {
			return a
		}
	}
	for _, group := range s.narrow {
		if last = r.covering(tool, s.class, group); last == nil {
			return nil
		}
	}
	return last
}

func (r *Rules) covering(tool string, c class, group []string) *rule {
	for i := range r.allow {
		if a := &r.allow[i]; a.names(tool) && slices.ContainsFunc(group, a.patternFor(c).match) {
			return a
		}
	}
	return nil
}

// Visible says whether a model may be told of a tool: not if every call of it would
// be denied.
func (r *Rules) Visible(tool string) bool {
	if r.disabled {
		return true
	}
	for i := range r.deny {
		if r.deny[i].names(tool) && r.deny[i].any {
			return false
		}
	}
	return r.fallback != Deny || r.mentions(r.allow, tool) || r.mentions(r.ask, tool)
}

func (r *Rules) mentions(list []rule, tool string) bool {
	for i := range list {
		if list[i].names(tool) {
			return true
		}
	}
	return false
}

// mayAllow says whether some call of the tool could be allowed without a question.
func (r *Rules) mayAllow(tool string) bool {
	if r.disabled || r.mentions(r.allow, tool) {
		return true
	}
	if r.fallback != Allow {
		return false
	}
	for i := range r.ask {
		if r.ask[i].names(tool) && r.ask[i].any {
			return false
		}
	}
	return true
}

// reads is what MayRead needs, kept apart since it is asked for every file of a search.
type reads struct {
	deny, allow, ask []*pattern
	closed           bool // only what allow or ask name may be read
	absolute         bool // some pattern may fit an absolute path
}

func (r *Rules) readRules() reads {
	var out reads
	collect := func(list []rule) (found []*pattern) {
		for i := range list {
			if list[i].names("read") {
				p := list[i].patternFor(filePath)
				out.absolute = out.absolute || strings.HasPrefix(list[i].argument, "/") || strings.HasPrefix(list[i].argument, "*")
				found = append(found, p)
			}
		}
		return found
	}
	out.deny, out.allow, out.ask = collect(r.deny), collect(r.allow), collect(r.ask)
	out.closed = r.fallback == Deny && len(out.allow)+len(out.ask) > 0
	return out
}

// MayRead says whether a file may show up in the results of a search: not if the
// rules deny it to the read tool. With default_decision "deny" and no rule that names
// read, only deny rules count: there the search tool's own rule decides.
func (r *Rules) MayRead(file string) bool {
	if r == nil || r.disabled {
		return true
	}
	if len(r.reads.deny) == 0 && !r.reads.closed {
		return true
	}
	names := []string{cleanPath(r.root, file)}
	if r.reads.absolute && path.IsAbs(r.root) && !path.IsAbs(names[0]) {
		names = append(names, path.Join(r.root, names[0]))
	}
	fits := func(list []*pattern) bool {
		for _, p := range list {
			for _, n := range names {
				if p.match(n) {
					return true
				}
			}
		}
		return false
	}
	return !fits(r.reads.deny) && (!r.reads.closed || fits(r.reads.allow) || fits(r.reads.ask))
}
