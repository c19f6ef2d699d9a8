package local

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/a3s-lab/liba3s/internal/search"
)

// tree is a workspace as a search sees it. A search opens thousands of files by clean
// paths without links, so the kernel is asked, in one call each, to refuse links and
// ways out of the root.
type tree struct {
	w    *Workspace
	root *os.File
	slow bool // there is no openat2; set by the tests
}

var _ search.Tree = (*tree)(nil)

// tree opens what a search needs; the caller closes it.
func (w *Workspace) tree() (*tree, error) {
	f, err := w.dir.Open(".")
	if err != nil {
		return nil, translate("workspace.search", ".", err)
	}
	return &tree{w: w, root: f}, nil
}

func (t *tree) close() { t.root.Close() }

// open opens what p leads to without any link.
func (t *tree) open(p string, flags uint64) (int, error) {
	how := unix.OpenHow{
		Flags:   flags | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS,
	}
	for !t.slow {
		fd, err := unix.Openat2(int(t.root.Fd()), p, &how)
		switch err {
		case nil:
			return fd, nil
		case unix.EINTR, unix.EAGAIN:
		case unix.ENOSYS, unix.EPERM:
			// An old kernel, or a container that knows no openat2.
			return t.openSlowly(p)
		default:
			return -1, err
		}
	}
	return t.openSlowly(p)
}

// openSlowly does the same element by element.
func (t *tree) openSlowly(p string) (int, error) {
	at, err := t.w.find(p, noFollow)
	if err != nil {
		return -1, err
	}
	defer at.close()
	if at.info == nil {
		return -1, fs.ErrNotExist
	}
	if at.real != p || !at.info.Mode().IsRegular() && !at.info.IsDir() {
		return -1, unix.ELOOP
	}
	f, err := at.dir.OpenFile(at.base, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	defer f.Close()
	if fi, err := f.Stat(); err != nil || !os.SameFile(fi, at.info) {
		return -1, errSwapped
	}
	return unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
}

// Stat describes a file or directory.
func (t *tree) Stat(p string) (search.Info, error) {
	fd, err := t.open(p, unix.O_PATH)
	if err != nil {
		return search.Info{}, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return search.Info{}, err
	}
	return search.Info{Entry: entry("", st.Mode), Size: st.Size, Modified: time.Unix(st.Mtim.Unix())}, nil
}

func entry(name string, mode uint32) search.Entry {
	return search.Entry{Name: name, Dir: mode&unix.S_IFMT == unix.S_IFDIR, File: mode&unix.S_IFMT == unix.S_IFREG}
}

// dirents are buffers for the kernel's lists of entries.
var dirents = sync.Pool{New: func() any { b := make([]byte, 32<<10); return &b }}

// ReadDir gives the entries of a directory, unsorted.
func (t *tree) ReadDir(p string) ([]search.Entry, error) {
	fd, err := t.open(p, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	buf := dirents.Get().(*[]byte)
	defer dirents.Put(buf)
	var out []search.Entry
	for {
		n, err := unix.Getdents(fd, *buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, err
		}
		if n <= 0 {
			return out, nil
		}
		if out = appendEntries(out, fd, (*buf)[:n]); len(out) > maxEntries {
			return nil, search.ErrTooLarge
		}
	}
}

// appendEntries reads what getdents64 wrote: inode, offset, length, type, name.
func appendEntries(out []search.Entry, fd int, buf []byte) []search.Entry {
	const length, kind, name = 16, 18, 19
	for len(buf) > name {
		n := int(binary.NativeEndian.Uint16(buf[length:]))
		if n <= name || n > len(buf) {
			return out
		}
		rec := buf[:n]
		buf = buf[n:]
		text := rec[name:]
		if end := bytes.IndexByte(text, 0); end >= 0 {
			text = text[:end]
		}
		if len(text) == 0 || text[0] == '.' && (len(text) == 1 || len(text) == 2 && text[1] == '.') || bytes.HasPrefix(text, []byte(tempPrefix)) {
			continue
		}
		e := search.Entry{Name: string(text), Dir: rec[kind] == unix.DT_DIR, File: rec[kind] == unix.DT_REG}
		if rec[kind] == unix.DT_UNKNOWN {
			// Some file systems do not say.
			var st unix.Stat_t
			if err := unix.Fstatat(fd, e.Name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
				continue
			}
			e = entry(e.Name, st.Mode)
		}
		out = append(out, e)
	}
	return out
}

// ReadFile reads a regular file.
func (t *tree) ReadFile(p string, buf *[]byte, max int64, keep func(head []byte) bool) ([]byte, error) {
	fd, err := t.open(p, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return nil, errors.New("not a regular file")
	case st.Size > max:
		return nil, search.ErrTooLarge
	}
	if need := int(st.Size) + 1; cap(*buf) < need {
		*buf = make([]byte, need+need/4+4096)
	}
	b := (*buf)[:cap(*buf)]
	n := 0
	for {
		end := len(b)
		if n < search.HeadSize {
			end = min(end, search.HeadSize)
		}
		if int64(n) > max {
			return nil, search.ErrTooLarge
		}
		if n == len(b) {
			*buf = append(b, make([]byte, len(b))...) // it has grown since
			b = (*buf)[:cap(*buf)]
			continue
		}
		m, err := unix.Read(fd, b[n:end])
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return nil, err
		}
		had := n
		n += m
		if had < search.HeadSize && (n >= search.HeadSize || m == 0 || int64(n) >= st.Size) && !keep(b[:n]) {
			return b[:n], nil
		}
		// A size of 0 says nothing: the files of /proc have it.
		if m == 0 || int64(n) == st.Size && st.Size > 0 {
			return b[:n], nil
		}
	}
}
