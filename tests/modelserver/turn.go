package modelserver

import (
	"fmt"

	"github.com/a3s-lab/liba3s/runtime/model/modeltest"
)

// From gives the answer that makes a client see a turn of the suite for model clients.
func From(t modeltest.Turn) Answer {
	a := Answer{Reasoning: t.Reasoning, Text: t.Text, PromptTokens: t.Usage.PromptTokens, CompletionTokens: t.Usage.CompletionTokens}
	for i, c := range t.Calls {
		a.Calls = append(a.Calls, Call{ID: fmt.Sprintf("call_%d", i), Name: c.Name, Arguments: c.Args})
	}
	switch t.Fail {
	case modeltest.Cut:
		a.NoFinish = true
	case modeltest.Hang:
		a.NoFinish, a.KeepOpen = true, true
	case modeltest.Busy:
		a.Status, a.Raw = 503, `{"error":{"message":"busy"}}`
	case modeltest.Reject:
		a.Status, a.Raw = 400, `{"error":{"message":"no"}}`
	}
	return a
}
