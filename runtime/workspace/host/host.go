// Package host is a workspace that the host implements: files by five operations and, if
// the host says so, commands and search. Path rules are workspace's: the host sees clean
// paths below its root only, and what it answers is held to the same rules. Floor 8.
package host

import (
	"bytes"
	"context"
	"io"
	"iter"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/a3s-lab/liba3s/runtime/fault"
	desk "github.com/a3s-lab/liba3s/runtime/host"
	"github.com/a3s-lab/liba3s/runtime/workspace"
)

// Bounds of requests and answers.
const (
	// Deadline of one request.
	Deadline = 60 * time.Second
	maxFile  = 40 << 20 // bytes of a file that is read or written; base64 swells it
	// MaxAnswer bounds one answer in bytes.
	MaxAnswer  = 60 << 20
	maxEntries = 200_000
	maxVersion = 256
	maxRoot    = 1024
)

// WorkspaceSpec describes a workspace.
type WorkspaceSpec struct {
	desk.Extension
	// Root is what people and models are told of the place, such as "/srv/app" or
	// "notebook:"; absolute paths below an absolute root are taken. Absent is "host:NAME".
	Root string `json:"root,omitempty"`
	// Run says that the host answers "run"; without it there is no bash.
	Run bool `json:"run,omitempty"`
	// Search says that the host answers "search"; without it there are no grep and glob.
	Search bool `json:"search,omitempty"`
}

// Check refuses a root that cannot be shown.
func (s *WorkspaceSpec) Check() error {
	if err := s.Extension.Check(); err != nil {
		return err
	}
	if len(s.Root) > maxRoot || strings.ContainsFunc(s.Root, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return fault.New(fault.Invalid, "host.register", "root: use at most %d bytes of printable characters", maxRoot).With("field", "root").With("reason", fault.BadValue)
	}
	return nil
}

// WorkspacePath are the parameters of "stat", "list" and "remove". Removing what is not
// there is no failure; a folder is not removed: that is a failure of kind invalid.
type WorkspacePath struct {
	// Path is clean: slash separated, relative to the root, "." for the root itself.
	Path string `json:"path"`
}

// WorkspaceRead are the parameters of "read".
type WorkspaceRead struct {
	Path string `json:"path"`
	// Max is how many bytes are wanted at most; a larger file is a failure of kind limit.
	Max int64 `json:"max"`
}

// WorkspaceFile is the result of "read".
type WorkspaceFile struct {
	// Data is the whole file, in base64.
	Data *[]byte `json:"data"`
	// Version is a token that changes whenever the content does.
	Version string `json:"version"`
	// ModifiedMS is Unix milliseconds.
	ModifiedMS int64 `json:"modified_ms,omitempty"`
}

// WorkspaceWrite are the parameters of "write": the whole file is replaced and missing
// folders are made. A condition that does not hold is a failure of kind conflict with the
// details expected and actual, both versions; actual is "absent" where there is no file.
type WorkspaceWrite struct {
	Path string `json:"path"`
	Data []byte `json:"data"`
	// IfVersion, if given, is the version that the file must still have.
	IfVersion string `json:"if_version,omitempty"`
	// IfAbsent demands that there is no file yet.
	IfAbsent bool `json:"if_absent,omitempty"`
}

// WorkspaceWritten is the result of "write".
type WorkspaceWritten struct {
	Version    string `json:"version"`
	ModifiedMS int64  `json:"modified_ms,omitempty"`
}

// WorkspaceEntry describes what is at a path: the result of "stat", and with a name an
// entry of "list".
type WorkspaceEntry struct {
	// Name is one element of a path; of list only.
	Name string `json:"name,omitempty"`
	// Type is file, dir, link or unknown.
	Type       workspace.Type `json:"type"`
	Size       int64          `json:"size,omitempty"`
	ModifiedMS int64          `json:"modified_ms,omitempty"`
}

// WorkspaceList is the result of "list".
type WorkspaceList struct {
	Entries []WorkspaceEntry `json:"entries"`
}

// Config is a workspace and the way to the host.
type Config struct {
	Spec      WorkspaceSpec
	Line      *desk.Line
	SessionID string
}

// Workspace asks the host for files. It may be used concurrently.
type Workspace struct {
	cfg  Config
	root string
}

var _ workspace.Workspace = (*Workspace)(nil)

// Open makes a workspace with the capabilities that the host declared, and asks whether
// its root is there.
func Open(ctx context.Context, cfg Config) (workspace.Workspace, error) {
	w := &Workspace{cfg: cfg, root: cfg.Spec.Root}
	if w.root == "" {
		w.root = "host:" + cfg.Line.Name()
	}
	if i, err := w.Stat(ctx, "."); err != nil {
		return nil, err
	} else if i.Type != workspace.Dir {
		return nil, fault.New(fault.Invalid, "workspace.open", "the root of the host's workspace %q is a %s, not a dir", cfg.Line.Name(), i.Type)
	}
	switch run, find := (runner{w}), (searcher{w}); {
	case cfg.Spec.Run && cfg.Spec.Search:
		return struct {
			*Workspace
			runner
			searcher
		}{w, run, find}, nil
	case cfg.Spec.Run:
		return struct {
			*Workspace
			runner
		}{w, run}, nil
	case cfg.Spec.Search:
		return struct {
			*Workspace
			searcher
		}{w, find}, nil
	}
	return w, nil
}

// Root implements workspace.Workspace.
func (w *Workspace) Root() string { return w.root }

// clean starts every call.
func (w *Workspace) clean(ctx context.Context, op, path string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", fault.From(op, err)
	}
	return workspace.Clean(w.root, path)
}

// mayChange starts every call that changes something.
func (w *Workspace) mayChange(ctx context.Context, op, path string) (string, error) {
	p, err := w.clean(ctx, op, path)
	if err != nil {
		return "", err
	}
	if workspace.Protected(p) {
		return "", fault.New(fault.Denied, op, "%q belongs to version control or to the session store and is not changed by tools", p).With("path", p)
	}
	if p == "." {
		return "", fault.New(fault.Invalid, op, "the root is a directory, not a regular file").With("path", p)
	}
	return p, nil
}

func (w *Workspace) ask(ctx context.Context, op, path string, q desk.Question, into any) error {
	q.SessionID = w.cfg.SessionID
	if q.Max == 0 {
		q.Max = MaxAnswer
	}
	return w.explain(ctx, op, path, w.cfg.Line.Ask(ctx, q, into))
}

// Stat implements workspace.Workspace.
func (w *Workspace) Stat(ctx context.Context, path string) (workspace.Info, error) {
	const op = "workspace.stat"
	p, err := w.clean(ctx, op, path)
	if err != nil {
		return workspace.Info{}, err
	}
	var e WorkspaceEntry
	if err := w.ask(ctx, op, p, desk.Question{Op: "stat", Params: WorkspacePath{p}}, &e); err != nil {
		return workspace.Info{}, err
	}
	return w.info(op, p, e)
}

// info checks an entry.
func (w *Workspace) info(op, p string, e WorkspaceEntry) (workspace.Info, error) {
	switch e.Type {
	case workspace.File, workspace.Dir, workspace.Link, workspace.Other:
	default:
		return workspace.Info{}, w.garbage(op, p, "type %q is none of file, dir, link, unknown", desk.Cut(string(e.Type), 40))
	}
	if e.Size < 0 {
		return workspace.Info{}, w.garbage(op, p, "the size is %d", e.Size)
	}
	return workspace.Info{Path: p, Type: e.Type, Size: e.Size, Modified: time.UnixMilli(e.ModifiedMS)}, nil
}

// Open implements workspace.Workspace. The host gives whole files, so this one is at hand.
func (w *Workspace) Open(ctx context.Context, path string) (io.ReadCloser, workspace.Info, error) {
	data, i, err := w.read(ctx, "workspace.open", path, maxFile)
	if err != nil {
		return nil, workspace.Info{}, err
	}
	i.Version = ""
	return io.NopCloser(bytes.NewReader(data)), i, nil
}

// Read implements workspace.Workspace.
func (w *Workspace) Read(ctx context.Context, path string, max int64) ([]byte, workspace.Info, error) {
	return w.read(ctx, "workspace.read", path, max)
}

func (w *Workspace) read(ctx context.Context, op, path string, max int64) ([]byte, workspace.Info, error) {
	p, err := w.clean(ctx, op, path)
	if err != nil {
		return nil, workspace.Info{}, err
	}
	max = min(max, maxFile)
	var f WorkspaceFile
	if err := w.ask(ctx, op, p, desk.Question{Op: "read", Params: WorkspaceRead{p, max}}, &f); err != nil {
		return nil, workspace.Info{}, err
	}
	switch {
	case f.Data == nil || f.Version == "" || len(f.Version) > maxVersion:
		return nil, workspace.Info{}, w.garbage(op, p, "a file needs data and a version of 1 to %d bytes", maxVersion)
	case int64(len(*f.Data)) > max:
		return nil, workspace.Info{}, fault.New(fault.Limit, op, "%q has %d bytes; at most %d are read at once", p, len(*f.Data), max).
			With("path", p).With("size", len(*f.Data)).With("max", max)
	}
	return *f.Data, workspace.Info{Path: p, Type: workspace.File, Size: int64(len(*f.Data)), Modified: time.UnixMilli(f.ModifiedMS), Version: f.Version}, nil
}

// Write implements workspace.Workspace. Whether a condition holds is the host's to see,
// at the moment of writing.
func (w *Workspace) Write(ctx context.Context, path string, data []byte, cond workspace.Condition) (workspace.Info, error) {
	const op = "workspace.write"
	p, err := w.mayChange(ctx, op, path)
	if err != nil {
		return workspace.Info{}, err
	}
	if len(data) > maxFile {
		return workspace.Info{}, fault.New(fault.Limit, op, "%q would have %d bytes; at most %d are written at once", p, len(data), maxFile).With("path", p)
	}
	if data == nil {
		data = []byte{} // which is not null in JSON
	}
	q := desk.Question{Op: "write", Params: WorkspaceWrite{p, data, cond.Version, cond.Absent}}
	var f WorkspaceWritten
	if err := w.ask(ctx, op, p, q, &f); err != nil {
		return workspace.Info{}, err
	}
	if f.Version == "" || len(f.Version) > maxVersion {
		return workspace.Info{}, w.garbage(op, p, "a written file needs a version of 1 to %d bytes", maxVersion)
	}
	return workspace.Info{Path: p, Type: workspace.File, Size: int64(len(data)), Modified: time.UnixMilli(f.ModifiedMS), Version: f.Version}, nil
}

// Remove implements workspace.Workspace.
func (w *Workspace) Remove(ctx context.Context, path string) error {
	const op = "workspace.remove"
	p, err := w.mayChange(ctx, op, path)
	if err != nil {
		return err
	}
	return w.ask(ctx, op, p, desk.Question{Op: "remove", Params: WorkspacePath{p}}, &struct{}{})
}

// List implements workspace.Workspace.
func (w *Workspace) List(ctx context.Context, dir string) iter.Seq2[workspace.Info, error] {
	return func(yield func(workspace.Info, error) bool) {
		entries, err := w.entries(ctx, dir)
		if err != nil {
			yield(workspace.Info{}, err)
			return
		}
		for _, i := range entries {
			if !yield(i, nil) {
				return
			}
		}
	}
}

func (w *Workspace) entries(ctx context.Context, dir string) ([]workspace.Info, error) {
	const op = "workspace.list"
	p, err := w.clean(ctx, op, dir)
	if err != nil {
		return nil, err
	}
	var l WorkspaceList
	if err := w.ask(ctx, op, p, desk.Question{Op: "list", Params: WorkspacePath{p}}, &l); err != nil {
		return nil, err
	}
	if len(l.Entries) > maxEntries {
		return nil, w.garbage(op, p, "it has %d entries, more than %d", len(l.Entries), maxEntries)
	}
	out := make([]workspace.Info, 0, len(l.Entries))
	for _, e := range l.Entries {
		child := e.Name
		if p != "." {
			child = p + "/" + e.Name
		}
		if strings.Contains(e.Name, "/") || !lies(child) {
			return nil, w.garbage(op, p, "%q is no name", desk.Cut(e.Name, 80))
		}
		i, err := w.info(op, child, e)
		if err != nil {
			return nil, err
		}
		out = append(out, i)
	}
	slices.SortFunc(out, func(a, b workspace.Info) int { return strings.Compare(a.Path, b.Path) })
	return slices.CompactFunc(out, func(a, b workspace.Info) bool { return a.Path == b.Path }), nil
}

// lies says whether a path that the host gives lies below the root, as it is written.
func lies(p string) bool {
	if len(p) > workspace.MaxPath || strings.IndexByte(p, 0) >= 0 {
		return false
	}
	for e := range strings.SplitSeq(p, "/") {
		if e == "" || e == "." || e == ".." {
			return false
		}
	}
	return true
}
