package main

import (
	"context"
	"time"
)

// core is what the rim needs of the runtime; op is the only real one. Objects are
// opaque here.
type core interface {
	OpenAgent(ctx context.Context, request []byte) (any, error)
	OpenSession(ctx context.Context, agent any, request []byte) (any, error)
	StartRun(ctx context.Context, session any, request []byte) (any, error)
	// Call runs an operation; it returns soon after ctx is done.
	Call(ctx context.Context, on any, method string, params []byte) ([]byte, error)
	// Tell puts the end of a started call on the control stream of on's agent.
	Tell(on any, call uint64, result []byte, err error)
	Input(ctx context.Context, run any, input []byte) error
	Cancel(ctx context.Context, run any, reason string) error
	Wait(ctx context.Context, run any) ([]byte, error)
	OpenStream(ctx context.Context, source any, opts []byte) (cursor, error)
	Register(ctx context.Context, on any, kind string, spec []byte) (any, error)
	Chunk(ctx context.Context, on any, request uint64, json []byte) error
	Reply(ctx context.Context, on any, request uint64, json []byte) error
	// Close ends an agent, a session or a registration.
	Close(ctx context.Context, on any) error
}

// cursor reads a stream (tape.Cursor).
type cursor interface {
	Next(ctx context.Context, limit int, buf []byte) (n, needed int, err error)
	TryNext(limit int, buf []byte) (n, needed int, err error)
	Wait(timeout time.Duration) (bool, error)
	FD() (int, error)
	Wake()
	Close()
}
