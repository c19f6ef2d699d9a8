package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

func TestCompileRefuses(t *testing.T) {
	tests := []struct {
		name string
		p    Policy
		want string
	}{
		{"decision", Policy{DefaultDecision: "maybe"}, `default_decision "maybe" is none of allow, deny, ask`},
		{"empty rule", Policy{Deny: []string{" "}}, "a rule of deny is empty"},
		{"no tool", Policy{Allow: []string{"(x)"}}, `rule "(x)" of allow names no tool`},
		{"too long", Policy{Ask: []string{strings.Repeat("x", 5000)}}, "a rule of ask has 5000 bytes"},
		{"not text", Policy{Deny: []string{"a\xff"}}, "is not valid text"},
		{"too many", Policy{Deny: make([]string, 10_001)}, "10001 rules; the limit is 10000"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := Compile(tt.p, Scope{})
			var f *fault.Error
			if !errors.As(err, &f) || f.Code != fault.CodeSessionConfig || f.Details["field"] != "permission_policy" || f.Details["reason"] != fault.BadValue {
				t.Fatalf("got %v", err)
			}
			if !strings.Contains(f.Message, tt.want) {
				t.Errorf("got %q, want %q in it", f.Message, tt.want)
			}
		})
	}
	if _, _, err := Compile(Policy{DefaultDecision: " DENY "}, Scope{}); err != nil {
		t.Errorf("decisions are trimmed and lower-cased: %v", err)
	}
}

func TestPolicyJSON(t *testing.T) {
	tests := []struct {
		name, src, want string
	}{
		{"all", `{"allow":["a",{"rule":"b"}],"deny":["c"],"ask":[],"default_decision":"deny","enabled":false}`,
			`{"allow":["a","b"],"deny":["c"],"default_decision":"deny","enabled":false}`},
		{"nothing", `{}`, `{}`},
		{"nulls", `{"allow":null,"default_decision":null,"enabled":null}`, `{}`},
		{"unknown name", `{"denny":["bash"]}`, "error"},
		{"rule of another kind", `{"deny":[1]}`, "error"},
		{"null rule", `{"deny":[null]}`, "error"},
		{"rule with an unknown name", `{"deny":[{"rule":"a","if":"b"}]}`, "error"},
		{"rule object without rule", `{"deny":[{}]}`, "error"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var p Policy
			got := "error"
			if err := json.Unmarshal([]byte(tt.src), &p); err == nil {
				b, err := json.Marshal(p)
				if err != nil {
					t.Fatal(err)
				}
				got = string(b)
			}
			if got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestWarnings(t *testing.T) {
	tools := []string{"bash", "read", "write", "grep"}
	tests := []struct {
		name string
		p    Policy
		want string // part of the only warning; empty for none
	}{
		{"clean", Policy{Allow: []string{"read", "bash(git status:*)", "mcp__x__y", "Grep"}, Deny: []string{"write(secrets/**)", "bash(rm:*)"}}, ""},
		{"unbalanced rule", Policy{Allow: []string{"bash(rm"}}, "the parentheses do not balance, so it is taken for a tool"},
		{"unbalanced pattern", Policy{Deny: []string{"bash(a(b)"}}, "inside the pattern do not balance"},
		{"pattern without parentheses", Policy{Allow: []string{"bash rm:*"}}, "put the pattern in parentheses"},
		{"empty pattern", Policy{Allow: []string{"read()"}}, "an empty pattern matches nothing"},
		{"parent", Policy{Allow: []string{"read(../x)"}}, `without ".."`},
		{"folder with a slash", Policy{Allow: []string{"read(src/)"}}, "write src/**"},
		{"home", Policy{Deny: []string{"read(~/.ssh/**)"}}, "~ is not expanded"},
		{"allow of a list", Policy{Allow: []string{"bash(cd x && make)"}}, "always asks"},
		{"options (PERM-03)", Policy{Deny: []string{"bash(rm -rf /:*)"}}, "bash(rm:*) denies them all"},
		{"denied anyway", Policy{Allow: []string{"bash(ls:*)"}, Deny: []string{"bash"}}, `the deny rule "bash" covers every call`},
		{"allowed anyway", Policy{Allow: []string{"bash"}, Ask: []string{"bash(git push:*)"}}, "allow goes before ask"},
		{"repeated", Policy{Allow: []string{"read", "read"}}, "repeats a rule of allow"},
		{"unknown tool", Policy{Deny: []string{"bassh"}}, "no tool of this session has such a name"},
		{"unknown glob", Policy{Deny: []string{"x*"}}, "no tool of this session has such a name"},
		{"disabled", Policy{Deny: []string{"bash"}, Allow: []string{"read()"}, Enabled: new(false)}, "no rule is in force"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, got, err := Compile(tt.p, Scope{Root: "/ws", Tools: tools})
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case tt.want == "" && len(got) == 0:
			case tt.want != "" && len(got) == 1 && strings.Contains(got[0].String(), tt.want):
			default:
				t.Errorf("got %v, want one with %q", got, tt.want)
			}
		})
	}
}

// A slip in a rule that is to close something must not open it (PERM-03).
func TestSlipsAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"bash(": "no whole pattern", "bash()": "no whole pattern", "bash(rm:*": "no whole pattern", "bash(rm) x": "no whole pattern",
		"bash)": "names no tool", "bash((touch:*)": "do not pair", ")bash(": "no whole pattern",
		"bash rm:*": "names no tool", "bash:rm": "names no tool", "rm -rf /": "names no tool", "bash,write": "names no tool", "bäsh": "names no tool",
		"(rm:*)": "names no tool", "[bw]*": "names no tool",
	} {
		for _, p := range []Policy{{Deny: []string{text}}, {Ask: []string{text}}} {
			if _, _, err := Compile(p, Scope{Root: "/ws"}); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: got %v, want one with %q", text, err, want)
			}
		}
	}
	for _, text := range []string{"bash", "Bash(git push:*)", "bash(:(){ :|:& };:)", "bash(*$(curl*)", "mcp__x__*", "write (src/**)", "re?d", "a-b_c9"} {
		if _, _, err := Compile(Policy{Deny: []string{text}, Ask: []string{text}}, Scope{Root: "/ws"}); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestOverlongCommandIsNotJudged(t *testing.T) {
	r, _, err := Compile(Policy{Deny: []string{"bash(rm:*)"}, Allow: []string{"read"}, DefaultDecision: "allow"}, Scope{})
	if err != nil {
		t.Fatal(err)
	}
	var many strings.Builder
	for i := range 6000 {
		fmt.Fprintf(&many, "echo %d;", i)
	}
	for name, command := range map[string]string{
		"long": "echo " + strings.Repeat("x", 2<<20), "many parts": many.String(), "deep": strings.Repeat("$(", 6000),
	} {
		args, err := json.Marshal(map[string]string{"command": command})
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Decide(CallView{Tool: "bash", Args: args}).Decision; got != Deny {
			t.Errorf("%s: got %s", name, got)
		}
	}
}

// reference writes a pattern as a regular expression, straight from its definition.
func reference(text string, crosses bool, b breadth) *regexp.Regexp {
	var re strings.Builder
	re.WriteString(`(?s)\A`)
	for i := 0; i < len(text); i++ {
		switch {
		case strings.HasPrefix(text[i:], "**"):
			start := i
			for i+1 < len(text) && text[i+1] == '*' {
				i++
			}
			slash := i+1 < len(text) && text[i+1] == '/'
			switch {
			case slash && b == wide:
				i++
				re.WriteString(".*")
			case slash && !crosses && (start == 0 || text[start-1] == '/'):
				i++
				re.WriteString("(?:.*/)?")
			default:
				re.WriteString(".*")
			}
		case text[i] == '*' && crosses:
			re.WriteString(".*")
		case text[i] == '*':
			re.WriteString(`[^/\\]*`)
		case text[i] == '?' && crosses:
			re.WriteString(".")
		case text[i] == '?':
			re.WriteString(`[^/\\]`)
		default:
			re.WriteString(regexp.QuoteMeta(text[i : i+1]))
		}
	}
	re.WriteString(`\z`)
	return regexp.MustCompile(re.String())
}

func FuzzPattern(f *testing.F) {
	for _, s := range []string{"src/**|src/a/b", "**/a*b/**/c?|x/a1b/y/c2", "a*b*/c*d|axbxb/cxd", "*a*/b|aa/ab/b", "**a*b/c|aab/ab/c", "***/x|a/x"} {
		p, text, _ := strings.Cut(s, "|")
		f.Add(p, text, true, true)
		f.Add(p, text, false, false)
	}
	f.Fuzz(func(t *testing.T, p, text string, crosses, broad bool) {
		// A small alphabet makes matches likely.
		squeeze := func(s, alphabet string) string {
			out := make([]byte, 0, 24)
			for i := 0; i < len(s) && i < 24; i++ {
				out = append(out, alphabet[int(s[i])%len(alphabet)])
			}
			return string(out)
		}
		p, text = squeeze(p, "ab/*?**"), squeeze(text, "aabb/\\\n")
		b := breadth(broad)
		got := parts(p, crosses, b).match(text, b)
		if want := reference(p, crosses, b).MatchString(text); got != want {
			t.Errorf("pattern %q, text %q, crosses %v, wide %v: got %v", p, text, crosses, broad, got)
		}
	})
}

func FuzzCommand(f *testing.F) {
	for _, s := range []string{"a; b", "echo $(x `y` \"z\")", "cat <<E\nx\nE\ny", "a 2>&1 'b' \"c\\\"", "f() { x; }", "sh -c 'sh -c x'", "#a\n<(b)"} {
		f.Add(s)
	}
	r, _, err := Compile(Policy{Deny: []string{"bash(zz:*)"}, Allow: []string{"bash(a*)"}, DefaultDecision: "allow"}, Scope{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, command string) {
		for _, around := range []string{"%s", "%s\nzz x", "zz x; %s", "true && { zz x; } ; %s"} {
			text := fmt.Sprintf(around, command)
			args, err := json.Marshal(map[string]string{"command": text})
			if err != nil {
				t.Fatal(err)
			}
			got := r.Decide(CallView{Tool: "bash", Args: args}).Decision
			if strings.HasPrefix(around, "zz") && got != Deny || strings.HasPrefix(around, "true") && got != Deny {
				t.Errorf("%q: got %s", text, got)
			}
		}
	})
}

func manyRules(tb testing.TB) *Rules {
	var p Policy
	for i := range 34 {
		p.Deny = append(p.Deny, fmt.Sprintf("bash(tool%d clean*--force**)", i))
		p.Allow = append(p.Allow, fmt.Sprintf("bash(make target%d:*)", i))
		p.Ask = append(p.Ask, fmt.Sprintf("bash(**deploy%d/*)", i))
	}
	r, _, err := Compile(p, Scope{Root: "/ws"})
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

func BenchmarkDecide(b *testing.B) {
	r := manyRules(b)
	parts := make([]string, 10)
	for i := range parts {
		parts[i] = fmt.Sprintf("git -C dir%d log --oneline 'a file' 2>/dev/null", i)
	}
	command, err := json.Marshal(map[string]string{"command": strings.Join(parts, " && ")})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if r.Decide(CallView{Tool: "bash", Args: command}).Decision != Ask {
			b.Fatal("wrong decision")
		}
	}
}

func BenchmarkMayRead(b *testing.B) {
	r, _, err := Compile(Policy{Deny: []string{"read(**/secret.php)", "read(vault/**)"}}, Scope{Root: "/ws"})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if !r.MayRead("src/some/deeper/folder/file.go") {
			b.Fatal("hidden")
		}
	}
}
