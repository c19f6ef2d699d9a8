package main

// #include "a3sgo.h"
import "C"

import (
	"encoding/json"
	"runtime"
)

// commit is the revision the library was built from; the build sets it.
var commit = "unknown"

//export a3s_go_build_info
func a3s_go_build_info() *C.char {
	b, _ := json.Marshal(map[string]any{ // text only; it always encodes
		"version": version, "abi": abi, "schema": schemaHash, "commit": commit,
		"go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH, "features": features(),
	})
	return C.CString(string(b)) // once in a process, and static from then on
}

//export a3s_go_log_to_fd
func a3s_go_log_to_fd(fd, level C.int32_t) C.a3s_status {
	return status("a3s_log_to_fd", func() error { return lib.log.to(lib, int32(fd), int32(level)) })
}

//export a3s_go_stats
func a3s_go_stats(handle C.a3s_handle, out *C.a3s_buf) C.a3s_status {
	return give("a3s_stats", "out_stats", out, func() ([]byte, error) { return lib.stats(Handle(handle)) })
}
