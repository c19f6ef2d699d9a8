package event

// ProbeSeen says what a probe saw.
type ProbeSeen struct {
	Seen string `json:"seen"`
}

// Type is the wire name.
func (ProbeSeen) Type() string { return "probe_seen" }
