package host

import (
	"context"
	"slices"

	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/store"
)

// blobs are kept by the host if it says so, else in memory.
type blobs struct{ s *session }

// enter checks a name and that the session is open; byHost says who keeps blobs.
func (b blobs) enter(ctx context.Context, op, name string) (byHost bool, err error) {
	if err := store.ValidBlobName(name); err != nil {
		return false, err
	}
	if err := ctx.Err(); err != nil {
		return false, fault.From(op, err)
	}
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	return b.s.st.cfg.Spec.Blobs, b.s.alive(op)
}

// Put implements store.Blobs.
func (b blobs) Put(ctx context.Context, name string, data []byte) error {
	const op = "store.put_blob"
	if len(data) > store.MaxBlob {
		return fault.New(fault.Limit, op, "blob %q has %d bytes, the limit is %d", name, len(data), store.MaxBlob)
	}
	byHost, err := b.enter(ctx, op, name)
	if err != nil {
		return err
	}
	if byHost {
		return b.s.st.ask(ctx, "append", b.s.id, StoreAppend{ID: b.s.id, Blob: name, Data: data}, &nothing{})
	}
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	if b.s.blobs == nil {
		b.s.blobs = map[string][]byte{}
	}
	if _, there := b.s.blobs[name]; !there {
		b.s.blobs[name] = append([]byte{}, data...)
	}
	return nil
}

// Get implements store.Blobs.
func (b blobs) Get(ctx context.Context, name string) ([]byte, error) {
	const op = "store.get_blob"
	byHost, err := b.enter(ctx, op, name)
	if err != nil {
		return nil, err
	}
	var data []byte
	var there bool
	if byHost {
		var p StoreLoaded
		if err := b.s.st.ask(ctx, "load", b.s.id, StoreLoad{ID: b.s.id, Blob: name}, &p); err != nil {
			return nil, err
		}
		if there = p.Data != nil; there {
			data = *p.Data
		}
	} else {
		b.s.mu.Lock()
		data, there = b.s.blobs[name]
		data = slices.Clone(data)
		b.s.mu.Unlock()
	}
	if !there {
		return nil, fault.New(fault.NotFound, op, "session %q has no blob %q", b.s.id, name)
	}
	return data, nil
}

// Delete implements store.Blobs.
func (b blobs) Delete(ctx context.Context, name string) error {
	byHost, err := b.enter(ctx, "store.delete_blob", name)
	if err != nil {
		return err
	}
	if byHost {
		return b.s.st.ask(ctx, "delete", b.s.id, StoreDelete{ID: b.s.id, Blob: name}, &nothing{})
	}
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	delete(b.s.blobs, name)
	return nil
}
