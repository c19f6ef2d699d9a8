package a3s_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	a3s "github.com/a3s-lab/liba3s"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// code gives the code of an error of the library.
func code(t *testing.T, err error) a3s.Code {
	t.Helper()
	var e *a3s.Error
	if !errors.As(err, &e) {
		t.Fatalf("%v is no *a3s.Error", err)
	}
	return e.Code
}

func types(events []a3s.Event) []string {
	var all []string
	for _, e := range events {
		all = append(all, e.Type)
	}
	return all
}

func TestStreamYieldsARunToItsEnd(t *testing.T) {
	s := scripted(t, "say hello there\nend\nfail provider no\n", nil)
	var got []a3s.Event
	for e, err := range s.Stream(t.Context(), "hi") {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e)
	}
	if want := []string{"agent_start", "turn_start", "text_delta", "turn_end", "agent_end"}; !slices.Equal(types(got), want) {
		t.Errorf("%v", types(got))
	}
	p, err := a3s.Decode(got[0])
	if err != nil || p.Type() != "agent_start" {
		t.Errorf("%v, %v", p, err)
	}
	got = nil
	for e, err := range s.Stream(t.Context(), "and now") { // a failed run is an event, not an error
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e)
	}
	if last := got[len(got)-1].Type; last != "error" {
		t.Error(last)
	}
	if runs := s.Runs(); len(runs) != 2 || runs[0].Status != "completed" || runs[1].Status != "failed" {
		t.Errorf("%+v", runs)
	}
	after := int64(1)
	if page, ok := s.RunEventPage(s.Runs()[0].ID, &after, 2); !ok || len(page.Events) != 2 || !page.HasMore {
		t.Errorf("%+v", page)
	}
}

func TestStreamThatCannotStart(t *testing.T) {
	s := scripted(t, "say a\nwait 60000", nil)
	r, err := s.Start("first", nil)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, err := range s.Stream(t.Context(), "second") {
		n++
		if code(t, err) != "SESSION_BUSY" {
			t.Error(err)
		}
	}
	if n != 1 {
		t.Errorf("%d yields", n)
	}
	if !r.Cancel("enough") || r.Cancel("again") {
		t.Error("cancel")
	}
	if _, err := r.Wait(t.Context()); code(t, err) != "CANCELLED" {
		t.Error(err)
	}
}

func TestTheEndOfAContextCancelsTheRun(t *testing.T) {
	runs := map[string]func(*a3s.Session, context.Context){
		"send": func(s *a3s.Session, ctx context.Context) {
			if _, err := s.Send(ctx, "hi", nil); code(t, err) != "CANCELLED" {
				t.Error(err)
			}
		},
		"stream": func(s *a3s.Session, ctx context.Context) {
			last := ""
			for e, err := range s.Stream(ctx, "hi") {
				if err != nil {
					t.Fatal(err)
				}
				last = e.Type
			}
			if last != "error" {
				t.Error(last)
			}
		},
	}
	for name, run := range runs {
		t.Run(name, func(t *testing.T) {
			s := scripted(t, "say a\nwait 60000", nil)
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
			defer cancel()
			run(s, ctx)
			if got := s.Runs(); len(got) != 1 || got[0].Status != "cancelled" {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestBreakLeavesTheRunGoing(t *testing.T) {
	s := scripted(t, "say a\nwait 20\nsay b", nil)
	for range s.Stream(t.Context(), "hi") {
		break
	}
	run, ok := s.CurrentRun()
	if !ok {
		t.Fatal("the run is gone")
	}
	deadline := time.Now().Add(10 * time.Second)
	for run.Status != "completed" && time.Now().Before(deadline) {
		run, _ = s.RunSnapshot(run.ID)
	}
	if run.ResultText != "a\nb" && run.ResultText != "ab" {
		t.Errorf("%+v", run)
	}
}

func TestEventsOfASession(t *testing.T) {
	s := scripted(t, "say a\nend\nsay b", nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	got, ready := make(chan []string), make(chan struct{})
	go func() {
		var all []string
		close(ready)
		for e, err := range s.Events(ctx) {
			if err != nil {
				break
			}
			if all = append(all, e.Type); e.Type == "agent_end" {
				break
			}
		}
		got <- all
	}()
	<-ready
	for _, p := range []string{"one", "two"} { // the stream may open while the first runs
		if _, err := s.Send(t.Context(), p, nil); err != nil {
			t.Fatal(err)
		}
	}
	if all := <-got; len(all) == 0 || all[len(all)-1] != "agent_end" {
		t.Errorf("%v", all)
	}
	ended := 0
	cancel()
	for range s.Events(ctx) { // a context that has ended ends the loop at once
		ended++
	}
	if ended != 0 {
		t.Errorf("%d events", ended)
	}
}

func TestErrorsAreTyped(t *testing.T) {
	dir := t.TempDir()
	if _, err := a3s.Create(t.Context(), "missing.acl", a3s.WithDir(dir)); code(t, err) != "CONFIG_ERROR" {
		t.Error(err)
	}
	if _, err := a3s.Create(t.Context(), "x = 1", a3s.WithDir("relative")); code(t, err) != "INVALID_REQUEST" {
		t.Error(err)
	}
	agent, err := a3s.Create(t.Context(), "default_model = \"offline/search\"", a3s.WithDir(dir), a3s.WithEnv(map[string]string{}), a3s.WithLogLevel("error"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = agent.Session(t.Context(), "nowhere", nil)
	var e *a3s.Error
	if !errors.As(err, &e) || e.Code != "SESSION_CONFIGURATION_ERROR" || e.Details["field"] != "workspace" {
		t.Errorf("%v", err)
	}
	_, err = agent.Session(t.Context(), ".", &a3s.SessionOptions{MaxToolRounds: a3s.Ptr(0)})
	if !errors.As(err, &e) || e.Details["field"] != "max_tool_rounds" {
		t.Errorf("%v", err)
	}
	if _, err = agent.ResumeSession(t.Context(), "s", nil); code(t, err) != "SESSION_ERROR" {
		t.Error(err)
	}
	s, err := agent.Session(t.Context(), ".", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"", " \n", "a\x00b", "a\xffb"} {
		if _, err := s.Start(bad, nil); code(t, err) != "INVALID_REQUEST" {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := s.Start("x", []a3s.Message{{Role: "king"}}); code(t, err) != "INVALID_REQUEST" {
		t.Error(err)
	}
	if err := agent.Close(t.Context()); err != nil || !agent.IsClosed() || len(agent.ListSessions()) != 0 {
		t.Error(err)
	}
	if _, err := s.Start("x", nil); code(t, err) != "SESSION_CLOSED" {
		t.Error(err)
	}
}

func TestDirectToolsAndArtifacts(t *testing.T) {
	s := scripted(t, "say a", nil)
	big := make([]byte, 0, 300<<10)
	for len(big) < 300<<10 {
		big = append(big, "a line that is read again\n"...)
	}
	if err := os.WriteFile(filepath.Join(s.Info().Workspace, "big"), big, 0o600); err != nil {
		t.Fatal(err)
	}
	res, err := s.Tool(t.Context(), "bash", map[string]any{"command": "cat big"})
	if err != nil || res.ExitCode != 0 {
		t.Fatalf("%+v, %v", res, err)
	}
	ref, _ := res.Metadata["artifact"].(map[string]any)
	uri, _ := ref["artifact_uri"].(string)
	a, ok, err := s.Artifact(t.Context(), uri)
	if err != nil || !ok || a.Content != string(big) {
		t.Errorf("%q: %v, %v, %d bytes", uri, ok, err, len(a.Content))
	}
	if _, ok, err := s.Artifact(t.Context(), "a3s://nothing"); ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
	if _, err := s.Tool(t.Context(), "ls", make(chan int)); code(t, err) != "INVALID_REQUEST" {
		t.Error(err)
	}
	if res, err := s.Tool(t.Context(), "fly", nil); err != nil || res.ExitCode == 0 || res.ErrorKind.Type != "not_found" {
		t.Errorf("%+v, %v", res, err)
	}
	if !slices.Contains(s.ToolNames(), "bash") || len(s.ToolDefinitions()) != len(s.ToolNames()) || len(s.Commands()) < 3 {
		t.Error(s.ToolNames())
	}
}
