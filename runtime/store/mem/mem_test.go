package mem_test

import (
	"context"
	"testing"

	"github.com/a3s-lab/liba3s/runtime/store"
	"github.com/a3s-lab/liba3s/runtime/store/mem"
	"github.com/a3s-lab/liba3s/runtime/store/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) func() store.Store {
		s, err := mem.Open(context.Background(), mem.Config{})
		if err != nil {
			t.Fatal(err)
		}
		return func() store.Store { return s }
	})
}
