package op

import (
	"github.com/a3s-lab/liba3s/runtime/agent"
	"github.com/a3s-lab/liba3s/runtime/host"
)

// HostKind is one line of the table of what a host can supply.
type HostKind = agent.HostKind

// HostKinds gives the table of host extensions: their descriptions, operations and
// deadlines, with the Go types that their JSON has.
func HostKinds() []HostKind { return agent.HostKinds() }

// HostAnswer is the shape of every answer to a host request: a result with the type of the
// operation, or a failure.
type HostAnswer = host.Reply
