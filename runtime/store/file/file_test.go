package file_test

import (
	"context"
	"testing"

	"github.com/a3s-lab/liba3s/runtime/store"
	"github.com/a3s-lab/liba3s/runtime/store/file"
	"github.com/a3s-lab/liba3s/runtime/store/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) func() store.Store {
		dir := t.TempDir()
		return func() store.Store {
			s, err := file.Open(context.Background(), file.Config{Dir: dir + "/store"})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
	})
}
