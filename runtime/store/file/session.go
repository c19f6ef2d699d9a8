package file

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/record"
	"github.com/a3s-lab/liba3s/runtime/store"
)

// session is one session held for writing.
type session struct {
	st   *Store
	id   string
	dir  string // the journal folder
	lock *lock

	work    sync.Mutex // one of Load, Append, Flush, Save and Close at a time
	f       *os.File   // the log that is appended to, nil before the first write; guarded by work
	buf     []byte     // reused by Append; guarded by work
	follows digest     // of the snapshot; guarded by work
	dirty   bool       // the log has bytes that are not flushed; guarded by work
	rooted  bool       // the names of log and folders are flushed; guarded by work
	saved   bool       // so are those above the snapshot; guarded by work
	stale   []string   // logs before the last save that could not be removed; guarded by work
	broken  error      // why appending is refused; guarded by work

	blobbed atomic.Bool // the names of the folders above the blobs are flushed

	mu     sync.Mutex // held for moments only, so that readers never wait for the disk
	loaded bool       // guarded by mu
	closed bool       // guarded by mu
	pieces []piece    // the journal, oldest log first; guarded by mu
	next   uint64     // generation of the next log; guarded by mu
}

var _ store.Session = (*session)(nil)

// keepBuffer is the largest append buffer that is kept for the next one.
const keepBuffer = 1 << 20

func (s *session) alive(op string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fault.New(fault.Closed, op, "session %q was given up", s.id)
	}
	return nil
}

// ready refuses what may not be done before Load or after Close.
func (s *session) ready(op string) error {
	if err := s.alive(op); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.loaded {
		return fault.New(fault.Internal, op, "session %q was not loaded first", s.id)
	}
	return nil
}

// Load implements store.Session.
func (s *session) Load(ctx context.Context) (store.Kept, error) {
	const op = "store.load"
	s.work.Lock()
	defer s.work.Unlock()
	if err := s.alive(op); err != nil {
		return store.Kept{}, err
	}
	if s.loaded {
		return store.Kept{}, fault.New(fault.Internal, op, "session %q is loaded already", s.id)
	}
	snap, d, warning, err := s.st.snapshot(s.id)
	if err != nil {
		return store.Kept{}, err
	}
	v, err := look(s.dir, s.id)
	if err != nil {
		return store.Kept{}, err
	}
	if warning != "" {
		v.warnings = append(v.warnings, warning)
	}
	pieces, err := v.settle(ctx, d)
	if err != nil {
		return store.Kept{}, err
	}
	path := s.st.snapshotPath(s.id)
	if err := errors.Join(sweepTemps(filepath.Dir(path), filepath.Base(path)), sweepTemps(s.st.blobDir(s.id), "")); err != nil {
		return store.Kept{}, failed(op, err, "remove what a crash left in the making")
	}
	s.follows = d
	s.mu.Lock()
	s.pieces, s.next, s.loaded = pieces, v.last+1, true
	s.mu.Unlock()
	return store.Kept{Snapshot: snap, Facts: facts(ctx, op, slices.Clone(pieces)), Warning: v.warning()}, nil
}

// Append implements store.Session. ctx is not looked at: what a run must write when it
// is cancelled is written.
func (s *session) Append(_ context.Context, group [][]byte) (record.Pos, error) {
	const op = "store.append"
	s.work.Lock()
	defer s.work.Unlock()
	if err := s.ready(op); err != nil {
		return record.Pos{}, err
	}
	if err := store.ValidFacts(group); err != nil {
		return record.Pos{}, err
	}
	if s.broken != nil {
		return record.Pos{}, fault.New(fault.IO, op, "the journal of session %q cannot be trusted since an earlier failure; save the session to start a new one: %v", s.id, s.broken)
	}
	if len(group) == 0 {
		return s.end(), nil
	}
	last, fresh, err := s.writable()
	if err != nil {
		return record.Pos{}, err
	}
	buf := s.buf[:0]
	if fresh {
		if buf, err = newHeader(s.id, s.follows, ""); err != nil {
			return record.Pos{}, fault.From(op, err)
		}
		last.from = int64(len(buf))
	}
	size := 0
	for _, fact := range group {
		size += frameHead + len(fact)
	}
	buf = slices.Grow(buf, size)
	for _, fact := range group {
		buf = appendFrame(buf, fact)
	}
	if s.buf = buf; cap(buf) > keepBuffer {
		s.buf = nil
	}
	start := last.end
	if err := s.write(last, buf, fresh); err != nil {
		return record.Pos{}, failed(op, err, "append to the journal of session %q", s.id)
	}
	last.end += int64(len(buf))
	s.dirty = true
	s.mu.Lock()
	if fresh {
		s.pieces, s.next = append(s.pieces, last), last.gen+1
	} else {
		s.pieces[len(s.pieces)-1] = last
	}
	s.mu.Unlock()
	s.st.at("append.written")
	return record.Pos{Generation: last.gen, Offset: max(start, last.from)}, nil
}

// end is the position of the next fact. work is held.
func (s *session) end() record.Pos {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.pieces); n > 0 {
		return record.Pos{Generation: s.pieces[n-1].gen, Offset: s.pieces[n-1].end}
	}
	return record.Pos{Generation: s.next}
}

// writable opens the log to append to, or makes the first one. work is held, so the
// pieces can be read without mu.
func (s *session) writable() (last piece, fresh bool, err error) {
	if n := len(s.pieces); n > 0 {
		last = s.pieces[n-1]
		if s.f != nil {
			return last, false, nil
		}
		s.f, err = os.OpenFile(last.path, os.O_WRONLY, 0)
	} else {
		fresh, s.rooted = true, false
		s.f, last, err = s.create()
	}
	if err != nil {
		s.f = nil
		return last, false, failed("store.append", err, "open journal %q", last.path)
	}
	if fresh {
		s.st.at("append.log_created")
	}
	return last, fresh, nil
}

// write puts b at the end of the log, or leaves the log as it was, or else closes it
// to further appends.
func (s *session) write(last piece, b []byte, fresh bool) error {
	_, err := s.st.disk.write(s.f, b, last.end)
	if err == nil {
		return nil
	}
	var undo error
	if fresh {
		undo = errors.Join(s.f.Close(), os.Remove(last.path))
		s.f = nil
	} else {
		undo = s.st.disk.truncate(s.f, last.end)
	}
	if undo != nil {
		s.broken = undo
		return errors.Join(err, undo)
	}
	return err
}

// Flush implements store.Session. After a failed flush nobody knows what the disk has:
// the system forgets which pages were not written. So appending ends then.
func (s *session) Flush(context.Context) error {
	const op = "store.flush"
	s.work.Lock()
	defer s.work.Unlock()
	if err := s.ready(op); err != nil {
		return err
	}
	if s.broken != nil {
		return failed(op, s.broken, "the journal of session %q cannot be trusted since an earlier failure; save the session to start a new one", s.id)
	}
	if err := s.flush(); err != nil {
		return failed(op, err, "flush the journal of session %q", s.id)
	}
	return nil
}

func (s *session) flush() error {
	if !s.dirty {
		return nil
	}
	err := s.st.disk.sync(s.f)
	s.st.at("flush.log_synced")
	if err == nil && !s.lock.current() {
		err = errors.New("the store's folder was removed or replaced while the session was open; what is written there is lost with it")
	}
	if err == nil && !s.rooted {
		err = s.root()
	}
	if err != nil {
		s.broken = err
		return err
	}
	s.dirty = false
	s.st.at("flush.synced")
	return nil
}

// root makes the names of the logs survive a power loss.
func (s *session) root() error {
	err := s.st.syncTree(s.dir, s.lock.made)
	s.rooted = err == nil
	return err
}

// create makes the next log. A name that is taken is that of a log which a failure
// left half made and that could not be removed.
func (s *session) create() (*os.File, piece, error) {
	for gen := s.next; ; gen++ {
		path := filepath.Join(s.dir, logName(gen))
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		return f, piece{gen: gen, path: path}, err
	}
}

// Read implements store.Session.
func (s *session) Read(ctx context.Context, from record.Pos) iter.Seq2[[]byte, error] {
	const op = "store.read"
	pieces, err := s.from(op, from)
	if err != nil {
		return func(yield func([]byte, error) bool) { yield(nil, err) }
	}
	return facts(ctx, op, pieces)
}

// from gives the journal from a position on, as it is now.
func (s *session) from(op string, from record.Pos) ([]piece, error) {
	if err := s.ready(op); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if from == (record.Pos{}) {
		return slices.Clone(s.pieces), nil
	}
	i := slices.IndexFunc(s.pieces, func(p piece) bool { return p.gen == from.Generation })
	if i < 0 {
		if from == (record.Pos{Generation: s.next}) {
			return nil, nil
		}
		return nil, fault.New(fault.NotFound, op, "the facts of generation %d are no longer kept", from.Generation)
	}
	pieces := slices.Clone(s.pieces[i:])
	if from.Offset == 0 {
		return pieces, nil
	}
	if from.Offset < pieces[0].from || from.Offset > pieces[0].end {
		return nil, fault.New(fault.Invalid, op, "generation %d has no fact at byte %d", from.Generation, from.Offset)
	}
	pieces[0].from = from.Offset
	return pieces, nil
}

// Blobs implements store.Session.
func (s *session) Blobs() store.Blobs { return blobs{s} }

// Close implements store.Session. What is written is the system's to keep; nothing is
// flushed. A folder that holds nothing but the lock goes.
func (s *session) Close() error {
	s.work.Lock()
	defer s.work.Unlock()
	s.mu.Lock()
	closed := s.closed
	s.closed = true
	s.mu.Unlock()
	if closed {
		return nil
	}
	var err error
	if s.f != nil {
		err = s.f.Close()
	}
	if err = errors.Join(err, s.lock.release(holdsOnlyLock(s.dir))); err != nil {
		return failed("store.close", err, "give session %q up", s.id)
	}
	return nil
}

func holdsOnlyLock(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() != "lock" })
}
