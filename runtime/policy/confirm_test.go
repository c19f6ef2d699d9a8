package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

func TestConfirmationPolicy(t *testing.T) {
	tests := []struct {
		src  string
		want string
	}{
		{`{}`, "{false 30s reject []}"},
		{`{"enabled":true,"default_timeout_ms":0,"timeout_action":" Auto-Approve ","yolo_lanes":["Query","execute"]}`, "{true 0s auto_approve [query execute]}"},
		{`{"default_timeout_ms":1500,"timeout_action":"autoapprove"}`, "{false 1.5s auto_approve []}"},
		{`{"default_timeout_ms":-1}`, "default_timeout_ms is -1"},
		{`{"timeout_action":"shrug"}`, `timeout_action "shrug" is none of`},
		{`{"yolo_lanes":["fast"]}`, `yolo_lanes: "fast" is none of`},
		{`{"enabeld":true}`, "unknown field"},
	}
	for _, tt := range tests {
		t.Run(tt.src, func(t *testing.T) {
			var p ConfirmationPolicy
			err := json.Unmarshal([]byte(tt.src), &p)
			var c *Confirmation
			if err == nil {
				c, err = p.Compile()
			}
			got := fmt.Sprint(err)
			if err == nil {
				got = fmt.Sprint(*c)
			}
			if !strings.Contains(got, tt.want) {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			var f *fault.Error
			if errors.As(err, &f) && (f.Details["field"] != "confirmation_policy" || f.Details["reason"] != fault.BadValue) {
				t.Errorf("details %v", f.Details)
			}
		})
	}
	if LaneOf("Read") != QueryLane || LaneOf("bash") != ExecuteLane || LaneOf("anything") != ExecuteLane {
		t.Error("lanes of tools")
	}
}
