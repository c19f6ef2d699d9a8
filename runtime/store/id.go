package store

import (
	"unicode"
	"unicode/utf8"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

// Bounds that hold for every back-end.
const (
	// MaxID bounds a session id, in bytes: its encoded form must fit a file name.
	MaxID = 128
	// MaxFact bounds one fact, in bytes.
	MaxFact = 256 << 20
	// MaxBlob bounds one blob, in bytes.
	MaxBlob = 256 << 20
	// MaxBlobName bounds the name of a blob, in bytes.
	MaxBlobName = 128
)

// ValidID refuses a session id that no back-end takes: empty, over MaxID bytes, not
// UTF-8, or with control characters.
func ValidID(id string) error {
	switch {
	case id == "":
		return fault.Option("session_id", fault.BadValue, "must not be empty")
	case len(id) > MaxID:
		return fault.Option("session_id", fault.BadValue, "has %d bytes, at most %d are taken", len(id), MaxID)
	case !utf8.ValidString(id):
		return fault.Option("session_id", fault.BadValue, "%q is not UTF-8", id)
	}
	for _, r := range id {
		if unicode.IsControl(r) {
			return fault.Option("session_id", fault.BadValue, "%q has a control character", id)
		}
	}
	return nil
}

// ValidBlobName refuses a blob name other than 1 to MaxBlobName of A-Z a-z 0-9 _ . -
// and the two names of folders, "." and "..".
func ValidBlobName(name string) error {
	if name == "" || len(name) > MaxBlobName || name == "." || name == ".." {
		return badBlobName(name)
	}
	for i := range len(name) {
		c := name[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '.' || c == '-') {
			return badBlobName(name)
		}
	}
	return nil
}

func badBlobName(name string) error {
	return fault.New(fault.Invalid, "store.blob", "blob name %q: use 1 to %d letters, digits, '_', '-' and '.'", name, MaxBlobName)
}

// ValidFacts refuses an empty or oversized fact. An empty one is told apart from a
// hole in a file by nothing.
func ValidFacts(facts [][]byte) error {
	for i, f := range facts {
		if len(f) == 0 {
			return fault.New(fault.Invalid, "store.append", "fact %d of %d is empty", i, len(facts))
		}
		if len(f) > MaxFact {
			return fault.New(fault.Limit, "store.append", "fact %d of %d has %d bytes, the limit is %d", i, len(facts), len(f), MaxFact)
		}
	}
	return nil
}
