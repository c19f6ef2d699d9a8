package file

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/store"
)

const (
	dirMode  = 0o700
	fileMode = 0o600
)

func folderName(id string) string { return "id_" + base64.RawURLEncoding.EncodeToString([]byte(id)) }

// idOf reads the session id out of a folder or snapshot name. A name that is not
// exactly what folderName makes is none.
func idOf(name string) (string, bool) {
	enc, ok := strings.CutPrefix(name, "id_")
	if !ok {
		return "", false
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(enc)
	if err != nil || store.ValidID(string(b)) != nil {
		return "", false
	}
	return string(b), true
}

func (s *Store) root() string        { return filepath.Join(s.dir, "v1") }
func (s *Store) snapshotDir() string { return filepath.Join(s.root(), "sessions") }
func (s *Store) snapshotPath(id string) string {
	return filepath.Join(s.snapshotDir(), folderName(id)+".json")
}
func (s *Store) journalDir(id string) string {
	return filepath.Join(s.root(), "journal", folderName(id))
}
func (s *Store) blobDir(id string) string { return filepath.Join(s.root(), "blobs", folderName(id)) }

// legacyPath is where programs before the v1 layout kept a session. Two ids can share
// a name, so a file counts only if the id inside is the one looked for.
func (s *Store) legacyPath(id string) string {
	name := strings.NewReplacer("/", "_", `\`, "_").Replace(id)
	return filepath.Join(s.dir, strings.ReplaceAll(name, "..", "_")+".json")
}

func logName(gen uint64) string { return fmt.Sprintf("%010d.log", gen) }

// genOf reads the generation that a name in a journal folder belongs to; log says that
// the name is that of a log and not of something set aside.
func genOf(name string) (gen uint64, log, ok bool) {
	digits, rest, found := strings.Cut(name, ".")
	if !found || rest != "log" && !strings.HasPrefix(rest, "log.") {
		return 0, false, false
	}
	gen, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || gen == 0 || logName(gen) != digits+".log" {
		return 0, false, false
	}
	return gen, rest == "log", true
}

// mkdirs makes path and its missing parents and gives what it made, outermost first.
func mkdirs(path string) ([]string, error) {
	err := os.Mkdir(path, dirMode)
	switch {
	case err == nil:
		return []string{path}, nil
	case errors.Is(err, fs.ErrExist):
		info, err := os.Stat(path)
		if err == nil && !info.IsDir() {
			err = &fs.PathError{Op: "mkdir", Path: path, Err: syscall.ENOTDIR}
		}
		return nil, err
	case !errors.Is(err, fs.ErrNotExist) || filepath.Dir(path) == path:
		return nil, err
	}
	made, err := mkdirs(filepath.Dir(path))
	if err != nil {
		return made, err
	}
	// Not mkdirs again: some file systems, such as /proc, refuse with the same error for ever.
	if err := os.Mkdir(path, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return made, err
	}
	return append(made, path), nil
}

// rmdirs removes folders that are empty, innermost first, and stops at the first that
// is in use; made is in the order of mkdirs and may name one twice.
func rmdirs(made []string) {
	for _, dir := range slices.Backward(made) {
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return
		}
	}
}

// open opens a regular file for reading; anything else could block or never end.
func open(path string) (*os.File, int64, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: errors.New("not a regular file")}
	}
	if err != nil {
		f.Close() // nothing was written; the first error says it all
		return nil, 0, err
	}
	return f, info.Size(), nil
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		err = nil // a file system that has no such thing keeps its folders by itself
	}
	return errors.Join(err, d.Close())
}

// syncTree flushes the entries of dir and of the folders above it in the store, and
// of those above the store that hold a folder just made.
func (s *Store) syncTree(dir string, made []string) error {
	seen := map[string]bool{}
	var list []string
	for p := dir; len(p) >= len(s.dir); p = filepath.Dir(p) {
		list, seen[p] = append(list, p), true
		if p == s.dir {
			break
		}
	}
	for _, m := range made {
		if p := filepath.Dir(m); !seen[p] {
			list, seen[p] = append(list, p), true
		}
	}
	for _, p := range list {
		err := syncDir(p)
		if errors.Is(err, fs.ErrPermission) && len(p) < len(s.dir) {
			continue // the host's folder, which we may write in but not open
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sweepTemps removes what a crash left in the making: the files in dir whose name
// begins with prefix and that tempName named. Only the holder of the session may.
func sweepTemps(dir, prefix string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		name := e.Name()
		if strings.HasPrefix(name, prefix) && strings.Contains(name[len(prefix):], "~") && strings.HasSuffix(name, ".tmp") {
			err = errors.Join(err, os.Remove(filepath.Join(dir, name)))
		}
	}
	return err
}

var tempCount atomic.Uint64

// tempName gives a name for a file in the making, in the folder of path. Its ending
// keeps it out of every listing; '~' keeps it apart from all blob names.
func tempName(path string) string {
	return fmt.Sprintf("%s~%d.%d.%d.tmp", path, time.Now().UnixNano(), os.Getpid(), tempCount.Add(1))
}

// replace puts data at path atomically: after a crash the old or the new content is
// there, whole. point names the step that was just done.
func (s *Store) replace(path string, data []byte, point string) error {
	tmp := tempName(path)
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err
	}
	_, err = s.disk.write(f, data, 0)
	if err == nil {
		s.at(point + ".temp_written")
		err = s.disk.sync(f)
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		s.at(point + ".temp_synced")
		err = os.Rename(tmp, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp))
	}
	s.at(point + ".renamed")
	return nil
}

// failed gives err the kind and the words that help.
func failed(op string, err error, format string, args ...any) *fault.Error {
	what := fmt.Sprintf(format, args...)
	e := fault.New(fault.IO, op, "%s: %v", what, err)
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		e = fault.New(fault.IO, op, "%s: the disk or quota is full; free space, then try again: %v", what, err).With("reason", "disk_full")
	case errors.Is(err, syscall.EFBIG):
		e = fault.New(fault.IO, op, "%s: the file would grow over a limit of the system or file system; save to start a new journal: %v", what, err).With("reason", "file_too_large")
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		e.With("reason", "permission")
	}
	return e
}
