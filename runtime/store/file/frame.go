package file

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"iter"
	"os"
	"sync"

	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/store"
)

const (
	frameHead = 8         // length and checksum
	readAhead = 256 << 10 // bytes read from a log at once
)

var castagnoli = sync.OnceValue(func() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) })

// appendFrame puts the frame of one fact behind dst.
func appendFrame(dst, fact []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(fact)))
	dst = binary.LittleEndian.AppendUint32(dst, crc32.Checksum(fact, castagnoli()))
	return append(dst, fact...)
}

// What ails a frame.
var (
	errShort    = errors.New("frame is cut off")
	errHole     = errors.New("a hole is in its place")
	errLength   = errors.New("frame has an impossible length")
	errChecksum = errors.New("frame has a wrong checksum")
)

// frames walks over the frames of a log between two offsets.
type frames struct {
	r   *bufio.Reader
	off int64 // of the next frame
	end int64
}

func newFrames(r io.ReaderAt, from, end int64) *frames {
	size := int64(readAhead)
	if end-from < size {
		size = max(end-from, 16)
	}
	return &frames{bufio.NewReaderSize(io.NewSectionReader(r, from, end-from), int(size)), from, end}
}

// head reads length and checksum of the next frame; io.EOF at the end. What ails the
// frame leaves off at its start.
func (f *frames) head() (length int64, sum uint32, err error) {
	left := f.end - f.off
	if left == 0 {
		return 0, 0, io.EOF
	}
	if left < frameHead {
		return 0, 0, errShort
	}
	var b [frameHead]byte
	if _, err := io.ReadFull(f.r, b[:]); err != nil {
		return 0, 0, shrunk(err)
	}
	length = int64(binary.LittleEndian.Uint32(b[:]))
	switch {
	case length == 0:
		return 0, 0, errHole
	case length > store.MaxFact:
		return 0, 0, errLength
	case length > left-frameHead:
		return 0, 0, errShort
	}
	return length, binary.LittleEndian.Uint32(b[4:]), nil
}

// next reads the next fact into memory of its own.
func (f *frames) next() ([]byte, error) {
	length, sum, err := f.head()
	if err != nil {
		return nil, err
	}
	b := make([]byte, length)
	if _, err := io.ReadFull(f.r, b); err != nil {
		return nil, shrunk(err)
	}
	if crc32.Checksum(b, castagnoli()) != sum {
		return nil, errChecksum
	}
	f.off += frameHead + length
	return b, nil
}

// skip checks the next frame without holding it.
func (f *frames) skip() error {
	length, sum, err := f.head()
	if err != nil {
		return err
	}
	var have uint32
	for left := int(length); left > 0; {
		b, err := f.r.Peek(min(left, f.r.Size()))
		if len(b) == 0 {
			return shrunk(err)
		}
		have = crc32.Update(have, castagnoli(), b)
		left -= len(b)
		if _, err := f.r.Discard(len(b)); err != nil {
			return err
		}
	}
	if have != sum {
		return errChecksum
	}
	f.off += frameHead + length
	return nil
}

// shrunk keeps a file that lost bytes while it was read apart from one that has ended.
func shrunk(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// broken says that err is about the bytes of a frame and not about reading them.
func broken(err error) bool {
	return errors.Is(err, errShort) || errors.Is(err, errHole) || errors.Is(err, errLength) || errors.Is(err, errChecksum)
}

// verify walks over all frames from offset from and gives where the good ones end. If
// that is before end, ails says why, and torn that it looks like the end of a write
// that a crash cut off.
func verify(ctx context.Context, r io.ReaderAt, from, end int64) (good int64, torn bool, ails, err error) {
	f := newFrames(r, from, end)
	for n := 0; ; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return 0, false, nil, ctx.Err()
		}
		err := f.skip()
		switch {
		case err == io.EOF:
			return f.off, false, nil, nil
		case broken(err):
			torn, err2 := cutOff(r, f.off, end, err)
			return f.off, torn, err, err2
		case err != nil:
			return 0, false, nil, err
		}
	}
}

// cutOff says that the broken frame at offset from is what a crash makes of the last
// write: a part of it, or zeros, and no good frame behind. Anything else is damage.
func cutOff(r io.ReaderAt, from, end int64, ails error) (bool, error) {
	switch {
	case errors.Is(ails, errLength):
		return false, nil // no write of ours, however little of it was done, has such a length
	case errors.Is(ails, errHole):
		return zeros(r, from, end)
	}
	again, err := resumes(r, from+1, end)
	return !again, err
}

// zeros says that nothing else is between from and end.
func zeros(r io.ReaderAt, from, end int64) (bool, error) {
	br := bufio.NewReaderSize(io.NewSectionReader(r, from, end-from), readAhead)
	for {
		if _, err := br.Peek(1); err == io.EOF {
			return true, nil
		} else if err != nil {
			return false, err
		}
		b, err := br.Peek(br.Buffered())
		if err != nil {
			return false, err
		}
		for _, c := range b {
			if c != 0 {
				return false, nil
			}
		}
		if _, err := br.Discard(len(b)); err != nil {
			return false, err
		}
	}
}

// searchBudget bounds the bytes that are checksummed to find out whether good frames
// follow a broken one. Frames of text are found at once, since four bytes of text are
// no possible length.
const searchBudget = 64 << 20

// resumes says whether a good frame lies anywhere between from and end, which the torn
// end of the last write has not. If that cannot be found out within the budget the
// answer is yes: the bytes are then kept.
func resumes(r io.ReaderAt, from, end int64) (bool, error) {
	budget := int64(searchBudget)
	br := bufio.NewReaderSize(io.NewSectionReader(r, from, end-from), readAhead)
	for off := from; off+frameHead < end; off++ {
		b, err := br.Peek(frameHead)
		if err != nil {
			return false, err
		}
		length := int64(binary.LittleEndian.Uint32(b))
		if length > 0 && length <= end-off-frameHead {
			if budget -= length; budget < 0 {
				return true, nil
			}
			err := newFrames(r, off, off+frameHead+length).skip()
			if err == nil || !broken(err) {
				return true, err
			}
		}
		if _, err := br.Discard(1); err != nil {
			return false, err
		}
	}
	return false, nil
}

// facts yields the facts of the pieces in order. Pieces whose file is gone are
// fault.NotFound.
func facts(ctx context.Context, op string, pieces []piece) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		// All are opened before the first is read: a save may remove them any time.
		files := make([]*os.File, 0, len(pieces))
		defer func() {
			for _, f := range files {
				f.Close() // only read from
			}
		}()
		for _, p := range pieces {
			f, _, err := open(p.path)
			if err != nil {
				yield(nil, gone(op, err, p))
				return
			}
			files = append(files, f)
		}
		for i, p := range pieces {
			fr := newFrames(files[i], p.from, p.end)
			for {
				if err := ctx.Err(); err != nil {
					yield(nil, fault.From(op, err))
					return
				}
				at := fr.off
				b, err := fr.next()
				if err == io.EOF {
					break
				}
				if err != nil {
					yield(nil, unreadable(op, err, p.path, at))
					return
				}
				if !yield(b, nil) {
					return
				}
			}
		}
	}
}

func gone(op string, err error, p piece) error {
	if errors.Is(err, os.ErrNotExist) {
		return fault.New(fault.NotFound, op, "the facts of generation %d are no longer kept: %v", p.gen, err)
	}
	return failed(op, err, "open journal")
}

// unreadable says where a journal cannot be read.
func unreadable(op string, err error, path string, at int64) error {
	if broken(err) {
		return fault.Of(fault.CodeSerialization, op, "journal %q, byte %d: %v", path, at, err).With("path", path).With("offset", at)
	}
	return failed(op, err, "read journal %q at byte %d", path, at).With("path", path).With("offset", at)
}
