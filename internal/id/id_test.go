package id_test

import (
	"errors"
	"regexp"
	"sort"
	"sync"
	"testing"
	"time"

	"github.com/a3s-lab/liba3s/internal/id"
	"github.com/a3s-lab/liba3s/runtime/fault"
)

func ptr[T any](v T) *T { return &v }

func TestNew(t *testing.T) {
	form := regexp.MustCompile(`^run-[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	seen := map[string]bool{}
	var made []string
	for range 1000 {
		got := id.New("run")
		if !form.MatchString(got) || seen[got] {
			t.Fatalf("id %q is malformed or repeated", got)
		}
		seen[got] = true
		made = append(made, got)
	}
	if !sort.StringsAreSorted(made) {
		t.Error("ids of one process do not sort by time")
	}
	if got := id.New(""); !regexp.MustCompile(`^[0-9a-f]{8}-`).MatchString(got) {
		t.Errorf("bare id %q", got)
	}
}

func TestSequence(t *testing.T) {
	s := id.Sequence("s")
	var wg sync.WaitGroup
	got := make([]string, 4)
	for i := range got {
		wg.Go(func() { got[i] = s.New("run") })
	}
	wg.Wait()
	sort.Strings(got)
	for i, want := range []string{"s-0", "s-1", "s-2", "s-3"} {
		if got[i] != want {
			t.Fatalf("ids %q", got)
		}
	}
}

func TestSource(t *testing.T) {
	tests := []struct {
		name  string
		fixed id.Fixed
		id    string // pattern
		now   int64  // -1 is the wall clock
		det   bool
		field string // of the refusal
	}{
		{"system", id.Fixed{}, `^run-.{36}$`, -1, false, ""},
		{"prefix", id.Fixed{Prefix: ptr("t")}, `^t-0$`, -1, true, ""},
		{"time", id.Fixed{TimeMS: ptr(int64(5))}, `^run-.{36}$`, 5, true, ""},
		{"time zero", id.Fixed{TimeMS: ptr(int64(0))}, `^run-.{36}$`, 0, true, ""},
		{"negative time", id.Fixed{TimeMS: ptr(int64(-1))}, "", 0, false, "host_env"},
		{"empty prefix", id.Fixed{Prefix: ptr("")}, "", 0, false, "host_env"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := time.Now().UnixMilli()
			s, err := id.NewSource(tt.fixed)
			if tt.field != "" {
				var e *fault.Error
				if !errors.As(err, &e) || e.Code != fault.CodeSessionConfig || e.Details["field"] != tt.field {
					t.Fatalf("err %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := s.New("run"); !regexp.MustCompile(tt.id).MatchString(got) {
				t.Errorf("id %q", got)
			}
			now := s.NowMS()
			if tt.now >= 0 && now != tt.now || tt.now < 0 && (now < before || now > time.Now().UnixMilli()) {
				t.Errorf("now %d", now)
			}
			if s.Deterministic() != tt.det {
				t.Errorf("deterministic %v", s.Deterministic())
			}
		})
	}
}

func TestTaken(t *testing.T) {
	s := id.Sequence("x")
	for _, taken := range []string{"x-3", "x-1", "y-9", "x-", "x-7b", "x--9", "x-99999999999999999999", "x"} {
		s.Taken(taken)
	}
	if got := s.New("run"); got != "x-4" {
		t.Errorf("got %s", got)
	}
	new(id.Source).Taken("-1") // a system source has nothing to skip
}
