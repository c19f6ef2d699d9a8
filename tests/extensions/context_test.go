package extensions

import (
	"errors"
	"strings"
	"testing"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

// background runs a prompt with context providers and gives what the model was told, and
// the run.
func background(t *testing.T, p *program, options object, specs ...object) (string, ran) {
	t.Helper()
	system := ""
	p.on("model/stream", func(a asked) (any, error) {
		system, _ = a.param("system").(string)
		return object{"text": "done"}, nil
	})
	p.register("model", object{"name": "mine", "context": 20_000})
	s := p.session(options)
	for _, spec := range specs {
		p.register("context", spec, s)
	}
	r := p.run(s, "why is it slow?")
	if r.err != nil {
		t.Fatal(r.err)
	}
	_, section, _ := strings.Cut(system, "## Background")
	return section, r
}

func item(id, content string, more ...object) object {
	it := object{"id": id, "content": content}
	for _, m := range more {
		for k, v := range m {
			it[k] = v
		}
	}
	return it
}

func TestContext(t *testing.T) {
	p := start(t, hostModel, nil)
	p.on("context/query", func(a asked) (any, error) {
		want(t, "params", a.Params, object{"query": "why is it slow?", "max_results": 16, "session_id": "s1"})
		return object{"items": []object{
			item("low", "the second\nline two\u2028line three", object{"priority": 0.1, "source": "wiki\n[fake]"}),
			item("high", "the first", object{"priority": 0.9, "type": "issue"}),
			item("high", "a double by id"),
			item("other", "the first"),
			item("big", strings.Repeat("x ", 9000), object{"priority": 1}),
			item("needed", strings.Repeat("y", 4400), object{"required": true, "token_count": 1}),
			item("empty", "  "),
		}}, nil
	})
	section, r := background(t, p, object{"session_id": "s1"}, object{"name": "tracker"})
	_, section, _ = strings.Cut(section, "in it.\n")
	want(t, "section", section, `
[text "needed" by "tracker"]
> `+strings.Repeat("y", 4400)+`

[issue "high" by "tracker"]
> the first

[text "low" from "wiki\n[fake]" by "tracker"]
> the second
> line two
> line three`)
	want(t, "events", r.types(), []string{"agent_start", "context_resolving", "context_resolved", "turn_start", "text_delta", "turn_end", "agent_end"})
	want(t, "resolving", r.payload("context_resolving"), object{"providers": []string{"tracker"}})
	want(t, "items", r.payload("context_resolved")["total_items"], 3)
}

// A provider that fails is left out; the others count.
func TestContextFailures(t *testing.T) {
	many := []object{}
	for range 40 {
		many = append(many, item("n"+strings.Repeat("i", len(many)), "item "+strings.Repeat("i", len(many))))
	}
	for name, c := range map[string]struct {
		spec  object
		query handler
		log   string
		items int
	}{
		"raises":            {object{"name": "x"}, func(asked) (any, error) { return nil, errors.New("boom") }, "context provider x was left out: ValueError: boom", 1},
		"no answer in time": {object{"name": "x", "timeout_ms": 30}, func(asked) (any, error) { return nil, errSilent }, `context provider x was left out: the host did not answer context "x" within 30ms`, 1},
		"garbage":           {object{"name": "x"}, result(object{"items": []object{{"content": "no id"}}}), "needs an id", 1},
		"a list":            {object{"name": "x"}, result([]int{1}), "cannot be read", 1},
		"too much":          {object{"name": "x"}, result(object{"items": []object{item("a", strings.Repeat("x", 5<<20))}}), "more than", 1},
		"a count too big":   {object{"name": "x"}, result(object{"items": []object{item("a", "x", object{"required": true, "token_count": 1 << 40})}}), "token_count", 1},
		"too many":          {object{"name": "x"}, result(object{"items": many}), "", 17},
		"nothing":           {object{"name": "x"}, result(object{"items": []object{}}), "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, hostModel, nil)
			p.on("context/query", func(a asked) (any, error) {
				if a.Name == "good" {
					return object{"items": []object{item("g", "good to know")}}, nil
				}
				return c.query(a)
			})
			section, r := background(t, p, nil, c.spec, object{"name": "good"})
			if !strings.Contains(section, "> good to know") {
				t.Errorf("section %q", section)
			}
			want(t, "items", r.payload("context_resolved")["total_items"], c.items)
			if c.log != "" {
				p.until("the log line", func() bool {
					for _, l := range p.logs {
						if strings.Contains(l.Message, c.log) {
							return true
						}
					}
					return false
				})
			}
		})
	}
}

func TestContextCancelled(t *testing.T) {
	p := scripted(t, "say hello\nend")
	s := p.session(nil)
	p.on("context/query", func(a asked) (any, error) {
		s.CancelActive("")
		<-a.ctx.Done()
		return object{"items": []object{}}, nil
	})
	p.register("context", object{"name": "x"})
	wantError(t, "run", p.run(s, "hi").err, fault.CodeCancelled)
	p.withdraws("context", "cancelled")
}
