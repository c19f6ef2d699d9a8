package mem

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/workspace"
	"github.com/a3s-lab/liba3s/runtime/workspace/workspacetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSuite(t *testing.T) {
	workspacetest.Run(t, func(t *testing.T) workspace.Workspace {
		w, err := Open(t.Context(), Config{})
		if err != nil {
			t.Fatal(err)
		}
		return w
	})
}

// TestSuiteStoppedClock runs with a clock that stands still: versions must differ all
// the same.
func TestSuiteStoppedClock(t *testing.T) {
	now := time.Unix(1, 0)
	workspacetest.Run(t, func(t *testing.T) workspace.Workspace {
		w, err := Open(t.Context(), Config{Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		return w
	})
}

func TestOpen(t *testing.T) {
	ctx := context.Background()
	w, err := Open(ctx, Config{Name: "demo", Files: map[string]string{"a/b": "x"}, Quota: 10})
	if err != nil {
		t.Fatal(err)
	}
	if w.Root() != "mem:demo" {
		t.Errorf("root %q", w.Root())
	}
	if data, _, err := w.Read(ctx, "a/b", 10); string(data) != "x" || err != nil {
		t.Errorf("%q, %v", data, err)
	}
	if _, ok := workspace.Workspace(w).(workspace.Runner); ok {
		t.Error("a workspace in memory runs commands")
	}
	_, err = w.Write(ctx, "c", make([]byte, 10), workspace.Condition{})
	if fault.KindOf(err) != fault.IO {
		t.Errorf("over the quota: %v", err)
	}
	if err := w.Remove(ctx, "a/b"); err != nil {
		t.Error(err)
	}
	if _, err = w.Write(ctx, "c", make([]byte, 10), workspace.Condition{}); err != nil {
		t.Errorf("within the quota: %v", err)
	}
	for _, files := range []map[string]string{{"../x": ""}, {"a//b": ""}, {".git/x": ""}, {"a": "", "a/b": ""}} {
		if _, err := Open(ctx, Config{Files: files}); err == nil {
			t.Errorf("opened with %q", files)
		}
	}
}
