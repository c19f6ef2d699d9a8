package extensions

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/host"
)

// shelf is a session store as a program may write one: a table of texts.
type shelf struct {
	mu       sync.Mutex
	sessions map[string]*kept
	fail     string // the operation that raises
	mute     string // the operation that is not answered
}

type kept struct {
	generation uint64
	snapshot   *string
	facts      []string
	blobs      map[string]string
}

func (s *shelf) serve(p *program) {
	for _, operation := range []string{"load", "append", "save", "delete", "list"} {
		p.on("store/"+operation, s.answer)
	}
}

func (s *shelf) answer(a asked) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch a.Op {
	case s.fail:
		return nil, errors.New("the database is gone")
	case s.mute:
		return nil, errSilent
	case "list":
		return object{"ids": slices.Collect(maps.Keys(s.sessions))}, nil
	}
	var q struct {
		ID         string
		Generation uint64
		From       int64
		Facts      []string
		Snapshot   string
		Blob, Data string
	}
	if err := json.Unmarshal(a.Params, &q); err != nil {
		return nil, err
	}
	k := s.sessions[q.ID]
	if k == nil {
		k = &kept{generation: 1, blobs: map[string]string{}}
		if a.Op != "load" {
			s.sessions[q.ID] = k
		}
	}
	switch {
	case a.Op == "load" && q.Blob != "":
		if data, ok := k.blobs[q.Blob]; ok {
			return object{"data": data}, nil
		}
		return object{}, nil
	case a.Op == "load":
		out := object{"generation": k.generation, "count": len(k.facts), "facts": k.facts[q.From:]}
		if k.snapshot != nil {
			out["snapshot"] = *k.snapshot
		}
		return out, nil
	case a.Op == "append" && q.Blob != "":
		k.blobs[q.Blob] = q.Data
	case a.Op == "append" && (q.Generation != k.generation || q.From != int64(len(k.facts))):
		return nil, errors.New("facts out of order")
	case a.Op == "append":
		k.facts = append(k.facts, q.Facts...)
	case a.Op == "save":
		k.generation, k.snapshot, k.facts = q.Generation, &q.Snapshot, nil
	case a.Op == "delete" && q.Blob != "":
		delete(k.blobs, q.Blob)
	case a.Op == "delete":
		delete(s.sessions, q.ID)
	}
	return nil, nil
}

var atShelf = object{"kind": "host", "name": "shelf"}

func shelved(t *testing.T, s *shelf, script string, spec object) *program {
	t.Helper()
	p := scripted(t, script)
	s.serve(p)
	p.register("store", spec)
	return p
}

// A session kept by the host is resumed by another process, saved or not.
func TestStoreResume(t *testing.T) {
	for name, save := range map[string]bool{"unsaved": false, "saved": true} {
		t.Run(name, func(t *testing.T) {
			s := &shelf{sessions: map[string]*kept{}}
			spec := object{"name": "shelf", "blobs": true}
			p := shelved(t, s, "say one\nend", spec)
			se := p.session(object{"session_id": "s1", "session_store": atShelf})
			if r := p.run(se, "first"); r.err != nil {
				t.Fatal(r.err)
			}
			if save {
				if err := se.Save(bg); err != nil {
					t.Fatal(err)
				}
			}
			if err := p.agent.Close(bg); err != nil {
				t.Fatal(err)
			}
			p = shelved(t, s, "say two\nend", spec)
			ids, err := p.agent.ListStored(bg, nil, "")
			wantError(t, "list of nothing", err, fault.CodeSessionConfig)
			want(t, "ids", ids, nil)
			back, err := p.resume("s1", object{"session_store": atShelf})
			if err != nil {
				t.Fatal(err)
			}
			want(t, "history", len(back.History()), 2)
			if r := p.run(back, "second"); r.text != "two" {
				t.Fatal(r.err)
			}
			want(t, "history", len(back.History()), 4)
			want(t, "runs", len(back.Runs()), 2)
		})
	}
}

func TestStoreBusyAndUnknown(t *testing.T) {
	s := &shelf{sessions: map[string]*kept{}}
	p := shelved(t, s, "say one\nend", object{"name": "shelf"})
	p.session(object{"session_id": "s1", "session_store": atShelf})
	_, err := p.trySession(object{"session_store": object{"kind": "host", "name": "other"}})
	wantError(t, "unknown", err, fault.CodeSessionConfig, "'session_store'", `registered no store "other"`)
	_, err = p.trySession(object{"session_store": object{"kind": "host"}})
	wantError(t, "no name", err, fault.CodeSessionConfig, "needs the name")
	_, err = p.resume("nobody", object{"session_store": atShelf})
	wantError(t, "resume", err, fault.CodeSession, "Session not found: nobody")
	s0 := p.session(nil)
	_, err = p.tryRegister("store", object{"name": "late"}, s0)
	wantError(t, "with a session", err, fault.CodeInvalidRequest, "with the agent, before the session that names it opens")
}

// A store that fails is SESSION_ERROR, and the run ends.
func TestStoreFails(t *testing.T) {
	for name, c := range map[string]struct {
		fail, mute, words string
	}{
		"raises":            {"append", "", "ValueError: the database is gone"},
		"no answer in time": {"", "append", "did not answer store"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &shelf{sessions: map[string]*kept{}}
			p := shelved(t, s, "say one\nend", object{"name": "shelf", "timeout_ms": 50})
			se := p.session(object{"session_store": atShelf})
			s.mu.Lock()
			s.fail, s.mute = c.fail, c.mute
			s.mu.Unlock()
			r := p.run(se, "first")
			wantError(t, "run", r.err, fault.CodeSession, c.words)
		})
	}
	s := &shelf{sessions: map[string]*kept{}, mute: "load"}
	p := shelved(t, s, "say one\nend", object{"name": "shelf", "timeout_ms": 50})
	_, err := p.trySession(object{"session_store": atShelf})
	wantError(t, "open", err, fault.CodeSession, "within 50ms")
	s.mu.Lock()
	s.mute = ""
	s.mu.Unlock()
	p.session(object{"session_store": atShelf}) // the place is free again
}

// folder is a workspace as a program may write one: a table of texts.
type folder struct {
	mu    sync.Mutex
	files map[string]string
	mute  string
}

func (f *folder) serve(p *program) {
	for _, operation := range []string{"stat", "list", "read", "write", "remove", "run", "search"} {
		p.on("workspace/"+operation, f.answer)
	}
}

func version(text string) string { return "v" + text }

func (f *folder) answer(a asked) (any, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if a.Op == f.mute {
		return nil, errSilent
	}
	var q struct {
		Path, Line string
		Data       []byte
		IfVersion  string `json:"if_version"`
		Grep       *struct{ Pattern string }
	}
	if err := json.Unmarshal(a.Params, &q); err != nil {
		return nil, err
	}
	text, there := f.files[q.Path]
	missing := &host.Failure{Type: "KeyError", Message: "no such file", Kind: "not_found"}
	switch a.Op {
	case "stat":
		if q.Path == "." {
			return object{"type": "dir"}, nil
		}
		if !there {
			return nil, missing
		}
		return object{"type": "file", "size": len(text)}, nil
	case "list":
		entries := []object{}
		for name := range f.files {
			entries = append(entries, object{"name": name, "type": "file", "size": len(f.files[name])})
		}
		return object{"entries": entries}, nil
	case "read":
		if !there {
			return nil, missing
		}
		return object{"data": []byte(text), "version": version(text)}, nil
	case "write":
		if q.IfVersion != "" && q.IfVersion != version(text) {
			return nil, &host.Failure{Type: "Changed", Message: "it has changed", Kind: "conflict", Details: object{"expected": q.IfVersion, "actual": version(text)}}
		}
		f.files[q.Path] = string(q.Data)
		return object{"version": version(string(q.Data))}, nil
	case "run":
		_ = a.chunk(object{"text": "$ " + q.Line + "\n"})
		return object{"exit_code": 0}, nil
	case "search":
		lines := []object{}
		for name, text := range f.files {
			if strings.Contains(text, q.Grep.Pattern) {
				lines = append(lines, object{"path": name, "line": 1, "text": text})
			}
		}
		return object{"lines": lines, "stats": object{"files": len(f.files)}}, nil
	}
	return nil, errors.New("not this one")
}

var inFolder = object{"kind": "host", "name": "notebook"}

const work = `call read {"file_path": "a.txt"}
end
call edit {"file_path": "a.txt", "old_string": "one", "new_string": "two"}
end
call bash {"command": "make"}
end
call grep {"pattern": "two"}
end
say done
end`

// A run on files that only the host has.
func TestWorkspace(t *testing.T) {
	f := &folder{files: map[string]string{"a.txt": "one\n", "AGENTS.md": "be kind"}}
	p := scripted(t, work)
	f.serve(p)
	p.register("workspace", object{"name": "notebook", "run": true, "search": true})
	s := p.session(object{"workspace_backend": inFolder, "permission_policy": object{"allow": []string{"*"}}})
	want(t, "root", s.Info().Workspace, "host:notebook")
	r := p.run(s, "work")
	if r.err != nil || r.text != "done" {
		t.Fatalf("%q %v", r.text, r.err)
	}
	want(t, "file", f.files["a.txt"], "two\n")
	for _, e := range r.events {
		if e.Type == "tool_end" && strings.Contains(string(e.Payload), `"exit_code":1`) {
			t.Errorf("a call failed: %s", e.Payload)
		}
	}
}

func TestWorkspaceCapabilities(t *testing.T) {
	f := &folder{files: map[string]string{}}
	p := scripted(t, "say x\nend")
	f.serve(p)
	p.register("workspace", object{"name": "notebook"})
	s := p.session(object{"workspace_backend": inFolder})
	want(t, "tools", s.ToolNames(), []string{"artifact_read", "edit", "ls", "read", "write"})
	for name, c := range map[string]struct {
		backend object
		words   string
	}{
		"unknown":      {object{"kind": "host", "name": "other"}, `registered no workspace "other"`},
		"no name":      {object{"kind": "host"}, "needs the name"},
		"a root":       {object{"kind": "host", "name": "notebook", "root": "/x"}, "takes no root"},
		"unknown kind": {object{"kind": "s3"}, `kind "s3" is not built`},
	} {
		_, err := p.trySession(object{"workspace_backend": c.backend})
		wantError(t, name, err, fault.CodeSessionConfig, "'workspace_backend'", c.words)
	}
}

// A failure of the workspace is a failed result of its own type, a late one too.
func TestWorkspaceFails(t *testing.T) {
	f := &folder{files: map[string]string{"a.txt": "one\n"}}
	p := scripted(t, "say x\nend")
	f.serve(p)
	p.register("workspace", object{"name": "notebook", "timeout_ms": 50})
	s := p.session(object{"workspace_backend": inFolder})
	kind := func(name string, args object) string {
		r, err := s.Tool(bg, name, encode(t, args))
		if err != nil || r.ErrorKind == nil {
			t.Fatalf("%s: %+v, %v", name, r, err)
		}
		return r.ErrorKind.Type
	}
	want(t, "missing", kind("read", object{"file_path": "b.txt"}), "not_found")
	want(t, "outside", kind("read", object{"file_path": "../b.txt"}), "invalid_argument")
	f.mu.Lock()
	f.mute = "read"
	f.mu.Unlock()
	want(t, "no answer in time", kind("read", object{"file_path": "a.txt"}), "timeout")
	p.withdraws("workspace", "timeout")
	f.mu.Lock()
	f.mute = "stat"
	f.mu.Unlock()
	_, err := p.trySession(object{"workspace_backend": inFolder})
	wantError(t, "open", err, fault.CodeSessionInit, "within 50ms")
}

// A session that worked in a workspace of the host needs it again.
func TestWorkspaceResume(t *testing.T) {
	s := &shelf{sessions: map[string]*kept{}}
	f := &folder{files: map[string]string{}}
	p := shelved(t, s, "say one\nend\nsay two\nend", object{"name": "shelf"})
	f.serve(p)
	p.register("workspace", object{"name": "notebook"})
	se := p.session(object{"session_id": "s1", "session_store": atShelf, "workspace_backend": inFolder})
	p.run(se, "first")
	if err := se.Close(bg); err != nil {
		t.Fatal(err)
	}
	_, err := p.resume("s1", object{"session_store": atShelf})
	wantError(t, "without", err, fault.CodeSessionConfig, "'workspace_backend'", `"host:notebook"`)
	back, err := p.resume("s1", object{"session_store": atShelf, "workspace_backend": inFolder})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "history", len(back.History()), 2)
}
