package session_test

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/a3s-lab/liba3s/internal/id"
	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/model"
	"github.com/a3s-lab/liba3s/runtime/record"
	"github.com/a3s-lab/liba3s/runtime/session"
	"github.com/a3s-lab/liba3s/runtime/store"
	storemem "github.com/a3s-lab/liba3s/runtime/store/mem"
	"github.com/a3s-lab/liba3s/runtime/tool"
)

// act is a tool made of a function.
type act struct {
	name    string
	effects chat.Effects
	do      func(ctx context.Context, env tool.Env, args json.RawMessage) (chat.Result, error)
}

func (a act) Spec() chat.ToolSpec {
	return chat.ToolSpec{Name: a.name, Description: "a tool of a test", Parameters: json.RawMessage(`{"type":"object"}`)}
}

func (a act) Effects(json.RawMessage) chat.Effects { return a.effects }

func (a act) Run(ctx context.Context, env tool.Env, args json.RawMessage) (chat.Result, error) {
	return a.do(ctx, env, args)
}

var (
	reads  = chat.Effects{Read: true, Idempotent: true}
	writes = chat.Effects{Write: true}
)

// answers is a tool that says text.
func answers(name string, e chat.Effects, text string) act {
	return act{name, e, func(context.Context, tool.Env, json.RawMessage) (chat.Result, error) {
		return chat.Result{Output: text}, nil
	}}
}

// waits is a tool that says that it began and then waits for the end of its context.
func waits(name string, e chat.Effects, began chan<- struct{}) act {
	return act{name, e, func(ctx context.Context, env tool.Env, _ json.RawMessage) (chat.Result, error) {
		env.Emit("half of it")
		began <- struct{}{}
		<-ctx.Done()
		return chat.Result{Output: "half of it"}, ctx.Err()
	}}
}

// client is a model made of a function.
type client func(ctx context.Context, req model.Request, yield func(model.Chunk, error) bool)

func (c client) Stream(ctx context.Context, req model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) { c(ctx, req, yield) }
}

// journal is the place of a session in a store that notes what is done to it and can
// be made to fail.
type journal struct {
	store.Session

	jmu   sync.Mutex
	done  []string           // guarded by jmu
	fail  func(string) error // asked before every step; guarded by jmu
	saved []byte             // the last snapshot; guarded by jmu
}

// memory is a store in memory for sessions of tests.
func memory(t *testing.T) store.Store {
	t.Helper()
	s, err := storemem.Open(t.Context(), storemem.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// keep takes the place of session s in st.
func keep(t *testing.T, st store.Store) *journal {
	t.Helper()
	k, err := st.Open(t.Context(), "s", "test")
	if err != nil {
		t.Fatal(err)
	}
	return &journal{Session: k}
}

func (j *journal) step(name string) error {
	j.jmu.Lock()
	j.done = append(j.done, name)
	fail := j.fail
	j.jmu.Unlock()
	if fail != nil {
		return fail(name)
	}
	return nil
}

func (j *journal) failing(f func(string) error) {
	j.jmu.Lock()
	defer j.jmu.Unlock()
	j.fail = f
}

func (j *journal) Append(ctx context.Context, facts [][]byte) (record.Pos, error) {
	var kinds []string
	for _, b := range facts {
		kinds = append(kinds, kindOf(b))
	}
	if err := j.step("append " + strings.Join(kinds, "+")); err != nil {
		return record.Pos{}, err
	}
	return j.Session.Append(ctx, facts)
}

func (j *journal) Flush(ctx context.Context) error {
	if err := j.step("flush"); err != nil {
		return err
	}
	return j.Session.Flush(ctx)
}

func (j *journal) Save(ctx context.Context, snap *record.Snapshot) error {
	if err := j.step("save"); err != nil {
		return err
	}
	doc, err := record.EncodeSnapshot(snap)
	if err != nil {
		return err
	}
	if err := j.Session.Save(ctx, snap); err != nil {
		return err
	}
	j.jmu.Lock()
	defer j.jmu.Unlock()
	j.saved = doc
	return nil
}

// steps gives what was done so far.
func (j *journal) steps() []string {
	j.jmu.Lock()
	defer j.jmu.Unlock()
	return slices.Clone(j.done)
}

// facts gives what the journal holds now.
func (j *journal) facts(t *testing.T) [][]byte {
	t.Helper()
	var all [][]byte
	for b, err := range j.Read(context.Background(), record.Pos{}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b)
	}
	return all
}

// kindOf gives the type of an event or the name of another fact.
func kindOf(b []byte) string {
	l, err := record.Decode(b)
	switch {
	case err != nil:
		return err.Error()
	case l.Event != nil:
		return l.Event.Type
	}
	return l.Fact
}

// fixedTime fixes ids and clock.
func fixedTime(ms int64) func(*session.Config) {
	return func(c *session.Config) {
		prefix := "x"
		source, err := id.NewSource(id.Fixed{Prefix: &prefix, TimeMS: &ms})
		if err != nil {
			panic(err)
		}
		c.Source = source
	}
}
