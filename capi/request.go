package main

import (
	"bytes"
	"unicode/utf8"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

// Bounds of everything that comes in.
const (
	maxRequest = 64 << 20
	maxDepth   = 64
	maxName    = 256
	maxReason  = 4 << 10
)

// invalid refuses a parameter by name.
func invalid(param, format string, args ...any) *fault.Error {
	return fault.New(fault.Invalid, "", param+" "+format, args...).With("field", param)
}

// checkJSON checks a request for what no decoder below should have to survive. That it
// is JSON, and which, is op's part.
func checkJSON(param string, b []byte) error {
	if err := checkText(param, b, maxRequest); err != nil {
		return err
	}
	depth, inString := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return invalid(param, "is nested deeper than %d", maxDepth)
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return nil
}

// checkText checks that b is UTF-8 of at most limit bytes without NUL.
func checkText(param string, b []byte, limit int) error {
	switch {
	case len(b) > limit:
		return invalid(param, "has more than %d bytes", limit)
	case bytes.IndexByte(b, 0) >= 0:
		return invalid(param, "has a NUL byte at offset %d", bytes.IndexByte(b, 0))
	case !utf8.Valid(b):
		return invalid(param, "is not UTF-8")
	}
	return nil
}
