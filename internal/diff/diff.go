// Package diff renders the change of a text as a unified diff within bounds. What is
// compared, and whether it may be shown, is the caller's. Floor 1.
package diff

import (
	"fmt"
	"strings"
	"unicode/utf8"

	udiff "github.com/aymanbagabas/go-udiff"
)

const (
	// MaxInput is the size of both sides together above which no diff is made.
	MaxInput = 1 << 20
	context  = 3
)

// Unified gives the difference of two texts of one file with three lines of context,
// empty if they are equal. Over max bytes it is cut after a whole line and says so.
// omitted says that the diff is not the whole one: it was cut, or the texts are
// larger than MaxInput together and there is none.
func Unified(path, before, after string, max int) (text string, omitted bool) {
	if before == after {
		return "", false
	}
	if len(before)+len(after) > MaxInput {
		return "", true
	}
	text, err := udiff.ToUnified("a/"+path, "b/"+path, before, udiff.Lines(before, after), context)
	if err != nil {
		return "", true // only edits that do not fit their text, and these come from it
	}
	if len(text) <= max {
		return text, false
	}
	return cut(text, max), true
}

func cut(text string, max int) string {
	note := fmt.Sprintf("[diff cut: %d bytes in all]\n", len(text))
	keep := max - len(note)
	if keep <= 0 {
		return ""
	}
	for !utf8.RuneStart(text[keep]) {
		keep--
	}
	end := strings.LastIndexByte(text[:keep], '\n') + 1
	if end == 0 {
		end = keep
		note = "\n" + note[:len(note)-1]
	}
	return text[:end] + note
}
