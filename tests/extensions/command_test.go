package extensions

import (
	"errors"
	"strings"
	"testing"

	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/session"
)

func TestCommand(t *testing.T) {
	p := scripted(t, "say hello\nend")
	p.on("command/run", func(a asked) (any, error) {
		want(t, "args", a.param("args"), "src/a b")
		c := a.param("ctx").(object)
		delete(c, "tool_names")
		want(t, "ctx", c, object{"session_id": "s1", "workspace": p.dir, "model": "script/main", "history_len": 2, "total_tokens": c["total_tokens"], "total_cost": 0})
		return object{"text": "deployed " + a.param("args").(string)}, nil
	})
	s := p.session(object{"session_id": "s1"})
	reg := p.register("command", object{"name": "deploy", "description": "deploy a folder", "usage": "/deploy DIR"}, s)
	p.register("command", object{"name": "zoo"})
	var names []string
	for _, c := range s.Commands() {
		names = append(names, c.Name)
	}
	want(t, "list", names, []string{"clear", "compact", "deploy", "help", "zoo"})
	p.run(s, "hi")
	r := p.run(s, "/deploy src/a b")
	want(t, "answer", r.text, "deployed src/a b")
	want(t, "events", r.types(), []string{"agent_start", "text_delta", "agent_end"})
	want(t, "history", len(s.History()), 2)
	if text := p.run(s, "/help").text; !strings.Contains(text, "deploy a folder") || !strings.Contains(text, "usage: /deploy DIR") {
		t.Errorf("help: %q", text)
	}
	if err := reg.Close(); err != nil {
		t.Fatal(err)
	}
	if text := p.run(s, "/deploy x").text; !strings.Contains(text, "There is no command /deploy") {
		t.Errorf("after it was taken back: %q", text)
	}
}

func TestCommandFailures(t *testing.T) {
	for name, c := range map[string]struct {
		spec object
		run  handler
		text string
	}{
		"raises":            {object{"name": "x"}, func(asked) (any, error) { return nil, errors.New("boom") }, "The command /x failed: ValueError: boom"},
		"no answer in time": {object{"name": "x", "timeout_ms": 30}, func(asked) (any, error) { return nil, errSilent }, `The command /x failed: the host did not answer command "x" within 30ms`},
		"garbage":           {object{"name": "x"}, result(object{"text": 7}), "The command /x failed: InvalidReply: the answer cannot be read: text is a number where a string is needed"},
		"no text":           {object{"name": "x"}, result(object{}), "The command /x failed: Invalid request: the answer has no text"},
		"too much":          {object{"name": "x"}, result(object{"text": strings.Repeat("x", 2<<20)}), "The command /x failed: InvalidReply: the answer has 2097163 bytes, more than 1048576"},
	} {
		t.Run(name, func(t *testing.T) {
			p := scripted(t, "say hello\nend")
			p.on("command/run", c.run)
			p.register("command", c.spec)
			r := p.run(p.session(nil), "/x")
			if r.err != nil {
				t.Fatal(r.err)
			}
			want(t, "answer", r.text, c.text)
		})
	}
}

func TestCommandNames(t *testing.T) {
	p := scripted(t, "say hello\nend")
	s := p.session(nil)
	for name, code := range map[string]fault.Code{"help": fault.CodeAlreadyExists, "clear": fault.CodeAlreadyExists, "X": fault.CodeInvalidRequest, "9": fault.CodeInvalidRequest, "a b": fault.CodeInvalidRequest, "": fault.CodeInvalidRequest} {
		_, err := p.tryRegister("command", object{"name": name}, s)
		wantError(t, name, err, code)
		_, err = p.tryRegister("command", object{"name": name})
		wantError(t, name+", with the agent", err, code)
	}
	p.register("command", object{"name": "mine"})
	_, err := p.tryRegister("command", object{"name": "mine"}, s)
	wantError(t, "twice", err, fault.CodeAlreadyExists)
	another := p.session(nil) // it has the agent's too
	want(t, "commands", len(another.Commands()), 4)
}

// The host may look at the session while it answers, and a cancel ends the wait.
func TestCommandCancelled(t *testing.T) {
	p := scripted(t, "say hello\nend")
	s := p.session(nil)
	p.on("command/run", func(a asked) (any, error) {
		if len(s.Runs()) != 1 || s.Active() == nil {
			t.Error("no run is seen")
		}
		s.CancelActive("")
		<-a.ctx.Done()
		return object{"text": "late"}, nil
	})
	p.register("command", object{"name": "x"}, s)
	r, err := s.Start(session.Prompt{Text: "/x"})
	if err != nil {
		t.Fatal(err)
	}
	wantError(t, "run", p.finish(r).err, fault.CodeCancelled)
	p.withdraws("command", "cancelled")
}

// Closing a session withdraws what it waits for.
func TestCommandClosed(t *testing.T) {
	p := scripted(t, "say hello\nend")
	s := p.session(nil)
	late := make(chan error, 1)
	p.on("command/run", func(a asked) (any, error) {
		go func() { _ = s.Close(bg) }()
		<-a.ctx.Done()
		late <- p.agent.Reply(a.Request, []byte(`{"result":{"text":"late"}}`))
		return nil, errSilent
	})
	reg := p.register("command", object{"name": "x"}, s)
	wantError(t, "run", p.run(s, "/x").err, fault.CodeCancelled)
	if kind := fault.KindOf(<-late); kind != fault.NotFound {
		t.Errorf("a late reply met %q", kind)
	}
	<-s.Done()
	if err := reg.Close(); err != nil {
		t.Errorf("close after the session: %v", err)
	}
	_, err := p.tryRegister("command", object{"name": "y"}, s)
	wantError(t, "after the close", err, fault.CodeSessionClosed)
}
