// Package schema checks JSON from outside: its bounds, before anything decodes it, and
// its shape, against a JSON Schema of draft 2020-12. Schemas are compiled once, kept by
// their digest, and never loaded from anywhere. What a refusal means is the caller's.
// Floor 1.
package schema

import (
	"unicode/utf8"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

// Bounds are the limits that hold before JSON is decoded.
type Bounds struct {
	Size   int // bytes of text
	Depth  int // nested objects and arrays
	Values int // commas and opening brackets, as a measure of the number of values; 0 for no limit
	NoNUL  bool
}

// Request bounds a request of a host, Arguments the arguments of one tool call.
var (
	Request   = Bounds{Size: 64 << 20, Depth: 64, Values: 4_000_000, NoNUL: true}
	Arguments = Bounds{Size: 64 << 20, Depth: 64, Values: 1_000_000}
)

// Numbers beyond these are refused: nothing here can use them, and exact arithmetic on
// them costs far more than their text suggests.
const (
	maxNumber   = 400 // bytes of one number, exclusive
	maxExponent = 3   // digits of its exponent, which keeps it near float64
)

// Check refuses text that is not UTF-8 or breaks b. It reads the text once, without
// recursion and without memory; it does not check that the text is JSON.
func (b Bounds) Check(text []byte) error {
	if len(text) > b.Size {
		return fault.New(fault.Invalid, "schema.check", "%d bytes of JSON, the limit is %d", len(text), b.Size)
	}
	if err := UTF8(text); err != nil {
		return err
	}
	s := scanner{bounds: b}
	for i := 0; i < len(text); i++ {
		if err := s.step(text, &i); err != nil {
			return err
		}
	}
	return nil
}

// UTF8 refuses text that is not valid UTF-8, naming the first bad byte.
func UTF8(text []byte) error {
	if utf8.Valid(text) {
		return nil
	}
	at := 0
	for at < len(text) {
		r, n := utf8.DecodeRune(text[at:])
		if r == utf8.RuneError && n == 1 {
			break
		}
		at += n
	}
	return fault.New(fault.Invalid, "schema.check", "invalid UTF-8 at byte %d", at).With("byte", at)
}

// Depth refuses JSON that nests deeper than max, without recursion.
func Depth(text []byte, max int) error {
	s := scanner{bounds: Bounds{Depth: max}}
	for i := 0; i < len(text); i++ {
		if err := s.step(text, &i); err != nil {
			return err
		}
	}
	return nil
}

// scanner counts what Bounds limit. It knows strings, brackets and numbers only.
type scanner struct {
	bounds        Bounds
	depth, values int
}

// step reads the token at *i and leaves *i on its last byte.
func (s *scanner) step(text []byte, i *int) error {
	switch c := text[*i]; {
	case c == '"':
		return s.str(text, i)
	case c == '{' || c == '[':
		s.depth++
		s.values++
		if s.depth > s.bounds.Depth {
			return fault.New(fault.Invalid, "schema.check", "JSON nested deeper than %d at byte %d", s.bounds.Depth, *i)
		}
	case c == '}' || c == ']':
		s.depth--
	case c == ',':
		s.values++
	case c == 0 && s.bounds.NoNUL:
		return fault.New(fault.Invalid, "schema.check", "NUL at byte %d", *i).With("byte", *i)
	case '0' <= c && c <= '9':
		return s.number(text, i)
	}
	if s.bounds.Values > 0 && s.values > s.bounds.Values {
		return fault.New(fault.Invalid, "schema.check", "more than %d JSON values", s.bounds.Values)
	}
	return nil
}

func (s *scanner) str(text []byte, i *int) error {
	for *i++; *i < len(text); *i++ {
		switch text[*i] {
		case '"':
			return nil
		case 0:
			if s.bounds.NoNUL {
				return fault.New(fault.Invalid, "schema.check", "NUL at byte %d", *i).With("byte", *i)
			}
		case '\\':
			if s.bounds.NoNUL && len(text) >= *i+6 && string(text[*i+1:*i+6]) == "u0000" {
				return fault.New(fault.Invalid, "schema.check", "NUL at byte %d", *i).With("byte", *i)
			}
			*i++
		}
	}
	return nil
}

func (s *scanner) number(text []byte, i *int) error {
	start, exponent := *i, -1
	for ; *i < len(text); *i++ {
		c := text[*i]
		if c == 'e' || c == 'E' {
			exponent = 0
			continue
		}
		if c >= '0' && c <= '9' {
			if exponent > 0 || exponent == 0 && c != '0' {
				exponent++
			}
			continue
		}
		if c != '.' && c != '+' && c != '-' {
			break
		}
	}
	length := *i - start
	*i--
	if length >= maxNumber || exponent > maxExponent {
		return fault.New(fault.Invalid, "schema.check", "number at byte %d is beyond any use", start)
	}
	return nil
}
