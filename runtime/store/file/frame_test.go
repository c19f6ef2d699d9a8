package file

import (
	"bytes"
	"io"
	"slices"
	"testing"
)

// Walking over frames with and without holding them finds the same, and what is found
// is what was written.
func FuzzFrames(f *testing.F) {
	good := appendFrame(appendFrame(nil, []byte("first")), bytes.Repeat([]byte("second"), 50))
	f.Add(good)
	f.Add(good[:len(good)-1])
	f.Add(append(slices.Clone(good), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))
	f.Add([]byte{1, 0, 0, 0, 0, 0, 0, 0, 7})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 1})
	f.Fuzz(func(t *testing.T, log []byte) {
		r, end := bytes.NewReader(log), int64(len(log))
		good, torn, ails, err := verify(background, r, 0, end)
		if err != nil {
			t.Fatal(err)
		}
		if (ails == nil) != (good == end) || torn && ails == nil {
			t.Fatalf("good to %d of %d, torn %v, ails %v", good, end, torn, ails)
		}
		var again []byte
		fr := newFrames(r, 0, end)
		for {
			fact, err := fr.next()
			if err != nil {
				if err != io.EOF && err != ails {
					t.Fatalf("next says %v, verify %v", err, ails)
				}
				break
			}
			again = appendFrame(again, fact)
		}
		if !bytes.Equal(again, log[:good]) {
			t.Fatalf("frames of %x are %x", log[:good], again)
		}
		// A good frame behind the bytes that are cut is never lost.
		if torn {
			for off := good + 1; off < end; off++ {
				if newFrames(r, off, end).skip() == nil {
					t.Fatalf("a good frame at %d of %x is taken for torn", off, log)
				}
			}
		}
	})
}
