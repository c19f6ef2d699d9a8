package store_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/store"
)

func TestValidID(t *testing.T) {
	for _, id := range []string{"s", "a/b\\c..", "日本", strings.Repeat("x", store.MaxID), "..", " "} {
		if err := store.ValidID(id); err != nil {
			t.Errorf("%q: %v", id, err)
		}
	}
	for _, id := range []string{"", strings.Repeat("x", store.MaxID+1), "a\x00", "a\n", "\x7f", "\u0085", "\xff"} {
		var e *fault.Error
		if err := store.ValidID(id); !errors.As(err, &e) || e.Code != fault.CodeSessionConfig || e.Details["field"] != "session_id" {
			t.Errorf("%q: %v", id, err)
		}
	}
}

func TestValidBlobName(t *testing.T) {
	for _, name := range []string{"a", "A-b_c.9", ".a", "...", strings.Repeat("x", store.MaxBlobName)} {
		if err := store.ValidBlobName(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"", ".", "..", "a/b", "a~b", "é", "a b", strings.Repeat("x", store.MaxBlobName+1)} {
		if err := store.ValidBlobName(name); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestValidFacts(t *testing.T) {
	if err := store.ValidFacts([][]byte{{1}, {0}}); err != nil {
		t.Error(err)
	}
	if err := store.ValidFacts([][]byte{{1}, {}}); fault.KindOf(err) != fault.Invalid {
		t.Error(err)
	}
}
