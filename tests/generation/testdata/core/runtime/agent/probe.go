package agent

import (
	"context"
	"time"

	"github.com/a3s-lab/liba3s/runtime/host"
)

// ProbeSpec describes a probe.
type ProbeSpec struct {
	host.Extension
	// Depth is how deep it looks.
	Depth int `json:"depth,omitempty"`
}

// ProbeQuestion are the parameters of "look".
type ProbeQuestion struct {
	Word string `json:"word"`
}

// ProbeAnswer is the result of "look".
type ProbeAnswer struct {
	Seen string `json:"seen"`
}

var probeKind = HostKind{
	Name: "probe", Doc: "A thing that looks at words.", Agent: true,
	Deadline: 5 * time.Second, NoAnswer: "an error", Spec: ProbeSpec{},
	Ops: []HostOp{{"look", "Look at a word.", ProbeQuestion{}, ProbeAnswer{}, nil}},
}

// Probe asks a probe of the host.
func (a *Agent) Probe(ctx context.Context, name, word string) (ProbeAnswer, error) {
	var seen ProbeAnswer
	r, err := a.named("probe", name)
	if err == nil {
		err = r.line.Ask(ctx, host.Question{Op: "look", Params: ProbeQuestion{word}}, &seen)
	}
	return seen, err
}
