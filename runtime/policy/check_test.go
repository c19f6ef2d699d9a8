package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/a3s-lab/liba3s/runtime/chat"
)

// opinion is a checker with fixed words.
type opinion struct {
	says  Decision
	err   error
	shows []string
	asked *[]string
}

func (o opinion) Check(_ context.Context, q Checked) (Ruling, error) {
	*o.asked = append(*o.asked, "check "+q.Call.Name)
	return Ruling{Decision: o.says}, o.err
}

func (o opinion) Expose(_ context.Context, tools []string) []bool {
	*o.asked = append(*o.asked, "expose "+strings.Join(tools, " "))
	shown := make([]bool, len(tools))
	for i, name := range tools {
		shown[i] = slices.Contains(o.shows, name)
	}
	return shown
}

func several(all ...Checker) func() []Checker { return func() []Checker { return all } }

func TestCheckers(t *testing.T) {
	var asked []string
	says := func(d Decision) opinion { return opinion{says: d, asked: &asked} }
	fails := opinion{says: Allow, err: errors.New("boom"), asked: &asked}
	allow, deny, ask := &Policy{Allow: []string{"*"}}, &Policy{Deny: []string{"*"}}, &Policy{Ask: []string{"*"}}
	enabled := &ConfirmationPolicy{Enabled: true, YoloLanes: []string{"execute"}}
	for _, tt := range []struct {
		name     string
		rules    *Policy
		confirm  *ConfirmationPolicy
		checkers []Checker
		want     Decision
		asked    int
	}{
		{"alone, allow", nil, nil, []Checker{says(Allow)}, Allow, 1},
		{"alone, deny", nil, nil, []Checker{says(Deny)}, Deny, 1},
		{"alone, ask, in a lane without questions", nil, enabled, []Checker{says(Ask)}, Ask, 1},
		{"alone, fails", nil, nil, []Checker{fails}, Deny, 1},
		{"alone, another word", nil, nil, []Checker{says("perhaps")}, Deny, 1},
		{"two, the second stricter", nil, nil, []Checker{says(Allow), says(Ask)}, Ask, 2},
		{"two, the first denies", nil, nil, []Checker{says(Deny), says(Allow)}, Deny, 1},
		{"rules allow, allow", allow, nil, []Checker{says(Allow)}, Allow, 1},
		{"rules allow, deny", allow, nil, []Checker{says(Deny)}, Deny, 1},
		{"rules allow, ask", allow, nil, []Checker{says(Ask)}, Ask, 1},
		{"rules deny", deny, nil, []Checker{says(Allow)}, Deny, 0},
		{"rules ask, nobody there", ask, nil, []Checker{says(Allow)}, Deny, 0},
		{"rules ask, allow", ask, &ConfirmationPolicy{Enabled: true}, []Checker{says(Allow)}, Ask, 1},
		{"rules ask in a lane without questions, allow", ask, enabled, []Checker{says(Allow)}, Allow, 1},
		{"rules ask in a lane without questions, ask", ask, enabled, []Checker{says(Ask)}, Ask, 1},
		{"none", nil, nil, nil, Deny, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			asked = nil
			c := Config{Checkers: several(tt.checkers...)}
			if tt.rules != nil {
				c.Rules = rules(t, *tt.rules)
			}
			if tt.confirm != nil {
				c.Confirmation = confirmation(t, *tt.confirm)
			}
			r := New(c).rule(t.Context(), Checked{Call: chat.Call{Name: "write", Args: []byte(`{}`)}, Effects: chat.Effects{Write: true}})
			if r.Decision != tt.want || len(asked) != tt.asked || r.Reason == "" {
				t.Errorf("%s for %q after %q; want %s after %d", r.Decision, r.Reason, asked, tt.want, tt.asked)
			}
		})
	}
}

// A parent's checker has its say in the calls and tools of a child.
func TestParentCheckers(t *testing.T) {
	var asked []string
	parent := New(Config{Checkers: several(opinion{says: Deny, shows: []string{"read", "write"}, asked: &asked})})
	child := New(Config{Rules: rules(t, Policy{Allow: []string{"*"}, Deny: []string{"bash"}}), Parent: parent})
	r := child.rule(t.Context(), Checked{Call: chat.Call{Name: "write", Args: []byte(`{}`)}, Effects: chat.Effects{Write: true}})
	if r.Decision != Deny {
		t.Errorf("%+v", r)
	}
	shown, hidden := child.Expose(t.Context(), []Offer{{Name: "read", ReadOnly: true}, {Name: "bash"}, {Name: "write"}, {Name: "ls"}, {Name: "artifact_read", Own: true}})
	if got := fmt.Sprint(shown, hidden); got != "[read write artifact_read] [bash ls]" {
		t.Error(got)
	}
}

func TestExpose(t *testing.T) {
	offers := []Offer{{Name: "read", ReadOnly: true}, {Name: "write"}, {Name: "bash"}, {Name: "artifact_read", Own: true}}
	var asked []string
	for _, tt := range []struct {
		name   string
		policy *Policy
		shows  []string
		hidden string
		asked  string
	}{
		{"alone", nil, []string{"read", "bash"}, "write", "expose read write bash"},
		{"alone, nothing", nil, nil, "read write bash", "expose read write bash"},
		{"with rules", &Policy{Allow: []string{"read", "write"}, DefaultDecision: "deny"}, []string{"write", "bash"}, "read bash", "expose read write"},
		{"with rules that hide all", &Policy{Deny: []string{"*"}}, []string{"read"}, "read write bash", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			asked = nil
			c := Config{Checkers: several(opinion{shows: tt.shows, asked: &asked})}
			if tt.policy != nil {
				c.Rules = rules(t, *tt.policy)
			}
			shown, hidden := New(c).Expose(t.Context(), offers)
			if got := strings.Join(hidden, " "); got != tt.hidden || len(shown)+len(hidden) != len(offers) || strings.Join(asked, "; ") != tt.asked {
				t.Errorf("hidden %q, want %q; shown %q; asked %q", got, tt.hidden, shown, asked)
			}
		})
	}
	shown, hidden := New(Config{}).Expose(t.Context(), offers)
	wanted, rest := New(Config{}).Select(offers)
	if !slices.Equal(shown, wanted) || !slices.Equal(hidden, rest) {
		t.Errorf("without checkers: %q, %q", shown, hidden)
	}
}
