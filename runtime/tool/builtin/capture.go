package builtin

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Bounds on the output of one command, in bytes.
const (
	captureHead = 8 << 20 // the first and the last so many are kept, so that
	captureTail = 8 << 20 // up to 16 MiB are whole
	pieceMax    = 8 << 10 // of what is told at once while the command runs
	tellMax     = 1 << 20 // of all that is told while it runs; then only the end follows
)

// capture keeps the output of a command within bounds and tells it as it comes. It is
// the only copy; its size does not depend on how much the command prints.
type capture struct {
	emit  func(string)
	total int64
	head  []byte
	tail  []byte // a ring once it is full
	start int    // of the ring

	open    []byte // start of a character whose rest has not come yet
	told    int64
	untold  int64
	lastOut []byte // end of what was not told, at most pieceMax
}

// write takes the next bytes of the output.
func (c *capture) write(b []byte) {
	c.total += int64(len(b))
	c.tell(b)
	n := min(len(b), captureHead-len(c.head))
	c.head = append(c.head, b[:n]...)
	b = b[n:]
	if len(b) > captureTail {
		b = b[len(b)-captureTail:]
	}
	n = min(len(b), captureTail-len(c.tail))
	c.tail = append(c.tail, b[:n]...)
	for b = b[n:]; len(b) > 0; b = b[n:] {
		n = copy(c.tail[c.start:], b)
		c.start = (c.start + n) % captureTail
	}
}

// text gives what was kept as valid text, and how many bytes of the output that is.
func (c *capture) text() (string, int64) {
	left := c.total - int64(len(c.head)+len(c.tail))
	var b strings.Builder
	b.Grow(len(c.head) + len(c.tail) + 64)
	if left == 0 {
		b.Write(c.head)
		b.Write(c.tail[c.start:])
		b.Write(c.tail[:c.start])
		return strings.ToValidUTF8(b.String(), "\uFFFD"), c.total
	}
	// Not more than three bytes belong to a character that the gap has split.
	head := complete(c.head)
	skip := 0
	for skip < utf8.UTFMax-1 && !utf8.RuneStart(c.tail[(c.start+skip)%captureTail]) {
		skip++
	}
	kept := int64(len(head) + len(c.tail) - skip)
	b.Write(head)
	fmt.Fprintf(&b, "\n[%d bytes of output left out]\n", c.total-kept)
	at := (c.start + skip) % captureTail
	if at >= c.start {
		b.Write(c.tail[at:])
		b.Write(c.tail[:c.start])
	} else {
		b.Write(c.tail[at:c.start])
	}
	return strings.ToValidUTF8(b.String(), "\uFFFD"), kept
}

// tell hands b on in pieces of whole characters, up to tellMax.
func (c *capture) tell(b []byte) {
	if c.told >= tellMax {
		c.skip(c.open) // its rest is not told either
		c.open = nil
		c.skip(b)
		return
	}
	b = append(c.open, b...)
	ready := complete(b)
	c.open = append([]byte(nil), b[len(ready):]...)
	if room := tellMax - c.told; int64(len(ready)) > room {
		cut := complete(ready[:room])
		c.told = tellMax
		c.pieces(cut)
		c.skip(ready[len(cut):])
		c.skip(c.open)
		c.open = nil
		return
	}
	c.told += int64(len(ready))
	c.pieces(ready)
}

func (c *capture) pieces(b []byte) {
	for s := strings.ToValidUTF8(string(b), "\uFFFD"); s != ""; {
		piece := cutAt(s, pieceMax)
		c.emit(piece)
		s = s[len(piece):]
	}
}

// skip remembers the end of what is not told.
func (c *capture) skip(b []byte) {
	c.untold += int64(len(b))
	if len(b) >= pieceMax {
		c.lastOut = append(c.lastOut[:0], b[len(b)-pieceMax:]...)
		return
	}
	if over := len(c.lastOut) + len(b) - pieceMax; over > 0 {
		c.lastOut = c.lastOut[:copy(c.lastOut, c.lastOut[over:])]
	}
	c.lastOut = append(c.lastOut, b...)
}

// end tells what is left when the command has ended.
func (c *capture) end() {
	c.pieces(c.open)
	c.open = nil
	if c.untold == 0 {
		return
	}
	end := c.lastOut
	for i := 0; c.untold > int64(len(c.lastOut)) && i < utf8.UTFMax-1 && len(end) > 0 && !utf8.RuneStart(end[0]); i++ {
		end = end[1:]
	}
	if left := c.untold - int64(len(end)); left > 0 {
		c.emit(fmt.Sprintf("\n[%d bytes not shown while the command ran]\n", left))
	}
	c.pieces(end)
}

// complete gives b without a character at its end that is not complete.
func complete(b []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		c := b[len(b)-i]
		if !utf8.RuneStart(c) {
			continue
		}
		if c >= utf8.RuneSelf && !utf8.FullRune(b[len(b)-i:]) {
			return b[:len(b)-i]
		}
		break
	}
	return b
}
