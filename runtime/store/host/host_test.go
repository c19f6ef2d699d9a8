package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"

	"github.com/a3s-lab/liba3s/runtime/fault"
	desk "github.com/a3s-lab/liba3s/runtime/host"
	"github.com/a3s-lab/liba3s/runtime/host/hosttest"
	"github.com/a3s-lab/liba3s/runtime/record"
	"github.com/a3s-lab/liba3s/runtime/store"
	"github.com/a3s-lab/liba3s/runtime/store/host"
	"github.com/a3s-lab/liba3s/runtime/store/mem"
	"github.com/a3s-lab/liba3s/runtime/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var bg = context.Background()

// keeper is a host that keeps sessions in a store of ours.
type keeper struct {
	under *mem.Store
	pages int // facts of one answer; 0 for all that are asked for

	mu   sync.Mutex
	open map[string]store.Session
}

func newKeeper(t *testing.T) *keeper {
	under, err := mem.Open(bg, mem.Config{})
	if err != nil {
		t.Fatal(err)
	}
	k := &keeper{under: under, open: map[string]store.Session{}}
	t.Cleanup(func() {
		for _, s := range k.open {
			s.Close()
		}
	})
	return k
}

// fresh opens a session anew.
func (k *keeper) fresh(id string) (store.Session, store.Kept, error) {
	if s := k.open[id]; s != nil {
		s.Close()
		delete(k.open, id)
	}
	s, err := k.under.Open(bg, id, "keeper")
	if err != nil {
		return nil, store.Kept{}, err
	}
	k.open[id] = s
	kept, err := s.Load(bg)
	return s, kept, err
}

func (k *keeper) answer(_ context.Context, r desk.Request, _ func(any)) (any, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch r.Op {
	case "load":
		return serve(r, k.load)
	case "append":
		return serve(r, k.append)
	case "save":
		return serve(r, k.save)
	case "delete":
		return serve(r, k.delete)
	case "list":
		ids, err := k.under.List(bg)
		return host.StoreListed{IDs: ids}, err
	}
	return nil, errors.New("no such operation")
}

func serve[P any](r desk.Request, fn func(P) (any, error)) (any, error) {
	var p P
	if err := json.Unmarshal(r.Params, &p); err != nil {
		return nil, err
	}
	return fn(p)
}

func (k *keeper) load(p host.StoreLoad) (any, error) {
	s, kept, err := k.fresh(p.ID)
	if err != nil {
		return nil, err
	}
	if p.Blob != "" {
		data, err := s.Blobs().Get(bg, p.Blob)
		if fault.KindOf(err) == fault.NotFound {
			return host.StoreLoaded{}, nil
		}
		return host.StoreLoaded{Data: &data}, err
	}
	out := host.StoreLoaded{}
	if kept.Snapshot != nil {
		doc, err := record.EncodeSnapshot(kept.Snapshot)
		if err != nil {
			return nil, err
		}
		text := string(doc)
		out.Snapshot = &text
	}
	all, err := storetest.Collect(kept.Facts)
	if err != nil {
		return nil, err
	}
	end, err := s.Append(bg, nil)
	count := int64(len(all))
	out.Generation, out.Count = end.Generation, &count
	limit := p.Limit
	if k.pages > 0 {
		limit = min(limit, int64(k.pages))
	}
	from := min(p.From, count)
	out.Facts = all[from:min(from+limit, count)]
	return out, err
}

func (k *keeper) append(p host.StoreAppend) (any, error) {
	s := k.open[p.ID]
	if p.Blob != "" {
		return nil, s.Blobs().Put(bg, p.Blob, p.Data)
	}
	var group [][]byte
	for _, f := range p.Facts {
		group = append(group, []byte(f))
	}
	pos, err := s.Append(bg, group)
	if err == nil && (pos.Generation != p.Generation || pos.Offset != p.From+1) {
		err = fmt.Errorf("appended at %+v, wanted %d/%d", pos, p.Generation, p.From)
	}
	return nil, err
}

func (k *keeper) save(p host.StoreSave) (any, error) {
	snap, err := record.ParseSnapshot([]byte(p.Snapshot))
	if err != nil {
		return nil, err
	}
	return nil, k.open[p.ID].Save(bg, snap)
}

func (k *keeper) delete(p host.StoreDelete) (any, error) {
	if p.Blob != "" {
		return nil, k.open[p.ID].Blobs().Delete(bg, p.Blob)
	}
	if s := k.open[p.ID]; s != nil {
		s.Close()
		delete(k.open, p.ID)
	}
	return nil, k.under.Delete(bg, p.ID)
}

func open(t *testing.T, h *hosttest.Host, spec host.StoreSpec) *host.Store {
	t.Helper()
	s, err := host.Open(bg, host.Config{Spec: spec, Line: desk.NewLine(h.Desk, "store", "kept", spec.Deadline(host.Deadline))})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSuite(t *testing.T) {
	for name, pages := range map[string]int{"whole": 0, "in pages": 3000} {
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, func(t *testing.T) func() store.Store {
				k := newKeeper(t)
				k.pages = pages
				s := open(t, hosttest.New(t, k.answer), host.StoreSpec{Blobs: true})
				return func() store.Store { return s }
			})
		})
	}
}

// Without the host's blobs they are there as long as the session is held.
func TestBlobsInMemory(t *testing.T) {
	h := hosttest.New(t, newKeeper(t).answer)
	s := open(t, h, host.StoreSpec{})
	se, _ := storetest.Open(t, s, "s")
	before := len(h.Requests())
	if err := se.Blobs().Put(bg, "b", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if got, err := se.Blobs().Get(bg, "b"); err != nil || string(got) != "x" {
		t.Errorf("%q %v", got, err)
	}
	if n := len(h.Requests()); n != before {
		t.Errorf("the host was asked %d times", n-before)
	}
	storetest.Close(t, se)
	se, _ = storetest.Open(t, s, "s")
	_, err := se.Blobs().Get(bg, "b")
	storetest.WantKind(t, err, fault.NotFound)
}

func TestHostile(t *testing.T) {
	snapshot, err := record.EncodeSnapshot(storetest.Snapshot("other", "x"))
	if err != nil {
		t.Fatal(err)
	}
	load := func(s store.Store) error {
		se, err := s.Open(bg, "s", "o")
		if err != nil {
			return err
		}
		defer se.Close()
		kept, err := se.Load(bg)
		if err != nil {
			return err
		}
		_, err = storetest.Collect(kept.Facts)
		return err
	}
	list := func(s store.Store) error { _, err := s.List(bg); return err }
	for name, c := range map[string]struct {
		result any
		do     func(store.Store) error
		words  string
	}{
		"a list for an object":      {hosttest.Raw("[]"), load, "cannot be read"},
		"unknown key":               {hosttest.Raw(`{"fcats":[]}`), load, "unknown field"},
		"facts that are no text":    {hosttest.Raw(`{"facts":[{}]}`), load, "cannot be read"},
		"an empty fact":             {hosttest.Raw(`{"facts":[""]}`), load, "an empty fact"},
		"fewer than it counts":      {hosttest.Raw(`{"count":2,"facts":["a"]}`), load, "counts 2"},
		"more than it counts":       {hosttest.Raw(`{"count":0,"facts":["a"]}`), load, "counts 0"},
		"nothing of what it counts": {hosttest.Raw(`{"count":2,"facts":[]}`), load, "counts 2"},
		"a negative count":          {hosttest.Raw(`{"count":-1}`), load, "counts -1"},
		"a broken snapshot":         {hosttest.Raw(`{"snapshot":"{"}`), load, "snapshot cannot be decoded"},
		"another's snapshot":        {host.StoreLoaded{Snapshot: ptr(string(snapshot))}, load, "other"},
		"a list of no ids":          {hosttest.Raw(`{"ids":["a",""]}`), list, "no session can have"},
		"numbers for ids":           {hosttest.Raw(`{"ids":[1]}`), list, "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			h := hosttest.New(t, func(_ context.Context, r desk.Request, _ func(any)) (any, error) {
				var p host.StoreLoad
				_ = json.Unmarshal(r.Params, &p)
				if p.From > 0 && c.words == "counts 2" { // the next page
					return hosttest.Raw(`{"count":2,"facts":[]}`), nil
				}
				return c.result, nil
			})
			err := c.do(open(t, h, host.StoreSpec{}))
			if err == nil || !strings.Contains(err.Error(), c.words) {
				t.Errorf("got %v, want words %q", err, c.words)
			}
		})
	}
}

func ptr[T any](v T) *T { return &v }

// What a host does not answer in time is a SESSION_ERROR, and after an append with an
// unknown outcome nothing is appended any more.
func TestNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKeeper(t)
		var silent atomic.Value
		silent.Store("")
		h := hosttest.New(t, func(ctx context.Context, r desk.Request, chunk func(any)) (any, error) {
			if r.Op == silent.Load() {
				return nil, hosttest.ErrSilent
			}
			return k.answer(ctx, r, chunk)
		})
		s := open(t, h, host.StoreSpec{})
		se, _ := storetest.Open(t, s, "s")
		storetest.Append(t, se, "one")
		silent.Store("append")
		_, err := se.Append(bg, [][]byte{[]byte("two")})
		wantSession(t, err, "within 30s")
		silent.Store("")
		if _, again := se.Append(bg, [][]byte{[]byte("three")}); !errors.Is(again, err) {
			t.Errorf("after an unknown outcome: %v", again)
		}
		storetest.Close(t, se)
		_, kept := storetest.Open(t, s, "s")
		storetest.Want(t, kept.Facts, "one")
		silent.Store("list")
		_, err = s.List(bg)
		wantSession(t, err, "within 30s")
		silent.Store("delete")
		wantSession(t, s.Delete(bg, "another"), "within 30s")
		silent.Store("load")
		other, err := s.Open(bg, "other", "o")
		if err != nil {
			t.Fatal(err)
		}
		_, err = other.Load(bg)
		wantSession(t, err, "within 30s")
		storetest.Close(t, other)
	})
}

// A save that the host refused leaves everything as it was.
func TestSaveRefused(t *testing.T) {
	k := newKeeper(t)
	refuse := true
	h := hosttest.New(t, func(ctx context.Context, r desk.Request, chunk func(any)) (any, error) {
		if r.Op == "save" && refuse {
			return nil, errors.New("disk full")
		}
		return k.answer(ctx, r, chunk)
	})
	se, _ := storetest.Open(t, open(t, h, host.StoreSpec{}), "s")
	storetest.Append(t, se, "one")
	wantSession(t, se.Save(bg, storetest.Snapshot("s", "x")), "disk full")
	storetest.Append(t, se, "two")
	storetest.Want(t, se.Read(bg, record.Pos{}), "one", "two")
	refuse = false
	storetest.Save(t, se, storetest.Snapshot("s", "x"))
	storetest.Want(t, se.Read(bg, record.Pos{}))
}

func TestDeaf(t *testing.T) {
	h := hosttest.New(t, nil)
	h.Deaf = true
	_, err := open(t, h, host.StoreSpec{}).List(bg)
	wantSession(t, err, "nobody hears")
}

// The end of a session's other questions leaves those of its store alone.
func TestLasting(t *testing.T) {
	k := newKeeper(t)
	h := hosttest.New(t, k.answer)
	se, _ := storetest.Open(t, open(t, h, host.StoreSpec{}), "s")
	for _, r := range h.Requests() {
		if !r.Lasting || r.SessionID != "s" {
			t.Errorf("%+v", r)
		}
	}
	h.Desk.CancelSession("s", "closed")
	storetest.Append(t, se, "one")
}

func wantSession(t *testing.T, err error, words string) {
	t.Helper()
	var f *fault.Error
	if !errors.As(err, &f) || f.Code != fault.CodeSession || !strings.Contains(f.Message, words) {
		t.Errorf("got %v, want SESSION_ERROR with %q", err, words)
	}
}

// Whatever a host loads, a session opens with what it says or not at all.
func FuzzLoad(f *testing.F) {
	doc, err := record.EncodeSnapshot(storetest.Snapshot("s", "x"))
	if err != nil {
		f.Fatal(err)
	}
	b, err := json.Marshal(host.StoreLoaded{Generation: 3, Snapshot: ptr(string(doc)), Facts: []string{"a"}})
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{string(b), `null`, `{"count":1,"facts":["a"]}`, `{"count":3,"facts":["a"]}`, `{"snapshot":"{}"}`, `{"generation":18446744073709551615,"facts":["a","b"]}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, loaded string) {
		if !json.Valid([]byte(loaded)) || !utf8.ValidString(loaded) {
			return // it is refused where it is given
		}
		asked := 0
		h := hosttest.New(t, func(_ context.Context, r desk.Request, _ func(any)) (any, error) {
			if asked++; r.Op == "load" && asked < 10 {
				return hosttest.Raw(loaded), nil
			}
			return nil, errors.New("enough")
		})
		s, err := host.Open(bg, host.Config{Line: desk.NewLine(h.Desk, "store", "kept", host.Deadline)})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		se, err := s.Open(ctx, "s", "o")
		if err != nil {
			t.Fatal(err)
		}
		defer se.Close()
		kept, err := se.Load(ctx)
		if err == nil {
			_, err = storetest.Collect(kept.Facts)
		}
		var e *fault.Error
		if err != nil && !errors.As(err, &e) {
			t.Errorf("%q gave %v", loaded, err)
		}
	})
}
