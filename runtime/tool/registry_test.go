package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/tool"
)

// named is a tool that only has a specification.
type named struct{ spec chat.ToolSpec }

func (n named) Spec() chat.ToolSpec                  { return n.spec }
func (n named) Effects(json.RawMessage) chat.Effects { return chat.Effects{} }
func (n named) Run(context.Context, tool.Env, json.RawMessage) (chat.Result, error) {
	return chat.Result{}, nil
}

// checked also checks.
type checked struct{ named }

func (checked) Check(args json.RawMessage) error {
	if strings.Contains(string(args), "bad") {
		return fault.New(fault.Invalid, "test", "bad value")
	}
	return nil
}

const object = `{"type":"object","properties":{"x":{"type":"string"}}}`

func newTool(name, parameters string) tool.Tool {
	return named{chat.ToolSpec{Name: name, Description: "does " + name, Parameters: json.RawMessage(parameters)}}
}

func kind(err error) fault.Kind {
	if err == nil {
		return ""
	}
	return fault.KindOf(err)
}

func TestRegistry(t *testing.T) {
	r, err := tool.NewRegistry(newTool("write", object), newTool("read", object))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		do   func() error
		want fault.Kind
	}{
		{"new", func() error { return r.Add(newTool("Lookup", object)) }, ""},
		{"again", func() error { return r.Add(newTool("Lookup", object)) }, fault.Exists},
		{"other case", func() error { return r.Add(newTool("lookUP", object)) }, fault.Exists},
		{"built-in", func() error { return r.Add(newTool("read", object)) }, fault.Exists},
		{"built-in in other case", func() error { return r.Add(newTool("READ", object)) }, fault.Exists},
		{"remove built-in", func() error { return r.Remove("read") }, fault.Denied},
		{"remove unknown", func() error { return r.Remove("nope") }, fault.NotFound},
		{"remove in other case", func() error { return r.Remove("lookup") }, fault.NotFound},
	} {
		if got := kind(c.do()); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
	if got, want := r.Names(), []string{"Lookup", "read", "write"}; !reflect.DeepEqual(got, want) {
		t.Errorf("names %q, want %q", got, want)
	}
	want := []chat.ToolSpec{
		{Name: "Lookup", Description: "does Lookup", Parameters: json.RawMessage(object)},
		{Name: "read", Description: "does read", Parameters: json.RawMessage(object)},
		{Name: "write", Description: "does write", Parameters: json.RawMessage(object)},
	}
	if got := r.Specs(); !reflect.DeepEqual(got, want) {
		t.Errorf("specs %+v", got)
	}
	for _, name := range []string{"Lookup", "lookup", "LOOKUP"} {
		if got, ok := r.Get(name); !ok || got.Spec().Name != "Lookup" {
			t.Errorf("get %q: %v", name, ok)
		}
	}
	if err := r.Remove("Lookup"); err != nil {
		t.Error(err)
	}
	if _, ok := r.Get("Lookup"); ok {
		t.Error("removed tool found")
	}
}

func TestRegistryRefuses(t *testing.T) {
	r, _ := tool.NewRegistry()
	for _, c := range []struct{ name, tool, parameters, want string }{
		{"no name", "", object, "tool name"},
		{"bad name", "a.b", object, "tool name"},
		{"long name", strings.Repeat("a", 129), object, "tool name"},
		{"no schema", "x", ``, "empty text"},
		{"no object", "x", `{"type":"string"}`, `"type": "object"`},
		{"no type", "x", `{}`, `"type": "object"`},
		{"true", "x", `true`, `"type": "object"`},
		{"root anyOf", "x", `{"type":"object","anyOf":[{}]}`, `"anyOf"`},
		{"root not", "x", `{"type":"object","not":{"required":["y"]}}`, `"not"`},
		{"remote", "x", `{"type":"object","properties":{"a":{"$ref":"http://example.invalid/"}}}`, "not loaded"},
	} {
		err := r.Add(newTool(c.tool, c.parameters))
		if kind(err) != fault.Invalid || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if _, err := tool.NewRegistry(newTool("a", object), newTool("A", object)); kind(err) != fault.Exists {
		t.Errorf("twice the same built-in: %v", err)
	}
}

func TestRegistryConcurrent(t *testing.T) {
	r, _ := tool.NewRegistry(newTool("read", object))
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			name := fmt.Sprintf("t%d", i)
			for range 50 {
				if err := r.Add(newTool(name, object)); err != nil {
					t.Error(err)
				}
				r.Specs()
				r.Get("READ")
				if err := r.Remove(name); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got := r.Names(); !reflect.DeepEqual(got, []string{"read"}) {
		t.Error(got)
	}
}

func TestValidate(t *testing.T) {
	plain := newTool("x", object)
	strict := checked{plain.(named)}
	for _, c := range []struct {
		name string
		tool tool.Tool
		args string
		want string
	}{
		{"good", plain, `{"x":"1"}`, ""},
		{"schema", plain, `{"x":1}`, "/x: got number, want string"},
		{"JSON-04", plain, `{"x":`, "$: not JSON: unexpected EOF"},
		{"own check", strict, `{"x":"bad"}`, "bad value"},
		{"schema before own check", strict, `{"x":["bad"]}`, "/x: got array, want string"},
		{"own check passes", strict, `{"x":"good"}`, ""},
	} {
		got := ""
		var e *fault.Error
		if err := tool.Validate(c.tool, json.RawMessage(c.args)); errors.As(err, &e) {
			got = e.Message
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}
