package main

import (
	"context"

	"github.com/a3s-lab/liba3s/runtime/op"
)

// runtimeCore is op. The table of handles keeps kinds apart, so that what comes here is
// what op expects; on gives op's functions their types without naming them.
type runtimeCore struct{}

// on calls fn with v as the type that fn wants.
func on[H, R any](fn func(context.Context, H, []byte) (R, error), ctx context.Context, v any, b []byte) (R, error) {
	return fn(ctx, v.(H), b)
}

func (runtimeCore) OpenAgent(ctx context.Context, request []byte) (any, error) {
	return op.OpenAgent(ctx, request)
}

func (runtimeCore) OpenSession(ctx context.Context, agent any, request []byte) (any, error) {
	return on(op.OpenSession, ctx, agent, request)
}

func (runtimeCore) StartRun(ctx context.Context, session any, request []byte) (any, error) {
	return on(op.StartRun, ctx, session, request)
}

func (runtimeCore) Call(ctx context.Context, h any, method string, params []byte) ([]byte, error) {
	return op.Call(ctx, h, method, params)
}

func (runtimeCore) Tell(h any, call uint64, result []byte, err error) {
	op.Tell(h, call, result, err)
}

func (runtimeCore) Input(ctx context.Context, run any, input []byte) error {
	return with(op.Input, ctx, run, input)
}

func (runtimeCore) Cancel(ctx context.Context, run any, reason string) error {
	return with(op.Cancel, ctx, run, reason)
}

// with calls fn with v as the type that fn wants.
func with[H, P any](fn func(context.Context, H, P) error, ctx context.Context, v any, p P) error {
	return fn(ctx, v.(H), p)
}

func (runtimeCore) Wait(ctx context.Context, run any) ([]byte, error) {
	return wait(op.Wait, ctx, run)
}

// wait calls fn with v as the type that fn wants.
func wait[H any](fn func(context.Context, H) ([]byte, error), ctx context.Context, v any) ([]byte, error) {
	return fn(ctx, v.(H))
}

func (runtimeCore) OpenStream(ctx context.Context, source any, opts []byte) (cursor, error) {
	return op.OpenStream(ctx, source, opts)
}

func (runtimeCore) Register(ctx context.Context, h any, kind string, spec []byte) (any, error) {
	return op.HostRegister(ctx, h, kind, spec)
}

func (runtimeCore) Chunk(ctx context.Context, h any, request uint64, json []byte) error {
	return op.HostChunk(ctx, h, request, json)
}

func (runtimeCore) Reply(ctx context.Context, h any, request uint64, json []byte) error {
	return op.HostReply(ctx, h, request, json)
}

func (runtimeCore) Close(ctx context.Context, h any) error { return op.Close(ctx, h) }

// features names what this build can do beyond the interface itself.
func features() []string { return []string{"offline", "script"} }
