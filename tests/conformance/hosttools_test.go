package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	a3s "github.com/a3s-lab/liba3s"
)

// hostTool is an entry of host_tools.json: a tool of the host with one parameter, text,
// and its one answer.
type hostTool struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	ReadOnly    bool   `json:"read_only"`
	TimeoutMS   int    `json:"timeout_ms"`
	// Calls is how often it must have been called; nil for any number.
	Calls  *int `json:"calls"`
	Answer struct {
		Chunks    []string       `json:"chunks"`
		Wait      bool           `json:"wait"`   // until the call is withdrawn; the answer then comes too late
		Output    *string        `json:"output"` // nil for the text it was given
		ExitCode  int            `json:"exit_code"`
		Metadata  map[string]any `json:"metadata,omitempty"`
		Error     *hostError     `json:"error"`
		Garbage   bool           `json:"garbage"`
		Twice     bool           `json:"twice"`
		Withdrawn string         `json:"withdrawn"` // the reason that the withdrawal must give
	} `json:"answer"`
}

type hostError struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// plain says that a Go function can answer as the tool does: with a text or an error.
func (t *hostTool) plain() bool {
	a := t.Answer
	return !a.Garbage && !a.Twice && a.ExitCode == 0 && a.Metadata == nil
}

// goTool makes a plain tool of package a3s.
func (x *extension) goTool(c *calling) (*a3s.Tool, error) {
	t, a := x.tool, x.tool.Answer
	options := []a3s.ExtensionOption{a3s.Timeout(time.Duration(t.TimeoutMS) * time.Millisecond)}
	if t.ReadOnly {
		options = append(options, a3s.ReadOnly())
	}
	type given struct {
		Text string `json:"text"`
	}
	return a3s.NewTool(t.Name, t.Description, func(ctx context.Context, p given, emit func(string)) (string, error) {
		c.called(x.key(), "call")
		for _, chunk := range a.Chunks {
			emit(chunk)
		}
		var wrong error
		if a.Wait {
			select {
			case <-ctx.Done():
			case <-time.After(patience):
				wrong = fmt.Errorf("host tool %s: nobody withdrew the call", t.Name)
			}
		}
		c.answered(wrong)
		switch {
		case a.Error != nil:
			return "", &a3s.ExtensionError{Type: a.Error.Type, Message: a.Error.Message}
		case a.Output != nil:
			return *a.Output, nil
		}
		return p.Text, nil
	}, options...)
}

// extension gives the tool as what it is below package a3s.
func (t *hostTool) extension() *extension {
	parameters := map[string]any{"type": "object", "properties": map[string]any{"text": map[string]any{"type": "string"}}, "required": []string{"text"}, "additionalProperties": false}
	spec := map[string]any{"name": t.Name, "description": t.Description, "parameters": parameters}
	if t.ReadOnly {
		spec["read_only"] = true
	}
	if t.TimeoutMS > 0 {
		spec["timeout_ms"] = t.TimeoutMS
	}
	a := answer{Wait: t.Answer.Wait, Withdrawn: t.Answer.Withdrawn, Twice: t.Answer.Twice}
	for _, c := range t.Answer.Chunks {
		a.Chunks = append(a.Chunks, map[string]any{"delta": c})
	}
	result := map[string]any{"exit_code": t.Answer.ExitCode, "metadata": t.Answer.Metadata}
	switch {
	case t.Answer.Error != nil:
		a.Error = json.RawMessage(encode(t.Answer.Error))
	case t.Answer.Garbage:
		result = map[string]any{"output": 5}
	case t.Answer.Output != nil:
		result["output"] = *t.Answer.Output
	default:
		a.echo = true
	}
	a.Result = json.RawMessage(encode(result))
	x := &extension{Kind: "tool", Spec: json.RawMessage(encode(spec)), Answers: map[string][]answer{"call": {a}}, tool: t}
	if t.Calls != nil {
		x.Calls = map[string]int{"call": *t.Calls}
	}
	return x
}
