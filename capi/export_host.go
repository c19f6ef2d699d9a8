package main

// #include "a3sgo.h"
import "C"

//export a3s_go_host_register
func a3s_go_host_register(h C.a3s_handle, kind, spec *C.a3s_cchar, n C.size_t, out *C.a3s_handle) C.a3s_status {
	return open("a3s_host_register", "out_registration", out, func() (Handle, error) {
		k, err := word("kind", kind)
		if err != nil {
			return 0, err
		}
		b, err := request("spec", spec, n)
		if err != nil {
			return 0, err
		}
		return lib.register(Handle(h), k, b)
	})
}

//export a3s_go_host_chunk
func a3s_go_host_chunk(h C.a3s_handle, req C.uint64_t, json *C.a3s_cchar, n C.size_t) C.a3s_status {
	return answer("a3s_host_chunk", json, n, func(b []byte) error { return lib.chunk(Handle(h), uint64(req), b) })
}

//export a3s_go_host_reply
func a3s_go_host_reply(h C.a3s_handle, req C.uint64_t, json *C.a3s_cchar, n C.size_t) C.a3s_status {
	return answer("a3s_host_reply", json, n, func(b []byte) error { return lib.reply(Handle(h), uint64(req), b) })
}

// answer decodes what a host says and hands it on.
func answer(op string, json *C.a3s_cchar, n C.size_t, fn func([]byte) error) C.a3s_status {
	return status(op, func() error {
		b, err := request("json", json, n)
		if err != nil {
			return err
		}
		return fn(b)
	})
}
