package mem

import (
	"context"
	"slices"

	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/store"
)

type blobs struct{ s *session }

// enter checks a name, locks the store and checks that the session is open; leave
// must be called if there is no error.
func (b blobs) enter(ctx context.Context, op, name string) (leave func(), err error) {
	if err := store.ValidBlobName(name); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fault.From(op, err)
	}
	mu := &b.s.st.mu
	mu.Lock()
	if err := b.s.alive(op); err != nil {
		mu.Unlock()
		return nil, err
	}
	return mu.Unlock, nil
}

func (b blobs) Put(ctx context.Context, name string, data []byte) error {
	const op = "store.put_blob"
	if len(data) > store.MaxBlob {
		return fault.New(fault.Limit, op, "blob %q has %d bytes, the limit is %d", name, len(data), store.MaxBlob)
	}
	leave, err := b.enter(ctx, op, name)
	if err != nil {
		return err
	}
	defer leave()
	if _, there := b.s.k.blobs[name]; !there {
		b.s.k.blobs[name] = append([]byte{}, data...)
	}
	return nil
}

func (b blobs) Get(ctx context.Context, name string) ([]byte, error) {
	const op = "store.get_blob"
	leave, err := b.enter(ctx, op, name)
	if err != nil {
		return nil, err
	}
	defer leave()
	data, there := b.s.k.blobs[name]
	if !there {
		return nil, fault.New(fault.NotFound, op, "session %q has no blob %q", b.s.id, name)
	}
	return slices.Clone(data), nil
}

func (b blobs) Delete(ctx context.Context, name string) error {
	leave, err := b.enter(ctx, "store.delete_blob", name)
	if err != nil {
		return err
	}
	defer leave()
	delete(b.s.k.blobs, name)
	return nil
}
