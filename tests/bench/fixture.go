package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/a3s-lab/liba3s/runtime/agent"
	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/policy"
	"github.com/a3s-lab/liba3s/runtime/session"
	"github.com/a3s-lab/liba3s/runtime/tool"
)

// scripted writes the configuration of an agent whose model plays a script, and gives
// the path of the configuration.
func scripted(dir, script string) (string, error) {
	if err := os.MkdirAll(filepath.Join(dir, "workspace"), 0o755); err != nil {
		return "", err
	}
	acl := "default_model = \"script/main\"\nproviders \"script\" {\n  models \"main\" {\n    script = \"turns.txt\"\n  }\n}\n"
	err := os.WriteFile(filepath.Join(dir, "turns.txt"), []byte(script), 0o644)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "agent.acl"), []byte(acl), 0o644)
	}
	return filepath.Join(dir, "agent.acl"), err
}

// openAgent opens an agent whose model plays a script.
func openAgent(ctx context.Context, dir, script string) (*agent.Agent, error) {
	acl, err := scripted(dir, script)
	if err != nil {
		return nil, err
	}
	return agent.Open(ctx, agent.Setup{ACLPath: acl, Cwd: dir})
}

// spec asks for a new session in the workspace beside the configuration.
func spec(dir string, o *agent.Options) agent.SessionSpec {
	return agent.SessionSpec{Workspace: filepath.Join(dir, "workspace"), Options: o}
}

// options of a session: every call is allowed, and no limit ends a run.
func options() *agent.Options {
	rounds := 1 << 20
	return &agent.Options{PermissionPolicy: &policy.Policy{DefaultDecision: string(policy.Allow)}, MaxToolRounds: &rounds}
}

// stored keeps a session in a folder.
func stored(o *agent.Options, dir string) *agent.Options {
	if dir != "" {
		o.SessionStore = &agent.SessionStore{Kind: "file", Dir: dir}
	}
	return o
}

// unmerged makes every delta an event of its own, with ids as long as the usual ones.
func unmerged(o *agent.Options) *agent.Options {
	prefix := "run-0190a3f0-0000-7000-8000-000000000"
	o.HostEnv = &agent.HostEnv{SequentialIDPrefix: &prefix}
	return o
}

// unbounded keeps every event in memory.
func unbounded(o *agent.Options) *agent.Options {
	o.RetentionLimits = &session.Retention{Unbounded: true}
	return o
}

// goTool is a tool of the benchmark.
type goTool struct {
	effects chat.Effects
	run     func(env tool.Env) string
}

// Spec implements tool.Tool.
func (goTool) Spec() chat.ToolSpec {
	return chat.ToolSpec{Name: "tick", Description: "Ticks.", Parameters: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`)}
}

// Effects implements tool.Tool.
func (t goTool) Effects(json.RawMessage) chat.Effects { return t.effects }

// Run implements tool.Tool.
func (t goTool) Run(_ context.Context, env tool.Env, _ json.RawMessage) (chat.Result, error) {
	return chat.Result{Output: t.run(env)}, nil
}

// ticks is the script of a run with n calls of tick, one a turn.
func ticks(n int) string {
	var s strings.Builder
	for i := range n {
		fmt.Fprintf(&s, "call tick {\"n\":%d}\nend\n", i)
	}
	return s.String() + "say done\nend\n"
}

// play runs one prompt to its end while a reader takes its events as a host does.
func play(ctx context.Context, s *session.Session) (*session.Run, error) {
	r, err := s.Start(session.Prompt{Text: "go on"})
	if err != nil {
		return nil, err
	}
	if err := follow(ctx, r); err != nil {
		return nil, err
	}
	_, err = r.Wait(ctx)
	return r, err
}

// buffers are those of readers, which keep theirs as a host does.
var buffers = sync.Pool{New: func() any { return new(make([]byte, 128<<10)) }}

// follow reads the events of a run from the first to the last.
func follow(ctx context.Context, r *session.Run) error {
	c := r.Stream(0)
	defer c.Close()
	buf := *buffers.Get().(*[]byte)
	defer func() { buffers.Put(&buf) }()
	for {
		_, needed, err := c.Next(ctx, 256, buf)
		switch {
		case needed > 0:
			buf = make([]byte, needed)
		case fault.KindOf(err) == fault.End:
			return nil
		case err != nil:
			return err
		}
	}
}

// output runs a program within a limit and gives what it printed; its own words explain
// a failure.
func output(ctx context.Context, limit time.Duration, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	var out, bad bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &bad
	err := cmd.Run()
	if ctx.Err() != nil {
		return "", fmt.Errorf("%s did not end within %v", filepath.Base(name), limit)
	}
	if err != nil {
		text := strings.TrimSpace(bad.String())
		return "", fmt.Errorf("%s: %v: %s", filepath.Base(name), err, text[max(0, len(text)-600):])
	}
	return out.String(), nil
}

// figures reads the lines "name value value ..." that a child printed.
func figures(out string) map[string][]float64 {
	m := map[string][]float64{}
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		for _, w := range f[min(1, len(f)):] {
			var v float64
			if _, err := fmt.Sscan(w, &v); err != nil {
				v = math.NaN()
			}
			m[f[0]] = append(m[f[0]], v)
		}
	}
	return m
}

// self runs a part of this program in a process of its own.
func (b *bench) self(limit time.Duration, args ...string) (map[string][]float64, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	out, err := output(b.ctx, limit, exe, append([]string{"child"}, args...)...)
	return figures(out), err
}

// sub makes a scratch folder.
func (b *bench) sub(name string) (string, error) {
	dir := filepath.Join(b.dir, name)
	return dir, os.MkdirAll(dir, 0o755)
}

func isTmpfs(dir string) bool {
	const magic = 0x01021994
	var st syscall.Statfs_t
	return syscall.Statfs(dir, &st) == nil && int64(st.Type) == magic
}
