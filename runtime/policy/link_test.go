package policy_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/a3s-lab/liba3s/runtime/policy"
)

// A path through a link is judged as the link and as the file it reaches.
func TestRulesSeeThroughLinks(t *testing.T) {
	links := map[string]string{"notes.md": "secrets/key", "src/a": "src/a", "alias": "src/a"}
	scope := policy.Scope{Root: "/ws", Resolve: func(p string) (string, error) {
		if real, ok := links[p]; ok {
			return real, nil
		}
		return "", errors.New("leads outside")
	}}
	cases := []struct {
		name   string
		policy policy.Policy
		path   string
		want   policy.Decision
	}{
		{"denied through a link", policy.Policy{Deny: []string{"read(secrets/**)"}, DefaultDecision: "allow"}, "notes.md", policy.Deny},
		{"allowed link to what is not allowed", policy.Policy{Allow: []string{"read(*.md)"}, DefaultDecision: "deny"}, "notes.md", policy.Deny},
		{"allowed link to what is allowed", policy.Policy{Allow: []string{"read(alias)", "read(src/**)"}, DefaultDecision: "deny"}, "alias", policy.Allow},
		{"no link", policy.Policy{Allow: []string{"read(src/**)"}, DefaultDecision: "deny"}, "src/a", policy.Allow},
		{"cannot be resolved", policy.Policy{Allow: []string{"read(x)"}, DefaultDecision: "deny"}, "x", policy.Allow},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r, _, err := policy.Compile(c.policy, scope)
			if err != nil {
				t.Fatal(err)
			}
			args, _ := json.Marshal(map[string]string{"file_path": c.path})
			if got := r.Decide(policy.CallView{Tool: "read", Args: args}); got.Decision != c.want {
				t.Fatalf("%+v", got)
			}
		})
	}
}
