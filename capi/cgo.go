package main

/*
#cgo CFLAGS: -I${SRCDIR}/../include
#include "a3sgo.h"
*/
import "C"

import (
	"unsafe"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

// lib is the one library of this process.
var lib = newRim(runtimeCore{})

// nts is A3S_NTS.
const nts = ^C.size_t(0)

// status runs the body of an export and puts its error into the thread's slot.
func status(op string, fn func() error) C.a3s_status {
	st, report := guard(op, fn)
	if len(report) > 0 {
		C.a3s_c_error((*C.char)(unsafe.Pointer(&report[0])), C.size_t(len(report)))
	}
	return C.a3s_status(st)
}

// open is status for an export that gives a handle.
func open(op, param string, out *C.a3s_handle, fn func() (Handle, error)) C.a3s_status {
	return status(op, func() error {
		if out == nil {
			return invalid(param, "is NULL")
		}
		*out = 0
		h, err := fn()
		*out = C.a3s_handle(h)
		return err
	})
}

// give is status for an export that gives a text.
func give(op, param string, out *C.a3s_buf, fn func() ([]byte, error)) C.a3s_status {
	return status(op, func() error {
		if out == nil {
			return invalid(param, "is NULL")
		}
		*out = C.a3s_buf{}
		b, err := fn()
		if err != nil {
			return err
		}
		b = append(b, 0)
		if C.a3s_c_fill(out, (*C.char)(unsafe.Pointer(&b[0])), C.size_t(len(b)-1)) == 0 {
			return fault.New(fault.Internal, "", "no memory for a result of %d bytes", len(b))
		}
		return nil
	})
}

// text copies a text of at most limit bytes; NULL with length 0 is none.
func text(param string, p *C.a3s_cchar, n C.size_t, limit int) ([]byte, error) {
	switch {
	case p == nil && n == 0:
		return nil, nil
	case p == nil:
		return nil, invalid(param, "is NULL but has a length")
	case n == nts:
		n = C.a3s_c_length((*C.char)(unsafe.Pointer(p)), C.size_t(limit)+1)
	}
	if n > C.size_t(limit) {
		return nil, invalid(param, "has more than %d bytes", limit)
	}
	return C.GoBytes(unsafe.Pointer(p), C.int(n)), nil
}

// request copies and checks a JSON text; none is an empty object.
func request(param string, p *C.a3s_cchar, n C.size_t) ([]byte, error) {
	b, err := text(param, p, n, maxRequest)
	if err != nil {
		return nil, err
	}
	if len(b) == 0 {
		return []byte("{}"), nil
	}
	return b, checkJSON(param, b)
}

// word copies and checks a short NUL-terminated text that must be there.
func word(param string, p *C.a3s_cchar) (string, error) {
	if p == nil {
		return "", invalid(param, "is NULL")
	}
	b, err := text(param, p, nts, maxName)
	if err != nil {
		return "", err
	}
	if len(b) == 0 {
		return "", invalid(param, "is empty")
	}
	return string(b), checkText(param, b, maxName)
}
