package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Bounds of a call's arguments.
const (
	maxArgsBytes = 64 << 20
	maxArgsDepth = 64
)

// canonical gives the one form of a JSON text: compact, names sorted, numbers as they
// were written, nothing escaped that need not be.
func canonical(raw []byte) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("text follows the JSON value")
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// object checks that args is one JSON object within bounds, in which no name comes
// twice: rules and tool could otherwise read different values. Nothing counts as {}.
func object(args json.RawMessage) (json.RawMessage, error) {
	args = bytes.TrimSpace(args)
	switch {
	case len(args) == 0:
		return json.RawMessage("{}"), nil
	case len(args) > maxArgsBytes:
		return nil, fmt.Errorf("%d bytes of arguments; the limit is %d", len(args), maxArgsBytes)
	}
	if args[0] != '{' {
		if !json.Valid(args) {
			return nil, errors.New("not valid JSON")
		}
		return nil, errors.New("not a JSON object")
	}
	dec := json.NewDecoder(bytes.NewReader(args))
	dec.UseNumber()
	if err := walk(dec, 0); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("text follows the JSON object")
	}
	return args, nil
}

// walk reads one value of dec.
func walk(dec *json.Decoder, depth int) error {
	if depth > maxArgsDepth {
		return fmt.Errorf("nested deeper than %d", maxArgsDepth)
	}
	t, err := dec.Token()
	if err != nil {
		return notJSON(err)
	}
	d, opens := t.(json.Delim)
	if !opens {
		return nil
	}
	names := map[string]bool{}
	for dec.More() {
		if d == '{' {
			name, err := dec.Token()
			if err != nil {
				return notJSON(err)
			}
			if names[name.(string)] {
				return fmt.Errorf("the name %q comes twice", name)
			}
			names[name.(string)] = true
		}
		if err := walk(dec, depth+1); err != nil {
			return err
		}
	}
	if _, err := dec.Token(); err != nil {
		return notJSON(err)
	}
	return nil
}

func notJSON(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("not valid JSON: it ends too early")
	}
	return fmt.Errorf("not valid JSON: %w", err)
}
