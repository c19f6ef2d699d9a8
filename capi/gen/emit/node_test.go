package emit

import (
	"strings"
	"testing"

	"github.com/a3s-lab/liba3s/runtime/agent"
)

// The binding turns camelCase keys back by the rule that a capital is an underscore and
// a small letter; so every name must come back as it was.
func TestCamelComesBack(t *testing.T) {
	for _, o := range agent.OptionTable {
		back := ""
		for _, r := range camel(o.Name) {
			if r >= 'A' && r <= 'Z' {
				back += "_"
			}
			back += strings.ToLower(string(r))
		}
		if back != o.Name {
			t.Errorf("%s becomes %s", o.Name, back)
		}
	}
}

// What JavaScript cannot call by the generated table is written by hand in the addon;
// a new function of that kind must be seen there.
func TestFunctionsWithoutAnEntry(t *testing.T) {
	s, err := read(root)
	if err != nil {
		t.Fatal(err)
	}
	var hand []string
	for _, f := range s.api.Functions() {
		if _, ok := nodeFunction(f); !ok {
			hand = append(hand, f.Name)
		}
	}
	if got := strings.Join(hand, " "); got != "a3s_buf_free a3s_stream_next a3s_stream_subscribe" {
		t.Errorf("got %s", got)
	}
}
