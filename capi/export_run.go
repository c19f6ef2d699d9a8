package main

// #include "a3sgo.h"
import "C"

//export a3s_go_run_start
func a3s_go_run_start(session C.a3s_handle, req *C.a3s_cchar, n C.size_t, out *C.a3s_handle) C.a3s_status {
	return open("a3s_run_start", "out_run", out, func() (Handle, error) {
		b, err := request("request", req, n)
		if err != nil {
			return 0, err
		}
		return lib.startRun(Handle(session), b)
	})
}

//export a3s_go_run_input
func a3s_go_run_input(run C.a3s_handle, input *C.a3s_cchar, n C.size_t) C.a3s_status {
	return status("a3s_run_input", func() error {
		b, err := request("input", input, n)
		if err != nil {
			return err
		}
		return lib.input(Handle(run), b)
	})
}

//export a3s_go_run_cancel
func a3s_go_run_cancel(run C.a3s_handle, reason *C.a3s_cchar, n C.size_t) C.a3s_status {
	return status("a3s_run_cancel", func() error {
		b, err := text("reason", reason, n, maxReason)
		if err == nil {
			err = checkText("reason", b, maxReason)
		}
		if err != nil {
			return err
		}
		return lib.cancelRun(Handle(run), string(b))
	})
}

//export a3s_go_run_wait
func a3s_go_run_wait(run C.a3s_handle, timeoutMS C.int32_t, out *C.a3s_buf) C.a3s_status {
	return give("a3s_run_wait", "out_result", out, func() ([]byte, error) {
		return lib.waitRun(Handle(run), int32(timeoutMS))
	})
}
