package main

// #include "a3sgo.h"
import "C"

import (
	"math"
	"sync"
	"time"
	"unsafe"
)

//export a3s_go_stream_open
func a3s_go_stream_open(source C.a3s_handle, opts *C.a3s_cchar, n C.size_t, out *C.a3s_handle) C.a3s_status {
	return open("a3s_stream_open", "out_stream", out, func() (Handle, error) {
		b, err := request("opts", opts, n)
		if err != nil {
			return 0, err
		}
		return lib.openStream(Handle(source), b)
	})
}

//export a3s_go_stream_next
func a3s_go_stream_next(h C.a3s_handle, timeoutMS C.int32_t, events C.uint32_t, buf *C.char, size C.size_t, needed *C.size_t) C.int64_t {
	var n, want int
	st := status("a3s_stream_next", func() error {
		if buf == nil && size > 0 {
			return invalid("buf", "is NULL but has a size")
		}
		s, err := lib.stream(Handle(h))
		if err != nil {
			return err
		}
		room := unsafe.Slice((*byte)(unsafe.Pointer(buf)), min(size, math.MaxInt32))
		n, want, err = s.next(int32(timeoutMS), uint32(events), room)
		return err
	})
	if needed != nil {
		*needed = C.size_t(want)
	}
	if st < 0 {
		return C.int64_t(st)
	}
	return C.int64_t(n)
}

//export a3s_go_stream_fd
func a3s_go_stream_fd(h C.a3s_handle) C.int32_t {
	var fd int
	st := status("a3s_stream_fd", func() error {
		s, err := lib.stream(Handle(h))
		if err != nil {
			return err
		}
		fd, err = s.cursor.FD()
		return err
	})
	if st < 0 {
		return C.int32_t(st)
	}
	return C.int32_t(fd)
}

//export a3s_go_stream_wake
func a3s_go_stream_wake(h C.a3s_handle) C.a3s_status {
	return status("a3s_stream_wake", func() error {
		s, err := lib.stream(Handle(h))
		if err == nil {
			s.cursor.Wake()
		}
		return err
	})
}

//export a3s_go_stream_subscribe
func a3s_go_stream_subscribe(h C.a3s_handle, batch, delayUS C.uint32_t, fn C.a3s_event_fn, ud C.uintptr_t, freeUD C.a3s_free_fn) C.a3s_status {
	var once sync.Once
	subscriptions.Add(1)
	finish := func(inside C.a3s_handle) {
		once.Do(func() {
			defer subscriptions.Add(-1)
			if freeUD != nil {
				C.a3s_c_finalize(freeUD, ud, inside)
			}
		})
	}
	st := status("a3s_stream_subscribe", func() error {
		if fn == nil {
			return invalid("fn", "is NULL")
		}
		s, err := lib.stream(Handle(h))
		if err != nil {
			return err
		}
		return s.subscribe(subscription{
			batch: uint32(batch),
			delay: time.Duration(delayUS) * time.Microsecond,
			deliver: func(b []byte) {
				C.a3s_c_deliver(fn, ud, (*C.char)(unsafe.Pointer(&b[0])), C.size_t(len(b)), h)
			},
			finish: func() { finish(h) },
		})
	})
	if st < 0 {
		finish(0)
	}
	return st
}
