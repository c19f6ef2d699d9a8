package fault_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

func TestTables(t *testing.T) {
	statuses, names := map[fault.Status]fault.Kind{}, map[string]bool{}
	kinds, codes := map[fault.Kind]bool{}, map[fault.Code]bool{}
	for _, r := range fault.Codes {
		if codes[r.Code] || r.Doc == "" {
			t.Errorf("code %s is there twice or says nothing", r.Code)
		}
		codes[r.Code] = true
	}
	for _, r := range fault.Kinds {
		if other, ok := statuses[r.Status]; ok || names[r.Name] || kinds[r.Kind] {
			t.Errorf("kind %s is there twice (%s)", r.Kind, other)
		}
		statuses[r.Status], names[r.Name], kinds[r.Kind] = r.Kind, true, true
		if r.Status >= 0 || !codes[r.Code] || r.Doc == "" || r.Kind.Status() != r.Status {
			t.Errorf("kind %+v", r)
		}
	}
	for _, r := range fault.Codes {
		if !kinds[r.Kind] || r.Code.Kind() != r.Kind {
			t.Errorf("code %s has kind %q", r.Code, r.Kind)
		}
	}
}

func TestOneShape(t *testing.T) {
	cause := errors.New("the cause")
	cases := []struct {
		err  *fault.Error
		want string
	}{
		{fault.New(fault.NotFound, "store.load", "no %q", "x"), `{"code":"NOT_FOUND","status":-11,"kind":"not_found","op":"store.load","message":"no \"x\"","retryable":false}`},
		{fault.Of(fault.CodeLLM, "model", "busy: %v", cause).Retry().With("retry_after_ms", 5), `{"code":"LLM_ERROR","status":-15,"kind":"provider","op":"model","message":"LLM error: busy: the cause","retryable":true,"details":{"retry_after_ms":5}}`},
		{fault.Of(fault.CodeSession, "x", "y").WithKind(fault.Invalid), `{"code":"SESSION_ERROR","status":-1,"kind":"invalid","op":"x","message":"Session error: y","retryable":false}`},
		{fault.Option("temperature", fault.BadType, "is a %s", "string"), `{"code":"SESSION_CONFIGURATION_ERROR","status":-1,"kind":"invalid","op":"session.open","message":"Invalid session configuration for 'temperature': is a string","retryable":false,"details":{"field":"temperature","reason":"bad_type"}}`},
		{fault.New("no_such_kind", "x", "y"), `{"code":"INTERNAL_ERROR","status":-99,"kind":"no_such_kind","op":"x","message":"Internal error: y","retryable":false}`},
	}
	for _, c := range cases {
		b, err := json.Marshal(c.err)
		if err != nil || string(b) != c.want {
			t.Errorf("got  %s (%v)\nwant %s", b, err, c.want)
		}
	}
	if e := fault.Of(fault.CodeLLM, "x", "%v", cause); !errors.Is(e, cause) {
		t.Error("the cause is lost")
	}
}

func TestFrom(t *testing.T) {
	own := fault.New(fault.Busy, "", "busy").With("a", 1)
	cases := []struct {
		name string
		err  error
		code fault.Code
		op   string
	}{
		{"its own op stays", fault.New(fault.Busy, "here", "x"), fault.CodeSessionBusy, "here"},
		{"an op is filled in", own, fault.CodeSessionBusy, "there"},
		{"wrapped", fmt.Errorf("while doing: %w", own), fault.CodeSessionBusy, "there"},
		{"cancelled", fmt.Errorf("x: %w", context.Canceled), fault.CodeCancelled, "there"},
		{"late", context.DeadlineExceeded, fault.CodeTimeout, "there"},
		{"anything", fs.ErrNotExist, fault.CodeInternal, "there"},
	}
	for _, c := range cases {
		if f := fault.From("there", c.err); f.Code != c.code || f.Op != c.op {
			t.Errorf("%s: %+v", c.name, f)
		}
	}
	if fault.From("x", nil) != nil || fault.KindOf(nil) != "" || fault.KindOf(fs.ErrExist) != fault.Internal {
		t.Error("nil")
	}
	fault.From("there", own).With("b", 2)
	if own.Op != "" || len(own.Details) != 1 {
		t.Errorf("the original was changed: %+v", own)
	}
}

func TestIsComparesCodes(t *testing.T) {
	e := fault.New(fault.Busy, "x", "y")
	if !errors.Is(fmt.Errorf("%w", e), fault.Of(fault.CodeSessionBusy, "", "")) || errors.Is(e, fault.Of(fault.CodeIO, "", "")) || errors.Is(e, fs.ErrExist) {
		t.Error(e)
	}
}
