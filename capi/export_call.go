package main

// #include "a3sgo.h"
import "C"

//export a3s_go_call
func a3s_go_call(handle C.a3s_handle, method, params *C.a3s_cchar, n C.size_t, timeoutMS C.int32_t, out *C.a3s_buf) C.a3s_status {
	return give("a3s_call", "out_result", out, func() ([]byte, error) {
		m, b, err := operation(method, params, n)
		if err != nil {
			return nil, err
		}
		return lib.call(Handle(handle), m, b, int32(timeoutMS))
	})
}

func operation(method, params *C.a3s_cchar, n C.size_t) (string, []byte, error) {
	m, err := word("method", method)
	if err != nil {
		return "", nil, err
	}
	b, err := request("params", params, n)
	return m, b, err
}

//export a3s_go_call_start
func a3s_go_call_start(handle C.a3s_handle, method, params *C.a3s_cchar, n C.size_t, out *C.uint64_t) C.a3s_status {
	return status("a3s_call_start", func() error {
		if out == nil {
			return invalid("out_call", "is NULL")
		}
		*out = 0
		m, b, err := operation(method, params, n)
		if err != nil {
			return err
		}
		id, err := lib.startCall(Handle(handle), m, b)
		*out = C.uint64_t(id)
		return err
	})
}

//export a3s_go_call_wait
func a3s_go_call_wait(handle C.a3s_handle, call C.uint64_t, timeoutMS C.int32_t, out *C.a3s_buf) C.a3s_status {
	return give("a3s_call_wait", "out_result", out, func() ([]byte, error) {
		return lib.waitCall(Handle(handle), uint64(call), int32(timeoutMS))
	})
}

//export a3s_go_call_cancel
func a3s_go_call_cancel(handle C.a3s_handle, call C.uint64_t) C.a3s_status {
	return status("a3s_call_cancel", func() error { return lib.cancelCall(Handle(handle), uint64(call)) })
}
