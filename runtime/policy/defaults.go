package policy

// NobodyToAsk is the reason of a denial where the rules ask and no confirmation policy
// is enabled.
const NobodyToAsk = "nobody can be asked: set confirmation_policy"

// situation says which policies a session was given.
type situation struct {
	rules   bool // a permission policy
	confirm bool // a confirmation policy that is enabled
}

// outcome is what becomes of a kind of call.
type outcome int

const (
	byRules    outcome = iota
	rulesNoAsk         // the rules, with ask turned into a denial
	allowed
	asked
	denied
)

// exposure says which tools a model is told of.
type exposure int

const (
	shownByRules exposure = iota
	shownNoAsk            // by the rules, without tools whose every call is an ask
	shownAll
	shownReadOnly
)

// defaults is the table of what happens with and without policies. An ask never runs
// unasked.
var defaults = map[situation]struct {
	readOnly, other outcome
	shown           exposure
}{
	{rules: false, confirm: false}: {allowed, denied, shownReadOnly},
	{rules: false, confirm: true}:  {allowed, asked, shownAll},
	{rules: true, confirm: false}:  {rulesNoAsk, rulesNoAsk, shownNoAsk},
	{rules: true, confirm: true}:   {byRules, byRules, shownByRules},
}

// Offer is a tool that could be shown to a model.
type Offer struct {
	Name string
	// ReadOnly says that every call, or the plain one, changes nothing anywhere.
	ReadOnly bool
	// Own says that it touches nothing but the session's own records (artifact_read).
	Own bool
}

// decide gives what rules and table say of a call.
func (g *Gate) decide(call CallView, readOnly bool) Ruling {
	row := defaults[situation{g.rules != nil, g.canAsk()}]
	out := row.other
	if readOnly {
		out = row.readOnly
	}
	switch out {
	case allowed:
		return Ruling{Decision: Allow, Reason: "it changes nothing"}
	case denied:
		return Ruling{Decision: Deny, Reason: NobodyToAsk}
	}
	ruling := Ruling{Decision: Ask, Reason: "no permission_policy was given"}
	if out != asked {
		ruling = g.rules.Decide(call)
	}
	switch {
	case ruling.Decision != Ask:
	case out == rulesNoAsk:
		ruling.Decision, ruling.Reason = Deny, NobodyToAsk
	case g.confirmation.skips(call.Tool):
		ruling.Decision, ruling.Reason = Allow, "its lane runs without confirmation (yolo_lanes)"
	}
	return ruling
}

// shows says whether a model is told of a tool.
func (g *Gate) shows(o Offer) bool {
	if o.Own {
		return true
	}
	return g.alone(o) && (g.parent == nil || g.parent.shows(o))
}

// alone is shows without the parents.
func (g *Gate) alone(o Offer) bool {
	switch defaults[situation{g.rules != nil, g.canAsk()}].shown {
	case shownAll:
		return true
	case shownReadOnly:
		return o.ReadOnly
	case shownNoAsk:
		return g.rules.Visible(o.Name) && g.rules.mayAllow(o.Name)
	}
	return g.rules.Visible(o.Name)
}

// Select parts the tools into those a model is told of and the hidden ones, in order.
// The hidden ones belong into init_warning, so that nobody has to guess.
func (g *Gate) Select(offers []Offer) (shown, hidden []string) {
	for _, o := range offers {
		if g.shows(o) {
			shown = append(shown, o.Name)
		} else {
			hidden = append(hidden, o.Name)
		}
	}
	return shown, hidden
}
