package extensions

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

const calls = `call mine {"q": "x"}
end
say done
end`

var mine = object{"name": "mine", "description": "looks things up", "parameters": object{"type": "object", "properties": object{"q": object{"type": "string"}}, "required": []string{"q"}}, "read_only": true}

func TestTool(t *testing.T) {
	for name, c := range map[string]struct {
		call   handler
		output string
		kind   any
	}{
		"answers": {func(a asked) (any, error) {
			want(t, "args", a.param("args"), object{"q": "x"})
			_ = a.chunk(object{"delta": "loo"})
			_ = a.chunk(raw(`[]`)) // what cannot be read is no output
			_ = a.chunk(object{"delta": "king"})
			return object{"output": "found"}, nil
		}, "found", nil},
		"raises":  {func(asked) (any, error) { return nil, errors.New("boom") }, "Tool execution error: ValueError: boom", nil},
		"garbage": {result(object{"outptu": "x"}), `tool mine gave an answer that cannot be read: it needs {"output": string}`, nil},
		"null":    {result(nil), `tool mine gave an answer that cannot be read: it needs {"output": string}`, nil},
		"half":    {result(object{"output": "x", "exit_code": 1.5}), "tool mine gave an answer that cannot be read: exit_code is the number 1.5 where an integer is needed", nil},
		"words":   {result(object{"output": "x", "error_kind": "timeout"}), "tool mine gave an answer that cannot be read: error_kind is a string where an object is needed", nil},
		"typed":   {result(object{"output": "no", "exit_code": 1, "error_kind": object{"type": "rate_limited", "retry_after_ms": 5}}), "no", object{"type": "rate_limited", "retry_after_ms": 5}},
	} {
		t.Run(name, func(t *testing.T) {
			p := scripted(t, calls)
			p.on("tool/call", c.call)
			p.register("tool", mine)
			r := p.run(p.session(nil), "hi")
			end := r.payload("tool_end")
			want(t, "output", end["output"], c.output)
			want(t, "kind", end["error_kind"], c.kind)
			want(t, "text", r.text, "done")
		})
	}
}

// A tool comes to open sessions and to those that open later, and leaves them all.
func TestToolComesAndGoes(t *testing.T) {
	p := scripted(t, calls)
	has := func(names []string) bool { return slices.Contains(names, "mine") }
	before := p.session(nil)
	reg := p.register("tool", mine)
	after := p.session(nil)
	if !has(before.ToolNames()) || !has(after.ToolNames()) {
		t.Errorf("%q, %q", before.ToolNames(), after.ToolNames())
	}
	_, err := p.tryRegister("tool", mine, before)
	wantError(t, "of a session, under the agent's name", err, fault.CodeAlreadyExists)
	_, err = p.tryRegister("tool", object{"name": "BASH"})
	wantError(t, "a built-in name", err, fault.CodeAlreadyExists)
	if err := reg.Close(); err != nil {
		t.Fatal(err)
	}
	if has(before.ToolNames()) || has(after.ToolNames()) {
		t.Errorf("%q, %q", before.ToolNames(), after.ToolNames())
	}
	p.register("tool", mine, before)
	if !has(before.ToolNames()) || has(after.ToolNames()) {
		t.Errorf("%q, %q", before.ToolNames(), after.ToolNames())
	}
	_, err = p.tryRegister("tool", mine)
	wantError(t, "of the agent, under a session's name", err, fault.CodeAlreadyExists)
	if err := before.Close(bg); err != nil {
		t.Fatal(err)
	}
	p.register("tool", mine) // the session and its registration are gone
}

// Sessions that open while tools come and go have each tool once, or not at all.
func TestToolRaces(t *testing.T) {
	p := scripted(t, calls)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 10 {
				s, err := p.trySession(nil)
				if err != nil {
					t.Error(err)
					return
				}
				if err := s.Close(bg); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 40 {
		reg, err := p.tryRegister("tool", mine)
		if err != nil {
			t.Error(err)
			break
		}
		if err := reg.Close(); err != nil {
			t.Error(err)
		}
	}
	all.Wait()
	last := p.session(nil)
	if slices.Contains(last.ToolNames(), "mine") {
		t.Error("a tool was left behind")
	}
}

// A host that leaves while a tool runs ends the call at once, and the run goes on.
func TestToolHostGone(t *testing.T) {
	p := scripted(t, calls)
	p.on("tool/call", func(asked) (any, error) {
		p.stream.Close()
		return nil, errSilent
	})
	p.register("tool", mine)
	r := p.run(p.session(nil), "hi")
	want(t, "kind", r.payload("tool_end")["error_kind"].(object)["type"], "unsupported")
	want(t, "text", r.text, "done")
}

// One of two control streams may go.
func TestToolSecondStream(t *testing.T) {
	p := scripted(t, calls)
	second, err := openSecond(p)
	if err != nil {
		t.Fatal(err)
	}
	p.on("tool/call", func(asked) (any, error) {
		second()
		return object{"output": "still here"}, nil
	})
	p.register("tool", mine)
	r := p.run(p.session(nil), "hi")
	want(t, "output", r.payload("tool_end")["output"], "still here")
}
