package file

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/store"
)

// blobs are files of their own, written whole and flushed before Put returns, so that
// a fact never names a blob that a crash could take away.
type blobs struct{ s *session }

func (b blobs) path(op, name string) (string, error) {
	if err := store.ValidBlobName(name); err != nil {
		return "", err
	}
	if err := b.s.alive(op); err != nil {
		return "", err
	}
	return filepath.Join(b.s.st.blobDir(b.s.id), name), nil
}

func (b blobs) Put(ctx context.Context, name string, data []byte) error {
	const op = "store.put_blob"
	path, err := b.path(op, name)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fault.From(op, err)
	}
	if len(data) > store.MaxBlob {
		return fault.New(fault.Limit, op, "blob %q has %d bytes, the limit is %d", name, len(data), store.MaxBlob)
	}
	if exists(path) {
		return nil
	}
	st, dir := b.s.st, filepath.Dir(path)
	made, err := mkdirs(dir)
	if err == nil {
		err = st.replace(path, data, "blob")
	}
	switch {
	case err != nil:
	case b.s.blobbed.Load():
		err = syncDir(dir)
	default:
		err = st.syncTree(dir, made)
		b.s.blobbed.Store(err == nil)
	}
	if err != nil {
		return failed(op, err, "write blob %q", path)
	}
	return nil
}

func (b blobs) Get(ctx context.Context, name string) ([]byte, error) {
	const op = "store.get_blob"
	path, err := b.path(op, name)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fault.From(op, err)
	}
	data, err := readBounded(op, path, store.MaxBlob)
	var typed *fault.Error
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fault.New(fault.NotFound, op, "session %q has no blob %q", b.s.id, name)
	case errors.As(err, &typed):
		return nil, err
	case err != nil:
		return nil, failed(op, err, "read blob %q", path)
	}
	return data, nil
}

func (b blobs) Delete(ctx context.Context, name string) error {
	const op = "store.delete_blob"
	path, err := b.path(op, name)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fault.From(op, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return failed(op, err, "remove blob %q", path)
	}
	return nil
}
