package a3s_test

import (
	"context"
	"errors"
	"testing"
	"time"

	a3s "github.com/a3s-lab/liba3s"
)

// A run that was given up keeps the reason: errors.Is finds the context's error.
func TestSendKeepsTheContextsError(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(context.Context) (context.Context, context.CancelFunc)
		want error
	}{
		{"deadline", func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 20*time.Millisecond)
		}, context.DeadlineExceeded},
		{"cancel", func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return ctx, cancel
		}, context.Canceled},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := scripted(t, "say hi\nwait 60000\nend\n", nil)
			ctx, cancel := c.end(t.Context())
			defer cancel()
			_, err := s.Send(ctx, "go", nil)
			var f *a3s.Error
			if !errors.Is(err, c.want) || !errors.As(err, &f) || f.Code != "CANCELLED" {
				t.Fatalf("%v", err)
			}
		})
	}
}

// A stream on a context that has ended starts no run.
func TestStreamOnAnEndedContext(t *testing.T) {
	s := scripted(t, "say hi\nend\n", nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var got error
	for _, err := range s.Stream(ctx, "go") {
		got = err
	}
	if got == nil || len(s.Runs()) != 0 {
		t.Fatalf("%v, %d runs", got, len(s.Runs()))
	}
}

// What is neither a path of an .acl file nor a configuration is refused, not taken for
// an empty one.
func TestSourceThatIsNone(t *testing.T) {
	for _, source := range []string{"/path/conf.txt", "/tmp", "./x", "bindings"} {
		_, err := a3s.Create(t.Context(), source)
		var f *a3s.Error
		if !errors.As(err, &f) || f.Code != "CONFIG_ERROR" || f.Details["field"] != "source" {
			t.Errorf("%q: %v", source, err)
		}
	}
}

// A direct call that was given up is an error, whatever the tool made of it (S8).
func TestDirectCallThatIsGivenUp(t *testing.T) {
	s := scripted(t, "say hi\nend\n", nil)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	r, err := s.Tool(ctx, "bash", map[string]string{"command": "sleep 20"})
	var f *a3s.Error
	if !errors.As(err, &f) || f.Code != "TIMEOUT" {
		t.Fatalf("%+v, %v", r, err)
	}
}

// Every call that is given up says so, wraps what ended it, and is no fault of the library.
func TestCallsKeepTheContextsError(t *testing.T) {
	why := errors.New("the window was closed")
	s := scripted(t, "wait 60000\nend\n", nil)
	agent, err := a3s.Create(t.Context(), `default_model = "offline/search"`)
	if err != nil {
		t.Fatal(err)
	}
	defer agent.Close(t.Context())
	run, err := s.Start("go", nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	for name, call := range map[string]func() error{
		"tool": func() error { _, err := s.Tool(ctx, "ls", nil); return err },
		"read": func() error { _, err := s.ReadFile(ctx, "x"); return err },
		"wait": func() error { _, err := run.Wait(ctx); return err },
		"call": func() error {
			return s.Call(ctx, "session.tool", map[string]any{"name": "ls", "args": struct{}{}}, nil)
		},
		"send":  func() error { _, err := s.Send(ctx, "go", nil); return err },
		"open":  func() error { _, err := agent.Session(ctx, t.TempDir(), nil); return err },
		"agent": func() error { _, err := a3s.Create(ctx, `default_model = "offline/search"`); return err },
	} {
		err := call()
		if code(t, err) != "CANCELLED" || !errors.Is(err, context.Canceled) || !errors.Is(err, why) {
			t.Errorf("%s: %v", name, err)
		}
	}
	late, stop := context.WithTimeoutCause(t.Context(), time.Millisecond, why)
	defer stop()
	if _, err := run.Wait(late); code(t, err) != "TIMEOUT" || !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, why) {
		t.Errorf("late: %v", err)
	}
}
