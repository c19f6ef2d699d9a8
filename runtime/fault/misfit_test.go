package fault_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

func TestMisfit(t *testing.T) {
	var into struct {
		N int64             `json:"n"`
		F *float64          `json:"f"`
		S string            `json:"s"`
		B bool              `json:"b"`
		L []string          `json:"l"`
		M map[string]string `json:"m"`
	}
	for text, want := range map[string]string{
		`[]`:           "x is an array where an object is needed",
		`{"n": 1.5}`:   "x is the number 1.5 where an integer is needed",
		`{"n": "1"}`:   "x is a string where an integer is needed",
		`{"f": true}`:  "x is a boolean where a number is needed",
		`{"s": 5}`:     "x is a number where a string is needed",
		`{"b": {}}`:    "x is an object where a boolean is needed",
		`{"l": "a"}`:   "x is a string where an array is needed",
		`{"m": ["a"]}`: "x is an array where an object is needed",
	} {
		var misfit *json.UnmarshalTypeError
		if err := json.Unmarshal([]byte(text), &into); !errors.As(err, &misfit) {
			t.Errorf("%s: %v", text, err)
		} else if got := fault.Misfit("x", misfit); got != want {
			t.Errorf("%s: %s", text, got)
		}
	}
}
