package a3s

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"strings"
	"unicode"

	"github.com/a3s-lab/liba3s/internal/safego"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/host"
)

// ExtensionError is a failure that an extension reports in its own words: a function that
// your program registered may return a pointer to one instead of a plain error. All
// fields but Message may be left empty.
//
//	return nil, &a3s.ExtensionError{Message: "no more words today", Retryable: true}
//
// A plain error is told with the name of its Go type, if that is exported, and its text;
// fs.ErrNotExist, fs.ErrExist, fs.ErrPermission and the errors of a context give it the
// Kind one expects.
type ExtensionError = host.Failure

// failure makes what the host reports of an error.
func failure(err error) *host.Failure {
	var own *host.Failure
	if errors.As(err, &own) {
		f := *own
		if error(own) != err { // wrapped, with words of its own
			f.Message = err.Error()
		}
		if f.Type == "" {
			f.Type = "Error"
		}
		return &f
	}
	f := &host.Failure{Type: typeName(err), Message: err.Error()}
	var e *Error
	if errors.As(err, &e) {
		f.Type, f.Kind, f.Retryable = string(e.Code), string(e.Kind), e.Retryable
		return f
	}
	for _, known := range []struct {
		is   error
		kind fault.Kind
	}{
		{fs.ErrNotExist, fault.NotFound}, {fs.ErrExist, fault.Exists}, {fs.ErrPermission, fault.Denied},
		{context.Canceled, fault.Cancelled}, {context.DeadlineExceeded, fault.Timeout}, {errors.ErrUnsupported, fault.Unsupported},
	} {
		if errors.Is(err, known.is) {
			f.Kind = string(known.kind)
			break
		}
	}
	return f
}

// typeName is the name of the first exported type in the chain of an error: those of
// errors.New and fmt.Errorf say nothing.
func typeName(err error) string {
	for e := err; e != nil; e = errors.Unwrap(e) {
		t := reflect.TypeOf(e)
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if name, _, _ := strings.Cut(t.Name(), "["); name != "" && unicode.IsUpper([]rune(name)[0]) {
			return name
		}
	}
	return "Error"
}

// called runs a function of the host's; a panic becomes a failure of type "panic" that
// tells where it was.
func called(fn func() error) error {
	err := safego.Call("a3s.extension", fn)
	var e *Error
	if errors.As(err, &e) && e.Op == "a3s.extension" && e.Details["stack"] != nil {
		return &host.Failure{Type: "panic", Message: strings.TrimPrefix(e.Message, "panic: "), Details: map[string]any{"stack": fmt.Sprint(e.Details["stack"])}}
	}
	return err
}
