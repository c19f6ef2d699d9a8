package host

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

// Bounds of what a host answers.
const (
	maxReply = 64 << 20 // bytes of one reply or chunk
	maxDepth = 64       // nested objects and arrays in it
	// DefaultResult bounds a result for a question that names no bound.
	DefaultResult = 1 << 20
)

// envelope is what stands around a result: {"result":}.
const envelope = 11

func checkSize(op string, b []byte) error {
	if len(b) > maxReply {
		return fault.New(fault.Limit, op, "the answer has %d bytes, more than %d", len(b), maxReply)
	}
	return nil
}

func checkText(op string, b []byte) error {
	switch {
	case !utf8.Valid(b):
		return fault.New(fault.Invalid, op, "the answer is not valid UTF-8")
	case depth(b) > maxDepth:
		return fault.New(fault.Invalid, op, "the answer is nested deeper than %d levels", maxDepth)
	}
	return nil
}

func noJSON(op string) error { return fault.New(fault.Invalid, op, "the answer is not valid JSON") }

// depth gives the deepest nesting of brackets outside strings.
func depth(b []byte) int {
	deepest, now := 0, 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			i += length(b[i:]) - 1
		case '{', '[':
			now++
			deepest = max(deepest, now)
		case '}', ']':
			now--
		}
	}
	return deepest
}

// length gives the bytes of the string that b begins with, all if it has no end. Most of
// an answer is text, so it leaps.
func length(b []byte) int {
	for i, end := 1, 0; i < len(b); {
		if end < i {
			next := bytes.IndexByte(b[i:], '"')
			if next < 0 {
				break
			}
			end = i + next
		}
		escape := bytes.IndexByte(b[i:end], '\\')
		if escape < 0 {
			return end + 1
		}
		i += escape + 2 // what is escaped ends nothing
	}
	return len(b)
}

// Failure is what a host extension reports when it fails: the type and message of its
// exception, and what a program can tell of it.
type Failure struct {
	Type    string `json:"type"`
	Message string `json:"message"`
	// Kind is the nature of the failure, in the words of an error's kind, where the
	// extension knows it: "not_found", "conflict", "denied", ...
	Kind string `json:"kind,omitempty"`
	// Retryable says that the same request may succeed later, RetryAfterMS when.
	Retryable    bool  `json:"retryable,omitempty"`
	RetryAfterMS int64 `json:"retry_after_ms,omitempty"`
	// Details carries what belongs to the kind, such as expected and actual of a conflict.
	Details map[string]any `json:"details,omitempty"`
}

// Error gives "type: message".
func (f *Failure) Error() string { return f.Type + ": " + f.Message }

// garbage says that a host answered what cannot be used.
func garbage(format string, args ...any) *Failure {
	return &Failure{Type: "InvalidReply", Message: fmt.Sprintf(format, args...)}
}

// Reply is the shape of every answer: exactly one of the two.
type Reply struct {
	// Result has the type of the operation.
	Result json.RawMessage `json:"result,omitempty"`
	Error  *Failure        `json:"error,omitempty"`
}

// answer is a reply that was read: the result, or why there is none.
type answer struct {
	result json.RawMessage
	err    error
}

// decodeReply reads a reply. One that is neither of the two is refused, so that it does
// not use up the one answer of a request.
func decodeReply(op string, b []byte) (answer, error) {
	if err := checkText(op, b); err != nil {
		return answer{}, err
	}
	// Nearly every reply is this, and the largest are.
	if inner, ok := bytes.CutPrefix(b, []byte(`{"result":`)); ok {
		if inner, ok = bytes.CutSuffix(inner, []byte("}")); ok && json.Valid(inner) {
			return answer{result: bytes.Clone(inner)}, nil
		}
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(b, &keys); err != nil {
		if !json.Valid(b) {
			return answer{}, noJSON(op)
		}
		return answer{}, fault.New(fault.Invalid, op, "the answer is no JSON object").With("reason", fault.BadType)
	}
	for k := range keys {
		if k != "result" && k != "error" {
			return answer{}, fault.New(fault.Invalid, op, "unknown field %q: an answer is {\"result\": ...} or {\"error\": {...}}", k).With("field", k).With("reason", fault.BadValue)
		}
	}
	if len(keys) != 1 {
		return answer{}, fault.New(fault.Invalid, op, "an answer has either result or error").With("reason", fault.BadValue)
	}
	if result, ok := keys["result"]; ok {
		return answer{result: result}, nil
	}
	var f *Failure
	switch err := json.Unmarshal(keys["error"], &f); {
	case err != nil:
		return answer{err: garbage("the error cannot be read: %v", err)}, nil
	case f == nil:
		return answer{err: garbage("the reply has neither result nor error")}, nil
	}
	return answer{err: f.bounded()}, nil
}

// maxMessage bounds what a failure says: it goes to models, logs and journals.
const maxMessage = 8 << 10

func (f *Failure) bounded() *Failure {
	f.Type, f.Message = Cut(f.Type, 128), Cut(f.Message, maxMessage)
	f.RetryAfterMS = max(f.RetryAfterMS, 0)
	return f
}

// Cut shortens s to at most n bytes on the edge of a character.
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// Strict decodes JSON of the host within a bound. A name that into does not have is
// refused: a typo must not pass for silence. Null leaves into as it is.
func Strict(b []byte, bound int, into any) error {
	if len(b) > bound {
		return garbage("the answer has %d bytes, more than %d", len(b), bound)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	var misfit *json.UnmarshalTypeError
	switch err := d.Decode(into); {
	case errors.As(err, &misfit):
		return garbage("the answer cannot be read: %s", fault.Misfit(cmp.Or(misfit.Field, "it"), misfit))
	case err != nil:
		return garbage("the answer cannot be read: %v", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return garbage("something follows the answer")
	}
	return nil
}
