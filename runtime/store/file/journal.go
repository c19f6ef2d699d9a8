package file

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

const (
	formatName    = "a3s-journal"
	formatVersion = 1
	maxHeader     = 64 << 10
)

// digest is the SHA-256 of a snapshot file; zeros for none.
type digest [32]byte

// header is the first frame of a log.
type header struct {
	Format      string `json:"format"`
	Version     int    `json:"version"`
	SessionID   string `json:"session_id"`
	Snapshot    string `json:"snapshot_sha256"`
	Predecessor string `json:"predecessor"`
	CreatedMS   int64  `json:"created_ms"`
}

func newHeader(id string, d digest, predecessor string) ([]byte, error) {
	b, err := json.Marshal(header{formatName, formatVersion, id, hex.EncodeToString(d[:]), predecessor, time.Now().UnixMilli()})
	if err != nil {
		return nil, err
	}
	return appendFrame(nil, b), nil
}

// piece is a stretch of whole facts in one log.
type piece struct {
	gen       uint64
	path      string
	from, end int64
}

// logFile is one log that was found in a journal folder.
type logFile struct {
	piece       // from is where the facts start, end where the file ends
	name        string
	follows     string // snapshot_sha256
	predecessor string
	ails        string // why it cannot be used; empty if it can
}

func (l *logFile) empty() bool { return l.from == l.end }

// readLog reads the header of a log. A log that a crash left without a whole header
// holds nothing and comes back as nil.
func readLog(dir, name, id string) (*logFile, error) {
	gen, _, _ := genOf(name)
	l := &logFile{piece: piece{gen: gen, path: filepath.Join(dir, name)}, name: name}
	f, size, err := open(l.path)
	if err != nil {
		return nil, failed("store.load", err, "open journal %q", l.path)
	}
	defer f.Close() // only read from
	l.end = size
	fr := newFrames(f, 0, size)
	length, _, err := fr.head()
	if err == nil && length > maxHeader {
		l.ails = "its header is too long"
		return l, nil
	}
	var b []byte
	if err == nil {
		b, err = newFrames(f, 0, size).next()
	}
	switch {
	case err == io.EOF:
		return nil, nil
	case broken(err):
		torn, err2 := cutOff(f, 0, size, err)
		if err2 != nil {
			return nil, unreadable("store.load", err2, l.path, 0)
		}
		if torn && !errors.Is(err, errChecksum) {
			return nil, nil
		}
		l.ails = err.Error()
		return l, nil
	case err != nil:
		return nil, unreadable("store.load", err, l.path, 0)
	}
	l.from = frameHead + length
	var h header
	if err := json.Unmarshal(b, &h); err != nil || h.Format != formatName {
		l.ails = "it has no journal header"
		return l, nil
	}
	if h.Version > formatVersion {
		return nil, fault.New(fault.Unsupported, "store.load", "journal %q has version %d, this libA3S reads up to %d; use the newer one", l.path, h.Version, formatVersion)
	}
	if h.SessionID != id {
		l.ails = fmt.Sprintf("it belongs to session %q", h.SessionID)
		return l, nil
	}
	l.follows, l.predecessor = h.Snapshot, h.Predecessor
	return l, nil
}

// survey is what is in the journal folder of a session.
type survey struct {
	dir      string
	logs     []*logFile // by generation
	useless  []string   // names of logs without a header
	last     uint64     // the highest generation ever used
	warnings []string
}

func look(dir, id string) (*survey, error) {
	v := &survey{dir: dir}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, failed("store.load", err, "list %q", dir)
	}
	for _, e := range entries {
		gen, isLog, ok := genOf(e.Name())
		if !ok {
			continue
		}
		v.last = max(v.last, gen)
		if !isLog {
			continue
		}
		l, err := readLog(dir, e.Name(), id)
		if err != nil {
			return nil, err
		}
		if l == nil {
			v.useless = append(v.useless, e.Name())
			continue
		}
		v.logs = append(v.logs, l)
	}
	slices.SortFunc(v.logs, func(a, b *logFile) int {
		if a.gen < b.gen {
			return -1
		}
		return 1
	})
	return v, nil
}

// chain gives the logs to read after the snapshot with digest d, and those that this
// snapshot has made obsolete, oldest first; what is in neither follows nothing.
func (v *survey) chain(d digest) (chain, obsolete []*logFile) {
	want := hex.EncodeToString(d[:])
	start := -1
	for i, l := range v.logs {
		if l.ails == "" && l.follows == want {
			start = i // the newest: an older one of the same digest changed nothing
		}
	}
	if start < 0 {
		return nil, nil
	}
	names := map[string]bool{v.logs[start].name: true}
	for _, l := range v.logs[start:] {
		if l.ails == "" && (names[l.name] || names[l.predecessor]) {
			names[l.name] = true
			chain = append(chain, l)
		}
	}
	before := v.logs[start].predecessor
	for i := start - 1; i >= 0; i-- {
		if l := v.logs[i]; l.ails == "" && l.name == before {
			obsolete = append([]*logFile{l}, obsolete...)
			before = l.predecessor
		}
	}
	return chain, obsolete
}

// settle cleans the folder up and gives the pieces that hold the facts.
func (v *survey) settle(ctx context.Context, d digest) ([]piece, error) {
	chain, obsolete := v.chain(d)
	for _, name := range v.useless {
		if err := os.Remove(filepath.Join(v.dir, name)); err != nil {
			return nil, failed("store.load", err, "remove the unfinished journal %q", name)
		}
	}
	for _, l := range obsolete {
		if err := os.Remove(l.path); err != nil {
			return nil, failed("store.load", err, "remove the journal before the last save")
		}
	}
	for _, l := range v.logs {
		if slices.Contains(chain, l) || slices.Contains(obsolete, l) {
			continue
		}
		why := l.ails
		if why == "" {
			why = "the session was saved by another program or in another place since"
		}
		if err := v.drop(l, why); err != nil {
			return nil, err
		}
	}
	var pieces []piece
	damaged := ""
	for _, l := range chain {
		if damaged != "" {
			if err := v.drop(l, "it follows the damaged "+damaged); err != nil {
				return nil, err
			}
			continue
		}
		hurt, err := v.mend(ctx, l)
		if err != nil {
			return nil, err
		}
		if hurt {
			damaged = l.name
		}
		pieces = append(pieces, l.piece)
	}
	return pieces, nil
}

// drop takes a log out of use: one without facts goes, any other is set aside.
func (v *survey) drop(l *logFile, why string) error {
	if l.ails == "" && l.empty() {
		if err := os.Remove(l.path); err != nil {
			return failed("store.load", err, "remove the empty journal %q", l.name)
		}
		return nil
	}
	aside, err := v.free(l.name + ".aside-")
	if err == nil {
		err = os.Rename(l.path, filepath.Join(v.dir, aside))
	}
	if err != nil {
		return failed("store.load", err, "set the journal %q aside", l.path)
	}
	v.warn("journal %s was set aside as %s in %q: %s", l.name, aside, v.dir, why)
	return nil
}

// mend finds where the good frames of a log end and cuts the rest off: the torn end of
// the last write goes, anything else is kept beside the log.
func (v *survey) mend(ctx context.Context, l *logFile) (hurt bool, err error) {
	f, _, err := open(l.path)
	if err != nil {
		return false, failed("store.load", err, "open journal %q", l.path)
	}
	defer f.Close() // only read from
	good, torn, ails, err := verify(ctx, f, l.from, l.end)
	if err != nil {
		if ctx.Err() != nil {
			return false, fault.From("store.load", err)
		}
		return false, unreadable("store.load", err, l.path, good)
	}
	if ails == nil {
		return false, nil
	}
	cut := l.end - good
	if torn {
		v.warn("journal %s: the last write was cut off by a crash; %d bytes behind byte %d were dropped", l.name, cut, good)
	} else {
		bad, err := v.keep(l, f, good)
		if err != nil {
			return false, err
		}
		v.warn("journal %s is damaged at byte %d (%v): the %d bytes from there on were set aside as %s in %q", l.name, good, ails, cut, bad, v.dir)
	}
	if err := os.Truncate(l.path, good); err != nil {
		return false, failed("store.load", err, "cut journal %q", l.path)
	}
	l.end = good
	return true, nil
}

// keep copies the bytes of f from offset from on to a file beside the log l.
func (v *survey) keep(l *logFile, f *os.File, from int64) (string, error) {
	name, err := v.free(l.name + ".bad-")
	if err != nil {
		return "", failed("store.load", err, "set the damaged end of %q aside", l.path)
	}
	path := filepath.Join(v.dir, name)
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err == nil {
		_, err = io.Copy(out, io.NewSectionReader(f, from, l.end-from))
		if err == nil {
			err = out.Sync()
		}
		err = errors.Join(err, out.Close())
		if err == nil {
			err = syncDir(v.dir)
		}
		if err != nil {
			err = errors.Join(err, os.Remove(path))
		}
	}
	if err != nil {
		return "", failed("store.load", err, "set the damaged end of %q aside", l.path)
	}
	return name, nil
}

// free gives the first unused name with a number behind prefix.
func (v *survey) free(prefix string) (string, error) {
	for n := 1; ; n++ {
		name := fmt.Sprint(prefix, n)
		_, err := os.Lstat(filepath.Join(v.dir, name))
		if errors.Is(err, os.ErrNotExist) {
			return name, nil
		}
		if err != nil {
			return "", err
		}
	}
}

func (v *survey) warn(format string, args ...any) {
	v.warnings = append(v.warnings, fmt.Sprintf(format, args...))
}

func (v *survey) warning() string { return strings.Join(v.warnings, "; ") }
