package policy

import (
	"context"
	"slices"
)

// own gives the word of this Gate alone: of its rules or the default table, and of its
// checkers.
func (g *Gate) own(ctx context.Context, q Checked) Ruling {
	checkers := g.checkers()
	if len(checkers) == 0 {
		return g.decide(q.view(), q.Effects.ReadOnly())
	}
	var word Ruling
	if g.rules != nil {
		if word = g.decide(q.view(), q.Effects.ReadOnly()); word.Decision == Deny {
			return word // nothing is stricter
		}
	}
	for _, c := range checkers {
		said, err := c.Check(ctx, q)
		switch {
		case err != nil:
			said = Ruling{Decision: Deny, Reason: "the permission checker failed: " + err.Error()}
		case said.Decision != Allow && said.Decision != Ask:
			said.Decision = Deny
		}
		if said.Reason == "" {
			said.Reason = "the permission checker says " + string(said.Decision)
		}
		if word.Decision == "" {
			word = said
		} else {
			word = stricter(word, said)
		}
		if word.Decision == Deny {
			break
		}
	}
	return word
}

func (q Checked) view() CallView { return CallView{Tool: q.Call.Name, Args: q.Call.Args} }

// stricter gives the one of two words that allows less; the first if they are alike.
func stricter(a, b Ruling) Ruling {
	if a.Decision != Deny && (b.Decision == Deny || b.Decision == Ask && a.Decision == Allow) {
		return b
	}
	return a
}

// Expose is Select with the word of the checkers, which are asked: it parts the tools
// into those a model is told of and the hidden ones, in order.
func (g *Gate) Expose(ctx context.Context, offers []Offer) (shown, hidden []string) {
	asked := g.asking(offers)
	seen := map[string]bool{}
	for _, o := range offers {
		seen[o.Name] = slices.Contains(asked, o.Name) || g.shows(o)
	}
	for gate := g; gate != nil; gate = gate.parent {
		for _, c := range gate.checkers() {
			if len(asked) == 0 {
				break
			}
			said := c.Expose(ctx, asked)
			for i, name := range asked {
				if i >= len(said) || !said[i] {
					seen[name] = false
				}
			}
			asked = slices.DeleteFunc(asked, func(name string) bool { return !seen[name] })
		}
	}
	for _, o := range offers {
		if seen[o.Name] {
			shown = append(shown, o.Name)
		} else {
			hidden = append(hidden, o.Name)
		}
	}
	return shown, hidden
}

// asking gives the tools that checkers have a say in: those that the rules of all Gates
// show. A Gate without rules hides nothing if it has checkers.
func (g *Gate) asking(offers []Offer) []string {
	var names []string
	for _, o := range offers {
		if o.Own {
			continue
		}
		shown, any := true, false
		for gate := g; gate != nil; gate = gate.parent {
			checked := len(gate.checkers()) > 0
			any = any || checked
			shown = shown && (checked && gate.rules == nil || gate.alone(o))
		}
		if shown && any {
			names = append(names, o.Name)
		}
	}
	return names
}
