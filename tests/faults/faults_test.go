//go:build unix

package faults_test

import (
	"errors"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/a3s-lab/liba3s/tests/faults"
)

func TestMain(m *testing.M) { faults.Main(m) }

func init() {
	faults.Script("count", func(args []string) error {
		for _, a := range args {
			faults.Tell("before " + a)
			faults.Point(a)
			faults.Tell("after " + a)
		}
		return nil
	})
	faults.Script("fail", func([]string) error {
		os.Stdout.WriteString("out\n")
		return errors.New("as told")
	})
	faults.Script("forever", func([]string) error {
		for {
			faults.Point("again")
		}
	})
}

func TestHarness(t *testing.T) {
	faults.Point("outside of a child it does nothing")
	tests := []struct {
		name string
		run  func(*testing.T) faults.Outcome
		want faults.Outcome
	}{
		{"ends", func(t *testing.T) faults.Outcome { return faults.Child(t, "count", "a", "b").Wait() },
			faults.Outcome{Points: []string{"start", "a", "b"}, Told: []string{"before a", "after a", "before b", "after b"}}},
		{"killed", func(t *testing.T) faults.Outcome { return faults.Child(t, "count", "a", "b", "a", "c").KillAt("a", 2) },
			faults.Outcome{Killed: true, Status: -1, Points: []string{"start", "a", "b", "a"}, Told: []string{"before a", "after a", "before b", "after b", "before a"}}},
		{"held and killed", func(t *testing.T) faults.Outcome {
			p := faults.Child(t, "count", "a", "b")
			p.Hold("b", 1)
			return p.Kill()
		}, faults.Outcome{Killed: true, Status: -1, Points: []string{"start", "a", "b"}, Told: []string{"before a", "after a", "before b"}}},
		{"held and let go", func(t *testing.T) faults.Outcome {
			p := faults.Child(t, "count", "a")
			p.Hold("start", 1)
			return p.Wait()
		}, faults.Outcome{Points: []string{"start", "a"}, Told: []string{"before a", "after a"}}},
		{"fails", func(t *testing.T) faults.Outcome { return faults.Child(t, "fail").Wait() },
			faults.Outcome{Status: 3, Points: []string{"start"}, Output: "out\nscript fail: as told\n"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.run(t); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %s\nwant %s", got, tt.want)
			}
		})
	}
	if out := faults.Child(t, "forever").KillAfter(20 * time.Millisecond); !out.Killed {
		t.Errorf("got %s", out)
	}
	if out := faults.Child(t, "count").KillAfter(time.Minute); out.Killed || out.Status != 0 {
		t.Errorf("got %s", out)
	}
}
