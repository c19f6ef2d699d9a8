package main

import (
	"encoding/json"
	"errors"
	"math"
	"testing"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

func TestGuard(t *testing.T) {
	var nothing *[1]byte
	tests := map[string]struct {
		fn     func() error
		status fault.Status
		code   fault.Code
		op     string
	}{
		"fine":            {func() error { return nil }, 0, "", ""},
		"fault keeps op":  {func() error { return fault.New(fault.Busy, "session.send", "busy") }, -5, fault.CodeSessionBusy, "session.send"},
		"fault gets op":   {func() error { return fault.New(fault.Handle, "", "gone") }, -2, fault.CodeInvalidHandle, "a3s_x"},
		"any error":       {func() error { return errors.New("odd") }, -99, fault.CodeInternal, "a3s_x"},
		"panic":           {func() error { panic("boom") }, -99, fault.CodeInternal, "a3s_x"},
		"nil dereference": {func() error { _ = nothing[:]; return nil }, -99, fault.CodeInternal, "a3s_x"},
		"details that do not encode": {func() error {
			return fault.New(fault.Limit, "x", "full").With("ratio", math.NaN())
		}, -16, fault.CodeContext, "x"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			st, b := guard("a3s_x", tt.fn)
			if st != tt.status {
				t.Errorf("got status %d, want %d", st, tt.status)
			}
			if tt.status == 0 {
				if b != nil {
					t.Errorf("got a report %s", b)
				}
				return
			}
			var got struct {
				Code   fault.Code   `json:"code"`
				Status fault.Status `json:"status"`
				Op     string       `json:"op"`
			}
			if err := json.Unmarshal(b, &got); err != nil {
				t.Fatal(err)
			}
			if got.Code != tt.code || got.Status != tt.status || got.Op != tt.op {
				t.Errorf("got %+v", got)
			}
		})
	}
}
