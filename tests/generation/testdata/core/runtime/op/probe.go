package op

import (
	"context"

	"github.com/a3s-lab/liba3s/runtime/agent"
)

// ProbeCall asks a probe.
type ProbeCall struct {
	Name string `json:"name"`
	Word string `json:"word"`
}

// Probed is what it saw.
type Probed struct {
	Seen string `json:"seen"`
}

func probe(ctx context.Context, a *agent.Agent, p ProbeCall) (Probed, error) {
	answer, err := a.Probe(ctx, p.Name, p.Word)
	return Probed{answer.Seen}, err
}
