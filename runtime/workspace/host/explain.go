package host

import (
	"context"

	"github.com/a3s-lab/liba3s/runtime/fault"
	desk "github.com/a3s-lab/liba3s/runtime/host"
)

// kinds are those of a failure that the host may name.
var kinds = map[string]fault.Kind{
	"not_found": fault.NotFound, "conflict": fault.Conflict, "denied": fault.Denied, "invalid": fault.Invalid,
	"limit": fault.Limit, "io": fault.IO, "unsupported": fault.Unsupported, "exists": fault.Exists,
}

// explain gives a failure its kind: the end of ctx, what the host names, a time-out, or a
// host that is not there.
func (w *Workspace) explain(ctx context.Context, op, path string, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fault.From(op, ctx.Err())
	}
	f := desk.Explain(err)
	if f == nil {
		kind := fault.KindOf(err)
		if kind != fault.Timeout && kind != fault.Unsupported && kind != fault.Cancelled {
			kind = fault.IO
		}
		return fault.New(kind, op, "the host's workspace %q: %v", w.cfg.Line.Name(), err).With("path", path)
	}
	kind, ok := kinds[f.Kind]
	what := f.Message
	if !ok { // one that the host did not foresee, of which the type says more than the words
		kind, what = fault.IO, f.Error()
	}
	e := fault.New(kind, op, "%q: %s", path, what).With("path", path)
	if kind == fault.Conflict {
		for _, key := range []string{"expected", "actual"} {
			if v, ok := f.Details[key].(string); ok {
				e.With(key, desk.Cut(v, maxVersion))
			}
		}
	}
	return e
}

// garbage says that the host answered what cannot be.
func (w *Workspace) garbage(op, path, format string, args ...any) error {
	e := fault.New(fault.IO, op, "the answer of the host's workspace cannot be used: "+format, args...)
	return e.With("path", path).With("reason", "invalid_reply")
}
