package main

// #include "a3sgo.h"
import "C"

import "github.com/a3s-lab/liba3s/runtime/fault"

//export a3s_go_agent_open
func a3s_go_agent_open(req *C.a3s_cchar, n C.size_t, out *C.a3s_handle) C.a3s_status {
	return open("a3s_agent_open", "out_agent", out, func() (Handle, error) {
		b, err := request("request", req, n)
		if err != nil {
			return 0, err
		}
		return lib.openAgent(b)
	})
}

//export a3s_go_close
func a3s_go_close(handle C.a3s_handle, timeoutMS C.int32_t) C.a3s_status {
	var st fault.Status
	failed := status("a3s_close", func() (err error) {
		st, err = lib.close(Handle(handle), int32(timeoutMS), Handle(C.a3s_c_inside()))
		return err
	})
	if failed != 0 {
		return failed
	}
	return C.a3s_status(st)
}

//export a3s_go_session_open
func a3s_go_session_open(agent C.a3s_handle, req *C.a3s_cchar, n C.size_t, out *C.a3s_handle) C.a3s_status {
	return open("a3s_session_open", "out_session", out, func() (Handle, error) {
		b, err := request("request", req, n)
		if err != nil {
			return 0, err
		}
		return lib.openSession(Handle(agent), b)
	})
}
