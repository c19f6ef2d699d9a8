package fault

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// Misfit says in the words of JSON that a value is of another type than is needed.
func Misfit(name string, t *json.UnmarshalTypeError) string {
	var is string
	switch word, number, _ := strings.Cut(t.Value, " "); {
	case number != "":
		is = "the number " + number
	case word == "bool":
		is = "a boolean"
	case word == "array" || word == "object":
		is = "an " + word
	default:
		is = "a " + word
	}
	return fmt.Sprintf("%s is %s where %s is needed", name, is, jsonWord(t.Type))
}

func jsonWord(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return jsonWord(t.Elem())
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "a boolean"
	case reflect.Float32, reflect.Float64:
		return "a number"
	}
	if t.Kind() >= reflect.Int && t.Kind() <= reflect.Uint64 {
		return "an integer"
	}
	return "a " + t.String()
}
