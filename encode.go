package a3s

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"unicode/utf8"

	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/op"
)

// encode makes JSON of what a caller gives, within the bounds that hold for every language.
// encoding/json alone would put other characters in the place of what is no UTF-8.
func encode(operation, field string, v any) ([]byte, error) {
	refuse := func(reason, format string, args ...any) error {
		return fault.Of(fault.CodeInvalidRequest, operation, format, args...).With("field", field).With("reason", reason)
	}
	if !valid(reflect.ValueOf(v), 0) {
		return nil, refuse(fault.BadValue, "%s: a text in it is not UTF-8", field)
	}
	b, err := json.Marshal(v)
	if err != nil {
		return nil, refuse(fault.BadType, "%s cannot be encoded: %v", field, err)
	}
	if err := op.CheckRequest(operation, b); err != nil {
		return nil, err
	}
	return b, nil
}

// maxDepth of what valid looks at; encoding/json refuses deeper values by itself, and
// op.CheckRequest what they become.
const maxDepth = 1000

// valid says whether all texts in a value are UTF-8.
func valid(v reflect.Value, depth int) bool {
	if depth > maxDepth {
		return true
	}
	switch v.Kind() {
	case reflect.String:
		return utf8.ValidString(v.String())
	case reflect.Pointer, reflect.Interface:
		return v.IsNil() || valid(v.Elem(), depth+1)
	case reflect.Struct:
		for i := range v.NumField() {
			if !valid(v.Field(i), depth+1) {
				return false
			}
		}
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 { // bytes, or JSON that is checked as it is
			return true
		}
		for i := range v.Len() {
			if !valid(v.Index(i), depth+1) {
				return false
			}
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			if !valid(it.Key(), depth+1) || !valid(it.Value(), depth+1) {
				return false
			}
		}
	}
	return true
}

// over gives the error of a context that has ended; nil for another.
func over(ctx context.Context, operation string) error {
	if ctx.Err() == nil {
		return nil
	}
	return fault.Ended(ctx, operation)
}

// because keeps the reason of what was given up, so that errors.Is finds the error of the
// context that ended.
func because(ctx context.Context, err error) error {
	var e *Error
	if ctx.Err() == nil || !errors.As(err, &e) || e.Err != nil || e.Code != fault.CodeCancelled && e.Code != fault.CodeTimeout {
		return err
	}
	c := *e
	c.Err = errors.Join(ctx.Err(), context.Cause(ctx))
	return &c
}
